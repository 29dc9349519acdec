import Foundation

/// A drawing that is built element by element, for the body of a page.
///
/// Colors come from the page's style by class. Every number is made finite, and every text is escaped.
struct SVG {
    enum Anchor: String { case start, middle, end }

    let width: Double
    let height: Double
    private var body = ""

    init(width: Double, height: Double) {
        self.width = width
        self.height = height
    }

    mutating func rect(
        x: Double, y: Double, width: Double, height: Double, _ style: String, tooltip: String? = nil
    ) {
        let start =
            "<rect class=\"\(style)\" x=\"\(number(x))\" y=\"\(number(y))\" "
            + "width=\"\(number(max(width, 0)))\" height=\"\(number(max(height, 0)))\""
        close(start, "rect", tooltip)
    }

    mutating func circle(x: Double, y: Double, radius: Double, _ style: String, tooltip: String? = nil) {
        close(
            "<circle class=\"\(style)\" cx=\"\(number(x))\" cy=\"\(number(y))\" r=\"\(number(max(radius, 0)))\"",
            "circle", tooltip)
    }

    mutating func line(x1: Double, y1: Double, x2: Double, y2: Double, _ style: String) {
        body += "<line class=\"\(style)\" x1=\"\(number(x1))\" y1=\"\(number(y1))\" "
        body += "x2=\"\(number(x2))\" y2=\"\(number(y2))\"/>\n"
    }

    /// A polyline through these points.
    mutating func polyline(_ points: [(x: Double, y: Double)], _ style: String) {
        guard points.count > 1 else { return }
        let list = points.map { "\(number($0.x)),\(number($0.y))" }.joined(separator: " ")
        body += "<polyline class=\"\(style)\" points=\"\(list)\"/>\n"
    }

    mutating func text(
        _ text: String, x: Double, y: Double, _ style: String = "label", _ anchor: Anchor = .start,
        size: Double? = nil, isUpward: Bool = false
    ) {
        let sizing = size.map { " font-size=\"\(number($0))\"" } ?? ""
        let turn = isUpward ? " transform=\"rotate(-90 \(number(x)) \(number(y)))\"" : ""
        body += "<text class=\"\(style)\" x=\"\(number(x))\" y=\"\(number(y))\" "
        body += "text-anchor=\"\(anchor.rawValue)\"\(sizing)\(turn)>\(escaped(text))</text>\n"
    }

    /// Cells of a grid, drawn as strokes of width 1 in grid units: a few bytes for a whole run of cells.
    ///
    /// - Parameters:
    ///   - runs: Path data of lines along the middles of rows or columns; see ``CellRuns``.
    ///   - shift: The offset from whole numbers to those middles.
    mutating func cells(
        _ runs: String, _ style: String, x: Double, y: Double, scaleX: Double, scaleY: Double,
        shift: (x: Double, y: Double)
    ) {
        guard !runs.isEmpty else { return }
        body += "<path class=\"\(style)\" transform=\"translate(\(number(x)) \(number(y))) "
        body += "scale(\(number(scaleX, digits: 5)) \(number(scaleY, digits: 5))) "
        body += "translate(\(number(shift.x)) \(number(shift.y)))\" d=\"\(runs)\"/>\n"
    }

    /// The drawing with a text alternative. `id` is a simple word, unique in the page.
    func element(id: String, title: String, description: String) -> String {
        """
        <svg role="img" aria-labelledby="\(id)-title \(id)-desc" viewBox="0 0 \(number(width)) \(number(height))">
        <title id="\(id)-title">\(escaped(title))</title>
        <desc id="\(id)-desc">\(escaped(description))</desc>
        \(body)</svg>
        """
    }

    private mutating func close(_ start: String, _ name: String, _ tooltip: String?) {
        body += start
        body += tooltip.map { "><title>\(escaped($0))</title></\(name)>\n" } ?? "/>\n"
    }

    private func number(_ value: Double, digits: Int = 2) -> String { coordinate(value, digits: digits) }
}

/// A number for an attribute: finite, short, and never with an exponent.
func coordinate(_ value: Double, digits: Int = 2) -> String {
    guard value.isFinite else { return "0" }
    var text = String(format: "%.\(digits)f", min(max(value, -1e6), 1e6))
    if text.contains(".") {
        while text.hasSuffix("0") { text.removeLast() }
        if text.hasSuffix(".") { text.removeLast() }
    }
    return text == "-0" ? "0" : text
}

/// Runs of equal cells, one path for each shade.
struct CellRuns {
    private(set) var paths: [String]

    init(shades: Int) { paths = Array(repeating: "", count: max(shades, 0)) }

    /// Adds one line of cells. `shades` has one entry per cell, `nil` for a plain one.
    mutating func add(line: Int, shades: [Int?], isColumn: Bool) {
        var start = 0
        while start < shades.count {
            var end = start + 1
            while end < shades.count, shades[end] == shades[start] { end += 1 }
            if let shade = shades[start], paths.indices.contains(shade) {
                paths[shade] += isColumn ? "M\(line) \(start)v\(end - start)" : "M\(start) \(line)h\(end - start)"
            }
            start = end
        }
    }
}
