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

    func testFlashDecode() throws {
        let memory = CallMemory()
        let tensor = try Tensor.zeros(shape: [1], on: .default())
        let other = try Tensor.zeros(shape: [1], on: .default())
        do {
            var one = FlashDecode(
                HeadsView(tensor),
                over: .dense(
                    KVCacheView(
                        keys: tensor, values: tensor, layout: .tokenMajor, wrap: .ring, pinned: 15, latentDim: 16)),
                sequences: [])
            one.queries = HeadsView(other)
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.queries.tensor == other.handle.pointer, "queries")
            XCTAssertTrue(c.cache.dense.keys == tensor.handle.pointer, "queries")
            XCTAssertTrue(c.cache.dense.values == tensor.handle.pointer, "queries")
            XCTAssertTrue(c.cache.dense.layout == .MNK_KV_LAYOUT_TOKEN_MAJOR, "queries")
            XCTAssertTrue(c.cache.dense.wrap == .MNK_KV_WRAP_RING, "queries")
            XCTAssertTrue(c.cache.dense.pinned == 15, "queries")
            XCTAssertTrue(c.cache.dense.latent_dim == 16, "queries")
        }
        do {
            var one = FlashDecode(
                HeadsView(tensor),
                over: .dense(
                    KVCacheView(
                        keys: tensor, values: tensor, layout: .tokenMajor, wrap: .ring, pinned: 15, latentDim: 16)),
                sequences: [])
            one.cache = .quantized(
                QuantizedKVCacheView(
                    keys: QuantizedKVPlane(
                        codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 73.5), codes: other, scales: other,
                        means: other, channelScales: other),
                    values: QuantizedKVPlane(
                        codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 73.5), codes: other, scales: other,
                        means: other, channelScales: other), layout: .tokenMajor, wrap: .ring, pinned: 75, latentDim: 76
                ))
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.cache.quantized.keys.codec.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "cache")
            XCTAssertTrue(c.cache.quantized.keys.codec.bits == 7, "cache")
            XCTAssertTrue(c.cache.quantized.keys.codec.scale_factor == 73.5, "cache")
            XCTAssertTrue(c.cache.quantized.keys.codes == other.handle.pointer, "cache")
            XCTAssertTrue(c.cache.quantized.keys.scales == other.handle.pointer, "cache")
            XCTAssertTrue(c.cache.quantized.keys.means == other.handle.pointer, "cache")
            XCTAssertTrue(c.cache.quantized.keys.channel_scales == other.handle.pointer, "cache")
            XCTAssertTrue(c.cache.quantized.values.codec.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "cache")
            XCTAssertTrue(c.cache.quantized.values.codec.bits == 7, "cache")
            XCTAssertTrue(c.cache.quantized.values.codec.scale_factor == 73.5, "cache")
            XCTAssertTrue(c.cache.quantized.values.codes == other.handle.pointer, "cache")
            XCTAssertTrue(c.cache.quantized.values.scales == other.handle.pointer, "cache")
            XCTAssertTrue(c.cache.quantized.values.means == other.handle.pointer, "cache")
            XCTAssertTrue(c.cache.quantized.values.channel_scales == other.handle.pointer, "cache")
            XCTAssertTrue(c.cache.quantized.layout == .MNK_KV_LAYOUT_TOKEN_MAJOR, "cache")
            XCTAssertTrue(c.cache.quantized.wrap == .MNK_KV_WRAP_RING, "cache")
            XCTAssertTrue(c.cache.quantized.pinned == 75, "cache")
            XCTAssertTrue(c.cache.quantized.latent_dim == 76, "cache")
            XCTAssertTrue(c.queries.tensor == tensor.handle.pointer, "cache")
        }
        do {
            var one = FlashDecode(
                HeadsView(tensor),
                over: .dense(
                    KVCacheView(
                        keys: tensor, values: tensor, layout: .tokenMajor, wrap: .ring, pinned: 15, latentDim: 16)),
                sequences: [])
            one.sequences = [AttendedSequence(71, length: 72, highest: 73, rows: 74, position: 75)]
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.sequences![0].sequence == 71, "sequences")
            XCTAssertTrue(c.sequences![0].length == 72, "sequences")
            XCTAssertTrue(c.sequences![0].highest == 73, "sequences")
            XCTAssertTrue(c.sequences![0].rows == 74, "sequences")
            XCTAssertTrue(c.sequences![0].position == 75, "sequences")
            XCTAssertTrue(c.queries.tensor == tensor.handle.pointer, "sequences")
            XCTAssertTrue(c.cache.dense.keys == tensor.handle.pointer, "sequences")
            XCTAssertTrue(c.cache.dense.values == tensor.handle.pointer, "sequences")
            XCTAssertTrue(c.cache.dense.layout == .MNK_KV_LAYOUT_TOKEN_MAJOR, "sequences")
            XCTAssertTrue(c.cache.dense.wrap == .MNK_KV_WRAP_RING, "sequences")
            XCTAssertTrue(c.cache.dense.pinned == 15, "sequences")
            XCTAssertTrue(c.cache.dense.latent_dim == 16, "sequences")
        }
        do {
            var one = FlashDecode(
                HeadsView(tensor),
                over: .dense(
                    KVCacheView(
                        keys: tensor, values: tensor, layout: .tokenMajor, wrap: .ring, pinned: 15, latentDim: 16)),
                sequences: [])
            one.output = other
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.results.output == other.handle.pointer, "output")
            XCTAssertTrue(c.queries.tensor == tensor.handle.pointer, "output")
            XCTAssertTrue(c.cache.dense.keys == tensor.handle.pointer, "output")
            XCTAssertTrue(c.cache.dense.values == tensor.handle.pointer, "output")
            XCTAssertTrue(c.cache.dense.layout == .MNK_KV_LAYOUT_TOKEN_MAJOR, "output")
            XCTAssertTrue(c.cache.dense.wrap == .MNK_KV_WRAP_RING, "output")
            XCTAssertTrue(c.cache.dense.pinned == 15, "output")
            XCTAssertTrue(c.cache.dense.latent_dim == 16, "output")
        }
        do {
            var one = FlashDecode(
                HeadsView(tensor),
                over: .dense(
                    KVCacheView(
                        keys: tensor, values: tensor, layout: .tokenMajor, wrap: .ring, pinned: 15, latentDim: 16)),
                sequences: [])
            one.partials = AttentionPartials(sums: other, stats: other)
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.results.partials.sums == other.handle.pointer, "partials")
            XCTAssertTrue(c.results.partials.stats == other.handle.pointer, "partials")
            XCTAssertTrue(c.queries.tensor == tensor.handle.pointer, "partials")
            XCTAssertTrue(c.cache.dense.keys == tensor.handle.pointer, "partials")
            XCTAssertTrue(c.cache.dense.values == tensor.handle.pointer, "partials")
            XCTAssertTrue(c.cache.dense.layout == .MNK_KV_LAYOUT_TOKEN_MAJOR, "partials")
            XCTAssertTrue(c.cache.dense.wrap == .MNK_KV_WRAP_RING, "partials")
            XCTAssertTrue(c.cache.dense.pinned == 15, "partials")
            XCTAssertTrue(c.cache.dense.latent_dim == 16, "partials")
        }
        do {
            var one = FlashDecode(
                HeadsView(tensor),
                over: .dense(
                    KVCacheView(
                        keys: tensor, values: tensor, layout: .tokenMajor, wrap: .ring, pinned: 15, latentDim: 16)),
                sequences: [])
            one.logSumExp = other
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.results.log_sum_exp == other.handle.pointer, "logSumExp")
            XCTAssertTrue(c.queries.tensor == tensor.handle.pointer, "logSumExp")
            XCTAssertTrue(c.cache.dense.keys == tensor.handle.pointer, "logSumExp")
            XCTAssertTrue(c.cache.dense.values == tensor.handle.pointer, "logSumExp")
            XCTAssertTrue(c.cache.dense.layout == .MNK_KV_LAYOUT_TOKEN_MAJOR, "logSumExp")
            XCTAssertTrue(c.cache.dense.wrap == .MNK_KV_WRAP_RING, "logSumExp")
            XCTAssertTrue(c.cache.dense.pinned == 15, "logSumExp")
            XCTAssertTrue(c.cache.dense.latent_dim == 16, "logSumExp")
        }
        do {
            var one = FlashDecode(
                HeadsView(tensor),
                over: .dense(
                    KVCacheView(
                        keys: tensor, values: tensor, layout: .tokenMajor, wrap: .ring, pinned: 15, latentDim: 16)),
                sequences: [])
            one.options = AttentionOptions(
                scale: 71.5, isCausal: false, window: 73, windowSeesPinned: true, softcap: 75.5, mask: other,
                slopes: other, sinks: other, splits: .exactly(7), kernel: .matrix, merge: .inKernel)
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.options.scale == 71.5, "options")
            XCTAssertTrue(c.options.is_bidirectional == true, "options")
            XCTAssertTrue(c.options.window == 73, "options")
            XCTAssertTrue(c.options.window_sees_pinned == true, "options")
            XCTAssertTrue(c.options.softcap == 75.5, "options")
            XCTAssertTrue(c.options.mask == other.handle.pointer, "options")
            XCTAssertTrue(c.options.slopes == other.handle.pointer, "options")
            XCTAssertTrue(c.options.sinks == other.handle.pointer, "options")
            XCTAssertTrue(c.options.splits == 7, "options")
            XCTAssertTrue(c.options.kernel == .MNK_ATTENTION_OPTIONS_KERNEL_MATRIX, "options")
            XCTAssertTrue(c.options.merge == .MNK_ATTENTION_OPTIONS_MERGE_IN_KERNEL, "options")
            XCTAssertTrue(c.queries.tensor == tensor.handle.pointer, "options")
            XCTAssertTrue(c.cache.dense.keys == tensor.handle.pointer, "options")
            XCTAssertTrue(c.cache.dense.values == tensor.handle.pointer, "options")
            XCTAssertTrue(c.cache.dense.layout == .MNK_KV_LAYOUT_TOKEN_MAJOR, "options")
            XCTAssertTrue(c.cache.dense.wrap == .MNK_KV_WRAP_RING, "options")
            XCTAssertTrue(c.cache.dense.pinned == 15, "options")
            XCTAssertTrue(c.cache.dense.latent_dim == 16, "options")
        }
        do {
            var one = FlashDecode(
                HeadsView(tensor),
                over: .dense(
                    KVCacheView(
                        keys: tensor, values: tensor, layout: .tokenMajor, wrap: .ring, pinned: 15, latentDim: 16)),
                sequences: [])
            one.scratch = other
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.scratch == other.handle.pointer, "scratch")
            XCTAssertTrue(c.queries.tensor == tensor.handle.pointer, "scratch")
            XCTAssertTrue(c.cache.dense.keys == tensor.handle.pointer, "scratch")
            XCTAssertTrue(c.cache.dense.values == tensor.handle.pointer, "scratch")
            XCTAssertTrue(c.cache.dense.layout == .MNK_KV_LAYOUT_TOKEN_MAJOR, "scratch")
            XCTAssertTrue(c.cache.dense.wrap == .MNK_KV_WRAP_RING, "scratch")
            XCTAssertTrue(c.cache.dense.pinned == 15, "scratch")
            XCTAssertTrue(c.cache.dense.latent_dim == 16, "scratch")
        }
        withExtendedLifetime(memory) {}
    }

    func testMergePartials() throws {
        let memory = CallMemory()
        let tensor = try Tensor.zeros(shape: [1], on: .default())
        let other = try Tensor.zeros(shape: [1], on: .default())
        do {
            var one = MergePartials(AttentionPartials(sums: tensor, stats: tensor))
            one.parts = AttentionPartials(sums: other, stats: other)
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.parts.sums == other.handle.pointer, "parts")
            XCTAssertTrue(c.parts.stats == other.handle.pointer, "parts")
        }
        do {
            var one = MergePartials(AttentionPartials(sums: tensor, stats: tensor))
            one.sinks = other
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.sinks == other.handle.pointer, "sinks")
            XCTAssertTrue(c.parts.sums == tensor.handle.pointer, "sinks")
            XCTAssertTrue(c.parts.stats == tensor.handle.pointer, "sinks")
        }
        do {
            var one = MergePartials(AttentionPartials(sums: tensor, stats: tensor))
            one.output = other
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.results.output == other.handle.pointer, "output")
            XCTAssertTrue(c.parts.sums == tensor.handle.pointer, "output")
            XCTAssertTrue(c.parts.stats == tensor.handle.pointer, "output")
        }
        do {
            var one = MergePartials(AttentionPartials(sums: tensor, stats: tensor))
            one.partials = AttentionPartials(sums: other, stats: other)
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.results.partials.sums == other.handle.pointer, "partials")
            XCTAssertTrue(c.results.partials.stats == other.handle.pointer, "partials")
            XCTAssertTrue(c.parts.sums == tensor.handle.pointer, "partials")
            XCTAssertTrue(c.parts.stats == tensor.handle.pointer, "partials")
        }
        do {
            var one = MergePartials(AttentionPartials(sums: tensor, stats: tensor))
            one.logSumExp = other
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.results.log_sum_exp == other.handle.pointer, "logSumExp")
            XCTAssertTrue(c.parts.sums == tensor.handle.pointer, "logSumExp")
            XCTAssertTrue(c.parts.stats == tensor.handle.pointer, "logSumExp")
        }
        withExtendedLifetime(memory) {}
    }

    func testHostOptions() throws {
        let memory = CallMemory()
        do {
            var one = HostOptions()
            one.workers = 71
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.workers == 71, "workers")
        }
        do {
            var one = HostOptions()
            one.orderSeed = 72
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.order_seed == 72, "orderSeed")
        }
        do {
            var one = HostOptions()
            one.checking = .full
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.checking == .MNK_HOST_OPTIONS_CHECKING_FULL, "checking")
        }
        do {
            var one = HostOptions()
            one.allowsSameValue = true
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.allows_same_value == true, "allowsSameValue")
        }
        do {
            var one = HostOptions()
            one.perturbsResults = true
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.perturbs_results == true, "perturbsResults")
        }
        do {
            var one = HostOptions()
            one.level = .avx512
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.level == .MNK_HOST_OPTIONS_LEVEL_AVX512, "level")
        }
        do {
            var one = HostOptions()
            one.compiler = "name"
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.compiler.map { String(cString: $0) } == "name", "compiler")
        }
        withExtendedLifetime(memory) {}
    }

    func testKVCacheWriteRows() throws {
        let memory = CallMemory()
        let tensor = try Tensor.zeros(shape: [1], on: .default())
        let other = try Tensor.zeros(shape: [1], on: .default())
        do {
            var one = KVCacheWrite.Rows(sequences: .tensor(tensor), positions: .tensor(tensor))
            one.sequences = .tensor(other)
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.sequences.tensor == other.handle.pointer, "sequences")
            XCTAssertTrue(c.positions.tensor == tensor.handle.pointer, "sequences")
        }
        do {
            var one = KVCacheWrite.Rows(sequences: .tensor(tensor), positions: .tensor(tensor))
            one.positions = .tensor(other)
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.positions.tensor == other.handle.pointer, "positions")
            XCTAssertTrue(c.sequences.tensor == tensor.handle.pointer, "positions")
        }
        withExtendedLifetime(memory) {}
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

    func testKVCacheQuantize() throws {
        let memory = CallMemory()
        let tensor = try Tensor.zeros(shape: [1], on: .default())
        let other = try Tensor.zeros(shape: [1], on: .default())
        do {
            var one = KVCacheQuantize(
                keys: HeadsView(tensor),
                into: QuantizedKVCacheView(
                    keys: QuantizedKVPlane(
                        codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 13.5), codes: tensor, scales: tensor,
                        means: tensor, channelScales: tensor),
                    values: QuantizedKVPlane(
                        codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 13.5), codes: tensor, scales: tensor,
                        means: tensor, channelScales: tensor), layout: .tokenMajor, wrap: .ring, pinned: 15,
                    latentDim: 16), at: 0)
            one.keys = HeadsView(other)
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.keys.tensor == other.handle.pointer, "keys")
            XCTAssertTrue(c.into.keys.codec.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "keys")
            XCTAssertTrue(c.into.keys.codec.bits == 7, "keys")
            XCTAssertTrue(c.into.keys.codec.scale_factor == 13.5, "keys")
            XCTAssertTrue(c.into.keys.codes == tensor.handle.pointer, "keys")
            XCTAssertTrue(c.into.keys.scales == tensor.handle.pointer, "keys")
            XCTAssertTrue(c.into.keys.means == tensor.handle.pointer, "keys")
            XCTAssertTrue(c.into.keys.channel_scales == tensor.handle.pointer, "keys")
            XCTAssertTrue(c.into.values.codec.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "keys")
            XCTAssertTrue(c.into.values.codec.bits == 7, "keys")
            XCTAssertTrue(c.into.values.codec.scale_factor == 13.5, "keys")
            XCTAssertTrue(c.into.values.codes == tensor.handle.pointer, "keys")
            XCTAssertTrue(c.into.values.scales == tensor.handle.pointer, "keys")
            XCTAssertTrue(c.into.values.means == tensor.handle.pointer, "keys")
            XCTAssertTrue(c.into.values.channel_scales == tensor.handle.pointer, "keys")
            XCTAssertTrue(c.into.layout == .MNK_KV_LAYOUT_TOKEN_MAJOR, "keys")
            XCTAssertTrue(c.into.wrap == .MNK_KV_WRAP_RING, "keys")
            XCTAssertTrue(c.into.pinned == 15, "keys")
            XCTAssertTrue(c.into.latent_dim == 16, "keys")
        }
        do {
            var one = KVCacheQuantize(
                keys: HeadsView(tensor),
                into: QuantizedKVCacheView(
                    keys: QuantizedKVPlane(
                        codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 13.5), codes: tensor, scales: tensor,
                        means: tensor, channelScales: tensor),
                    values: QuantizedKVPlane(
                        codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 13.5), codes: tensor, scales: tensor,
                        means: tensor, channelScales: tensor), layout: .tokenMajor, wrap: .ring, pinned: 15,
                    latentDim: 16), at: 0)
            one.values = HeadsView(other)
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.values.tensor == other.handle.pointer, "values")
            XCTAssertTrue(c.keys.tensor == tensor.handle.pointer, "values")
            XCTAssertTrue(c.into.keys.codec.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "values")
            XCTAssertTrue(c.into.keys.codec.bits == 7, "values")
            XCTAssertTrue(c.into.keys.codec.scale_factor == 13.5, "values")
            XCTAssertTrue(c.into.keys.codes == tensor.handle.pointer, "values")
            XCTAssertTrue(c.into.keys.scales == tensor.handle.pointer, "values")
            XCTAssertTrue(c.into.keys.means == tensor.handle.pointer, "values")
            XCTAssertTrue(c.into.keys.channel_scales == tensor.handle.pointer, "values")
            XCTAssertTrue(c.into.values.codec.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "values")
            XCTAssertTrue(c.into.values.codec.bits == 7, "values")
            XCTAssertTrue(c.into.values.codec.scale_factor == 13.5, "values")
            XCTAssertTrue(c.into.values.codes == tensor.handle.pointer, "values")
            XCTAssertTrue(c.into.values.scales == tensor.handle.pointer, "values")
            XCTAssertTrue(c.into.values.means == tensor.handle.pointer, "values")
            XCTAssertTrue(c.into.values.channel_scales == tensor.handle.pointer, "values")
            XCTAssertTrue(c.into.layout == .MNK_KV_LAYOUT_TOKEN_MAJOR, "values")
            XCTAssertTrue(c.into.wrap == .MNK_KV_WRAP_RING, "values")
            XCTAssertTrue(c.into.pinned == 15, "values")
            XCTAssertTrue(c.into.latent_dim == 16, "values")
        }
        do {
            var one = KVCacheQuantize(
                keys: HeadsView(tensor),
                into: QuantizedKVCacheView(
                    keys: QuantizedKVPlane(
                        codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 13.5), codes: tensor, scales: tensor,
                        means: tensor, channelScales: tensor),
                    values: QuantizedKVPlane(
                        codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 13.5), codes: tensor, scales: tensor,
                        means: tensor, channelScales: tensor), layout: .tokenMajor, wrap: .ring, pinned: 15,
                    latentDim: 16), at: 0)
            one.sourceLayout = .headMajor
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.source_layout == .MNK_KV_LAYOUT_HEAD_MAJOR, "sourceLayout")
            XCTAssertTrue(c.keys.tensor == tensor.handle.pointer, "sourceLayout")
            XCTAssertTrue(c.into.keys.codec.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "sourceLayout")
            XCTAssertTrue(c.into.keys.codec.bits == 7, "sourceLayout")
            XCTAssertTrue(c.into.keys.codec.scale_factor == 13.5, "sourceLayout")
            XCTAssertTrue(c.into.keys.codes == tensor.handle.pointer, "sourceLayout")
            XCTAssertTrue(c.into.keys.scales == tensor.handle.pointer, "sourceLayout")
            XCTAssertTrue(c.into.keys.means == tensor.handle.pointer, "sourceLayout")
            XCTAssertTrue(c.into.keys.channel_scales == tensor.handle.pointer, "sourceLayout")
            XCTAssertTrue(c.into.values.codec.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "sourceLayout")
            XCTAssertTrue(c.into.values.codec.bits == 7, "sourceLayout")
            XCTAssertTrue(c.into.values.codec.scale_factor == 13.5, "sourceLayout")
            XCTAssertTrue(c.into.values.codes == tensor.handle.pointer, "sourceLayout")
            XCTAssertTrue(c.into.values.scales == tensor.handle.pointer, "sourceLayout")
            XCTAssertTrue(c.into.values.means == tensor.handle.pointer, "sourceLayout")
            XCTAssertTrue(c.into.values.channel_scales == tensor.handle.pointer, "sourceLayout")
            XCTAssertTrue(c.into.layout == .MNK_KV_LAYOUT_TOKEN_MAJOR, "sourceLayout")
            XCTAssertTrue(c.into.wrap == .MNK_KV_WRAP_RING, "sourceLayout")
            XCTAssertTrue(c.into.pinned == 15, "sourceLayout")
            XCTAssertTrue(c.into.latent_dim == 16, "sourceLayout")
        }
        do {
            var one = KVCacheQuantize(
                keys: HeadsView(tensor),
                into: QuantizedKVCacheView(
                    keys: QuantizedKVPlane(
                        codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 13.5), codes: tensor, scales: tensor,
                        means: tensor, channelScales: tensor),
                    values: QuantizedKVPlane(
                        codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 13.5), codes: tensor, scales: tensor,
                        means: tensor, channelScales: tensor), layout: .tokenMajor, wrap: .ring, pinned: 15,
                    latentDim: 16), at: 0)
            one.sourceOffset = 74
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.source_offset == 74, "sourceOffset")
            XCTAssertTrue(c.keys.tensor == tensor.handle.pointer, "sourceOffset")
            XCTAssertTrue(c.into.keys.codec.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "sourceOffset")
            XCTAssertTrue(c.into.keys.codec.bits == 7, "sourceOffset")
            XCTAssertTrue(c.into.keys.codec.scale_factor == 13.5, "sourceOffset")
            XCTAssertTrue(c.into.keys.codes == tensor.handle.pointer, "sourceOffset")
            XCTAssertTrue(c.into.keys.scales == tensor.handle.pointer, "sourceOffset")
            XCTAssertTrue(c.into.keys.means == tensor.handle.pointer, "sourceOffset")
            XCTAssertTrue(c.into.keys.channel_scales == tensor.handle.pointer, "sourceOffset")
            XCTAssertTrue(c.into.values.codec.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "sourceOffset")
            XCTAssertTrue(c.into.values.codec.bits == 7, "sourceOffset")
            XCTAssertTrue(c.into.values.codec.scale_factor == 13.5, "sourceOffset")
            XCTAssertTrue(c.into.values.codes == tensor.handle.pointer, "sourceOffset")
            XCTAssertTrue(c.into.values.scales == tensor.handle.pointer, "sourceOffset")
            XCTAssertTrue(c.into.values.means == tensor.handle.pointer, "sourceOffset")
            XCTAssertTrue(c.into.values.channel_scales == tensor.handle.pointer, "sourceOffset")
            XCTAssertTrue(c.into.layout == .MNK_KV_LAYOUT_TOKEN_MAJOR, "sourceOffset")
            XCTAssertTrue(c.into.wrap == .MNK_KV_WRAP_RING, "sourceOffset")
            XCTAssertTrue(c.into.pinned == 15, "sourceOffset")
            XCTAssertTrue(c.into.latent_dim == 16, "sourceOffset")
        }
        do {
            var one = KVCacheQuantize(
                keys: HeadsView(tensor),
                into: QuantizedKVCacheView(
                    keys: QuantizedKVPlane(
                        codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 13.5), codes: tensor, scales: tensor,
                        means: tensor, channelScales: tensor),
                    values: QuantizedKVPlane(
                        codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 13.5), codes: tensor, scales: tensor,
                        means: tensor, channelScales: tensor), layout: .tokenMajor, wrap: .ring, pinned: 15,
                    latentDim: 16), at: 0)
            one.tokens = 75
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.tokens == 75, "tokens")
            XCTAssertTrue(c.has_tokens, "tokens")
            XCTAssertTrue(c.keys.tensor == tensor.handle.pointer, "tokens")
            XCTAssertTrue(c.into.keys.codec.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "tokens")
            XCTAssertTrue(c.into.keys.codec.bits == 7, "tokens")
            XCTAssertTrue(c.into.keys.codec.scale_factor == 13.5, "tokens")
            XCTAssertTrue(c.into.keys.codes == tensor.handle.pointer, "tokens")
            XCTAssertTrue(c.into.keys.scales == tensor.handle.pointer, "tokens")
            XCTAssertTrue(c.into.keys.means == tensor.handle.pointer, "tokens")
            XCTAssertTrue(c.into.keys.channel_scales == tensor.handle.pointer, "tokens")
            XCTAssertTrue(c.into.values.codec.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "tokens")
            XCTAssertTrue(c.into.values.codec.bits == 7, "tokens")
            XCTAssertTrue(c.into.values.codec.scale_factor == 13.5, "tokens")
            XCTAssertTrue(c.into.values.codes == tensor.handle.pointer, "tokens")
            XCTAssertTrue(c.into.values.scales == tensor.handle.pointer, "tokens")
            XCTAssertTrue(c.into.values.means == tensor.handle.pointer, "tokens")
            XCTAssertTrue(c.into.values.channel_scales == tensor.handle.pointer, "tokens")
            XCTAssertTrue(c.into.layout == .MNK_KV_LAYOUT_TOKEN_MAJOR, "tokens")
            XCTAssertTrue(c.into.wrap == .MNK_KV_WRAP_RING, "tokens")
            XCTAssertTrue(c.into.pinned == 15, "tokens")
            XCTAssertTrue(c.into.latent_dim == 16, "tokens")
        }
        do {
            var one = KVCacheQuantize(
                keys: HeadsView(tensor),
                into: QuantizedKVCacheView(
                    keys: QuantizedKVPlane(
                        codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 13.5), codes: tensor, scales: tensor,
                        means: tensor, channelScales: tensor),
                    values: QuantizedKVPlane(
                        codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 13.5), codes: tensor, scales: tensor,
                        means: tensor, channelScales: tensor), layout: .tokenMajor, wrap: .ring, pinned: 15,
                    latentDim: 16), at: 0)
            one.sourceIsRing = true
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.source_is_ring == true, "sourceIsRing")
            XCTAssertTrue(c.keys.tensor == tensor.handle.pointer, "sourceIsRing")
            XCTAssertTrue(c.into.keys.codec.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "sourceIsRing")
            XCTAssertTrue(c.into.keys.codec.bits == 7, "sourceIsRing")
            XCTAssertTrue(c.into.keys.codec.scale_factor == 13.5, "sourceIsRing")
            XCTAssertTrue(c.into.keys.codes == tensor.handle.pointer, "sourceIsRing")
            XCTAssertTrue(c.into.keys.scales == tensor.handle.pointer, "sourceIsRing")
            XCTAssertTrue(c.into.keys.means == tensor.handle.pointer, "sourceIsRing")
            XCTAssertTrue(c.into.keys.channel_scales == tensor.handle.pointer, "sourceIsRing")
            XCTAssertTrue(c.into.values.codec.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "sourceIsRing")
            XCTAssertTrue(c.into.values.codec.bits == 7, "sourceIsRing")
            XCTAssertTrue(c.into.values.codec.scale_factor == 13.5, "sourceIsRing")
            XCTAssertTrue(c.into.values.codes == tensor.handle.pointer, "sourceIsRing")
            XCTAssertTrue(c.into.values.scales == tensor.handle.pointer, "sourceIsRing")
            XCTAssertTrue(c.into.values.means == tensor.handle.pointer, "sourceIsRing")
            XCTAssertTrue(c.into.values.channel_scales == tensor.handle.pointer, "sourceIsRing")
            XCTAssertTrue(c.into.layout == .MNK_KV_LAYOUT_TOKEN_MAJOR, "sourceIsRing")
            XCTAssertTrue(c.into.wrap == .MNK_KV_WRAP_RING, "sourceIsRing")
            XCTAssertTrue(c.into.pinned == 15, "sourceIsRing")
            XCTAssertTrue(c.into.latent_dim == 16, "sourceIsRing")
        }
        do {
            var one = KVCacheQuantize(
                keys: HeadsView(tensor),
                into: QuantizedKVCacheView(
                    keys: QuantizedKVPlane(
                        codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 13.5), codes: tensor, scales: tensor,
                        means: tensor, channelScales: tensor),
                    values: QuantizedKVPlane(
                        codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 13.5), codes: tensor, scales: tensor,
                        means: tensor, channelScales: tensor), layout: .tokenMajor, wrap: .ring, pinned: 15,
                    latentDim: 16), at: 0)
            one.destination = QuantizedKVCacheView(
                keys: QuantizedKVPlane(
                    codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 73.5), codes: other, scales: other, means: other,
                    channelScales: other),
                values: QuantizedKVPlane(
                    codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 73.5), codes: other, scales: other, means: other,
                    channelScales: other), layout: .tokenMajor, wrap: .ring, pinned: 75, latentDim: 76)
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.into.keys.codec.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "destination")
            XCTAssertTrue(c.into.keys.codec.bits == 7, "destination")
            XCTAssertTrue(c.into.keys.codec.scale_factor == 73.5, "destination")
            XCTAssertTrue(c.into.keys.codes == other.handle.pointer, "destination")
            XCTAssertTrue(c.into.keys.scales == other.handle.pointer, "destination")
            XCTAssertTrue(c.into.keys.means == other.handle.pointer, "destination")
            XCTAssertTrue(c.into.keys.channel_scales == other.handle.pointer, "destination")
            XCTAssertTrue(c.into.values.codec.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "destination")
            XCTAssertTrue(c.into.values.codec.bits == 7, "destination")
            XCTAssertTrue(c.into.values.codec.scale_factor == 73.5, "destination")
            XCTAssertTrue(c.into.values.codes == other.handle.pointer, "destination")
            XCTAssertTrue(c.into.values.scales == other.handle.pointer, "destination")
            XCTAssertTrue(c.into.values.means == other.handle.pointer, "destination")
            XCTAssertTrue(c.into.values.channel_scales == other.handle.pointer, "destination")
            XCTAssertTrue(c.into.layout == .MNK_KV_LAYOUT_TOKEN_MAJOR, "destination")
            XCTAssertTrue(c.into.wrap == .MNK_KV_WRAP_RING, "destination")
            XCTAssertTrue(c.into.pinned == 75, "destination")
            XCTAssertTrue(c.into.latent_dim == 76, "destination")
            XCTAssertTrue(c.keys.tensor == tensor.handle.pointer, "destination")
        }
        do {
            var one = KVCacheQuantize(
                keys: HeadsView(tensor),
                into: QuantizedKVCacheView(
                    keys: QuantizedKVPlane(
                        codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 13.5), codes: tensor, scales: tensor,
                        means: tensor, channelScales: tensor),
                    values: QuantizedKVPlane(
                        codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 13.5), codes: tensor, scales: tensor,
                        means: tensor, channelScales: tensor), layout: .tokenMajor, wrap: .ring, pinned: 15,
                    latentDim: 16), at: 0)
            one.sequence = 78
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.sequence == 78, "sequence")
            XCTAssertTrue(c.keys.tensor == tensor.handle.pointer, "sequence")
            XCTAssertTrue(c.into.keys.codec.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "sequence")
            XCTAssertTrue(c.into.keys.codec.bits == 7, "sequence")
            XCTAssertTrue(c.into.keys.codec.scale_factor == 13.5, "sequence")
            XCTAssertTrue(c.into.keys.codes == tensor.handle.pointer, "sequence")
            XCTAssertTrue(c.into.keys.scales == tensor.handle.pointer, "sequence")
            XCTAssertTrue(c.into.keys.means == tensor.handle.pointer, "sequence")
            XCTAssertTrue(c.into.keys.channel_scales == tensor.handle.pointer, "sequence")
            XCTAssertTrue(c.into.values.codec.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "sequence")
            XCTAssertTrue(c.into.values.codec.bits == 7, "sequence")
            XCTAssertTrue(c.into.values.codec.scale_factor == 13.5, "sequence")
            XCTAssertTrue(c.into.values.codes == tensor.handle.pointer, "sequence")
            XCTAssertTrue(c.into.values.scales == tensor.handle.pointer, "sequence")
            XCTAssertTrue(c.into.values.means == tensor.handle.pointer, "sequence")
            XCTAssertTrue(c.into.values.channel_scales == tensor.handle.pointer, "sequence")
            XCTAssertTrue(c.into.layout == .MNK_KV_LAYOUT_TOKEN_MAJOR, "sequence")
            XCTAssertTrue(c.into.wrap == .MNK_KV_WRAP_RING, "sequence")
            XCTAssertTrue(c.into.pinned == 15, "sequence")
            XCTAssertTrue(c.into.latent_dim == 16, "sequence")
        }
        do {
            var one = KVCacheQuantize(
                keys: HeadsView(tensor),
                into: QuantizedKVCacheView(
                    keys: QuantizedKVPlane(
                        codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 13.5), codes: tensor, scales: tensor,
                        means: tensor, channelScales: tensor),
                    values: QuantizedKVPlane(
                        codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 13.5), codes: tensor, scales: tensor,
                        means: tensor, channelScales: tensor), layout: .tokenMajor, wrap: .ring, pinned: 15,
                    latentDim: 16), at: 0)
            one.position = 79
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.position == 79, "position")
            XCTAssertTrue(c.keys.tensor == tensor.handle.pointer, "position")
            XCTAssertTrue(c.into.keys.codec.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "position")
            XCTAssertTrue(c.into.keys.codec.bits == 7, "position")
            XCTAssertTrue(c.into.keys.codec.scale_factor == 13.5, "position")
            XCTAssertTrue(c.into.keys.codes == tensor.handle.pointer, "position")
            XCTAssertTrue(c.into.keys.scales == tensor.handle.pointer, "position")
            XCTAssertTrue(c.into.keys.means == tensor.handle.pointer, "position")
            XCTAssertTrue(c.into.keys.channel_scales == tensor.handle.pointer, "position")
            XCTAssertTrue(c.into.values.codec.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "position")
            XCTAssertTrue(c.into.values.codec.bits == 7, "position")
            XCTAssertTrue(c.into.values.codec.scale_factor == 13.5, "position")
            XCTAssertTrue(c.into.values.codes == tensor.handle.pointer, "position")
            XCTAssertTrue(c.into.values.scales == tensor.handle.pointer, "position")
            XCTAssertTrue(c.into.values.means == tensor.handle.pointer, "position")
            XCTAssertTrue(c.into.values.channel_scales == tensor.handle.pointer, "position")
            XCTAssertTrue(c.into.layout == .MNK_KV_LAYOUT_TOKEN_MAJOR, "position")
            XCTAssertTrue(c.into.wrap == .MNK_KV_WRAP_RING, "position")
            XCTAssertTrue(c.into.pinned == 15, "position")
            XCTAssertTrue(c.into.latent_dim == 16, "position")
        }
        do {
            var one = KVCacheQuantize(
                keys: HeadsView(tensor),
                into: QuantizedKVCacheView(
                    keys: QuantizedKVPlane(
                        codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 13.5), codes: tensor, scales: tensor,
                        means: tensor, channelScales: tensor),
                    values: QuantizedKVPlane(
                        codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 13.5), codes: tensor, scales: tensor,
                        means: tensor, channelScales: tensor), layout: .tokenMajor, wrap: .ring, pinned: 15,
                    latentDim: 16), at: 0)
            one.rows = KVCacheWrite.Rows(sequences: .tensor(other), positions: .tensor(other))
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.rows.sequences.tensor == other.handle.pointer, "rows")
            XCTAssertTrue(c.rows.positions.tensor == other.handle.pointer, "rows")
            XCTAssertTrue(c.has_rows, "rows")
            XCTAssertTrue(c.keys.tensor == tensor.handle.pointer, "rows")
            XCTAssertTrue(c.into.keys.codec.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "rows")
            XCTAssertTrue(c.into.keys.codec.bits == 7, "rows")
            XCTAssertTrue(c.into.keys.codec.scale_factor == 13.5, "rows")
            XCTAssertTrue(c.into.keys.codes == tensor.handle.pointer, "rows")
            XCTAssertTrue(c.into.keys.scales == tensor.handle.pointer, "rows")
            XCTAssertTrue(c.into.keys.means == tensor.handle.pointer, "rows")
            XCTAssertTrue(c.into.keys.channel_scales == tensor.handle.pointer, "rows")
            XCTAssertTrue(c.into.values.codec.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "rows")
            XCTAssertTrue(c.into.values.codec.bits == 7, "rows")
            XCTAssertTrue(c.into.values.codec.scale_factor == 13.5, "rows")
            XCTAssertTrue(c.into.values.codes == tensor.handle.pointer, "rows")
            XCTAssertTrue(c.into.values.scales == tensor.handle.pointer, "rows")
            XCTAssertTrue(c.into.values.means == tensor.handle.pointer, "rows")
            XCTAssertTrue(c.into.values.channel_scales == tensor.handle.pointer, "rows")
            XCTAssertTrue(c.into.layout == .MNK_KV_LAYOUT_TOKEN_MAJOR, "rows")
            XCTAssertTrue(c.into.wrap == .MNK_KV_WRAP_RING, "rows")
            XCTAssertTrue(c.into.pinned == 15, "rows")
            XCTAssertTrue(c.into.latent_dim == 16, "rows")
        }
        do {
            var one = KVCacheQuantize(
                keys: HeadsView(tensor),
                into: QuantizedKVCacheView(
                    keys: QuantizedKVPlane(
                        codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 13.5), codes: tensor, scales: tensor,
                        means: tensor, channelScales: tensor),
                    values: QuantizedKVPlane(
                        codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 13.5), codes: tensor, scales: tensor,
                        means: tensor, channelScales: tensor), layout: .tokenMajor, wrap: .ring, pinned: 15,
                    latentDim: 16), at: 0)
            one.options = KVQuantizeOptions(
                candidates: .seventeen, keyScale: .leastSquares, valueScale: .unbiased, nonFinite: .zero)
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.options.candidates == 17, "options")
            XCTAssertTrue(c.options.key_scale == .MNK_KV_SCALE_RULE_LEAST_SQUARES, "options")
            XCTAssertTrue(c.options.value_scale == .MNK_KV_SCALE_RULE_UNBIASED, "options")
            XCTAssertTrue(c.options.non_finite == .MNK_KV_NON_FINITE_ZERO, "options")
            XCTAssertTrue(c.keys.tensor == tensor.handle.pointer, "options")
            XCTAssertTrue(c.into.keys.codec.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "options")
            XCTAssertTrue(c.into.keys.codec.bits == 7, "options")
            XCTAssertTrue(c.into.keys.codec.scale_factor == 13.5, "options")
            XCTAssertTrue(c.into.keys.codes == tensor.handle.pointer, "options")
            XCTAssertTrue(c.into.keys.scales == tensor.handle.pointer, "options")
            XCTAssertTrue(c.into.keys.means == tensor.handle.pointer, "options")
            XCTAssertTrue(c.into.keys.channel_scales == tensor.handle.pointer, "options")
            XCTAssertTrue(c.into.values.codec.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "options")
            XCTAssertTrue(c.into.values.codec.bits == 7, "options")
            XCTAssertTrue(c.into.values.codec.scale_factor == 13.5, "options")
            XCTAssertTrue(c.into.values.codes == tensor.handle.pointer, "options")
            XCTAssertTrue(c.into.values.scales == tensor.handle.pointer, "options")
            XCTAssertTrue(c.into.values.means == tensor.handle.pointer, "options")
            XCTAssertTrue(c.into.values.channel_scales == tensor.handle.pointer, "options")
            XCTAssertTrue(c.into.layout == .MNK_KV_LAYOUT_TOKEN_MAJOR, "options")
            XCTAssertTrue(c.into.wrap == .MNK_KV_WRAP_RING, "options")
            XCTAssertTrue(c.into.pinned == 15, "options")
            XCTAssertTrue(c.into.latent_dim == 16, "options")
        }
        do {
            var one = KVCacheQuantize(
                keys: HeadsView(tensor),
                into: QuantizedKVCacheView(
                    keys: QuantizedKVPlane(
                        codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 13.5), codes: tensor, scales: tensor,
                        means: tensor, channelScales: tensor),
                    values: QuantizedKVPlane(
                        codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 13.5), codes: tensor, scales: tensor,
                        means: tensor, channelScales: tensor), layout: .tokenMajor, wrap: .ring, pinned: 15,
                    latentDim: 16), at: 0)
            one.counts = other
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.counts == other.handle.pointer, "counts")
            XCTAssertTrue(c.keys.tensor == tensor.handle.pointer, "counts")
            XCTAssertTrue(c.into.keys.codec.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "counts")
            XCTAssertTrue(c.into.keys.codec.bits == 7, "counts")
            XCTAssertTrue(c.into.keys.codec.scale_factor == 13.5, "counts")
            XCTAssertTrue(c.into.keys.codes == tensor.handle.pointer, "counts")
            XCTAssertTrue(c.into.keys.scales == tensor.handle.pointer, "counts")
            XCTAssertTrue(c.into.keys.means == tensor.handle.pointer, "counts")
            XCTAssertTrue(c.into.keys.channel_scales == tensor.handle.pointer, "counts")
            XCTAssertTrue(c.into.values.codec.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "counts")
            XCTAssertTrue(c.into.values.codec.bits == 7, "counts")
            XCTAssertTrue(c.into.values.codec.scale_factor == 13.5, "counts")
            XCTAssertTrue(c.into.values.codes == tensor.handle.pointer, "counts")
            XCTAssertTrue(c.into.values.scales == tensor.handle.pointer, "counts")
            XCTAssertTrue(c.into.values.means == tensor.handle.pointer, "counts")
            XCTAssertTrue(c.into.values.channel_scales == tensor.handle.pointer, "counts")
            XCTAssertTrue(c.into.layout == .MNK_KV_LAYOUT_TOKEN_MAJOR, "counts")
            XCTAssertTrue(c.into.wrap == .MNK_KV_WRAP_RING, "counts")
            XCTAssertTrue(c.into.pinned == 15, "counts")
            XCTAssertTrue(c.into.latent_dim == 16, "counts")
        }
        do {
            var one = KVCacheQuantize(
                keys: HeadsView(tensor),
                into: QuantizedKVCacheView(
                    keys: QuantizedKVPlane(
                        codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 13.5), codes: tensor, scales: tensor,
                        means: tensor, channelScales: tensor),
                    values: QuantizedKVPlane(
                        codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 13.5), codes: tensor, scales: tensor,
                        means: tensor, channelScales: tensor), layout: .tokenMajor, wrap: .ring, pinned: 15,
                    latentDim: 16), at: 0)
            one.probe = other
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.probe == other.handle.pointer, "probe")
            XCTAssertTrue(c.keys.tensor == tensor.handle.pointer, "probe")
            XCTAssertTrue(c.into.keys.codec.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "probe")
            XCTAssertTrue(c.into.keys.codec.bits == 7, "probe")
            XCTAssertTrue(c.into.keys.codec.scale_factor == 13.5, "probe")
            XCTAssertTrue(c.into.keys.codes == tensor.handle.pointer, "probe")
            XCTAssertTrue(c.into.keys.scales == tensor.handle.pointer, "probe")
            XCTAssertTrue(c.into.keys.means == tensor.handle.pointer, "probe")
            XCTAssertTrue(c.into.keys.channel_scales == tensor.handle.pointer, "probe")
            XCTAssertTrue(c.into.values.codec.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "probe")
            XCTAssertTrue(c.into.values.codec.bits == 7, "probe")
            XCTAssertTrue(c.into.values.codec.scale_factor == 13.5, "probe")
            XCTAssertTrue(c.into.values.codes == tensor.handle.pointer, "probe")
            XCTAssertTrue(c.into.values.scales == tensor.handle.pointer, "probe")
            XCTAssertTrue(c.into.values.means == tensor.handle.pointer, "probe")
            XCTAssertTrue(c.into.values.channel_scales == tensor.handle.pointer, "probe")
            XCTAssertTrue(c.into.layout == .MNK_KV_LAYOUT_TOKEN_MAJOR, "probe")
            XCTAssertTrue(c.into.wrap == .MNK_KV_WRAP_RING, "probe")
            XCTAssertTrue(c.into.pinned == 15, "probe")
            XCTAssertTrue(c.into.latent_dim == 16, "probe")
        }
        withExtendedLifetime(memory) {}
    }

    func testKVCacheDequantize() throws {
        let memory = CallMemory()
        let tensor = try Tensor.zeros(shape: [1], on: .default())
        let other = try Tensor.zeros(shape: [1], on: .default())
        do {
            var one = KVCacheDequantize(
                keys: tensor,
                from: QuantizedKVCacheView(
                    keys: QuantizedKVPlane(
                        codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 13.5), codes: tensor, scales: tensor,
                        means: tensor, channelScales: tensor),
                    values: QuantizedKVPlane(
                        codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 13.5), codes: tensor, scales: tensor,
                        means: tensor, channelScales: tensor), layout: .tokenMajor, wrap: .ring, pinned: 15,
                    latentDim: 16), at: 13)
            one.source = QuantizedKVCacheView(
                keys: QuantizedKVPlane(
                    codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 73.5), codes: other, scales: other, means: other,
                    channelScales: other),
                values: QuantizedKVPlane(
                    codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 73.5), codes: other, scales: other, means: other,
                    channelScales: other), layout: .tokenMajor, wrap: .ring, pinned: 75, latentDim: 76)
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.from.keys.codec.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "source")
            XCTAssertTrue(c.from.keys.codec.bits == 7, "source")
            XCTAssertTrue(c.from.keys.codec.scale_factor == 73.5, "source")
            XCTAssertTrue(c.from.keys.codes == other.handle.pointer, "source")
            XCTAssertTrue(c.from.keys.scales == other.handle.pointer, "source")
            XCTAssertTrue(c.from.keys.means == other.handle.pointer, "source")
            XCTAssertTrue(c.from.keys.channel_scales == other.handle.pointer, "source")
            XCTAssertTrue(c.from.values.codec.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "source")
            XCTAssertTrue(c.from.values.codec.bits == 7, "source")
            XCTAssertTrue(c.from.values.codec.scale_factor == 73.5, "source")
            XCTAssertTrue(c.from.values.codes == other.handle.pointer, "source")
            XCTAssertTrue(c.from.values.scales == other.handle.pointer, "source")
            XCTAssertTrue(c.from.values.means == other.handle.pointer, "source")
            XCTAssertTrue(c.from.values.channel_scales == other.handle.pointer, "source")
            XCTAssertTrue(c.from.layout == .MNK_KV_LAYOUT_TOKEN_MAJOR, "source")
            XCTAssertTrue(c.from.wrap == .MNK_KV_WRAP_RING, "source")
            XCTAssertTrue(c.from.pinned == 75, "source")
            XCTAssertTrue(c.from.latent_dim == 76, "source")
            XCTAssertTrue(c.position == 13, "source")
        }
        do {
            var one = KVCacheDequantize(
                keys: tensor,
                from: QuantizedKVCacheView(
                    keys: QuantizedKVPlane(
                        codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 13.5), codes: tensor, scales: tensor,
                        means: tensor, channelScales: tensor),
                    values: QuantizedKVPlane(
                        codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 13.5), codes: tensor, scales: tensor,
                        means: tensor, channelScales: tensor), layout: .tokenMajor, wrap: .ring, pinned: 15,
                    latentDim: 16), at: 13)
            one.sequence = 72
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.sequence == 72, "sequence")
            XCTAssertTrue(c.from.keys.codec.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "sequence")
            XCTAssertTrue(c.from.keys.codec.bits == 7, "sequence")
            XCTAssertTrue(c.from.keys.codec.scale_factor == 13.5, "sequence")
            XCTAssertTrue(c.from.keys.codes == tensor.handle.pointer, "sequence")
            XCTAssertTrue(c.from.keys.scales == tensor.handle.pointer, "sequence")
            XCTAssertTrue(c.from.keys.means == tensor.handle.pointer, "sequence")
            XCTAssertTrue(c.from.keys.channel_scales == tensor.handle.pointer, "sequence")
            XCTAssertTrue(c.from.values.codec.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "sequence")
            XCTAssertTrue(c.from.values.codec.bits == 7, "sequence")
            XCTAssertTrue(c.from.values.codec.scale_factor == 13.5, "sequence")
            XCTAssertTrue(c.from.values.codes == tensor.handle.pointer, "sequence")
            XCTAssertTrue(c.from.values.scales == tensor.handle.pointer, "sequence")
            XCTAssertTrue(c.from.values.means == tensor.handle.pointer, "sequence")
            XCTAssertTrue(c.from.values.channel_scales == tensor.handle.pointer, "sequence")
            XCTAssertTrue(c.from.layout == .MNK_KV_LAYOUT_TOKEN_MAJOR, "sequence")
            XCTAssertTrue(c.from.wrap == .MNK_KV_WRAP_RING, "sequence")
            XCTAssertTrue(c.from.pinned == 15, "sequence")
            XCTAssertTrue(c.from.latent_dim == 16, "sequence")
            XCTAssertTrue(c.position == 13, "sequence")
        }
        do {
            var one = KVCacheDequantize(
                keys: tensor,
                from: QuantizedKVCacheView(
                    keys: QuantizedKVPlane(
                        codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 13.5), codes: tensor, scales: tensor,
                        means: tensor, channelScales: tensor),
                    values: QuantizedKVPlane(
                        codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 13.5), codes: tensor, scales: tensor,
                        means: tensor, channelScales: tensor), layout: .tokenMajor, wrap: .ring, pinned: 15,
                    latentDim: 16), at: 13)
            one.position = 73
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.position == 73, "position")
            XCTAssertTrue(c.from.keys.codec.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "position")
            XCTAssertTrue(c.from.keys.codec.bits == 7, "position")
            XCTAssertTrue(c.from.keys.codec.scale_factor == 13.5, "position")
            XCTAssertTrue(c.from.keys.codes == tensor.handle.pointer, "position")
            XCTAssertTrue(c.from.keys.scales == tensor.handle.pointer, "position")
            XCTAssertTrue(c.from.keys.means == tensor.handle.pointer, "position")
            XCTAssertTrue(c.from.keys.channel_scales == tensor.handle.pointer, "position")
            XCTAssertTrue(c.from.values.codec.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "position")
            XCTAssertTrue(c.from.values.codec.bits == 7, "position")
            XCTAssertTrue(c.from.values.codec.scale_factor == 13.5, "position")
            XCTAssertTrue(c.from.values.codes == tensor.handle.pointer, "position")
            XCTAssertTrue(c.from.values.scales == tensor.handle.pointer, "position")
            XCTAssertTrue(c.from.values.means == tensor.handle.pointer, "position")
            XCTAssertTrue(c.from.values.channel_scales == tensor.handle.pointer, "position")
            XCTAssertTrue(c.from.layout == .MNK_KV_LAYOUT_TOKEN_MAJOR, "position")
            XCTAssertTrue(c.from.wrap == .MNK_KV_WRAP_RING, "position")
            XCTAssertTrue(c.from.pinned == 15, "position")
            XCTAssertTrue(c.from.latent_dim == 16, "position")
        }
        do {
            var one = KVCacheDequantize(
                keys: tensor,
                from: QuantizedKVCacheView(
                    keys: QuantizedKVPlane(
                        codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 13.5), codes: tensor, scales: tensor,
                        means: tensor, channelScales: tensor),
                    values: QuantizedKVPlane(
                        codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 13.5), codes: tensor, scales: tensor,
                        means: tensor, channelScales: tensor), layout: .tokenMajor, wrap: .ring, pinned: 15,
                    latentDim: 16), at: 13)
            one.keys = other
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.keys == other.handle.pointer, "keys")
            XCTAssertTrue(c.from.keys.codec.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "keys")
            XCTAssertTrue(c.from.keys.codec.bits == 7, "keys")
            XCTAssertTrue(c.from.keys.codec.scale_factor == 13.5, "keys")
            XCTAssertTrue(c.from.keys.codes == tensor.handle.pointer, "keys")
            XCTAssertTrue(c.from.keys.scales == tensor.handle.pointer, "keys")
            XCTAssertTrue(c.from.keys.means == tensor.handle.pointer, "keys")
            XCTAssertTrue(c.from.keys.channel_scales == tensor.handle.pointer, "keys")
            XCTAssertTrue(c.from.values.codec.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "keys")
            XCTAssertTrue(c.from.values.codec.bits == 7, "keys")
            XCTAssertTrue(c.from.values.codec.scale_factor == 13.5, "keys")
            XCTAssertTrue(c.from.values.codes == tensor.handle.pointer, "keys")
            XCTAssertTrue(c.from.values.scales == tensor.handle.pointer, "keys")
            XCTAssertTrue(c.from.values.means == tensor.handle.pointer, "keys")
            XCTAssertTrue(c.from.values.channel_scales == tensor.handle.pointer, "keys")
            XCTAssertTrue(c.from.layout == .MNK_KV_LAYOUT_TOKEN_MAJOR, "keys")
            XCTAssertTrue(c.from.wrap == .MNK_KV_WRAP_RING, "keys")
            XCTAssertTrue(c.from.pinned == 15, "keys")
            XCTAssertTrue(c.from.latent_dim == 16, "keys")
            XCTAssertTrue(c.position == 13, "keys")
        }
        do {
            var one = KVCacheDequantize(
                keys: tensor,
                from: QuantizedKVCacheView(
                    keys: QuantizedKVPlane(
                        codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 13.5), codes: tensor, scales: tensor,
                        means: tensor, channelScales: tensor),
                    values: QuantizedKVPlane(
                        codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 13.5), codes: tensor, scales: tensor,
                        means: tensor, channelScales: tensor), layout: .tokenMajor, wrap: .ring, pinned: 15,
                    latentDim: 16), at: 13)
            one.values = other
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.values == other.handle.pointer, "values")
            XCTAssertTrue(c.from.keys.codec.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "values")
            XCTAssertTrue(c.from.keys.codec.bits == 7, "values")
            XCTAssertTrue(c.from.keys.codec.scale_factor == 13.5, "values")
            XCTAssertTrue(c.from.keys.codes == tensor.handle.pointer, "values")
            XCTAssertTrue(c.from.keys.scales == tensor.handle.pointer, "values")
            XCTAssertTrue(c.from.keys.means == tensor.handle.pointer, "values")
            XCTAssertTrue(c.from.keys.channel_scales == tensor.handle.pointer, "values")
            XCTAssertTrue(c.from.values.codec.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "values")
            XCTAssertTrue(c.from.values.codec.bits == 7, "values")
            XCTAssertTrue(c.from.values.codec.scale_factor == 13.5, "values")
            XCTAssertTrue(c.from.values.codes == tensor.handle.pointer, "values")
            XCTAssertTrue(c.from.values.scales == tensor.handle.pointer, "values")
            XCTAssertTrue(c.from.values.means == tensor.handle.pointer, "values")
            XCTAssertTrue(c.from.values.channel_scales == tensor.handle.pointer, "values")
            XCTAssertTrue(c.from.layout == .MNK_KV_LAYOUT_TOKEN_MAJOR, "values")
            XCTAssertTrue(c.from.wrap == .MNK_KV_WRAP_RING, "values")
            XCTAssertTrue(c.from.pinned == 15, "values")
            XCTAssertTrue(c.from.latent_dim == 16, "values")
            XCTAssertTrue(c.position == 13, "values")
        }
        do {
            var one = KVCacheDequantize(
                keys: tensor,
                from: QuantizedKVCacheView(
                    keys: QuantizedKVPlane(
                        codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 13.5), codes: tensor, scales: tensor,
                        means: tensor, channelScales: tensor),
                    values: QuantizedKVPlane(
                        codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 13.5), codes: tensor, scales: tensor,
                        means: tensor, channelScales: tensor), layout: .tokenMajor, wrap: .ring, pinned: 15,
                    latentDim: 16), at: 13)
            one.layout = .headMajor
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.layout == .MNK_KV_LAYOUT_HEAD_MAJOR, "layout")
            XCTAssertTrue(c.from.keys.codec.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "layout")
            XCTAssertTrue(c.from.keys.codec.bits == 7, "layout")
            XCTAssertTrue(c.from.keys.codec.scale_factor == 13.5, "layout")
            XCTAssertTrue(c.from.keys.codes == tensor.handle.pointer, "layout")
            XCTAssertTrue(c.from.keys.scales == tensor.handle.pointer, "layout")
            XCTAssertTrue(c.from.keys.means == tensor.handle.pointer, "layout")
            XCTAssertTrue(c.from.keys.channel_scales == tensor.handle.pointer, "layout")
            XCTAssertTrue(c.from.values.codec.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "layout")
            XCTAssertTrue(c.from.values.codec.bits == 7, "layout")
            XCTAssertTrue(c.from.values.codec.scale_factor == 13.5, "layout")
            XCTAssertTrue(c.from.values.codes == tensor.handle.pointer, "layout")
            XCTAssertTrue(c.from.values.scales == tensor.handle.pointer, "layout")
            XCTAssertTrue(c.from.values.means == tensor.handle.pointer, "layout")
            XCTAssertTrue(c.from.values.channel_scales == tensor.handle.pointer, "layout")
            XCTAssertTrue(c.from.layout == .MNK_KV_LAYOUT_TOKEN_MAJOR, "layout")
            XCTAssertTrue(c.from.wrap == .MNK_KV_WRAP_RING, "layout")
            XCTAssertTrue(c.from.pinned == 15, "layout")
            XCTAssertTrue(c.from.latent_dim == 16, "layout")
            XCTAssertTrue(c.position == 13, "layout")
        }
        do {
            var one = KVCacheDequantize(
                keys: tensor,
                from: QuantizedKVCacheView(
                    keys: QuantizedKVPlane(
                        codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 13.5), codes: tensor, scales: tensor,
                        means: tensor, channelScales: tensor),
                    values: QuantizedKVPlane(
                        codec: KVCodec(.mlx1Affine4, .bits7, scaleFactor: 13.5), codes: tensor, scales: tensor,
                        means: tensor, channelScales: tensor), layout: .tokenMajor, wrap: .ring, pinned: 15,
                    latentDim: 16), at: 13)
            one.domain = .rotated
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.domain == .MNK_KV_DOMAIN_ROTATED, "domain")
            XCTAssertTrue(c.from.keys.codec.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "domain")
            XCTAssertTrue(c.from.keys.codec.bits == 7, "domain")
            XCTAssertTrue(c.from.keys.codec.scale_factor == 13.5, "domain")
            XCTAssertTrue(c.from.keys.codes == tensor.handle.pointer, "domain")
            XCTAssertTrue(c.from.keys.scales == tensor.handle.pointer, "domain")
            XCTAssertTrue(c.from.keys.means == tensor.handle.pointer, "domain")
            XCTAssertTrue(c.from.keys.channel_scales == tensor.handle.pointer, "domain")
            XCTAssertTrue(c.from.values.codec.name == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "domain")
            XCTAssertTrue(c.from.values.codec.bits == 7, "domain")
            XCTAssertTrue(c.from.values.codec.scale_factor == 13.5, "domain")
            XCTAssertTrue(c.from.values.codes == tensor.handle.pointer, "domain")
            XCTAssertTrue(c.from.values.scales == tensor.handle.pointer, "domain")
            XCTAssertTrue(c.from.values.means == tensor.handle.pointer, "domain")
            XCTAssertTrue(c.from.values.channel_scales == tensor.handle.pointer, "domain")
            XCTAssertTrue(c.from.layout == .MNK_KV_LAYOUT_TOKEN_MAJOR, "domain")
            XCTAssertTrue(c.from.wrap == .MNK_KV_WRAP_RING, "domain")
            XCTAssertTrue(c.from.pinned == 15, "domain")
            XCTAssertTrue(c.from.latent_dim == 16, "domain")
            XCTAssertTrue(c.position == 13, "domain")
        }
        withExtendedLifetime(memory) {}
    }

    func testHadamard() throws {
        let memory = CallMemory()
        let tensor = try Tensor.zeros(shape: [1], on: .default())
        let other = try Tensor.zeros(shape: [1], on: .default())
        do {
            var one = Hadamard(tensor)
            one.source = other
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.from == other.handle.pointer, "source")
        }
        do {
            var one = Hadamard(tensor)
            one.destination = other
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.into == other.handle.pointer, "destination")
            XCTAssertTrue(c.from == tensor.handle.pointer, "destination")
        }
        do {
            var one = Hadamard(tensor)
            one.signs = .mlx1Affine4
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.signs == .MNK_KV_CODEC_NAME_MLX1_AFFINE4, "signs")
            XCTAssertTrue(c.has_signs, "signs")
            XCTAssertTrue(c.from == tensor.handle.pointer, "signs")
        }
        do {
            var one = Hadamard(tensor)
            one.isInverse = true
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.is_inverse == true, "isInverse")
            XCTAssertTrue(c.from == tensor.handle.pointer, "isInverse")
        }
        withExtendedLifetime(memory) {}
    }

    func testKVCacheWrite() throws {
        let memory = CallMemory()
        let tensor = try Tensor.zeros(shape: [1], on: .default())
        let other = try Tensor.zeros(shape: [1], on: .default())
        do {
            var one = KVCacheWrite(
                keys: HeadsView(tensor),
                into: KVCacheView(
                    keys: tensor, values: tensor, layout: .tokenMajor, wrap: .ring, pinned: 15, latentDim: 16), at: 0)
            one.keys = HeadsView(other)
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.keys.tensor == other.handle.pointer, "keys")
            XCTAssertTrue(c.into.keys == tensor.handle.pointer, "keys")
            XCTAssertTrue(c.into.values == tensor.handle.pointer, "keys")
            XCTAssertTrue(c.into.layout == .MNK_KV_LAYOUT_TOKEN_MAJOR, "keys")
            XCTAssertTrue(c.into.wrap == .MNK_KV_WRAP_RING, "keys")
            XCTAssertTrue(c.into.pinned == 15, "keys")
            XCTAssertTrue(c.into.latent_dim == 16, "keys")
        }
        do {
            var one = KVCacheWrite(
                keys: HeadsView(tensor),
                into: KVCacheView(
                    keys: tensor, values: tensor, layout: .tokenMajor, wrap: .ring, pinned: 15, latentDim: 16), at: 0)
            one.values = HeadsView(other)
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.values.tensor == other.handle.pointer, "values")
            XCTAssertTrue(c.keys.tensor == tensor.handle.pointer, "values")
            XCTAssertTrue(c.into.keys == tensor.handle.pointer, "values")
            XCTAssertTrue(c.into.values == tensor.handle.pointer, "values")
            XCTAssertTrue(c.into.layout == .MNK_KV_LAYOUT_TOKEN_MAJOR, "values")
            XCTAssertTrue(c.into.wrap == .MNK_KV_WRAP_RING, "values")
            XCTAssertTrue(c.into.pinned == 15, "values")
            XCTAssertTrue(c.into.latent_dim == 16, "values")
        }
        do {
            var one = KVCacheWrite(
                keys: HeadsView(tensor),
                into: KVCacheView(
                    keys: tensor, values: tensor, layout: .tokenMajor, wrap: .ring, pinned: 15, latentDim: 16), at: 0)
            one.sourceLayout = .headMajor
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.source_layout == .MNK_KV_LAYOUT_HEAD_MAJOR, "sourceLayout")
            XCTAssertTrue(c.keys.tensor == tensor.handle.pointer, "sourceLayout")
            XCTAssertTrue(c.into.keys == tensor.handle.pointer, "sourceLayout")
            XCTAssertTrue(c.into.values == tensor.handle.pointer, "sourceLayout")
            XCTAssertTrue(c.into.layout == .MNK_KV_LAYOUT_TOKEN_MAJOR, "sourceLayout")
            XCTAssertTrue(c.into.wrap == .MNK_KV_WRAP_RING, "sourceLayout")
            XCTAssertTrue(c.into.pinned == 15, "sourceLayout")
            XCTAssertTrue(c.into.latent_dim == 16, "sourceLayout")
        }
        do {
            var one = KVCacheWrite(
                keys: HeadsView(tensor),
                into: KVCacheView(
                    keys: tensor, values: tensor, layout: .tokenMajor, wrap: .ring, pinned: 15, latentDim: 16), at: 0)
            one.sourceOffset = 74
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.source_offset == 74, "sourceOffset")
            XCTAssertTrue(c.keys.tensor == tensor.handle.pointer, "sourceOffset")
            XCTAssertTrue(c.into.keys == tensor.handle.pointer, "sourceOffset")
            XCTAssertTrue(c.into.values == tensor.handle.pointer, "sourceOffset")
            XCTAssertTrue(c.into.layout == .MNK_KV_LAYOUT_TOKEN_MAJOR, "sourceOffset")
            XCTAssertTrue(c.into.wrap == .MNK_KV_WRAP_RING, "sourceOffset")
            XCTAssertTrue(c.into.pinned == 15, "sourceOffset")
            XCTAssertTrue(c.into.latent_dim == 16, "sourceOffset")
        }
        do {
            var one = KVCacheWrite(
                keys: HeadsView(tensor),
                into: KVCacheView(
                    keys: tensor, values: tensor, layout: .tokenMajor, wrap: .ring, pinned: 15, latentDim: 16), at: 0)
            one.tokens = 75
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.tokens == 75, "tokens")
            XCTAssertTrue(c.has_tokens, "tokens")
            XCTAssertTrue(c.keys.tensor == tensor.handle.pointer, "tokens")
            XCTAssertTrue(c.into.keys == tensor.handle.pointer, "tokens")
            XCTAssertTrue(c.into.values == tensor.handle.pointer, "tokens")
            XCTAssertTrue(c.into.layout == .MNK_KV_LAYOUT_TOKEN_MAJOR, "tokens")
            XCTAssertTrue(c.into.wrap == .MNK_KV_WRAP_RING, "tokens")
            XCTAssertTrue(c.into.pinned == 15, "tokens")
            XCTAssertTrue(c.into.latent_dim == 16, "tokens")
        }
        do {
            var one = KVCacheWrite(
                keys: HeadsView(tensor),
                into: KVCacheView(
                    keys: tensor, values: tensor, layout: .tokenMajor, wrap: .ring, pinned: 15, latentDim: 16), at: 0)
            one.sourceIsRing = true
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.source_is_ring == true, "sourceIsRing")
            XCTAssertTrue(c.keys.tensor == tensor.handle.pointer, "sourceIsRing")
            XCTAssertTrue(c.into.keys == tensor.handle.pointer, "sourceIsRing")
            XCTAssertTrue(c.into.values == tensor.handle.pointer, "sourceIsRing")
            XCTAssertTrue(c.into.layout == .MNK_KV_LAYOUT_TOKEN_MAJOR, "sourceIsRing")
            XCTAssertTrue(c.into.wrap == .MNK_KV_WRAP_RING, "sourceIsRing")
            XCTAssertTrue(c.into.pinned == 15, "sourceIsRing")
            XCTAssertTrue(c.into.latent_dim == 16, "sourceIsRing")
        }
        do {
            var one = KVCacheWrite(
                keys: HeadsView(tensor),
                into: KVCacheView(
                    keys: tensor, values: tensor, layout: .tokenMajor, wrap: .ring, pinned: 15, latentDim: 16), at: 0)
            one.destination = KVCacheView(
                keys: other, values: other, layout: .tokenMajor, wrap: .ring, pinned: 75, latentDim: 76)
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.into.keys == other.handle.pointer, "destination")
            XCTAssertTrue(c.into.values == other.handle.pointer, "destination")
            XCTAssertTrue(c.into.layout == .MNK_KV_LAYOUT_TOKEN_MAJOR, "destination")
            XCTAssertTrue(c.into.wrap == .MNK_KV_WRAP_RING, "destination")
            XCTAssertTrue(c.into.pinned == 75, "destination")
            XCTAssertTrue(c.into.latent_dim == 76, "destination")
            XCTAssertTrue(c.keys.tensor == tensor.handle.pointer, "destination")
        }
        do {
            var one = KVCacheWrite(
                keys: HeadsView(tensor),
                into: KVCacheView(
                    keys: tensor, values: tensor, layout: .tokenMajor, wrap: .ring, pinned: 15, latentDim: 16), at: 0)
            one.sequence = 78
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.sequence == 78, "sequence")
            XCTAssertTrue(c.keys.tensor == tensor.handle.pointer, "sequence")
            XCTAssertTrue(c.into.keys == tensor.handle.pointer, "sequence")
            XCTAssertTrue(c.into.values == tensor.handle.pointer, "sequence")
            XCTAssertTrue(c.into.layout == .MNK_KV_LAYOUT_TOKEN_MAJOR, "sequence")
            XCTAssertTrue(c.into.wrap == .MNK_KV_WRAP_RING, "sequence")
            XCTAssertTrue(c.into.pinned == 15, "sequence")
            XCTAssertTrue(c.into.latent_dim == 16, "sequence")
        }
        do {
            var one = KVCacheWrite(
                keys: HeadsView(tensor),
                into: KVCacheView(
                    keys: tensor, values: tensor, layout: .tokenMajor, wrap: .ring, pinned: 15, latentDim: 16), at: 0)
            one.position = 79
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.position == 79, "position")
            XCTAssertTrue(c.keys.tensor == tensor.handle.pointer, "position")
            XCTAssertTrue(c.into.keys == tensor.handle.pointer, "position")
            XCTAssertTrue(c.into.values == tensor.handle.pointer, "position")
            XCTAssertTrue(c.into.layout == .MNK_KV_LAYOUT_TOKEN_MAJOR, "position")
            XCTAssertTrue(c.into.wrap == .MNK_KV_WRAP_RING, "position")
            XCTAssertTrue(c.into.pinned == 15, "position")
            XCTAssertTrue(c.into.latent_dim == 16, "position")
        }
        do {
            var one = KVCacheWrite(
                keys: HeadsView(tensor),
                into: KVCacheView(
                    keys: tensor, values: tensor, layout: .tokenMajor, wrap: .ring, pinned: 15, latentDim: 16), at: 0)
            one.rows = KVCacheWrite.Rows(sequences: .tensor(other), positions: .tensor(other))
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.rows.sequences.tensor == other.handle.pointer, "rows")
            XCTAssertTrue(c.rows.positions.tensor == other.handle.pointer, "rows")
            XCTAssertTrue(c.has_rows, "rows")
            XCTAssertTrue(c.keys.tensor == tensor.handle.pointer, "rows")
            XCTAssertTrue(c.into.keys == tensor.handle.pointer, "rows")
            XCTAssertTrue(c.into.values == tensor.handle.pointer, "rows")
            XCTAssertTrue(c.into.layout == .MNK_KV_LAYOUT_TOKEN_MAJOR, "rows")
            XCTAssertTrue(c.into.wrap == .MNK_KV_WRAP_RING, "rows")
            XCTAssertTrue(c.into.pinned == 15, "rows")
            XCTAssertTrue(c.into.latent_dim == 16, "rows")
        }
        withExtendedLifetime(memory) {}
    }

    func testRotaryStep() throws {
        let memory = CallMemory()
        let other = try Tensor.zeros(shape: [1], on: .default())
        do {
            var one = RotaryStep(RotaryEmbedding(base: 7))
            one.embedding = RotaryEmbedding(base: 7)
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.embedding.base == 7, "embedding")
        }
        do {
            var one = RotaryStep(RotaryEmbedding(base: 7))
            one.positions = .tensor(other)
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.positions.tensor == other.handle.pointer, "positions")
            XCTAssertTrue(c.embedding.base == 7, "positions")
        }
        do {
            var one = RotaryStep(RotaryEmbedding(base: 7))
            one.offsets = .tensor(other)
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.offsets.tensor == other.handle.pointer, "offsets")
            XCTAssertTrue(c.embedding.base == 7, "offsets")
        }
        withExtendedLifetime(memory) {}
    }

    func testMultiRoPE() throws {
        let memory = CallMemory()
        let tensor = try Tensor.zeros(shape: [1], on: .default())
        let other = try Tensor.zeros(shape: [1], on: .default())
        do {
            var one = MultiRoPE(HeadsView(tensor), positions: .tensor(tensor), with: RotaryEmbedding(base: 7))
            one.queries = HeadsView(other)
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.queries.tensor == other.handle.pointer, "queries")
            XCTAssertTrue(c.positions.tensor == tensor.handle.pointer, "queries")
            XCTAssertTrue(c.rotary.base == 7, "queries")
        }
        do {
            var one = MultiRoPE(HeadsView(tensor), positions: .tensor(tensor), with: RotaryEmbedding(base: 7))
            one.keys = HeadsView(other)
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.keys.tensor == other.handle.pointer, "keys")
            XCTAssertTrue(c.queries.tensor == tensor.handle.pointer, "keys")
            XCTAssertTrue(c.positions.tensor == tensor.handle.pointer, "keys")
            XCTAssertTrue(c.rotary.base == 7, "keys")
        }
        do {
            var one = MultiRoPE(HeadsView(tensor), positions: .tensor(tensor), with: RotaryEmbedding(base: 7))
            one.rotatedQueries = HeadsView(other)
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.rotated_queries.tensor == other.handle.pointer, "rotatedQueries")
            XCTAssertTrue(c.queries.tensor == tensor.handle.pointer, "rotatedQueries")
            XCTAssertTrue(c.positions.tensor == tensor.handle.pointer, "rotatedQueries")
            XCTAssertTrue(c.rotary.base == 7, "rotatedQueries")
        }
        do {
            var one = MultiRoPE(HeadsView(tensor), positions: .tensor(tensor), with: RotaryEmbedding(base: 7))
            one.rotatedKeys = HeadsView(other)
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.rotated_keys.tensor == other.handle.pointer, "rotatedKeys")
            XCTAssertTrue(c.queries.tensor == tensor.handle.pointer, "rotatedKeys")
            XCTAssertTrue(c.positions.tensor == tensor.handle.pointer, "rotatedKeys")
            XCTAssertTrue(c.rotary.base == 7, "rotatedKeys")
        }
        do {
            var one = MultiRoPE(HeadsView(tensor), positions: .tensor(tensor), with: RotaryEmbedding(base: 7))
            one.positions = .tensor(other)
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.positions.tensor == other.handle.pointer, "positions")
            XCTAssertTrue(c.queries.tensor == tensor.handle.pointer, "positions")
            XCTAssertTrue(c.rotary.base == 7, "positions")
        }
        do {
            var one = MultiRoPE(HeadsView(tensor), positions: .tensor(tensor), with: RotaryEmbedding(base: 7))
            one.offsets = .tensor(other)
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.offsets.tensor == other.handle.pointer, "offsets")
            XCTAssertTrue(c.queries.tensor == tensor.handle.pointer, "offsets")
            XCTAssertTrue(c.positions.tensor == tensor.handle.pointer, "offsets")
            XCTAssertTrue(c.rotary.base == 7, "offsets")
        }
        do {
            var one = MultiRoPE(HeadsView(tensor), positions: .tensor(tensor), with: RotaryEmbedding(base: 7))
            one.rotary = RotaryEmbedding(base: 7)
            let c = try one.descriptor(op: "test", in: memory)
            XCTAssertTrue(c.rotary.base == 7, "rotary")
            XCTAssertTrue(c.queries.tensor == tensor.handle.pointer, "rotary")
            XCTAssertTrue(c.positions.tensor == tensor.handle.pointer, "rotary")
        }
        withExtendedLifetime(memory) {}
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
