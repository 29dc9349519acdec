import Foundation

#if canImport(Accelerate)
    import Accelerate
#endif

/// A row-major matrix of weights.
struct Matrix: Sendable {
    let rows: Int
    let columns: Int
    private let elements: [Float]

    /// Stacks matrices with the same number of columns.
    init(_ entries: Safetensors.Entry...) {
        rows = entries.reduce(0) { $0 + $1.shape[0] }
        columns = entries[0].shape[1]
        elements = entries.flatMap(\.elements)
    }

    var count: Int { elements.count }

    func row(_ index: Int) -> [Float] { Array(elements[index * columns..<(index + 1) * columns]) }

    /// The matrix times a column vector.
    func times(_ vector: [Float]) -> [Float] {
        precondition(vector.count == columns)
        return [Float](unsafeUninitializedCapacity: rows) { result, count in
            elements.withUnsafeBufferPointer { matrix in
                vector.withUnsafeBufferPointer { vector in multiply(matrix, vector, result) }
            }
            count = rows
        }
    }

    #if canImport(Accelerate)
        private func multiply(
            _ matrix: UnsafeBufferPointer<Float>, _ vector: UnsafeBufferPointer<Float>,
            _ result: UnsafeMutableBufferPointer<Float>
        ) {
            vDSP_mmul(
                matrix.baseAddress!, 1, vector.baseAddress!, 1, result.baseAddress!, 1, vDSP_Length(rows), 1,
                vDSP_Length(columns))
        }
    #else
        /// Divides the rows among the processor's cores if that pays off: a single core is limited by memory.
        private func multiply(
            _ matrix: UnsafeBufferPointer<Float>, _ vector: UnsafeBufferPointer<Float>,
            _ result: UnsafeMutableBufferPointer<Float>
        ) {
            let parts = max(1, min(ProcessInfo.processInfo.activeProcessorCount, count / 40_000))
            // Each part writes its own rows.
            nonisolated(unsafe) let (matrix, vector, result) = (matrix, vector, result)
            DispatchQueue.concurrentPerform(iterations: parts) { part in
                for row in rows * part / parts..<rows * (part + 1) / parts {
                    result[row] = product(matrix, row, vector)
                }
            }
        }

        private func product(
            _ matrix: UnsafeBufferPointer<Float>, _ row: Int, _ vector: UnsafeBufferPointer<Float>
        ) -> Float {
            typealias Lanes = SIMD16<Float>
            let step = Lanes.scalarCount
            let whole = columns / step * step
            let weights = UnsafeBufferPointer(rebasing: matrix[row * columns..<(row + 1) * columns])
            func load(_ numbers: UnsafeBufferPointer<Float>, _ at: Int) -> Lanes {
                UnsafeRawPointer(numbers.baseAddress! + at).loadUnaligned(as: Lanes.self)
            }
            var sums = Lanes.zero
            for at in stride(from: 0, to: whole, by: step) { sums += load(weights, at) * load(vector, at) }
            return (whole..<columns).reduce(sums.sum()) { $0 + weights[$1] * vector[$1] }
        }
    #endif
}
