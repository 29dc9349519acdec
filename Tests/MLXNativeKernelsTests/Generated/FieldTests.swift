// Generated from Sources/API by generate.py: change the description instead.
import XCTest

@testable import MLXNativeKernels

#if SWIFT_PACKAGE
    import MLXNativeKernelsCore
#endif

/// Each field of each struct reaches its field of C.
final class FieldTests: XCTestCase {
    func testAttentionOptions() throws {
        let other = try Tensor.zeros(shape: [1], on: .default())
        do {
            var one = AttentionOptions()
            one.scale = 2.5
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.scale == 2.5, "scale")
        }
        do {
            var one = AttentionOptions()
            one.isCausal = false
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.is_bidirectional == true, "isCausal")
        }
        do {
            var one = AttentionOptions()
            one.window = 7
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.window == 7, "window")
        }
        do {
            var one = AttentionOptions()
            one.windowSeesPinned = true
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.window_sees_pinned == true, "windowSeesPinned")
        }
        do {
            var one = AttentionOptions()
            one.softcap = 2.5
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.softcap == 2.5, "softcap")
        }
        do {
            var one = AttentionOptions()
            one.mask = other
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.mask == other.handle.pointer, "mask")
        }
        do {
            var one = AttentionOptions()
            one.slopes = other
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.slopes == other.handle.pointer, "slopes")
        }
        do {
            var one = AttentionOptions()
            one.sinks = other
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.sinks == other.handle.pointer, "sinks")
        }
        do {
            var one = AttentionOptions()
            one.splits = .exactly(7)
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.splits == 7, "splits")
        }
        do {
            var one = AttentionOptions()
            one.kernel = .matrix
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.kernel == .MNK_ATTENTION_OPTIONS_KERNEL_MATRIX, "kernel")
        }
        do {
            var one = AttentionOptions()
            one.merge = .inKernel
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.merge == .MNK_ATTENTION_OPTIONS_MERGE_IN_KERNEL, "merge")
        }
    }

    func testAttentionPartials() throws {
        let tensor = try Tensor.zeros(shape: [1], on: .default())
        let other = try Tensor.zeros(shape: [1], on: .default())
        do {
            var one = AttentionPartials(sums: tensor, stats: tensor)
            one.sums = other
            let c = one.descriptor
            XCTAssertTrue(c.sums == other.handle.pointer, "sums")
        }
        do {
            var one = AttentionPartials(sums: tensor, stats: tensor)
            one.stats = other
            let c = one.descriptor
            XCTAssertTrue(c.stats == other.handle.pointer, "stats")
        }
    }

    func testAttendedSequence() throws {
        do {
            var one = AttendedSequence(length: 7)
            one.sequence = 7
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.sequence == 7, "sequence")
        }
        do {
            var one = AttendedSequence(length: 7)
            one.length = 7
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.length == 7, "length")
        }
        do {
            var one = AttendedSequence(length: 7)
            one.highest = 7
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.highest == 7, "highest")
        }
        do {
            var one = AttendedSequence(length: 7)
            one.rows = 7
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.rows == 7, "rows")
        }
        do {
            var one = AttendedSequence(length: 7)
            one.position = 7
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.position == 7, "position")
            XCTAssertTrue(c.has_position, "position")
        }
    }

    func testSlidingWindow() throws {
        do {
            var one = SlidingWindow(window: 7)
            one.window = 7
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.window == 7, "window")
        }
        do {
            var one = SlidingWindow(window: 7)
            one.maxRows = 7
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.max_rows == 7, "maxRows")
        }
        do {
            var one = SlidingWindow(window: 7)
            one.maxDraft = 7
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.max_draft == 7, "maxDraft")
        }
    }

    func testHeadsViewStrides() throws {
        do {
            var one = HeadsView.Strides(tokens: 7, heads: 7, headDim: 7, tokenStride: 7, headStride: 7)
            one.sequences = 7
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.sequences == 7, "sequences")
        }
        do {
            var one = HeadsView.Strides(tokens: 7, heads: 7, headDim: 7, tokenStride: 7, headStride: 7)
            one.tokens = 7
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.tokens == 7, "tokens")
        }
        do {
            var one = HeadsView.Strides(tokens: 7, heads: 7, headDim: 7, tokenStride: 7, headStride: 7)
            one.heads = 7
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.heads == 7, "heads")
        }
        do {
            var one = HeadsView.Strides(tokens: 7, heads: 7, headDim: 7, tokenStride: 7, headStride: 7)
            one.headDim = 7
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.head_dim == 7, "headDim")
        }
        do {
            var one = HeadsView.Strides(tokens: 7, heads: 7, headDim: 7, tokenStride: 7, headStride: 7)
            one.offset = 7
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.offset == 7, "offset")
        }
        do {
            var one = HeadsView.Strides(tokens: 7, heads: 7, headDim: 7, tokenStride: 7, headStride: 7)
            one.sequenceStride = 7
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.sequence_stride == 7, "sequenceStride")
        }
        do {
            var one = HeadsView.Strides(tokens: 7, heads: 7, headDim: 7, tokenStride: 7, headStride: 7)
            one.tokenStride = 7
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.token_stride == 7, "tokenStride")
        }
        do {
            var one = HeadsView.Strides(tokens: 7, heads: 7, headDim: 7, tokenStride: 7, headStride: 7)
            one.headStride = 7
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.head_stride == 7, "headStride")
        }
    }

    func testHeadsView() throws {
        let tensor = try Tensor.zeros(shape: [1], on: .default())
        let other = try Tensor.zeros(shape: [1], on: .default())
        do {
            var one = HeadsView(tensor)
            one.tensor = other
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.tensor == other.handle.pointer, "tensor")
        }
        do {
            var one = HeadsView(tensor)
            one.layout = .headMajor
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.layout == .MNK_KV_LAYOUT_HEAD_MAJOR, "layout")
        }
        do {
            var one = HeadsView(tensor)
            one.strides = HeadsView.Strides(
                sequences: 7, tokens: 7, heads: 7, headDim: 7, tokenStride: 7, headStride: 7)
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.strides.sequences == 7, "strides")
            XCTAssertTrue(c.has_strides, "strides")
        }
    }

    func testKVCacheView() throws {
        let tensor = try Tensor.zeros(shape: [1], on: .default())
        let other = try Tensor.zeros(shape: [1], on: .default())
        do {
            var one = KVCacheView(keys: tensor)
            one.keys = other
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.keys == other.handle.pointer, "keys")
        }
        do {
            var one = KVCacheView(keys: tensor)
            one.values = other
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.values == other.handle.pointer, "values")
        }
        do {
            var one = KVCacheView(keys: tensor)
            one.layout = .tokenMajor
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.layout == .MNK_KV_LAYOUT_TOKEN_MAJOR, "layout")
        }
        do {
            var one = KVCacheView(keys: tensor)
            one.wrap = .ring
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.wrap == .MNK_KV_WRAP_RING, "wrap")
        }
        do {
            var one = KVCacheView(keys: tensor)
            one.pinned = 7
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.pinned == 7, "pinned")
        }
        do {
            var one = KVCacheView(keys: tensor)
            one.latentDim = 7
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.latent_dim == 7, "latentDim")
        }
    }

    func testKVCodec() throws {
        do {
            var one = KVCodec(.mlx1Affine4, .bits7)
            one.name = .mlx1Affine4
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "name")
        }
        do {
            var one = KVCodec(.mlx1Affine4, .bits7)
            one.bits = .bits7
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.bits == 7, "bits")
        }
        do {
            var one = KVCodec(.mlx1Affine4, .bits7)
            one.scaleFactor = 2.5
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.scale_factor == 2.5, "scaleFactor")
        }
    }

    func testKVQuantizeOptions() throws {
        do {
            var one = KVQuantizeOptions()
            one.candidates = .seventeen
            let c = one.descriptor
            XCTAssertTrue(c.candidates == 17, "candidates")
        }
        do {
            var one = KVQuantizeOptions()
            one.keyScale = .leastSquares
            let c = one.descriptor
            XCTAssertTrue(c.key_scale == .MNK_KV_SCALE_RULE_LEAST_SQUARES, "keyScale")
        }
        do {
            var one = KVQuantizeOptions()
            one.valueScale = .unbiased
            let c = one.descriptor
            XCTAssertTrue(c.value_scale == .MNK_KV_SCALE_RULE_UNBIASED, "valueScale")
        }
        do {
            var one = KVQuantizeOptions()
            one.nonFinite = .zero
            let c = one.descriptor
            XCTAssertTrue(c.non_finite == .MNK_KV_NON_FINITE_ZERO, "nonFinite")
        }
    }

    func testQuantizedKVPlane() throws {
        let tensor = try Tensor.zeros(shape: [1], on: .default())
        let other = try Tensor.zeros(shape: [1], on: .default())
        do {
            var one = QuantizedKVPlane(codec: KVCodec(.mlx1Affine4, .bits7), codes: tensor, scales: tensor)
            one.codec = KVCodec(.mlx1Affine4, .bits7)
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.codec.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "codec")
        }
        do {
            var one = QuantizedKVPlane(codec: KVCodec(.mlx1Affine4, .bits7), codes: tensor, scales: tensor)
            one.codes = other
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.codes == other.handle.pointer, "codes")
        }
        do {
            var one = QuantizedKVPlane(codec: KVCodec(.mlx1Affine4, .bits7), codes: tensor, scales: tensor)
            one.scales = other
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.scales == other.handle.pointer, "scales")
        }
        do {
            var one = QuantizedKVPlane(codec: KVCodec(.mlx1Affine4, .bits7), codes: tensor, scales: tensor)
            one.means = other
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.means == other.handle.pointer, "means")
        }
        do {
            var one = QuantizedKVPlane(codec: KVCodec(.mlx1Affine4, .bits7), codes: tensor, scales: tensor)
            one.channelScales = other
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.channel_scales == other.handle.pointer, "channelScales")
        }
    }

    func testQuantizedKVCacheView() throws {
        let tensor = try Tensor.zeros(shape: [1], on: .default())
        do {
            var one = QuantizedKVCacheView(
                keys: QuantizedKVPlane(codec: KVCodec(.mlx1Affine4, .bits7), codes: tensor, scales: tensor))
            one.keys = QuantizedKVPlane(codec: KVCodec(.mlx1Affine4, .bits7), codes: tensor, scales: tensor)
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.keys.codec.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "keys")
        }
        do {
            var one = QuantizedKVCacheView(
                keys: QuantizedKVPlane(codec: KVCodec(.mlx1Affine4, .bits7), codes: tensor, scales: tensor))
            one.values = QuantizedKVPlane(codec: KVCodec(.mlx1Affine4, .bits7), codes: tensor, scales: tensor)
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.values.codec.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "values")
        }
        do {
            var one = QuantizedKVCacheView(
                keys: QuantizedKVPlane(codec: KVCodec(.mlx1Affine4, .bits7), codes: tensor, scales: tensor))
            one.layout = .tokenMajor
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.layout == .MNK_KV_LAYOUT_TOKEN_MAJOR, "layout")
        }
        do {
            var one = QuantizedKVCacheView(
                keys: QuantizedKVPlane(codec: KVCodec(.mlx1Affine4, .bits7), codes: tensor, scales: tensor))
            one.wrap = .ring
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.wrap == .MNK_KV_WRAP_RING, "wrap")
        }
        do {
            var one = QuantizedKVCacheView(
                keys: QuantizedKVPlane(codec: KVCodec(.mlx1Affine4, .bits7), codes: tensor, scales: tensor))
            one.pinned = 7
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.pinned == 7, "pinned")
        }
        do {
            var one = QuantizedKVCacheView(
                keys: QuantizedKVPlane(codec: KVCodec(.mlx1Affine4, .bits7), codes: tensor, scales: tensor))
            one.latentDim = 7
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.latent_dim == 7, "latentDim")
        }
    }

    func testRotaryEmbeddingYaRN() throws {
        do {
            var one = RotaryEmbedding.YaRN(originalContext: 7)
            one.originalContext = 7
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.original_context == 7, "originalContext")
        }
        do {
            var one = RotaryEmbedding.YaRN(originalContext: 7)
            one.extensionFactor = 2.5
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.extension_factor == 2.5, "extensionFactor")
        }
        do {
            var one = RotaryEmbedding.YaRN(originalContext: 7)
            one.attentionFactor = 2.5
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.attention_factor == 2.5, "attentionFactor")
        }
        do {
            var one = RotaryEmbedding.YaRN(originalContext: 7)
            one.betaFast = 2.5
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.beta_fast == 2.5, "betaFast")
        }
        do {
            var one = RotaryEmbedding.YaRN(originalContext: 7)
            one.betaSlow = 2.5
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.beta_slow == 2.5, "betaSlow")
        }
        do {
            var one = RotaryEmbedding.YaRN(originalContext: 7)
            one.roundsCorners = false
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.keeps_fractions == true, "roundsCorners")
        }
    }

}
