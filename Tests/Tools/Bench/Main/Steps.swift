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

/// Prints what the calls of a decode layer cost the thread that makes them, in new steps and in runs of a recorded step.
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
            let new = try (0..<repetitions).map { _ in
                var took = 0.0
                try device.encode { step in
                    let start = threadTime()
                    for layer in layers { try call.encode(step, layer) }
                    took = threadTime() - start
                }.wait()
                return took
            }
            let recorded = try device.record { step in for layer in layers { try call.encode(step, layer) } }
            let again = try (0..<repetitions).map { _ in
                let start = threadTime()
                let run = try recorded.run()
                let took = threadTime() - start
                try run.wait()
                return took
            }
            let columns = [(format.name, 12), (call.name, 44)].map {
                $0.padding(toLength: $1, withPad: " ", startingAt: 0)
            }
            print(
                "  \(columns.joined(separator: "   "))   "
                    + String(format: "%6.2f us new   %6.2f us recorded", forLayer(new), forLayer(again)))
        }
    }
}

/// In microseconds.
private func threadTime() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return Double(time.tv_sec) * 1e6 + Double(time.tv_nsec) / 1e3
}

/// The median time of a layer.
private func forLayer(_ times: [Double]) -> Double { times.sorted()[times.count / 2] / Double(layerCount) }
