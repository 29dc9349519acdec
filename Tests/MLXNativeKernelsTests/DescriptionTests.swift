import MLXNativeKernels
import XCTest

final class DescriptionTests: DeviceTestCase {
    /// Each public type has a one-line description, not Swift's default.
    func testEveryTypePrintsOneLine() throws {
        let vector = try Tensor.zeros(shape: [1, 64], on: device)
        let view = KVCacheView(keys: try Tensor.zeros(shape: [1, 4, 64], on: device))
        let cache = try AttentionCache(.init(kvHeads: 1, headDim: 64, capacity: 4), on: device)
        let quantized = try AttentionCache(
            .init(kvHeads: 1, headDim: 64, capacity: 4), storage: .quantized(.turbo, keys: .bits4, values: .bits4),
            on: device)
        let library = try KernelLibrary.shipped(on: device)
        var printed: [Any] = [
            try XCTUnwrap(device), vector, view, cache, quantized, library, HeadsView(vector),
            RotaryEmbedding(base: 1e6),
            RotaryStep(.init()), AttentionOptions(scale: 0.5), AttendedSequence(length: 3), HostOptions(),
            SlidingWindow(window: 4), AttentionCache.Calibration(), KVCodec.turbo(.bits4), KVQuantizeOptions(),
            KVCacheWrite(keys: vector, into: view, at: 0),
            MultiRoPE(HeadsView(vector), positions: .text(startingAt: 0), with: .init()),
            KernelBuffer.read(vector, at: 0), InlineBytes.value(Float(1), at: 1),
            ThreadgroupMemory.byteCount(16, at: 0),
            FunctionConstant.float(0.5, at: 0), GridSize(8), cache.dimensions, cache.storage, cache.whenFull,
        ]
        if let planes = quantized.quantizedView { printed += [planes, planes.keys] }
        let done = try device.encode { step in
            printed.append("\(step)")
            try step.append(keys: vector, values: vector, to: cache)
        }
        try done.wait()
        printed += [done, done.summary, try device.record { try $0.append(keys: vector, values: vector, to: cache) }]
        for value in printed {
            let text = "\(value)"
            for word in ["\n", "Optional(", "nil", "MLXNativeKernels.", "mnk_", "0x"] {
                XCTAssertFalse(text.contains(word), "\(type(of: value)) prints \"\(text)\"")
            }
            XCTAssert((1...400).contains(text.count), "\(type(of: value)) prints \(text.count) characters: \(text)")
        }
        XCTAssertEqual("\(AttendedSequence(length: 3, rows: 2))", "AttendedSequence(length: 3, rows: 2)")
        XCTAssertEqual("\(KVCodec.turbo(.bits4))", "turbo, 4 bits")
        XCTAssertEqual("\(AttentionOptions(window: 8, kernel: .vector))", "AttentionOptions(window: 8, kernel: vector)")
        XCTAssertEqual("\(AttentionOptions())", "AttentionOptions()")
        let whenFull: [AttentionCache.WhenFull] = [.fail, .overwriteOldest, .overwriteOldest(keepingFirst: 4)]
        XCTAssertEqual(
            whenFull.map { "\($0)" }, ["fail", "overwriteOldest", "overwriteOldest(keepingFirst: 4)"])
        XCTAssertEqual("\(FunctionConstant.int32(-2, at: 1))", "-2 at 1")
    }
}
