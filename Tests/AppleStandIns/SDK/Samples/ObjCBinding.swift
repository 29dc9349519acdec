// Uses the Objective-C classes from Swift, to check how names, throws, async and Sendable are imported. Type-checked
// only.
import Foundation
import MLXNativeKernelsCore
import Metal

func decode(on gpu: any MTLDevice, tokens: [Float]) async throws -> Data {
    let device = try MNKDevice(mtlDevice: gpu)
    let descriptor = MNKAttentionCacheDescriptor(kvHeads: 1, headDim: 4, capacity: 64)
    descriptor.elementType = .float32
    descriptor.whenFull = .ring
    let cache = try MNKAttentionCache(device: device, descriptor: descriptor)
    let keys = try MNKTensor(floats: tokens, shape: [1, 4], elementType: .float32, device: device)
    let output = try MNKTensor.zeros(shape: [1, 4], elementType: .float32, device: device)

    let step = device.makeCommandEncoder(label: "a token")
    try step.append(keys: keys, values: keys, to: cache)
    try step.attend(keys, over: cache, into: output, options: nil)
    try step.insertBarrier()
    print(try await step.run().deviceSeconds)
    try cache.truncate(to: 0, sequence: 0)
    try output.write(output.slice(NSRange(location: 0, length: 1)).data())
    return try output.data()
}

func rotate(_ queries: MNKTensor, with library: MNKKernelLibrary, on device: MNKDevice) throws -> String {
    let rotary = MNKRotaryEmbedding()
    rotary.layout = .imrope
    rotary.sections = [24, 20, 20]
    let step = device.makeCommandEncoder()
    try step.rotate(queries, nil, positions: MNKRotaryPositions(startingAt: 7), rotary: rotary)
    let dispatch = MNKDispatch(function: "scale", library: library)
    dispatch.setTensor(queries, access: .readWrite, at: 0)
    dispatch.grid = [NSNumber(value: Int(queries.count))]
    try step.encode(dispatch)
    let completion = try step.commit()
    try completion.wait()
    return completion.isDone ? completion.summary.counts(ofKind: "MultiRoPE").description : device.kind.rawValue
}

func save(_ cache: MNKAttentionCache, to url: URL) throws -> MNKError.Code? {
    do {
        try cache.save(to: url)
        return nil
    } catch let error as MNKError where error.code != .timeout {
        return error.code
    }
}

func prepare(_ device: MNKDevice, for caches: [MNKAttentionCache], file: URL) throws -> any Sendable {
    let preparation = MNKPreparation(caches: caches)
    preparation.queryHeads = 32
    preparation.elementType = .bfloat16
    preparation.tuning = .measure
    preparation.tuningFileURL = file
    let summary = try device.prepare(preparation)
    print(summary.kernels, summary.measured, summary.known, summary.seconds, summary.isKept)
    return summary
}

func share(_ device: MNKDevice, _ tensor: MNKTensor) -> any Sendable {
    switch tensor.elementType {
    case .float32, .float16, .bfloat16: return tensor
    case .uint8, .uint16, .uint32, .int32: return device
    }
}

func describe(_ commandBuffer: any MTLCommandBuffer, on device: MNKDevice) throws -> [MNKPlan] {
    let options = MNKHostOptions()
    options.level = .avx2
    let host = try MNKDevice.makeHost(options: options)
    let step = try device.makeCommandEncoder(into: commandBuffer, label: "inside")
    let tensor = try MNKTensor.zeros(shape: [8], elementType: .float16, device: host)
    precondition(tensor.byteCount == tensor.elementType.byteSize)
    let sizes = try [MNKKVCodec.turbo(bits: 4), MNKKVCodec.mlx1(bits: 8)].map { try $0.sizes(headDim: 128) }
    let attention = MNKAttentionOptions()
    attention.isCausal = true
    attention.window = sizes[0].codeBytes
    let rows = try MNKCacheStep(queries: tensor, results: MNKAttentionResults(into: tensor.reshaped(to: [8, 1])))
    rows.options = attention
    rows.sequences = [0]
    try step.attend(
        rows, over: MNKAttentionCache(device: host, contentsOf: URL(fileURLWithPath: "/kv"), maxBytes: 1 << 30))
    return try [MNKHadamard(source: tensor, destination: nil)].map { try $0.plan(for: nil) }
}
