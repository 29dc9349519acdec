import MLXNativeKernels

/// The demo: one step for each token, as a decoder would run it, and a check of what is stored.
struct DecodeDemo {
    let arguments: Arguments
    let device: KernelDevice
    let cache: AttentionCache
    private let tokens: MadeUpTokens
    private var perToken: Summary.Counts?
    private var dispatches = 0
    private var barriers = 0
    private var bytesRead = 0
    private var bytesWritten = 0
    private var deviceSeconds = 0.0

    init(_ arguments: Arguments) throws {
        self.arguments = arguments
        device = try KernelDevice.default()
        cache = try AttentionCache(
            .init(kvHeads: arguments.heads, headDim: arguments.headDim, capacity: arguments.capacity),
            storage: .dense(arguments.dtype),
            whenFull: arguments.isLinear ? .fail : .overwriteOldest(keepingFirst: arguments.pinnedOrDefault),
            on: device)
        tokens = MadeUpTokens(seed: arguments.seed, heads: arguments.heads, headDim: arguments.headDim)
    }

    func introduce() {
        let pinned = arguments.pinnedOrDefault
        let stay = pinned == 1 ? "; position 0 stays for ever" : "; the first \(pinned) positions stay for ever"
        let full =
            arguments.isLinear
            ? "the next append is refused with an error"
            : "the newest token takes the slot of the oldest" + (pinned == 0 ? "" : stay)
        print(
            """
            decode-demo: a cache of keys and values, filled one token at a time by this package's kernels

              device     \(device.name)
              cache      \(counted(arguments.heads, "head")) × \(counted(arguments.capacity, "slot")) × \
            \(counted(arguments.headDim, "element")), \(arguments.dtype), keys and values: \(bytesText(cache.bytes))
              when full  \(full)

            """)
    }

    /// Appends every token, and draws the slots after each one.
    mutating func run() throws {
        let drawing = Drawing(capacity: arguments.capacity, tokens: arguments.tokens)
        if !arguments.isQuiet && arguments.tokens > 0 {
            print(drawing.legend(pinned: arguments.pinnedOrDefault), terminator: "\n\n")
            print(drawing.header)
        }
        for token in 0..<arguments.tokens {
            let counts = try append(token)
            if arguments.isQuiet { continue }
            let map = slotMap
            print(drawing.row(map, token: token, counts))
            _ = try map.check(against: cache, tokens)
        }
    }

    /// Reads the cache back for the last time and says what was done.
    func conclude() throws {
        let map = slotMap
        let rows = try map.check(against: cache, tokens)
        let appended = cache.nextPosition
        let overwritten = appended - map.kept.count
        let kept =
            map.kept.isEmpty
            ? "nothing" : "\(map.kept.count == 1 ? "position" : "positions") \(rangesText(map.kept))"
        if !arguments.isQuiet && arguments.tokens > 0 { print() }
        print(
            """
            \(counted(appended, "token")) appended on \(device.name)

              kept         \(kept)\(overwritten > 0 ? "; \(overwritten) overwritten" : "")
              read back    \(counted(rows, "row")) of keys and values: every element as appended, 0 where nothing was
            """)
        guard let perToken else { return }
        print(
            """
              per token    \(counted(perToken.dispatches, "dispatch")), \
            \(bytesText(perToken.bytesRead)) read, \(bytesText(perToken.bytesWritten)) written
              in total     \(counted(dispatches, "dispatch")), \(counted(barriers, "barrier")), \
            \(bytesText(bytesRead)) read, \(bytesText(bytesWritten)) written
              device time  \(millisecondsText(deviceSeconds))
            """)
    }

    private var slotMap: SlotMap { SlotMap(of: cache, pinned: arguments.pinnedOrDefault) }

    private mutating func append(_ token: Int) throws -> Summary.Counts {
        let shape = [arguments.heads, arguments.headDim]
        let keys = try Tensor(tokens.token(.keys, position: token), shape: shape, dtype: arguments.dtype, on: device)
        let values = try Tensor(
            tokens.token(.values, position: token), shape: shape, dtype: arguments.dtype, on: device)
        let done = try device.encode(label: "token \(token)") { step in
            try step.append(keys: keys, values: values, to: cache)
        }
        try done.wait()
        let summary = done.summary
        perToken = summary.total
        dispatches += summary.total.dispatches
        barriers += summary.barriers
        bytesRead += summary.total.bytesRead
        bytesWritten += summary.total.bytesWritten
        deviceSeconds += summary.deviceSeconds
        return summary.total
    }
}
