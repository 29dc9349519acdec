import Foundation
import XCTest

@testable import JargonLM

/// A small model with random weights.
func randomModel(_ sizes: Configuration) throws -> LanguageModel {
    try LanguageModel(randomWeights(sizes), configuration: sizes)
}

func assertThrows<T>(
    _ code: ModelError.Code, _ body: @autoclosure () throws -> T, _ message: String = "",
    file: StaticString = #filePath, line: UInt = #line
) {
    XCTAssertThrowsError(try body(), message, file: file, line: line) {
        XCTAssertEqual(($0 as? ModelError)?.code, code, message, file: file, line: line)
    }
}

/// Weights of these sizes, the same in each call.
func randomWeights(_ sizes: Configuration) throws -> Safetensors {
    var shapes: [(String, [Int])] = [("embed", [sizes.vocabulary, sizes.width]), ("norm", [sizes.width])]
    for layer in 0..<sizes.layers {
        let named: [(String, [Int])] = [
            ("attn_norm", [sizes.width]), ("ffn_norm", [sizes.width]),
            ("q", [sizes.heads * sizes.headDim, sizes.width]), ("k", [sizes.kvHeads * sizes.headDim, sizes.width]),
            ("v", [sizes.kvHeads * sizes.headDim, sizes.width]), ("o", [sizes.width, sizes.heads * sizes.headDim]),
            ("gate", [sizes.hidden, sizes.width]), ("up", [sizes.hidden, sizes.width]),
            ("down", [sizes.width, sizes.hidden]),
        ]
        shapes += named.map { ("layers.\(layer).\($0.0)", $0.1) }
    }
    var state: UInt32 = 1
    var header: [String] = []
    var data = Data()
    for (name, shape) in shapes {
        let begin = data.count
        for _ in 0..<shape.reduce(1, *) {
            state = state &* 1_664_525 &+ 1_013_904_223
            let number = (Float(state >> 8) * 0x1p-24 - 0.5) * 0.6
            withUnsafeBytes(of: number.bitPattern.littleEndian) { data.append(contentsOf: $0) }
        }
        header.append(
            #""\#(name).weight":{"dtype":"F32","shape":\#(shape),"data_offsets":[\#(begin),\#(data.count)]}"#)
    }
    let text = Data("{\(header.joined(separator: ","))}".utf8)
    return try Safetensors(withUnsafeBytes(of: UInt64(text.count).littleEndian) { Data($0) } + text + data)
}
