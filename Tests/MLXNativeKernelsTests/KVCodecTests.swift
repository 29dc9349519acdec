import MLXNativeKernels
import XCTest

/// Sizes of codecs, and the rotation that they share.
final class KVCodecTests: DeviceTestCase {
    func testSizesOfVectors() throws {
        for bits in KVCodec.Bits.allCases {
            let sizes = try KVCodec.turbo(bits).sizes(headDim: 128)
            XCTAssertEqual(sizes.codeBytes, bits.rawValue * 16)
            XCTAssertEqual(sizes.scales, 1)
            XCTAssertEqual(sizes.byteCount, bits.rawValue * 16 + 2)
        }
        XCTAssertEqual(try KVCodec.mlx1(.bits4).sizes(headDim: 256).codeBytes, 128)
        XCTAssertEqual(try KVCodec.mlx1(.bits5).sizes(headDim: 256).codeBytes, 256)
        let halves = try KVCodec.mlx1(.bits8).sizes(headDim: 512)
        XCTAssertEqual([halves.codeBytes, halves.scales, halves.scaleBytes], [512, 2, 8])
        XCTAssertEqual(try KVCodec.mlx1Unrotated(.bits8).sizes(headDim: 512), halves)
        let affine = try KVCodec.mlx1Affine4.sizes(headDim: 512)
        XCTAssertEqual([affine.codeBytes, affine.scales, affine.scaleBytes], [256, 1, 4])
        XCTAssertEqual(KVCodec.turbo(.bits4).scaleType, .float16)
        XCTAssertEqual(KVCodec.mlx1(.bits4).scaleType, .float32)
    }

    func testHeadDimsWithoutACodecAreRefused() {
        for (codec, headDim) in [(KVCodec.turbo(.bits4), 48), (.turbo(.bits4), 1024), (.mlx1(.bits5), 128)] {
            assertRefused(got: "\(headDim)") { try codec.sizes(headDim: headDim) }
        }
        assertRefused { try KVCodec.mlx1(.bits7).sizes(headDim: 256) }
        assertRefused(got: "mlx1Unrotated of 4 bits") { try KVCodec.mlx1Unrotated(.bits4).sizes(headDim: 256) }
        assertRefused(got: "mlx1Affine4 of 4 bits, head dim 128") { try KVCodec.mlx1Affine4.sizes(headDim: 128) }
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

    func testHadamardRoundTrips() throws {
        let numbers: [Float] = (0..<512).map { Float($0 * 37 % 101) - 50 }
        for signs in [nil, KVCodec.Name.turbo, .mlx1] {
            let vectors = try Tensor(numbers, shape: [2, 256], on: device)
            let turned = try Tensor.zeros(shape: [2, 256], on: device)
            try device.encode { try $0.encode(Hadamard(vectors, into: turned, signs: signs)) }.wait()
            assertSame(try vectors.array(of: Float.self), numbers, "the source stays")
            let there = try turned.array(of: Float.self)
            XCTAssertEqual(
                there.reduce(0) { $0 + $1 * $1 } / numbers.reduce(0) { $0 + $1 * $1 }, 1, accuracy: 1e-5)
            if signs == nil { XCTAssertEqual(there[0], numbers[..<256].reduce(0, +) / 16, accuracy: 1e-3) }
            try device.encode { try $0.encode(Hadamard(turned, signs: signs, isInverse: true)) }.wait()
            for (back, number) in zip(try turned.array(of: Float.self), numbers) {
                XCTAssertEqual(back, number, accuracy: 1e-4)
            }
        }
    }

    func testHadamardRefusesOtherLengthsAndTypes() throws {
        let odd = try Tensor.zeros(shape: [2, 48], on: device)
        assertRefused(op: "Hadamard", got: "48") { try Hadamard(odd).plan() }
        let numbers = try Tensor.zeros(shape: [2, 64], dtype: .uint32, on: device)
        assertRefused(op: "Hadamard", got: "u32") { try Hadamard(numbers).plan() }
        let vectors = try Tensor.zeros(shape: [2, 64], on: device)
        assertRefused(op: "Hadamard") { try Hadamard(vectors, into: odd).plan() }
        // The turbo codec has no signs for vectors this long.
        let long = try Tensor.zeros(shape: [1, 4096], on: device)
        assertRefused(op: "Hadamard") { try Hadamard(long, signs: .turbo).plan() }
        XCTAssertEqual(try Hadamard(long).plan().dispatches.count, 1)
    }
}
