import Foundation

/// Cost over size of storages: measured points and the curve of a theoretical bound.
///
/// Both axes are logarithmic. Points at 0 or less, which have no logarithm, are in a strip at the bottom.
struct CostPlot {
    struct Point {
        var name: String
        var bytesPerToken: Int
        var value: Double
        /// The value as text.
        var label: String
        var isBase: Bool
    }

    let id: String
    let title: String
    let points: [Point]
    /// The curve as a function of bytes per token.
    let curve: (Double) -> Double?
    /// `nil` if there is none.
    let curveName: String?
    let elementsPerToken: Double?

    private static let width = 480.0
    private static let height = 400.0
    private static let left = 62.0
    private static let right = 468.0
    private static let top = 46.0
    /// The y coordinate at which the scale ends and the strip begins.
    private static let foot = 304.0
    private static let bottom = 346.0
    private static let strip = 325.0
    private static let labelHeight = 25.0

    /// The added bits per byte of each row, and the bound times the fitted slope.
    static func cost(_ rows: [ReportRow], _ bound: RateBound) -> CostPlot {
        let points = rows.compactMap { row -> Point? in
            guard let added = bound.added(row), canShow(added), row.bytesPerToken > 0 else { return nil }
            let isBase = bound.isBase(row)
            return Point(
                name: row.name, bytesPerToken: row.bytesPerToken, value: added,
                label: isBase ? decimalText(row.bitsPerByte, digits: 4) : signedText(added), isBase: isBase)
        }
        return CostPlot(
            id: "cost", title: "Added bits per byte", points: points,
            curve: { bytes in bound.slope.flatMap { slope in bound.leastError(bytesPerToken: bytes).map { slope * $0 } }
            },
            curveName: bound.slope.map { _ in "yardstick: slope × 2⁻²ᴿ" }, elementsPerToken: bound.elementsPerToken)
    }

    /// The squared error of each row, and the bound itself.
    static func error(_ rows: [ReportRow], _ bound: RateBound) -> CostPlot {
        let points = rows.compactMap { row -> Point? in
            guard canShow(row.error), row.bytesPerToken > 0 else { return nil }
            return Point(
                name: row.name, bytesPerToken: row.bytesPerToken, value: row.error,
                label: shortText(row.error), isBase: bound.isBase(row))
        }
        return CostPlot(
            id: "error", title: "Squared error of keys and values", points: points,
            curve: { bound.leastError(bytesPerToken: $0) }, curveName: "bound: 2⁻²ᴿ",
            elementsPerToken: bound.elementsPerToken)
    }

    /// Larger numbers are not measurements.
    private static func canShow(_ value: Double) -> Bool { abs(value) < 1e9 }

    func element() -> String {
        var svg = SVG(width: Self.width, height: Self.height)
        svg.text(title, x: 0, y: 12, "heading")
        guard !points.isEmpty else {
            svg.text("nothing measured", x: Self.width / 2, y: Self.height / 2, "label", .middle)
            return svg.element(id: id, title: title, description: "No storage was measured.")
        }
        let bytes = points.map { Double($0.bytesPerToken) }
        let across = Scale(
            (bytes.min() ?? 1) / 1.2...(bytes.max() ?? 1) * 1.2, to: (Self.left, Self.right), isLog: true)
        let bounds = valueBounds
        let up = Scale(bounds, to: (Self.foot, Self.top), isLog: true)
        drawAxes(&svg, across, up, bounds)
        drawCurve(&svg, across, up)
        let legend = drawLegend(&svg)
        drawPoints(&svg, across, up, bounds, legend)
        let list = points.map { "\($0.name): \(groupedText($0.bytesPerToken)) bytes, \($0.label)" }
        return svg.element(
            id: id, title: "\(title) by bytes per token", description: list.joined(separator: "; ") + ".")
    }

    /// Whole decades around the positive values. Values far below the others go to the strip, so that the others keep
    /// their space.
    private var valueBounds: ClosedRange<Double> {
        let positive = points.map(\.value).filter { $0 > 1e-12 }
        let highest = positive.max() ?? 1
        let lowest = positive.filter { $0 >= highest * 1e-4 }.min() ?? highest / 1000
        let low = pow(10, floor(log10(lowest)))
        return low...max(highest * 4, low * 10)
    }

    private func drawAxes(_ svg: inout SVG, _ across: Scale, _ up: Scale, _ bounds: ClosedRange<Double>) {
        svg.rect(x: Self.left, y: Self.foot, width: Self.right - Self.left, height: Self.bottom - Self.foot, "strip")
        svg.text("less", x: Self.left - 7, y: Self.strip + 4, "label", .end)
        for decade in (0..<8).map({ bounds.lowerBound * pow(10, Double($0)) }) where decade <= bounds.upperBound {
            let y = up.place(decade)
            svg.line(x1: Self.left, y1: y, x2: Self.right, y2: y, "grid")
            svg.text(shortDecade(decade), x: Self.left - 7, y: y + 4, "label", .end)
        }
        for power in 0..<40 {
            for number in [1.0, 1.5].map({ $0 * pow(2, Double(power)) }) {
                let x = across.place(number)
                guard x > Self.left, x < Self.right else { continue }
                svg.line(x1: x, y1: Self.bottom, x2: x, y2: Self.bottom + 4, "axis")
                svg.text(groupedText(Int(number)), x: x, y: Self.bottom + 17, "label", .middle)
            }
        }
        svg.line(x1: Self.left, y1: Self.bottom, x2: Self.right, y2: Self.bottom, "axis")
        svg.text(
            "bytes per token, all layers", x: (Self.left + Self.right) / 2, y: Self.bottom + 36, "label", .middle)
        guard let elementsPerToken else { return }
        svg.text("bits per element, R", x: Self.right, y: 12, "label", .end)
        svg.line(x1: Self.left, y1: Self.top, x2: Self.right, y2: Self.top, "axis")
        for bits in [1.0, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32] {
            let x = across.place(bits * elementsPerToken / 8)
            guard x > Self.left, x < Self.right else { continue }
            svg.line(x1: x, y1: Self.top - 4, x2: x, y2: Self.top, "axis")
            svg.text("\(Int(bits))", x: x, y: Self.top - 8, "label", .middle)
        }
    }

    private func drawCurve(_ svg: inout SVG, _ across: Scale, _ up: Scale) {
        let bytes = points.map { Double($0.bytesPerToken) }
        guard let least = bytes.min(), let most = bytes.max() else { return }
        var places: [(x: Double, y: Double)] = []
        let steps = 120
        var previous: (x: Double, y: Double)?
        for step in 0...steps {
            let number = least / 1.2 * pow(most / least * 1.44, Double(step) / Double(steps))
            guard let value = curve(number), value.isFinite, value > 0 else { return }
            let place = (x: across.place(number), y: up.place(value))
            if let previous, place.y > Self.foot, previous.y < Self.foot {
                let part = (Self.foot - previous.y) / (place.y - previous.y)
                places.append((previous.x + part * (place.x - previous.x), Self.foot))
            }
            if place.y >= Self.top, place.y <= Self.foot { places.append(place) }
            previous = place
        }
        svg.polyline(places, "curve")
    }

    private func drawLegend(_ svg: inout SVG) -> LabelPlaces.Box {
        let x = Self.right - 190
        svg.circle(x: x, y: Self.top + 18, radius: 4.5, "point")
        svg.text("measured", x: x + 14, y: Self.top + 22, "label")
        if let curveName {
            svg.line(x1: x - 8, y1: Self.top + 38, x2: x + 8, y2: Self.top + 38, "curve")
            svg.text(curveName, x: x + 14, y: Self.top + 42, "label")
        }
        return .init(x: x - 10, y: Self.top, width: 200, height: 52)
    }

    private func drawPoints(
        _ svg: inout SVG, _ across: Scale, _ up: Scale, _ bounds: ClosedRange<Double>, _ legend: LabelPlaces.Box
    ) {
        let places = points.map { point in
            let isOnScale = point.value >= bounds.lowerBound
            return (x: across.place(Double(point.bytesPerToken)), y: isOnScale ? up.place(point.value) : Self.strip)
        }
        var labels = LabelPlaces(
            room: .init(
                x: Self.left, y: Self.top, width: Self.right - Self.left, height: Self.bottom - Self.top),
            points: places, radius: 5)
        labels.keepFree(legend)
        for (point, place) in zip(points, places) {
            let tooltip = "\(point.name): \(groupedText(point.bytesPerToken)) bytes per token, \(point.label)"
            svg.circle(
                x: place.x, y: place.y, radius: point.isBase ? 5.5 : 4.5, point.isBase ? "point base" : "point",
                tooltip: tooltip)
            let letters = Double(max(point.name.count, point.label.count))
            let box = labels.place(
                width: 6.6 * letters, height: Self.labelHeight, x: place.x, y: place.y,
                isLevel: place.y >= Self.strip)
            let isLeft = box.x + box.width <= place.x
            let x = isLeft ? box.x + box.width : box.x
            svg.text(point.name, x: x, y: box.y + 10, "name", isLeft ? .end : .start)
            svg.text(point.label, x: x, y: box.y + 22, "value", isLeft ? .end : .start)
        }
    }

    private func shortDecade(_ value: Double) -> String {
        let power = Int(log10(value).rounded())
        return abs(power) > 5 ? "1e\(power)" : decimalText(value, digits: max(0, -power))
    }
}
