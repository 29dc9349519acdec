import MLXNativeKernels
import XCTest

/// The order of calls within a step: a step uses its tensors when it runs, so that its closure can neither write them
/// nor read its results, and a token is appended before it attends.
final class OpenStepTests: AttentionTestCase {
    /// Runs the closure as a step, then as a recording.
    private func refusedInSteps(
        op: String = "", what: String, got: String = "", line: UInt = #line, _ body: (KernelEncoder) throws -> Void
    ) {
        assertRefused(op: op, what: what, got: got, line: line) { try device.encode(body) }
        assertRefused(op: op, what: what, got: got, line: line) { try device.record(body) }
    }

    func testWritingWhatAnOpenStepReadsThrows() throws {
        let (first, second) = (try makeCache(), try makeCache())
        let tokens = someTokens(2)
        let token = try tensor([tokens[0].key])
        let writes: [(Tensor) throws -> Void] = [
            { try $0.write(tokens[1].key) }, { try $0.write(bytes: [UInt8](repeating: 1, count: $0.byteCount)) },
            { try $0[0..<1].write(tokens[1].key) }, { try $0.reshaped([1, 2 * 64]).write(tokens[1].key) },
        ]
        for write in writes {
            refusedInSteps(op: "Buffer", what: "an open step uses this memory", got: "a write") { step in
                try step.append(keys: token, values: token, to: first)
                try write(token)
                try step.append(keys: token, values: token, to: second)
            }
        }
        XCTAssertEqual(try [first.nextPosition, second.nextPosition], [0, 0])
        XCTAssertEqual(try token.array(of: Float.self), tokens[0].key)

        // Before and after a step, and inside it if the error is caught, the tensor is what was written last.
        for (cache, write) in [(first, tokens[0].key), (second, tokens[1].key)] {
            try token.write(write)
            try device.encode { step in
                try step.append(keys: token, values: token, to: cache)
                assertRefused { try token.write(numbers(write.count)) }
            }
        }
        for (cache, expected) in [(first, tokens[0].key), (second, tokens[1].key)] {
            let stored = try cache.keys.array(of: Float.self)
            XCTAssertEqual((0..<kvHeads).flatMap { stored[$0 * 64 * headDim..<($0 * 64 + 1) * headDim] }, expected)
        }
    }

    func testReadingWhatAnOpenStepWritesThrows() throws {
        let (cache, other) = (try makeCache(), try makeCache())
        let tokens = someTokens(1)
        try append(tokens, to: other)
        let (keys, values) = (try tensor(tokens.map(\.key)), try tensor(tokens.map(\.value)))
        let (q, out) = (try queries(1), try zeros(1))
        let reads: [() throws -> Void] = [
            { _ = try out.array(of: Float.self) }, { _ = try out.bytes() }, { _ = try cache.keys.bytes() },
        ]
        for read in reads {
            refusedInSteps(op: "Buffer", what: "an open step writes this memory", got: "a read") { step in
                try step.append(keys: keys, values: values, to: cache)
                try step.attend(q, over: cache, into: out)
                try read()
            }
        }
        XCTAssertEqual(try cache.nextPosition, 0)
        XCTAssertEqual(try out.array(of: Float.self), [Float](repeating: 0, count: out.count))

        let step = try device.record { step in
            try step.append(keys: keys, values: values, to: cache)
            try step.attend(q, over: cache, into: out)
            // What the step only reads can be read; what it does not use can also be written.
            XCTAssertEqual(try keys.array(of: Float.self), tokens[0].key)
            XCTAssertEqual(try other.values.array(of: Float.self)[0], tokens[0].value[0])
            try other.keys[0..<1].write(bytes: other.keys.bytes())
            try zeros(1).write(numbers(heads * headDim))
        }
        try keys.write(tokens[0].key)
        try step.run()
        try assertClose(out, try attended(q, over: tokens))
    }
}
