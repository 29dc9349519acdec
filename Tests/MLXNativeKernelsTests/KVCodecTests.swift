import MLXNativeKernels
import XCTest

/// Sizes of codecs and of caches.
final class KVCodecTests: DeviceTestCase {
    func testSizesOfVectors() throws {
        for bits in KVCodec.Bits.allCases {
            let sizes = try KVCodec.turbo(bits).sizes(headDim: 128)
            XCTAssertEqual(sizes.codeBytes, bits.rawValue * 16)
            XCTAssertEqual(sizes.byteCount, bits.rawValue * 16 + 2)
        }
        for (codec, expected) in [
            (KVCodec.mlx1(.bits8), [512, 2, 8]), (.mlx1Unrotated(.bits8), [512, 2, 8]), (.mlx1Affine4, [256, 1, 4]),
        ] {
            let sizes = try codec.sizes(headDim: 512)
            XCTAssertEqual([sizes.codeBytes, sizes.scales, sizes.scaleBytes], expected, "\(codec)")
        }
        XCTAssertEqual(KVCodec.turbo(.bits4).scaleType, .float16)
        XCTAssertEqual(KVCodec.mlx1(.bits4).scaleType, .float32)
        assertRefused(op: "KVCodec", what: "headDim is out of range") { try KVCodec.turbo(.bits4).sizes(headDim: -1) }
        assertRefused(op: "KVCodec", what: "scaleFactor") {
            try KVCodec(.mlx1, .bits4, scaleFactor: 0).sizes(headDim: 512)
        }
    }

    func testBytesOfACacheEqualThoseOfItsTensors() throws {
        func bytes(_ plane: QuantizedKVPlane) -> Int { plane.codes.byteCount + (plane.scales?.byteCount ?? 0) }
        let keys = try QuantizedKVPlane.zeros(
            .mlx1(.bits4), heads: 3, headDim: 512, capacity: 10, sequences: 2, on: device)
        let values = try QuantizedKVPlane.zeros(
            .turbo(.bits5), heads: 3, headDim: 64, capacity: 10, sequences: 2, layout: .tokenMajor, on: device)
        XCTAssertEqual(keys.scales?.shape, [2, 3, 10, 2])
        XCTAssertEqual(values.codes.shape, [2, 10, 3, 40])
        XCTAssertEqual(values.scales?.shape, [2, 10, 3])
        XCTAssertEqual(
            try QuantizedKVCacheView.byteCount(
                keys: keys.codec, values: values.codec, heads: 3, headDim: 512, valueHeadDim: 64, capacity: 10,
                sequences: 2),
            bytes(keys) + bytes(values))
        XCTAssertEqual(
            try QuantizedKVCacheView.byteCount(
                keys: .turbo(.bits4), values: .turbo(.bits4), heads: 8, headDim: 128, capacity: 4096), 4_325_376)
        XCTAssertEqual(
            try QuantizedKVCacheView.byteCount(
                keys: .turbo(.bits4), values: nil, heads: 8, headDim: 128, capacity: 4096, sequences: 0), 0)
        assertRefused(op: "QuantizedKVCacheView", what: "too many bytes to count") {
            try QuantizedKVCacheView.byteCount(
                keys: .turbo(.bits4), values: nil, heads: .max, headDim: 128, capacity: 4096)
        }
        assertRefused {
            try QuantizedKVCacheView.byteCount(
                keys: .turbo(.bits4), values: .turbo(.bits4), heads: 8, headDim: 128, valueHeadDim: 0, capacity: 1)
        }
    }
}
