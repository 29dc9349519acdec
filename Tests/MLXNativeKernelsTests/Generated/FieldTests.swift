// Generated from Sources/API by generate.py: change the description instead.
import XCTest

@testable import MLXNativeKernels

#if SWIFT_PACKAGE
    import MLXNativeKernelsCore
#endif

/// Each field of each struct reaches its field of C, and no other.
final class FieldTests: XCTestCase {
    func testAttentionOptions() throws {
        let other = try Tensor.zeros(shape: [1], on: .default())
        do {
            var one = AttentionOptions()
            one.scale = 71.5
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.scale == 71.5, "scale")
        }
        do {
            var one = AttentionOptions()
            one.isCausal = false
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.is_bidirectional == true, "isCausal")
        }
        do {
            var one = AttentionOptions()
            one.window = 73
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.window == 73, "window")
        }
        do {
            var one = AttentionOptions()
            one.windowSeesPinned = true
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.window_sees_pinned == true, "windowSeesPinned")
        }
        do {
            var one = AttentionOptions()
            one.softcap = 75.5
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.softcap == 75.5, "softcap")
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
            XCTAssertTrue(c.stats == tensor.handle.pointer, "sums")
        }
        do {
            var one = AttentionPartials(sums: tensor, stats: tensor)
            one.stats = other
            let c = one.descriptor
            XCTAssertTrue(c.stats == other.handle.pointer, "stats")
            XCTAssertTrue(c.sums == tensor.handle.pointer, "stats")
        }
    }

    func testAttendedSequence() throws {
        do {
            var one = AttendedSequence(length: 12)
            one.sequence = 71
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.sequence == 71, "sequence")
            XCTAssertTrue(c.length == 12, "sequence")
        }
        do {
            var one = AttendedSequence(length: 12)
            one.length = 72
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.length == 72, "length")
        }
        do {
            var one = AttendedSequence(length: 12)
            one.highest = 73
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.highest == 73, "highest")
            XCTAssertTrue(c.length == 12, "highest")
        }
        do {
            var one = AttendedSequence(length: 12)
            one.rows = 74
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.rows == 74, "rows")
            XCTAssertTrue(c.length == 12, "rows")
        }
        do {
            var one = AttendedSequence(length: 12)
            one.position = 75
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.position == 75, "position")
            XCTAssertTrue(c.has_position, "position")
            XCTAssertTrue(c.length == 12, "position")
        }
    }

    func testSlidingWindow() throws {
        do {
            var one = SlidingWindow(window: 11)
            one.window = 71
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.window == 71, "window")
        }
        do {
            var one = SlidingWindow(window: 11)
            one.maxRows = 72
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.max_rows == 72, "maxRows")
            XCTAssertTrue(c.window == 11, "maxRows")
        }
        do {
            var one = SlidingWindow(window: 11)
            one.maxDraft = 73
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.max_draft == 73, "maxDraft")
            XCTAssertTrue(c.window == 11, "maxDraft")
        }
    }

    func testHeadsViewStrides() throws {
        do {
            var one = HeadsView.Strides(tokens: 12, heads: 13, headDim: 14, tokenStride: 17, headStride: 18)
            one.sequences = 71
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.sequences == 71, "sequences")
            XCTAssertTrue(c.tokens == 12, "sequences")
            XCTAssertTrue(c.heads == 13, "sequences")
            XCTAssertTrue(c.head_dim == 14, "sequences")
            XCTAssertTrue(c.token_stride == 17, "sequences")
            XCTAssertTrue(c.head_stride == 18, "sequences")
        }
        do {
            var one = HeadsView.Strides(tokens: 12, heads: 13, headDim: 14, tokenStride: 17, headStride: 18)
            one.tokens = 72
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.tokens == 72, "tokens")
            XCTAssertTrue(c.heads == 13, "tokens")
            XCTAssertTrue(c.head_dim == 14, "tokens")
            XCTAssertTrue(c.token_stride == 17, "tokens")
            XCTAssertTrue(c.head_stride == 18, "tokens")
        }
        do {
            var one = HeadsView.Strides(tokens: 12, heads: 13, headDim: 14, tokenStride: 17, headStride: 18)
            one.heads = 73
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.heads == 73, "heads")
            XCTAssertTrue(c.tokens == 12, "heads")
            XCTAssertTrue(c.head_dim == 14, "heads")
            XCTAssertTrue(c.token_stride == 17, "heads")
            XCTAssertTrue(c.head_stride == 18, "heads")
        }
        do {
            var one = HeadsView.Strides(tokens: 12, heads: 13, headDim: 14, tokenStride: 17, headStride: 18)
            one.headDim = 74
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.head_dim == 74, "headDim")
            XCTAssertTrue(c.tokens == 12, "headDim")
            XCTAssertTrue(c.heads == 13, "headDim")
            XCTAssertTrue(c.token_stride == 17, "headDim")
            XCTAssertTrue(c.head_stride == 18, "headDim")
        }
        do {
            var one = HeadsView.Strides(tokens: 12, heads: 13, headDim: 14, tokenStride: 17, headStride: 18)
            one.offset = 75
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.offset == 75, "offset")
            XCTAssertTrue(c.tokens == 12, "offset")
            XCTAssertTrue(c.heads == 13, "offset")
            XCTAssertTrue(c.head_dim == 14, "offset")
            XCTAssertTrue(c.token_stride == 17, "offset")
            XCTAssertTrue(c.head_stride == 18, "offset")
        }
        do {
            var one = HeadsView.Strides(tokens: 12, heads: 13, headDim: 14, tokenStride: 17, headStride: 18)
            one.sequenceStride = 76
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.sequence_stride == 76, "sequenceStride")
            XCTAssertTrue(c.tokens == 12, "sequenceStride")
            XCTAssertTrue(c.heads == 13, "sequenceStride")
            XCTAssertTrue(c.head_dim == 14, "sequenceStride")
            XCTAssertTrue(c.token_stride == 17, "sequenceStride")
            XCTAssertTrue(c.head_stride == 18, "sequenceStride")
        }
        do {
            var one = HeadsView.Strides(tokens: 12, heads: 13, headDim: 14, tokenStride: 17, headStride: 18)
            one.tokenStride = 77
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.token_stride == 77, "tokenStride")
            XCTAssertTrue(c.tokens == 12, "tokenStride")
            XCTAssertTrue(c.heads == 13, "tokenStride")
            XCTAssertTrue(c.head_dim == 14, "tokenStride")
            XCTAssertTrue(c.head_stride == 18, "tokenStride")
        }
        do {
            var one = HeadsView.Strides(tokens: 12, heads: 13, headDim: 14, tokenStride: 17, headStride: 18)
            one.headStride = 78
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.head_stride == 78, "headStride")
            XCTAssertTrue(c.tokens == 12, "headStride")
            XCTAssertTrue(c.heads == 13, "headStride")
            XCTAssertTrue(c.head_dim == 14, "headStride")
            XCTAssertTrue(c.token_stride == 17, "headStride")
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
            XCTAssertTrue(c.tensor == tensor.handle.pointer, "layout")
        }
        do {
            var one = HeadsView(tensor)
            one.strides = HeadsView.Strides(
                sequences: 71, tokens: 72, heads: 73, headDim: 74, offset: 75, sequenceStride: 76, tokenStride: 77,
                headStride: 78)
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.strides.sequences == 71, "strides")
            XCTAssertTrue(c.strides.tokens == 72, "strides")
            XCTAssertTrue(c.strides.heads == 73, "strides")
            XCTAssertTrue(c.strides.head_dim == 74, "strides")
            XCTAssertTrue(c.strides.offset == 75, "strides")
            XCTAssertTrue(c.strides.sequence_stride == 76, "strides")
            XCTAssertTrue(c.strides.token_stride == 77, "strides")
            XCTAssertTrue(c.strides.head_stride == 78, "strides")
            XCTAssertTrue(c.has_strides, "strides")
            XCTAssertTrue(c.tensor == tensor.handle.pointer, "strides")
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
            XCTAssertTrue(c.keys == tensor.handle.pointer, "values")
        }
        do {
            var one = KVCacheView(keys: tensor)
            one.layout = .tokenMajor
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.layout == .MNK_KV_LAYOUT_TOKEN_MAJOR, "layout")
            XCTAssertTrue(c.keys == tensor.handle.pointer, "layout")
        }
        do {
            var one = KVCacheView(keys: tensor)
            one.wrap = .ring
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.wrap == .MNK_KV_WRAP_RING, "wrap")
            XCTAssertTrue(c.keys == tensor.handle.pointer, "wrap")
        }
        do {
            var one = KVCacheView(keys: tensor)
            one.pinned = 75
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.pinned == 75, "pinned")
            XCTAssertTrue(c.keys == tensor.handle.pointer, "pinned")
        }
        do {
            var one = KVCacheView(keys: tensor)
            one.latentDim = 76
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.latent_dim == 76, "latentDim")
            XCTAssertTrue(c.keys == tensor.handle.pointer, "latentDim")
        }
    }

    func testKVCodec() throws {
        do {
            var one = KVCodec(.mlx1Affine4, .bits7)
            one.name = .mlx1Affine4
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "name")
            XCTAssertTrue(c.bits == 7, "name")
        }
        do {
            var one = KVCodec(.mlx1Affine4, .bits7)
            one.bits = .bits7
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.bits == 7, "bits")
            XCTAssertTrue(c.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "bits")
        }
        do {
            var one = KVCodec(.mlx1Affine4, .bits7)
            one.scaleFactor = 73.5
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.scale_factor == 73.5, "scaleFactor")
            XCTAssertTrue(c.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "scaleFactor")
            XCTAssertTrue(c.bits == 7, "scaleFactor")
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
            var one = QuantizedKVPlane(
                codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 13.5), codes: tensor, scales: tensor)
            one.codec = KVCodec(.mlx1Affine4, .bits7, scaleFactor: 73.5)
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.codec.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "codec")
            XCTAssertTrue(c.codec.bits == 7, "codec")
            XCTAssertTrue(c.codec.scale_factor == 73.5, "codec")
            XCTAssertTrue(c.codes == tensor.handle.pointer, "codec")
            XCTAssertTrue(c.scales == tensor.handle.pointer, "codec")
        }
        do {
            var one = QuantizedKVPlane(
                codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 13.5), codes: tensor, scales: tensor)
            one.codes = other
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.codes == other.handle.pointer, "codes")
            XCTAssertTrue(c.codec.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "codes")
            XCTAssertTrue(c.codec.bits == 7, "codes")
            XCTAssertTrue(c.codec.scale_factor == 13.5, "codes")
            XCTAssertTrue(c.scales == tensor.handle.pointer, "codes")
        }
        do {
            var one = QuantizedKVPlane(
                codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 13.5), codes: tensor, scales: tensor)
            one.scales = other
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.scales == other.handle.pointer, "scales")
            XCTAssertTrue(c.codec.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "scales")
            XCTAssertTrue(c.codec.bits == 7, "scales")
            XCTAssertTrue(c.codec.scale_factor == 13.5, "scales")
            XCTAssertTrue(c.codes == tensor.handle.pointer, "scales")
        }
        do {
            var one = QuantizedKVPlane(
                codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 13.5), codes: tensor, scales: tensor)
            one.means = other
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.means == other.handle.pointer, "means")
            XCTAssertTrue(c.codec.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "means")
            XCTAssertTrue(c.codec.bits == 7, "means")
            XCTAssertTrue(c.codec.scale_factor == 13.5, "means")
            XCTAssertTrue(c.codes == tensor.handle.pointer, "means")
            XCTAssertTrue(c.scales == tensor.handle.pointer, "means")
        }
        do {
            var one = QuantizedKVPlane(
                codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 13.5), codes: tensor, scales: tensor)
            one.channelScales = other
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.channel_scales == other.handle.pointer, "channelScales")
            XCTAssertTrue(c.codec.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "channelScales")
            XCTAssertTrue(c.codec.bits == 7, "channelScales")
            XCTAssertTrue(c.codec.scale_factor == 13.5, "channelScales")
            XCTAssertTrue(c.codes == tensor.handle.pointer, "channelScales")
            XCTAssertTrue(c.scales == tensor.handle.pointer, "channelScales")
        }
    }

    func testQuantizedKVCacheView() throws {
        let tensor = try Tensor.zeros(shape: [1], on: .default())
        let other = try Tensor.zeros(shape: [1], on: .default())
        do {
            var one = QuantizedKVCacheView(
                keys: QuantizedKVPlane(
                    codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 13.5), codes: tensor, scales: tensor,
                    means: tensor, channelScales: tensor))
            one.keys = QuantizedKVPlane(
                codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 73.5), codes: other, scales: other, means: other,
                channelScales: other)
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.keys.codec.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "keys")
            XCTAssertTrue(c.keys.codec.bits == 7, "keys")
            XCTAssertTrue(c.keys.codec.scale_factor == 73.5, "keys")
            XCTAssertTrue(c.keys.codes == other.handle.pointer, "keys")
            XCTAssertTrue(c.keys.scales == other.handle.pointer, "keys")
            XCTAssertTrue(c.keys.means == other.handle.pointer, "keys")
            XCTAssertTrue(c.keys.channel_scales == other.handle.pointer, "keys")
        }
        do {
            var one = QuantizedKVCacheView(
                keys: QuantizedKVPlane(
                    codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 13.5), codes: tensor, scales: tensor,
                    means: tensor, channelScales: tensor))
            one.values = QuantizedKVPlane(
                codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 73.5), codes: other, scales: other, means: other,
                channelScales: other)
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.values.codec.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "values")
            XCTAssertTrue(c.values.codec.bits == 7, "values")
            XCTAssertTrue(c.values.codec.scale_factor == 73.5, "values")
            XCTAssertTrue(c.values.codes == other.handle.pointer, "values")
            XCTAssertTrue(c.values.scales == other.handle.pointer, "values")
            XCTAssertTrue(c.values.means == other.handle.pointer, "values")
            XCTAssertTrue(c.values.channel_scales == other.handle.pointer, "values")
            XCTAssertTrue(c.keys.codec.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "values")
            XCTAssertTrue(c.keys.codec.bits == 7, "values")
            XCTAssertTrue(c.keys.codec.scale_factor == 13.5, "values")
            XCTAssertTrue(c.keys.codes == tensor.handle.pointer, "values")
            XCTAssertTrue(c.keys.scales == tensor.handle.pointer, "values")
            XCTAssertTrue(c.keys.means == tensor.handle.pointer, "values")
            XCTAssertTrue(c.keys.channel_scales == tensor.handle.pointer, "values")
        }
        do {
            var one = QuantizedKVCacheView(
                keys: QuantizedKVPlane(
                    codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 13.5), codes: tensor, scales: tensor,
                    means: tensor, channelScales: tensor))
            one.layout = .tokenMajor
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.layout == .MNK_KV_LAYOUT_TOKEN_MAJOR, "layout")
            XCTAssertTrue(c.keys.codec.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "layout")
            XCTAssertTrue(c.keys.codec.bits == 7, "layout")
            XCTAssertTrue(c.keys.codec.scale_factor == 13.5, "layout")
            XCTAssertTrue(c.keys.codes == tensor.handle.pointer, "layout")
            XCTAssertTrue(c.keys.scales == tensor.handle.pointer, "layout")
            XCTAssertTrue(c.keys.means == tensor.handle.pointer, "layout")
            XCTAssertTrue(c.keys.channel_scales == tensor.handle.pointer, "layout")
        }
        do {
            var one = QuantizedKVCacheView(
                keys: QuantizedKVPlane(
                    codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 13.5), codes: tensor, scales: tensor,
                    means: tensor, channelScales: tensor))
            one.wrap = .ring
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.wrap == .MNK_KV_WRAP_RING, "wrap")
            XCTAssertTrue(c.keys.codec.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "wrap")
            XCTAssertTrue(c.keys.codec.bits == 7, "wrap")
            XCTAssertTrue(c.keys.codec.scale_factor == 13.5, "wrap")
            XCTAssertTrue(c.keys.codes == tensor.handle.pointer, "wrap")
            XCTAssertTrue(c.keys.scales == tensor.handle.pointer, "wrap")
            XCTAssertTrue(c.keys.means == tensor.handle.pointer, "wrap")
            XCTAssertTrue(c.keys.channel_scales == tensor.handle.pointer, "wrap")
        }
        do {
            var one = QuantizedKVCacheView(
                keys: QuantizedKVPlane(
                    codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 13.5), codes: tensor, scales: tensor,
                    means: tensor, channelScales: tensor))
            one.pinned = 75
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.pinned == 75, "pinned")
            XCTAssertTrue(c.keys.codec.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "pinned")
            XCTAssertTrue(c.keys.codec.bits == 7, "pinned")
            XCTAssertTrue(c.keys.codec.scale_factor == 13.5, "pinned")
            XCTAssertTrue(c.keys.codes == tensor.handle.pointer, "pinned")
            XCTAssertTrue(c.keys.scales == tensor.handle.pointer, "pinned")
            XCTAssertTrue(c.keys.means == tensor.handle.pointer, "pinned")
            XCTAssertTrue(c.keys.channel_scales == tensor.handle.pointer, "pinned")
        }
        do {
            var one = QuantizedKVCacheView(
                keys: QuantizedKVPlane(
                    codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 13.5), codes: tensor, scales: tensor,
                    means: tensor, channelScales: tensor))
            one.latentDim = 76
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.latent_dim == 76, "latentDim")
            XCTAssertTrue(c.keys.codec.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "latentDim")
            XCTAssertTrue(c.keys.codec.bits == 7, "latentDim")
            XCTAssertTrue(c.keys.codec.scale_factor == 13.5, "latentDim")
            XCTAssertTrue(c.keys.codes == tensor.handle.pointer, "latentDim")
            XCTAssertTrue(c.keys.scales == tensor.handle.pointer, "latentDim")
            XCTAssertTrue(c.keys.means == tensor.handle.pointer, "latentDim")
            XCTAssertTrue(c.keys.channel_scales == tensor.handle.pointer, "latentDim")
        }
    }

    func testRotaryEmbeddingYaRN() throws {
        do {
            var one = RotaryEmbedding.YaRN(originalContext: 11)
            one.originalContext = 71
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.original_context == 71, "originalContext")
        }
        do {
            var one = RotaryEmbedding.YaRN(originalContext: 11)
            one.extensionFactor = 72.5
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.extension_factor == 72.5, "extensionFactor")
            XCTAssertTrue(c.original_context == 11, "extensionFactor")
        }
        do {
            var one = RotaryEmbedding.YaRN(originalContext: 11)
            one.attentionFactor = 73.5
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.attention_factor == 73.5, "attentionFactor")
            XCTAssertTrue(c.original_context == 11, "attentionFactor")
        }
        do {
            var one = RotaryEmbedding.YaRN(originalContext: 11)
            one.betaFast = 74.5
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.beta_fast == 74.5, "betaFast")
            XCTAssertTrue(c.original_context == 11, "betaFast")
        }
        do {
            var one = RotaryEmbedding.YaRN(originalContext: 11)
            one.betaSlow = 75.5
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.beta_slow == 75.5, "betaSlow")
            XCTAssertTrue(c.original_context == 11, "betaSlow")
        }
        do {
            var one = RotaryEmbedding.YaRN(originalContext: 11)
            one.roundsCorners = false
            let c = try one.descriptor(op: "test")
            XCTAssertTrue(c.keeps_fractions == true, "roundsCorners")
            XCTAssertTrue(c.original_context == 11, "roundsCorners")
        }
    }

}
