import JargonLM

/// What each storage costs, as a table of at most 106 columns.
func storageTable(_ scores: [PassageScore], bold: (String) -> String) -> String {
    guard let base = PassageScore.base(of: scores) else { return "" }
    let contexts = PassageScore.contexts
    let head =
        ["storage", "bytes/"] + contexts.map { _ in "cache" } + ["bits/", "over", "±", "calls/"]
        + base.costs.shares.map(\.name)
    let units = ["", "token"] + contexts.map { "at \(contextText($0))" } + ["byte", base.storage.name, "", "token"]
    let rows = scores.map { score in
        let over = score.difference(from: base)
        return [score.storage.name, "\(score.bytesPerToken)"] + contexts.map { bytesText(score.cacheBytes[$0] ?? 0) }
            + [
                decimalText(score.bitsPerByte, digits: 4), signed(over.mean, digits: 4),
                decimalText(over.standardError, digits: 4), decimalText(score.dispatchesPerToken, digits: 1),
            ] + score.costs.shares.map { percentage($0.seconds, of: score.costs.seconds) }
    }
    let lines = [head, units + Array(repeating: "", count: head.count - units.count)] + rows
    let widths = head.indices.map { column in lines.map { $0[column].count }.max() ?? 0 }
    func line(_ cells: [String]) -> String {
        cells.enumerated()
            .map { $0.offset == 0 ? $0.element.padded(to: widths[0]) : $0.element.aligned(to: widths[$0.offset]) }
            .joined(separator: "  ").trimmingTrailingSpaces
    }
    let title = """
        A held-out passage of \(base.bits.count) bytes, foretold byte by byte: fewer bits are better.
        Time: shares of each token's; Swift is matrix products and all else that is no kernel.

        """
    let note =
        "\n± is the standard error of the difference over the passage's bytes. A call is a dispatch of one kernel."
    return ([title] + lines.prefix(2).map { bold(line($0)) } + rows.map(line) + [note]).joined(separator: "\n")
}
