import MLXNativeKernels

let device = try KernelDevice.default()
let cache = try AttentionCache(
    .init(kvHeads: 1, headDim: 1, capacity: 4), storage: .dense(.float32), whenFull: .overwriteOldest, on: device)
let tokens = try Tensor((0..<10).map { Float($0) }, shape: [10, 1, 1], on: device)
let done = try device.encode { step in try step.append(keys: tokens, values: tokens, to: cache) }
try done.wait()
print("slots", try cache.keys.array(of: Float.self).map { "\(Int($0))" }.joined(separator: " "))
