import Foundation

/// The contents of a ring's slots over time: one column per sample, shaded by age.
struct RingPlot {
    let ring: ReportRing

    /// More columns or slots would be thinner than a pixel, so some are omitted.
    static let mostColumns = 256
    static let mostSlots = 512
    static let shades = 10

    private static let width = 960.0
    private static let left = 58.0
    private static let right = 944.0
    private static let top = 50.0
    private static let plotHeight = 256.0

    private var samples: [ReportRing.Sample] { thinned(ring.samples, to: Self.mostColumns) }
    private var slots: [Int] { thinned(0..<capacity, to: Self.mostSlots) }
    private var capacity: Int { min(max(ring.capacity, 0), 1 << 20) }

    func element() -> String {
        var svg = SVG(width: Self.width, height: Self.top + Self.plotHeight + 44)
        let samples = samples
        let slots = slots
        drawLegend(&svg)
        svg.rect(
            x: Self.left, y: Self.top, width: Self.right - Self.left, height: Self.plotHeight, "empty")
        if !samples.isEmpty, !slots.isEmpty {
            drawCells(&svg, samples, slots)
            drawAxes(&svg, samples, slots)
        }
        return svg.element(
            id: "ring", title: "Slots of the ring of layer \(ring.layer) over time",
            description: "\(samples.count) columns from the first token to the last, \(slots.count) slots from top to "
                + "bottom. The newest token's slot moves down, and returns to the top when the ring is full.")
    }

    private func drawCells(_ svg: inout SVG, _ samples: [ReportRing.Sample], _ slots: [Int]) {
        var runs = CellRuns(shades: Self.shades)
        let columnWidth = (Self.right - Self.left) / Double(samples.count)
        let slotHeight = Self.plotHeight / Double(slots.count)
        for (column, sample) in samples.enumerated() {
            let shades = slots.map { slot -> Int? in
                guard sample.slots.indices.contains(slot), let position = sample.slots[slot] else { return nil }
                return shade(age: Double(sample.newest) - Double(position))
            }
            runs.add(line: column, shades: shades, isColumn: true)
        }
        for (shade, path) in runs.paths.enumerated() {
            svg.cells(
                path, "cells heat h\(shade + 1)", x: Self.left, y: Self.top, scaleX: columnWidth, scaleY: slotHeight,
                shift: (0.5, 0))
        }
        for (column, sample) in samples.enumerated() {
            let x = Self.left + Double(column) * columnWidth
            if let slot = slots.firstIndex(where: {
                sample.slots.indices.contains($0) && sample.slots[$0] == sample.newest
            }) {
                svg.rect(
                    x: x, y: Self.top + Double(slot) * slotHeight - 1, width: columnWidth,
                    height: max(slotHeight, 1) + 2, "newest")
            }
            svg.rect(
                x: x, y: Self.top, width: columnWidth, height: Self.plotHeight, "touch", tooltip: tooltip(sample))
        }
    }

    private func tooltip(_ sample: ReportRing.Sample) -> String {
        let held = sample.slots.compactMap { $0 }
        guard let oldest = held.min(), let newest = held.max() else { return "empty" }
        return "after position \(sample.newest): \(held.count) slots hold positions \(oldest) to \(newest)"
    }

    /// The newest are darkest. Positions older than the ring's length, such as pinned ones, are as light as the oldest.
    private func shade(age: Double) -> Int {
        let part = min(max(age / Double(max(capacity, 1)), 0), 1)
        return Self.shades - 1 - min(Int(part * Double(Self.shades)), Self.shades - 1)
    }

    private func drawAxes(_ svg: inout SVG, _ samples: [ReportRing.Sample], _ slots: [Int]) {
        let bottom = Self.top + Self.plotHeight
        for part in [0.0, 0.25, 0.5, 0.75, 1] {
            let y = Self.top + part * Self.plotHeight
            svg.line(x1: Self.left - 4, y1: y, x2: Self.left, y2: y, "axis")
            svg.text(groupedText(Int(part * Double(capacity))), x: Self.left - 8, y: y + 4, "label", .end)
        }
        svg.text("slot", x: 12, y: Self.top + Self.plotHeight / 2, "label", .middle, isUpward: true)
        for (count, place) in ticks(samples) {
            let x = Self.left + place * (Self.right - Self.left)
            svg.line(x1: x, y1: bottom, x2: x, y2: bottom + 4, "axis")
            svg.text(groupedText(count), x: x, y: bottom + 17, "label", .middle)
        }
        svg.text("tokens so far", x: (Self.left + Self.right) / 2, y: bottom + 36, "label", .middle)
    }

    /// Token counts at which the ring wraps, and their horizontal fractions. A column's right edge is the time after
    /// its newest token; time is linear in between.
    private func ticks(_ samples: [ReportRing.Sample]) -> [(count: Int, place: Double)] {
        let edges = samples.map { Double($0.newest) + 1 }
        guard edges.count > 1, zip(edges, edges.dropFirst()).allSatisfy(<) else { return [] }
        let starts = [max(2 * edges[0] - edges[1], min(0, edges[0]))] + edges
        let most = starts[starts.count - 1]
        var step = Double(max(capacity, 2)) / 2
        while (most - starts[0]) / step > 12 { step *= 2 }
        guard step >= 1, most < 1e15, starts[0] > -1e15 else { return [] }
        return stride(from: (starts[0] / step).rounded(.up) * step, through: most, by: step).map { count in
            let column = max(1, starts.firstIndex { $0 >= count } ?? 1)
            let part = (count - starts[column - 1]) / (starts[column] - starts[column - 1])
            return (Int(count), (Double(column - 1) + part) / Double(samples.count))
        }
    }

    private func drawLegend(_ svg: inout SVG) {
        let step = 22.0
        var x = Self.left
        svg.text("age, in tokens:", x: x, y: 21, "label")
        x += 122
        svg.text("0", x: x - 7, y: 21, "label", .end)
        for shade in 0..<Self.shades {
            svg.rect(
                x: x + Double(shade) * step, y: 10, width: step, height: 14, "cell heat h\(Self.shades - shade)")
        }
        x += Double(Self.shades) * step
        svg.text(groupedText(capacity), x: x + 7, y: 21, "label")
        x += 70
        svg.rect(x: x, y: 15, width: 22, height: 4, "newest")
        svg.text("slot of the newest token", x: x + 29, y: 21, "label")
        x += 208
        svg.rect(x: x, y: 10, width: 22, height: 14, "empty")
        svg.text("empty", x: x + 29, y: 21, "label")
    }

    /// At most this many elements, evenly spaced, including the last.
    private func thinned<All: RandomAccessCollection<Element>, Element>(_ all: All, to most: Int) -> [Element]
    where All.Index == Int {
        guard all.count > most else { return Array(all) }
        return (0..<most).map { all[all.startIndex + ($0 + 1) * all.count / most - 1] }
    }
}
