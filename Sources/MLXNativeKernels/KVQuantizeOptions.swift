extension KVQuantizeOptions {
    /// Sizes of a vector that ``KVCodec/Name/turbo`` tries, to keep the codes whose direction is nearest to the
    /// vector's.
    public enum Candidates: Int, Sendable, Hashable, CaseIterable {
        /// Only the vector's root mean square.
        case one = 1
        /// Five sizes.
        case five = 5
        /// Seventeen sizes.
        case seventeen = 17
    }
}
