import MLXNativeKernels
import XCTest

final class AttentionCacheTests: DeviceTestCase {
    private func append(
        _ positions: Range<Int>, to cache: AttentionCache, sequence: Int = 0
    ) throws {
        let keys = try tokens(positions, heads: cache.dimensions.kvHeads, headDim: cache.dimensions.headDim)
        let values = try tokens(positions, heads: cache.dimensions.kvHeads, headDim: cache.dimensions.valueHeadDim)
        try device.encode { try $0.append(keys: keys, values: values, to: cache, sequence: sequence) }.wait()
    }

    func testFreshCacheIsEmptyAndReportsItsSize() throws {
        let cache = try AttentionCache(
            .init(kvHeads: 3, headDim: 8, capacity: 5, sequences: 2, valueHeadDim: 4), storage: .dense(.bfloat16),
            isStorageOnly: true, on: device)
        XCTAssertEqual(cache.byteCount, 2 * 3 * 5 * (8 + 4) * 2)
        XCTAssertEqual(cache.bytesPerSequence, 3 * 5 * (8 + 4) * 2)
        XCTAssertEqual(cache.keys.shape, [2, 3, 5, 8])
        XCTAssertEqual(cache.values.shape, [2, 3, 5, 4])
        XCTAssertEqual(cache.keys.dtype, .bfloat16)
        for sequence in [0, 1] {
            XCTAssertEqual(try cache.nextPosition(ofSequence: sequence), 0)
            XCTAssertEqual(try cache.count(ofSequence: sequence), 0)
            XCTAssertFalse(try cache.isSuspect(sequence: sequence))
        }
    }

    /// A call that names no sequence is for the only one of a cache.
    func testACacheOfSeveralSequencesWantsOneNamed() throws {
        let storage = AttentionCache.Storage.quantized(.turbo, keys: .bits8, values: .bits8)
        let cache = try AttentionCache(
            .init(kvHeads: 1, headDim: 64, capacity: 4, sequences: 2), storage: storage, on: device)
        for sequence in 0..<2 { try append(0..<2, to: cache, sequence: sequence) }
        let token = try tokens(2..<3, heads: 1, headDim: 64)
        let output = try Tensor.zeros(shape: [1, 1, 64], on: device)
        let rotary = RotaryEmbedding()
        let encoded: [(KernelEncoder, AttentionCache, Int?) throws -> Void] = [
            { try $0.append(keys: token, values: token, to: $1, sequence: $2) },
            { try $0.attend(token, over: $1, into: output, sequence: $2) },
            {
                try $0.appendAndAttend(queries: token, keys: token, values: token, over: $1, into: output, sequence: $2)
            },
            { try $0.dequantize($1, from: 0, sequence: $2, keys: output) },
            { step, cache, sequence in
                try step.rotate(token, positions: .next(of: cache, sequences: sequence.map { [$0] }), with: rotary)
                try step.append(keys: token, values: token, to: cache, sequence: sequence)
            },
        ]
        let calls: [(AttentionCache, Int?) throws -> Void] =
            encoded.map { call in { cache, sequence in try self.device.encode { try call($0, cache, sequence) }.wait() }
            }
            + [
                { _ = try $1.map($0.nextPosition(ofSequence:)) ?? $0.nextPosition },
                { _ = try $1.map($0.count(ofSequence:)) ?? $0.count },
                { try $0.truncate(to: 2, sequence: $1) },
            ]
        let named: [(AttentionCache, Int) throws -> Void] = [
            { _ = try $0.isSuspect(sequence: $1) }, { try $0.reset(sequence: $1) },
            { cache, sequence in try self.device.encode { try $0.copy(sequence: sequence, to: 0, in: cache) } },
            { cache, sequence in try self.device.encode { try $0.copy(sequence: 0, to: sequence, in: cache) } },
        ]
        let only = try AttentionCache(.init(kvHeads: 1, headDim: 64, capacity: 4), storage: storage, on: device)
        try append(0..<2, to: only)
        for (index, call) in calls.enumerated() {
            assertRefused(
                what: "does not say which sequence", got: "no sequence, and a cache of 2 sequences",
                expected: "a sequence from 0 to 1"
            ) { try call(cache, nil) }
            XCTAssertNoThrow(try call(cache, 1), "call \(index)")
            XCTAssertNoThrow(try call(only, nil), "call \(index)")
            for each in [cache, only] {
                for sequence in 0..<each.dimensions.sequences { try each.truncate(to: 2, sequence: sequence) }
            }
        }
        // No number means the only sequence, and none is shortened to another.
        for sequence in [-1, 2, 7, Int(UInt32.max), Int(UInt32.max) + 1, .max] {
            for cache in [cache, only] {
                for call in calls + named.map({ call in { try call($0, $1!) } }) {
                    assertRefused(what: "the sequence is not in the cache", got: "sequence \(sequence)") {
                        try call(cache, sequence)
                    }
                }
            }
        }
        XCTAssertEqual(try (0..<2).map(cache.nextPosition(ofSequence:)), [2, 2])
        XCTAssertEqual(try only.nextPosition, 2)
        XCTAssertFalse(cache.isSuspect)
    }

    /// With zero queries, the result is the mean of the latent parts.
    func testLatentCacheStoresValuesInKeys() throws {
        let cache = try AttentionCache(
            .init(kvHeads: 1, headDim: 64, capacity: 4, latentDim: 512), storage: .dense(.float32), on: device)
        XCTAssertEqual(cache.dimensions.valueHeadDim, 512)
        XCTAssertEqual(cache.dimensions.latentDim, 512)
        XCTAssertEqual(cache.bytesPerToken, (512 + 64) * 4)
        let latent = try Tensor(
            [Float](repeating: 1, count: 512) + [Float](repeating: 3, count: 512), shape: [2, 1, 512], on: device)
        let keys = try Tensor.zeros(shape: [2, 1, 64], on: device)
        let queries = try Tensor.zeros(shape: [8, 576], on: device)
        let output = try Tensor.zeros(shape: [8, 512], on: device)
        try device.encode { step in
            try step.append(keys: keys, values: latent, to: cache)
            try step.attend(queries, over: cache, into: output, .init(scale: 0.1))
        }.wait()
        for element in try output.array(of: Float.self) { XCTAssertEqual(element, 2, accuracy: 1e-5) }
        assertRefused { try device.encode { try $0.attend(queries, over: cache, into: output) }.wait() }
    }

    func testSlotsWrapBehindPinnedPositions() throws {
        let ring = try AttentionCache(
            .init(kvHeads: 1, headDim: 1, capacity: 5), whenFull: .overwriteOldest(keepingFirst: 2),
            isStorageOnly: true, on: device)
        XCTAssertEqual((0..<10).map { ring.slot(ofPosition: $0) }, [0, 1, 2, 3, 4, 2, 3, 4, 2, 3])
        XCTAssertNil(ring.slot(ofPosition: -1))
        let linear = try AttentionCache(.init(kvHeads: 1, headDim: 1, capacity: 2), isStorageOnly: true, on: device)
        XCTAssertEqual((0..<4).map { linear.slot(ofPosition: $0) }, [0, 1, nil, nil])
    }

    func testDescriptionsAreOneLine() throws {
        let cache = try AttentionCache(.init(kvHeads: 2, headDim: 64, capacity: 4), on: device)
        try append(0..<3, to: cache)
        XCTAssertEqual(
            "\(cache)", "2 heads of 64 as f16, 1 sequence at position 3, 4 slots that fail when full, 2.0 KB")
        let window = try AttentionCache(
            .init(kvHeads: 1, headDim: 64, sequences: 2), slidingWindow: .init(window: 3), keepingFirst: 1,
            storage: .quantized(.turbo, keys: .bits5, values: .bits4), on: device)
        for part in ["turbo", "5 bits and 4 bits", "2 sequences", "the first 1", "a window of 3"] {
            XCTAssert("\(window)".contains(part), "\(window)")
        }
        XCTAssertFalse("\(window)".contains("\n"))

        XCTAssertEqual("\(cache.storage)", "float16")
        XCTAssertEqual("\(AttentionCache.Storage.dense(.bfloat16))", "bfloat16")
        XCTAssertEqual("\(window.storage)", "turbo, keys 5 bits, values 4 bits")
        XCTAssertEqual("\(AttentionCache.Storage.quantized(.mlx1, keys: .bits4, values: .bits4))", "mlx1, 4 bits")
    }

    func testTensorsOfACacheOutliveIt() throws {
        var cache: AttentionCache? = try AttentionCache(
            .init(kvHeads: 1, headDim: 2, capacity: 2), isStorageOnly: true, on: device)
        try append(0..<2, to: XCTUnwrap(cache))
        let keys = try XCTUnwrap(cache).keys
        cache = nil
        XCTAssertEqual(try keys.array(of: Float.self)[2], number(position: 1, head: 0, element: 0))
    }
}
