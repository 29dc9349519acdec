import JargonLM
import MLXNativeKernels

/// The cost of each storage, as a table of at most 100 columns.
func storageTable(_ scores: [PassageScore], on device: KernelDevice, bold: (String) -> String) -> String {
    guard let base = PassageScore.base(of: scores) else { return "" }
    let contexts = PassageScore.contexts
    let head =
        ["storage", "bytes"] + contexts.map { _ in "cache" } + ["bits", "over", "±", "dispatches"]
        + base.costs.shares.map(\.name)
    let units = ["", "/token"] + contexts.map(contextText) + ["/byte", base.storage.name, "", "/token"]
    let rows = scores.map { score in
        let over = score.difference(from: base)
        return [score.storage.name, "\(score.bytesPerToken)"]
            + contexts.map { megabytesText(score.cacheBytes[$0] ?? 0) }
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
        A held-out passage of \(base.bits.count) bytes, predicted byte by byte; fewer bits are better.

        """
    let place = device.kind == .host ? ", measured on the CPU and not on a GPU" : ""
    let note = """

        cache: MB of keys and values at these context lengths; K is 1024 tokens.
        ±: the standard error of the difference over the passage's bytes.
        Swift, store, attend: shares of a token's time\(place).
        store also rotates queries and keys; Swift is matrix products and all other work outside kernels.
        """
    return ([title] + lines.prefix(2).map { bold(line($0)) } + rows.map(line) + [note]).joined(separator: "\n")
}

/// Three digits, or two decimal places.
private func megabytesText(_ bytes: Int) -> String {
    let number = Double(bytes) / 1e6
    return decimalText(number, digits: number >= 100 ? 0 : number >= 10 ? 1 : 2)
}
