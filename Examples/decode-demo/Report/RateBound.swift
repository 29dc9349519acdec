import Foundation

/// Measured costs of storages relative to the baseline, and their theoretical bound.
///
/// A quantizer with R bits per element cannot reduce the squared error of independent normal numbers below 2^(-2R) of
/// their variance. For bits per byte, the bound assumes a cost proportional to the squared error, with a slope fitted
/// to the rows.
struct RateBound {
    /// The baseline: the row with the most bits per element.
    let base: ReportRow?
    /// Elements of keys and values per token.
    let elementsPerToken: Double?
    /// Added bits per byte per unit of squared error; `nil` if the rows do not determine it.
    let slope: Double?

    init(_ rows: [ReportRow]) {
        let base = rows.filter { $0.bitsPerElement.isFinite && $0.bitsPerElement > 0 && $0.bitsPerByte.isFinite }
            .max { $0.bitsPerElement < $1.bitsPerElement }
        self.base = base
        elementsPerToken = rows.lazy.map { 8 * Double($0.bytesPerToken) / $0.bitsPerElement }
            .first { $0.isFinite && $0 > 0 }
        var products = 0.0
        var squares = 0.0
        for row in rows where row.error.isFinite && row.error > 0 {
            guard let base, row.bitsPerByte.isFinite else { continue }
            products += row.error * (row.bitsPerByte - base.bitsPerByte)
            squares += row.error * row.error
        }
        let fitted = products / squares
        slope = fitted.isFinite && fitted > 0 ? fitted : nil
    }

    /// Bits per byte relative to the baseline; `nil` for a row without a number.
    func added(_ row: ReportRow) -> Double? {
        guard let base else { return nil }
        let added = row.bitsPerByte - base.bitsPerByte
        return added.isFinite ? added : nil
    }

    func isBase(_ row: ReportRow) -> Bool { row.name == base?.name && row.bytesPerToken == base?.bytesPerToken }

    /// The least squared error of normal numbers, in units of their variance, with this many bytes per token.
    func leastError(bytesPerToken: Double) -> Double? {
        guard let elementsPerToken else { return nil }
        return pow(2, -2 * 8 * bytesPerToken / elementsPerToken)
    }
}
