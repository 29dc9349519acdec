/// The table of storages.
struct ReportTable {
    let rows: [ReportRow]
    let bound: RateBound

    /// All context lengths for which a row has a size, shortest first.
    private var contexts: [Int] { Set(rows.flatMap { $0.cacheSizes.map(\.context) }).sorted() }

    /// One unit per column, so that its numbers are comparable.
    private func memory(_ context: Int) -> ReadableUnit {
        let sizes = rows.flatMap(\.cacheSizes).filter { $0.context == context }
        return .memory(upTo: sizes.map(\.bytes).max() ?? 0)
    }

    func element() -> String {
        let contexts = contexts
        let unit = ReadableUnit.time(upTo: rows.map(\.secondsPerToken).max() ?? 0)
        let base = bound.base.map { "over \($0.name)" } ?? "added"
        var html = """
            <div class="wide" role="region" aria-label="Storages" tabindex="0">
            <table>
            <thead>
            <tr>
            <th scope="col" rowspan="2">storage</th>
            <th scope="col" rowspan="2">bits per element</th>
            <th scope="col" rowspan="2">bytes per token</th>

            """
        if !contexts.isEmpty {
            html += "<th scope=\"colgroup\" colspan=\"\(contexts.count)\" class=\"group\">cache size at context</th>\n"
        }
        html += """
            <th scope="col" rowspan="2">squared error</th>
            <th scope="colgroup" colspan="3" class="group">bits per byte</th>
            <th scope="col" rowspan="2">dispatches per token</th>
            <th scope="col" rowspan="2">\(unit.name) per token</th>
            </tr>
            <tr>

            """
        for context in contexts { html += "<th scope=\"col\">\(contextText(context)), \(memory(context).name)</th>\n" }
        html +=
            "<th scope=\"col\">measured</th>\n<th scope=\"col\">\(escaped(base))</th>\n<th scope=\"col\">±</th>\n</tr>\n</thead>\n<tbody>\n"
        for row in rows { html += line(row, contexts, unit) }
        if rows.isEmpty { html += "<tr><td colspan=\"\(9 + contexts.count)\">nothing measured</td></tr>\n" }
        return html + "</tbody>\n</table>\n</div>"
    }

    private func line(_ row: ReportRow, _ contexts: [Int], _ unit: ReadableUnit) -> String {
        let sizes = contexts.map { context in
            row.cacheSizes.first { $0.context == context }.map { memory(context).number(Double($0.bytes)) } ?? noNumber
        }
        let added = bound.isBase(row) ? "baseline" : bound.added(row).map(signedText) ?? noNumber
        let cells =
            [decimalText(row.bitsPerElement, digits: 3), groupedText(row.bytesPerToken)] + sizes
            + [
                shortText(row.error), decimalText(row.bitsPerByte, digits: 4), added,
                bound.isBase(row) ? "" : shortText(row.standardError),
                dispatchesText(row.dispatchesPerToken), unit.number(row.secondsPerToken),
            ]
        return "<tr><th scope=\"row\">\(escaped(row.name))</th>"
            + cells.map { "<td>\(escaped($0))</td>" }.joined() + "</tr>\n"
    }

    private func dispatchesText(_ number: Double) -> String {
        decimalText(number, digits: number == number.rounded() ? 0 : 2)
    }
}
