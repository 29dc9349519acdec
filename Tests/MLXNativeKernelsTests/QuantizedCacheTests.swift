import MLXNativeKernels
import XCTest

final class QuantizedCacheTests: DeviceTestCase {
    private let dimensions = AttentionCache.Dimensions(
        kvHeads: 2, headDim: 32, capacity: 4, sequences: 2, valueHeadDim: 64)

    private func append(_ positions: Range<Int>, to cache: AttentionCache, sequence: Int = 0) throws {
        let keys = try tokens(positions, heads: 2, headDim: cache.dimensions.headDim)
        let values = try tokens(positions, heads: 2, headDim: cache.dimensions.valueHeadDim)
        try device.encode { try $0.append(keys: keys, values: values, to: cache, sequence: sequence) }.wait()
    }

    private func made(
        _ storage: AttentionCache.Storage, _ calibration: AttentionCache.Calibration = .init()
    ) throws -> AttentionCache {
        try AttentionCache(
            dimensions, storage: storage, calibration: calibration, whenFull: .overwriteOldest(keepingFirst: 1),
            isStorageOnly: true, on: device)
    }

    private func channels(_ number: Float, headDim: Int = 32) throws -> Tensor {
        try Tensor([Float](repeating: number, count: 2 * headDim), shape: [2, headDim], on: device)
    }

    private func contents(_ cache: AttentionCache) throws -> [[UInt8]] {
        try [cache.keys, cache.values, XCTUnwrap(cache.keyScales), XCTUnwrap(cache.valueScales)].map { try $0.bytes() }
    }

    func testReportsItsShapesAndSizes() throws {
        let cache = try AttentionCache(
            dimensions, storage: .quantized(.turbo, keys: .bits5, values: .bits3), whenFull: .overwriteOldest,
            isStorageOnly: true, on: device)
        XCTAssertEqual(cache.storage, .quantized(.turbo, keys: .bits5, values: .bits3))
        XCTAssertEqual(cache.dimensions, dimensions)
        XCTAssertEqual(cache.keys.shape, [2, 2, 4, 20])
        XCTAssertEqual(cache.keys.dtype, .uint8)
        XCTAssertEqual(cache.values.shape, [2, 2, 4, 24])
        XCTAssertEqual(cache.keyScales?.shape, [2, 2, 4])
        XCTAssertEqual(cache.valueScales?.dtype, .float16)
        XCTAssertEqual(cache.bytesPerToken, 2 * (20 + 2 + 24 + 2))
        XCTAssertEqual(cache.byteCount, 8 * cache.bytesPerToken)
        XCTAssertEqual(cache.bytesSaved, 8 * 2 * 2 * (32 + 64) - cache.byteCount)
        XCTAssertEqual(cache.quantizedView?.keys.codec, .turbo(.bits5))
        XCTAssertEqual(cache.quantizedView?.wrap, .ring)

        let dense = try AttentionCache(dimensions, storage: .dense(.float32), on: device)
        XCTAssertNil(dense.quantizedView)
        XCTAssertNil(dense.keyScales)
        XCTAssertEqual(dense.bytesPerToken, 2 * (32 + 64) * 4)
        XCTAssertEqual(dense.bytesSaved, -dense.byteCount / 2)
    }

    func testQuantizesOnlyKeysOrOnlyValues() throws {
        let storages: [AttentionCache.Storage] = [
            .quantizedKeys(.turbo, .bits5, values: .float32), .quantizedValues(.turbo, .bits3, keys: .bfloat16),
        ]
        for storage in storages {
            let cache = try AttentionCache(
                dimensions, storage: storage, whenFull: .overwriteOldest, isStorageOnly: true, on: device)
            XCTAssertEqual(cache.storage, storage)
            let view = try XCTUnwrap(cache.quantizedView)
            let hasQuantizedKeys = storage.description.hasPrefix("turbo, keys 5 bits")
            XCTAssertEqual(cache.keyScales != nil, hasQuantizedKeys)
            XCTAssertEqual(cache.valueScales == nil, hasQuantizedKeys)
            XCTAssertEqual(view.keys.codes.dtype, hasQuantizedKeys ? .uint8 : .bfloat16)
            XCTAssertEqual(view.values?.codes.dtype, hasQuantizedKeys ? .float32 : .uint8)
            XCTAssertEqual(cache.bytesPerToken, hasQuantizedKeys ? 2 * (22 + 256) : 2 * (64 + 26))
        }
        XCTAssertEqual("\(storages[0])", "turbo, keys 5 bits, values float32")
        XCTAssertEqual("\(storages[1])", "turbo, keys bfloat16, values 3 bits")
    }

    func testConvertsADenseCacheToAQuantizedOne() throws {
        let storage = AttentionCache.Storage.quantized(.turbo, keys: .bits5, values: .bits3)
        let calibration = AttentionCache.Calibration(keyMeans: try channels(3))
        let (dense, expected) = (try made(.dense(.float32)), try made(storage, calibration))
        for cache in [dense, expected] { try append(0..<6, to: cache, sequence: 1) }
        var result: AttentionCache?
        try device.encode { result = try $0.quantize(dense, as: storage, calibration: calibration) }.wait()
        let quantized = try XCTUnwrap(result)
        XCTAssertEqual(try quantized.nextPosition(ofSequence: 1), 6)
        XCTAssertEqual(quantized.storage, storage)
        XCTAssertEqual(try contents(quantized), try contents(expected))
        assertRefused(op: "AttentionCache.quantized", what: "the storage quantizes nothing") {
            try device.encode { _ = try $0.quantize(dense, as: .dense(.float32)) }
        }
    }

    func testAppendsMatchTheOp() throws {
        let storage = AttentionCache.Storage.quantized(
            .turbo, keys: .bits4, values: .bits4,
            options: KVQuantizeOptions(candidates: .one, keyScale: .leastSquares))
        let calibration = AttentionCache.Calibration(
            keyMeans: try channels(3), keyChannelScales: try channels(0.5))
        let (cache, other) = (try made(storage, calibration), try made(storage, calibration))
        XCTAssertEqual(cache.storage, storage)
        XCTAssertEqual(
            try XCTUnwrap(cache.calibration.keyMeans).array(of: Float.self), [Float](repeating: 3, count: 64))
        try append(0..<6, to: cache, sequence: 1)
        let keys = try tokens(0..<6, heads: 2, headDim: 32)
        let values = try tokens(0..<6, heads: 2, headDim: 64)
        var op = KVCacheQuantize(
            keys: keys, values: values, into: try XCTUnwrap(other.quantizedView), at: 0, sequence: 1)
        op.options = KVQuantizeOptions(candidates: .one, keyScale: .leastSquares)
        try device.encode { try $0.encode(op) }.wait()
        XCTAssertEqual(try contents(cache), try contents(other))
        XCTAssertEqual(try cache.nextPosition(ofSequence: 1), 6)
        XCTAssertEqual(try cache.count(ofSequence: 1), 4)
    }

    func testDequantizeReadsHeldPositions() throws {
        let cache = try AttentionCache(
            dimensions, storage: .quantized(.turbo, keys: .bits8, values: .bits8), whenFull: .overwriteOldest,
            isStorageOnly: true, on: device)
        let keys = try Tensor.zeros(shape: [2, 2, 32], on: device)
        let values = try Tensor.zeros(shape: [2, 2, 64], on: device)
        try append(0..<6, to: cache)
        try device.encode { try $0.dequantize(cache, from: 3, sequence: 0, keys: keys, values: values) }.wait()
        let read = try values.array(of: Float.self)
        for (index, number) in read.enumerated() {
            let expected = self.number(position: 3 + index / 128, head: index / 64 % 2, element: index % 64)
            // Numbers reach 250; 8 bits leave an error of a few units for vectors of that size.
            XCTAssertEqual(number, expected, accuracy: 8)
        }
        assertRefused(op: "AttentionCache", got: "-1") {
            try device.encode { try $0.dequantize(cache, from: -1, sequence: 0, keys: keys) }
        }
    }
}
