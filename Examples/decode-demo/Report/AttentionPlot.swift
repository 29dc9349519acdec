import Foundation

/// The attention of one head, as a triangle of shaded cells over the text.
struct AttentionPlot {
    let attention: ReportAttention

    /// More tokens than this are unreadable; the plot shows the newest.
    static let mostTokens = 128
    /// The strongest cells have tooltips. Tooltips for all would make the page several times larger.
    static let mostTooltips = 1200
    static let shades = 10

    private static let width = 960.0
    private static let left = 46.0
    private static let top = 14.0

    private var first: Int { max(0, attention.tokens.count - Self.mostTokens) }

    func element() -> String {
        let labels = attention.tokens[first...].map(label(ofToken:))
        let count = labels.count
        let cell = min(26, (Self.width - Self.left - 14) / Double(max(count, 1)))
        let side = cell * Double(count)
        var svg = SVG(width: Self.width, height: max(Self.top + side + 44, 170))
        drawCells(&svg, labels, cell)
        drawTexts(&svg, labels, cell)
        drawLegend(&svg)
        return svg.element(
            id: "attention", title: "Attention of head \(attention.head) of layer \(attention.layer)",
            description: "A triangle of \(count) rows. Each row is a token, each column that token or an earlier one; "
                + "the darker a cell, the more the row's token attends to the column's.")
    }

    /// The weight of a cell; `nil` if there is none.
    private func weight(_ row: Int, _ column: Int) -> Double? {
        guard attention.weights.indices.contains(first + row) else { return nil }
        let weights = attention.weights[first + row]
        guard column <= row, weights.indices.contains(first + column) else { return nil }
        let weight = weights[first + column]
        return weight.isFinite && weight > 0 ? min(weight, 1) : nil
    }

    /// The weight with the darkest shade: one that few cells exceed, in steps of 5 %. The first rows do not count,
    /// because their tokens have few positions to attend to.
    private var darkest: Double {
        let rows = attention.tokens.count - first
        let weights = (min(8, rows / 2)..<rows).flatMap { row in (0...row).compactMap { weight(row, $0) } }.sorted()
        guard !weights.isEmpty else { return 1 }
        return min(max((weights[weights.count * 99 / 100] * 20).rounded(.up) / 20, 0.1), 1)
    }

    private func drawCells(_ svg: inout SVG, _ labels: [String], _ cell: Double) {
        var plain = CellRuns(shades: 1)
        var runs = CellRuns(shades: Self.shades)
        var strongest: [(row: Int, column: Int, weight: Double)] = []
        let darkest = darkest
        for row in labels.indices {
            let weights = (0...row).map { weight(row, $0) }
            plain.add(line: row, shades: weights.map { _ in 0 }, isColumn: false)
            runs.add(line: row, shades: weights.map { shade($0, darkest) }, isColumn: false)
            for (column, weight) in weights.enumerated() {
                if let weight, weight >= 0.005 { strongest.append((row, column, weight)) }
            }
        }
        for (shade, path) in ([plain.paths[0]] + runs.paths).enumerated() {
            svg.cells(
                path, shade == 0 ? "cells plain" : "cells heat h\(shade)", x: Self.left, y: Self.top, scaleX: cell,
                scaleY: cell, shift: (0, 0.5))
        }
        strongest.sort { $0.weight > $1.weight }
        for (row, column, weight) in strongest.prefix(Self.mostTooltips) {
            svg.rect(
                x: Self.left + Double(column) * cell, y: Self.top + Double(row) * cell, width: cell, height: cell,
                "touch",
                tooltip: "\(labels[row]) at \(place(row)) → \(labels[column]) at \(place(column)): "
                    + "\(decimalText(100 * weight, digits: 1)) %")
        }
    }

    private func place(_ token: Int) -> Int { attention.firstPosition &+ first &+ token }

    /// Shades follow the square root, so that small weights are visible.
    private func shade(_ weight: Double?, _ darkest: Double) -> Int? {
        guard let weight else { return nil }
        let shade = Int(((weight / darkest).squareRoot() * Double(Self.shades)).rounded()) - 1
        return shade < 0 ? nil : min(shade, Self.shades - 1)
    }

    private func drawTexts(_ svg: inout SVG, _ labels: [String], _ cell: Double) {
        let side = cell * Double(labels.count)
        let size = min(12, cell * 1.05)
        for (index, label) in labels.enumerated() {
            let middle = (Double(index) + 0.5) * cell
            svg.text(label, x: Self.left - 9, y: Self.top + middle + size * 0.34, "token", .middle, size: size)
            svg.text(
                label, x: Self.left + middle, y: Self.top + side + size + 3, "token", .middle, size: size)
        }
        svg.text("attending token", x: 14, y: Self.top + side / 2, "label", .middle, isUpward: true)
        svg.text(
            "attended token", x: Self.left + side / 2, y: Self.top + side + 34, "label", .middle)
    }

    /// In the corner outside the triangle.
    private func drawLegend(_ svg: inout SVG) {
        let x = Self.width - 290
        let step = 24.0
        let darkest = darkest
        svg.text("weight", x: x, y: 24, "name")
        for shade in 0...Self.shades {
            let style = shade == 0 ? "cell plain" : "cell heat h\(shade)"
            svg.rect(x: x + Double(shade) * step, y: 34, width: step, height: 14, style)
        }
        for shade in stride(from: 0, through: Self.shades, by: 2) {
            let part = Double(shade) / Double(Self.shades)
            let number = decimalText(100 * part * part * darkest, digits: 0)
            svg.text(
                "\(shade == Self.shades ? "≥ " : "")\(number) %", x: x + (Double(shade) + 0.5) * step, y: 64,
                "label", .middle)
        }
    }
}
