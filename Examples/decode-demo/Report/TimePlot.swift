import Foundation

/// The time that one token takes, part by part: a bar for each storage, once with all parts and once with kernels
/// alone.
struct TimePlot {
    let rows: [ReportRow]

    /// Colors that the style has; further parts share the last.
    private static let colors = 6
    private static let width = 960.0
    private static let left = 70.0
    private static let right = 870.0
    private static let barHeight = 20.0
    private static let barStep = 27.0

    /// Every part's name, in the order in which they first come.
    private var names: [String] {
        rows.flatMap(\.parts).map(\.name).reduce(into: []) { names, name in
            if !names.contains(name) { names.append(name) }
        }
    }

    func element() -> String {
        let hasBoth = rows.contains { row in row.parts.contains { !$0.isKernel } && !row.kernelParts.isEmpty }
        let panelHeight = 26 + Self.barStep * Double(max(rows.count, 1)) + 40
        var svg = SVG(width: Self.width, height: 34 + panelHeight * (hasBoth ? 2 : 1))
        let unit = ReadableUnit.time(upTo: rows.map(\.secondsPerToken).max() ?? 0)
        drawLegend(&svg)
        drawPanel(&svg, "Whole token", top: 34, parts: \.parts)
        if hasBoth {
            drawPanel(&svg, "Kernels only, on their own scale", top: 34 + panelHeight, parts: \.kernelParts)
        }
        let list = rows.map { row in
            let parts = row.parts.map { "\($0.name) \(unit.text($0.secondsPerToken))" }
            return "\(row.name): \(parts.joined(separator: ", "))"
        }
        return svg.element(
            id: "time", title: "Time per token by part", description: list.joined(separator: "; ") + ".")
    }

    private func color(_ name: String) -> Int { min((names.firstIndex(of: name) ?? 0) + 1, Self.colors) }

    private func drawLegend(_ svg: inout SVG) {
        var x = Self.left
        for name in names.prefix(Self.colors) {
            svg.rect(x: x, y: 6, width: 14, height: 14, "bar s\(color(name))")
            svg.text(name, x: x + 20, y: 17, "label")
            x += 20 + 7 * Double(name.count) + 26
        }
    }

    private func drawPanel(_ svg: inout SVG, _ title: String, top: Double, parts: (ReportRow) -> [ReportRow.Part]) {
        func total(_ row: ReportRow) -> Double { parts(row).reduce(0) { $0 + counted(seconds: $1.secondsPerToken) } }
        let longest = rows.map(total).max() ?? 0
        let unit = ReadableUnit.time(upTo: longest)
        let largest = unit.value(longest)
        let across = Scale(0...max(largest, 1e-9), to: (Self.left, Self.right))
        let barsTop = top + 26
        let bottom = barsTop + Self.barStep * Double(rows.count)
        svg.text(title, x: Self.left, y: top + 14, "name")
        let ticks = Scale.ticks(upTo: largest, about: 8)
        let step = ticks.count > 1 ? ticks[1] : 1
        for tick in ticks {
            let x = across.place(tick)
            svg.line(x1: x, y1: barsTop, x2: x, y2: bottom, "grid")
            svg.text(
                decimalText(tick, digits: min(max(0, -Int(floor(log10(step) + 1e-9))), 9)), x: x, y: bottom + 15,
                "label",
                .middle)
        }
        svg.text("\(unit.name) per token", x: Self.width, y: bottom + 15, "label", .end)
        for (index, row) in rows.enumerated() {
            let y = barsTop + Double(index) * Self.barStep + (Self.barStep - Self.barHeight) / 2
            svg.text(row.name, x: Self.left - 9, y: y + 14, "name", .end)
            var sum = 0.0
            for part in parts(row) {
                let seconds = counted(seconds: part.secondsPerToken)
                guard seconds > 0 else { continue }
                let x = across.place(unit.value(sum))
                sum += seconds
                let width = across.place(unit.value(sum)) - x
                let color = color(part.name)
                svg.rect(
                    x: x, y: y, width: width, height: Self.barHeight, "bar s\(color)",
                    tooltip: "\(row.name), \(part.name): \(unit.text(seconds))")
                let text = unit.number(seconds)
                if width > 7.2 * Double(text.count) + 8 {
                    svg.text(text, x: x + width / 2, y: y + 14, "on s\(color)", .middle)
                }
            }
            svg.text(
                sum > 0 ? unit.text(sum) : "not measured", x: across.place(unit.value(sum)) + 8, y: y + 14,
                "value total")
        }
    }
}
