import Foundation

/// Maps numbers to coordinates along an axis.
struct Scale {
    private let from: Double
    private let to: Double
    private let start: Double
    private let end: Double
    private let isLog: Bool

    /// A scale that is never empty: replaces invalid bounds.
    init(_ bounds: ClosedRange<Double>, to places: (start: Double, end: Double), isLog: Bool = false) {
        self.isLog = isLog
        start = places.start
        end = places.end
        let low = isLog ? log10(max(bounds.lowerBound, 1e-300)) : bounds.lowerBound
        let high = isLog ? log10(max(bounds.upperBound, 1e-300)) : bounds.upperBound
        from = low
        to = high > low ? high : low + 1
    }

    func place(_ value: Double) -> Double {
        let number = isLog ? log10(max(value, 1e-300)) : value
        return start + (number - from) / (to - from) * (end - start)
    }

    /// Round numbers from 0 to the largest, about this many.
    static func ticks(upTo largest: Double, about count: Int) -> [Double] {
        guard largest.isFinite, largest > 0, count > 0 else { return [0] }
        let rough = largest / Double(count)
        let power = pow(10, floor(log10(rough)))
        let step = ([1, 2, 5].first { $0 * power >= rough * 0.999 } ?? 10) * power
        guard step > 0 else { return [0] }
        return (0...count * 3).map { Double($0) * step }.filter { $0 <= largest * 1.0001 }
    }
}

/// Places labels near their points such that they cover neither each other nor a point.
struct LabelPlaces {
    struct Box {
        var x: Double
        var y: Double
        var width: Double
        var height: Double

        func meets(_ other: Box) -> Bool {
            x < other.x + other.width && other.x < x + width && y < other.y + other.height && other.y < y + height
        }

        func isInside(_ other: Box) -> Bool {
            x >= other.x && y >= other.y && x + width <= other.x + other.width
                && y + height <= other.y + other.height
        }
    }

    private var taken: [Box]
    private let room: Box

    init(room: Box, points: [(x: Double, y: Double)], radius: Double) {
        self.room = room
        taken = points.map { Box(x: $0.x - radius, y: $0.y - radius, width: 2 * radius, height: 2 * radius) }
    }

    /// Keeps labels out of a box.
    mutating func keepFree(_ box: Box) { taken.append(box) }

    /// A box for a label of this size at this point, beside it if it must be level; the first choice if no place is
    /// free.
    mutating func place(width: Double, height: Double, x: Double, y: Double, isLevel: Bool) -> Box {
        let gap = 10.0
        let beside = [(x + gap, y - height / 2), (x - width - gap, y - height / 2)]
        let above = [(x + gap, y - height - 1), (x - width / 2, y - height - gap), (x - width - gap, y - height - 1)]
        let corners =
            (isLevel ? beside + above : above + beside) + [
                (x + gap, y - 2 * height),
                (x - width / 2, y - 2 * height - gap), (x - width - gap, y - 2 * height),
                (x - width / 2, y - 3 * height - gap), (x - width / 2, y + gap),
            ]
        let boxes = corners.map { Box(x: $0.0, y: $0.1, width: width, height: height) }
        let found =
            boxes.first { box in box.isInside(room) && !taken.contains { $0.meets(box) } }
            ?? boxes.first { box in box.isInside(room) } ?? boxes[0]
        taken.append(found)
        return found
    }
}
