import JargonLM

/// What each storage costs, as a table of at most 100 columns.
func storageTable(_ scores: [PassageScore], bold: (String) -> String) -> String {
    let base = scores.first?.bitsPerByte ?? 0
    let contexts = PassageScore.contexts
    let reference = scores.first?.storage.name ?? ""
    let head =
        ["storage", "bytes/"] + contexts.map { _ in "cache" } + ["bits/", "over", "kernels/"]
        + (scores.first?.costs.shares ?? []).map(\.name)
    let units = ["", "token"] + contexts.map { "at \($0 / 1024) K" } + ["byte", reference, "token"]
    let rows = scores.map { score in
        [score.storage.name, "\(score.bytesPerToken)"] + contexts.map { bytesText(score.cacheBytes[$0] ?? 0) } + [
            rounded(score.bitsPerByte, 4), signed(score.bitsPerByte - base, 4), rounded(score.dispatchesPerToken, 1),
        ] + score.costs.shares.map { percentage($0.seconds, of: score.costs.seconds) }
    }
    let lines = [head, units + Array(repeating: "", count: head.count - units.count)] + rows
    let widths = head.indices.map { column in lines.map { $0[column].count }.max() ?? 0 }
    func line(_ cells: [String]) -> String {
        cells.enumerated()
            .map { $0.offset == 0 ? $0.element.padded(to: widths[0]) : $0.element.aligned(to: widths[$0.offset]) }
            .joined(separator: "  ").trimmingTrailingSpaces
    }
    let count = scores.first?.bits.count ?? 0
    return
        (["A held-out passage of \(count) bytes, foretold byte by byte. Time: shares of each token's, op by op.", ""]
        + lines.prefix(2).map { bold(line($0)) } + rows.map(line)).joined(separator: "\n")
}
