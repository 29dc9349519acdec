import Foundation
import MLXNativeKernels

private let layerCount = 32
private let repetitions = 9
private let rotary = RotaryStep(RotaryEmbedding(base: 1e6))

private struct Layer {
    let cache: AttentionCache
    let queries, keys, values, output: Tensor
    let sequences: [Int]

    init(sequences: Int, storage: AttentionCache.Storage, on device: KernelDevice) throws {
        cache = try AttentionCache(
            .init(kvHeads: 8, headDim: 128, capacity: 64, sequences: sequences), storage: storage, on: device)
        queries = try .zeros(shape: [sequences, 32, 128], on: device)
        keys = try .zeros(shape: [sequences, 8, 128], on: device)
        values = try .zeros(shape: [sequences, 8, 128], on: device)
        output = try .zeros(shape: [sequences, 32, 128], on: device)
        self.sequences = Array(0..<sequences)
    }
}

private struct Call: Sendable {
    let name: String
    let sequences: Int
    let encode: @Sendable (KernelEncoder, Layer) throws -> Void
}

private let calls = [
    Call(name: "appendAndAttend, which rotates", sequences: 1) { step, layer in
        try step.appendAndAttend(
            queries: layer.queries, keys: layer.keys, values: layer.values, rotary: rotary, over: layer.cache,
            into: layer.output)
    },
    Call(name: "append, attend", sequences: 1) { step, layer in
        try step.append(keys: layer.keys, values: layer.values, to: layer.cache)
        try step.attend(layer.queries, over: layer.cache, into: layer.output)
    },
    Call(name: "appendAndAttend over a list of 16 sequences", sequences: 16) { step, layer in
        try step.appendAndAttend(
            queries: layer.queries, keys: layer.keys, values: layer.values, rotary: rotary, over: layer.cache,
            sequences: layer.sequences, into: layer.output)
    },
    Call(name: "append, attend over a list of 16 sequences", sequences: 16) { step, layer in
        try step.append(keys: layer.keys, values: layer.values, to: layer.cache, sequences: layer.sequences)
        try step.attend(layer.queries, over: layer.cache, sequences: layer.sequences, into: layer.output)
    },
]

private struct Dropped: Error {}

/// Prints what the calls of a decode layer cost the thread that makes them, in new steps and in a recorded step: of steps
/// that are dropped, as on a GPU whose kernels do not use the processor's caches, and of steps between which the Host
/// device runs the kernels on the same processor.
func benchSteps() throws {
    print(
        "\nEncoding a decode layer from Swift, 32 query heads over 8 key/value heads of 128; thread time, for each of",
        layerCount)
    let device = try KernelDevice.host()
    let formats: [(name: String, storage: AttentionCache.Storage)] = [
        ("f16", .dense(.float16)), ("turbo 4 bits", .quantized(.turbo, keys: .bits4, values: .bits4)),
    ]
    for format in formats {
        for call in calls {
            let layers = try (0..<layerCount).map { _ in
                try Layer(sequences: call.sequences, storage: format.storage, on: device)
            }
            let encodeNew = { (step: KernelEncoder) in for layer in layers { try call.encode(step, layer) } }
            let recorded = try device.record(encodeNew)
            let encodeRecorded = { (step: KernelEncoder) in try step.encode(recorded) }
            let times = try [true, false].map { runs in
                try [encodeNew, encodeRecorded].map { try forLayer(of: $0, runs: runs, on: device) }
            }
            let columns = [(format.name, 12), (call.name, 44)].map {
                $0.padding(toLength: $1, withPad: " ", startingAt: 0)
            }
            let text = "%6.2f us new   %6.2f us recorded   (%.2f and %.2f after kernels on this processor)"
            print(
                "  \(columns.joined(separator: "   "))   "
                    + String(format: text, times[1][0], times[1][1], times[0][0], times[0][1]))
        }
    }
}

/// The median time of a layer.
private func forLayer(
    of encode: (KernelEncoder) throws -> Void, runs: Bool, on device: KernelDevice
) throws -> Double {
    let times = try (0..<(runs ? repetitions : 20 * repetitions)).map { _ in
        var took = 0.0
        do {
            try device.encode { step in
                let start = threadTime()
                try encode(step)
                took = threadTime() - start
                if !runs { throw Dropped() }
            }.wait()
        } catch is Dropped {}
        return took
    }
    return times.sorted()[times.count / 2] / Double(layerCount)
}

/// In microseconds.
private func threadTime() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return Double(time.tv_sec) * 1e6 + Double(time.tv_nsec) / 1e3
}
