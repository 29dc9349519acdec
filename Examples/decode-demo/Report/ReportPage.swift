/// A report as one self-contained page: no scripts, and no external resources.
func reportPage(_ data: ReportData) -> String {
    let bound = RateBound(data.rows)
    // The policy forbids the browser to fetch or run anything, whatever the texts contain.
    return """
        <!DOCTYPE html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <meta name="color-scheme" content="light dark">
        <title>\(escaped(data.title))</title>
        <style>
        \(reportStyle)
        </style>
        </head>
        <body>
        <header>
        <h1>\(escaped(data.title))</h1>
        \(facts(data))
        </header>
        <main>
        \(tiles(data.rows, bound))
        \(textSection(data))
        \(tableSection(data, bound))
        \(costSection(data.rows, bound))
        \(attentionSection(data.attention))
        \(ringSection(data.ring))
        \(timeSection(data))
        </main>
        <footer>Numbers from one run on one machine. K in context lengths is 1024 tokens; 1 MB is a million bytes.</footer>
        </body>
        </html>

        """
}

private func facts(_ data: ReportData) -> String {
    let lines = [
        ("Model", data.model), ("Device", data.device), ("Measured on", data.passage), ("System", data.system),
    ]
    .filter { !$0.1.isEmpty }
    guard !lines.isEmpty else { return "" }
    return "<dl class=\"facts\">\n"
        + lines.map { "<dt>\($0.0)</dt><dd>\(escaped($0.1))</dd>\n" }.joined() + "</dl>"
}

/// The main results: the smallest storages, compared with the baseline.
private func tiles(_ rows: [ReportRow], _ bound: RateBound) -> String {
    guard let base = bound.base, base.bytesPerToken > 0 else { return "" }
    let others = rows.filter { !bound.isBase($0) && $0.bytesPerToken > 0 && bound.added($0) != nil }
    var tiles = [
        (decimalText(base.bitsPerByte, digits: 4), "bits per byte with \(base.name), the baseline")
    ]
    func tile(_ row: ReportRow, _ what: String) {
        let factor = Double(base.bytesPerToken) / Double(row.bytesPerToken)
        let added = bound.added(row) ?? 0
        tiles.append(
            (
                "\(decimalText(factor, digits: 1))× smaller",
                "\(row.name), \(what): \(signedText(added)) ± \(shortText(row.standardError)) bits per byte"
            ))
    }
    let smallest = others.min { $0.bytesPerToken < $1.bytesPerToken }
    let close = others.filter { (bound.added($0) ?? .infinity) + 2 * $0.standardError <= 0.005 * base.bitsPerByte }
        .min { $0.bytesPerToken < $1.bytesPerToken }
    if let close { tile(close, "the smallest within 0.5 % of \(base.name) at two standard errors") }
    if let smallest, smallest.name != close?.name { tile(smallest, "the smallest overall") }
    return "<div class=\"tiles\">\n"
        + tiles.map { "<p class=\"tile\"><b>\(escaped($0.0))</b><span>\(escaped($0.1))</span></p>\n" }.joined()
        + "</div>"
}

private func section(_ title: String, _ body: String) -> String {
    "<section>\n<h2>\(escaped(title))</h2>\n\(body)\n</section>"
}

private func figure(_ pictures: [String], _ caption: String) -> String {
    let style = pictures.count > 1 ? "pair" : "wide"
    return "<figure>\n<div class=\"\(style)\">\n\(pictures.joined(separator: "\n"))\n</div>\n"
        + "<figcaption>\(escaped(caption))</figcaption>\n</figure>"
}

private func textSection(_ data: ReportData) -> String {
    let note = data.writing.isEmpty ? "" : "<p class=\"note\">\(escaped(data.writing))</p>\n"
    return section(
        "Generated text",
        note + "<pre><span class=\"prompt\">\(escaped(data.prompt))</span>\(escaped(data.continuation))</pre>")
}

private func tableSection(_ data: ReportData, _ bound: RateBound) -> String {
    section(
        "Storage of keys and values",
        "<p class=\"note\">Bits per byte measure how well the model predicts the passage; lower is better. "
            + "± is the standard error of the difference over the passage's bytes. "
            + "Squared error is |x − x′|² / |x|² over the keys and values in the caches at the end.</p>\n"
            + ReportTable(rows: data.rows, bound: bound).element())
}

private func costSection(_ rows: [ReportRow], _ bound: RateBound) -> String {
    let pictures = [CostPlot.cost(rows, bound).element(), CostPlot.error(rows, bound).element()]
    let limit =
        "The bound is the least squared error of any quantizer with R bits per element, 2⁻²ᴿ of the variance, for "
        + "independent normal elements"
    let yardstick =
        bound.slope.map { slope in
            "; the yardstick also assumes that cost is proportional to that error, with a slope of "
                + "\(shortText(slope)) fitted to the measured points by least squares. Keys and values of a real model "
                + "are neither exactly normal nor independent, and the coarsest storages dominate the fit, so the "
                + "yardstick is not a proven limit."
        } ?? ". There is no yardstick for costs, because these points do not determine a slope of cost over error."
    return section(
        "The cost of fewer bytes",
        figure(
            pictures,
            limit + yardstick
                + " Costs are relative to \(bound.base?.name ?? "the baseline") (the ring-shaped point, labeled with its bits "
                + "per byte). A point in the strip at the bottom is below the scale; its label gives its value."))
}

private func attentionSection(_ attention: ReportAttention?) -> String {
    guard let attention, !attention.tokens.isEmpty else { return "" }
    return section(
        "Attention of one head",
        figure(
            [AttentionPlot(attention: attention).element()],
            "Head \(attention.head) of layer \(attention.layer), with keys stored as \(attention.storage). Each row is a "
                + "token (one byte of the text), each column a token that it can see; shades follow the square root of "
                + "the weight. ⏎ is a line break and · a space. Hover over a strong cell to see its weight."))
}

private func ringSection(_ ring: ReportRing?) -> String {
    guard let ring, !ring.samples.isEmpty else { return "" }
    return section(
        "The ring of a sliding-window layer",
        figure(
            [RingPlot(ring: ring).element()],
            "Layer \(ring.layer) sees the newest \(groupedText(ring.window)) positions. Its cache stores the newest "
                + "\(groupedText(ring.capacity)), so that a step can append several tokens: once its slots are full, "
                + "each new token overwrites the oldest, and no data moves."))
}

private func timeSection(_ data: ReportData) -> String {
    section(
        "Time per token",
        figure(
            [TimePlot(rows: data.rows).element()],
            "Means over the tokens of the passage. Device: \(data.device). store also rotates queries and keys. The "
                + "device measured each op, which is slower than running without measurement."))
}
