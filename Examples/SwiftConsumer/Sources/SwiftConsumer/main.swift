// Appends ten tokens to a ring of four slots. A zero query weights all keys equally, so attention returns their mean.
import MLXNativeKernels

let headDim = 32
let device = try KernelDevice.default()
let cache = try AttentionCache(
    .init(kvHeads: 1, headDim: headDim, capacity: 4), storage: .dense(.float32), whenFull: .overwriteOldest, on: device)
// Every element of a token is its number.
let tokens = try Tensor((0..<10 * headDim).map { Float($0 / headDim) }, shape: [10, 1, headDim], on: device)
let query = try Tensor.zeros(shape: [1, headDim], on: device)
let output = try Tensor.zeros(shape: [1, headDim], on: device)

let done = try device.encode { step in
    try step.append(keys: tokens, values: tokens, to: cache)
    try step.attend(query, over: cache, into: output)
}
try done.wait()

let keys = try cache.keys.array(of: Float.self)
let slots = stride(from: 0, to: keys.count, by: headDim).map { "\(Int(keys[$0]))" }.joined(separator: " ")
print("slots \(slots), attention \(try output.array(of: Float.self)[0])")
