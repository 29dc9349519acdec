import Foundation
import MLXNativeKernels
import Observation

/// The state and actions of an app's writer. Views contain no logic.
@MainActor @Observable
public final class WriterModel {
    /// The state of the writer.
    public enum Phase: Equatable, Sendable {
        /// No text has been started.
        case idle
        /// The model and the device are being loaded.
        case loading
        /// Bytes are being written.
        case writing
        /// Stopped by the user; can continue.
        case stopped
        /// The context is full.
        case finished
        /// Something failed; the text describes it.
        case failed(String)
    }

    /// One token of the text with its weight in the newest attention.
    public struct WeighedToken: Identifiable, Equatable, Sendable {
        /// Its position.
        public let id: Int
        /// One character; a symbol for a byte that is not a printable character.
        public let character: String
        /// From 0 to 1, relative to the largest weight.
        public let weight: Double
    }

    /// Loads the model and the device; tests pass another function.
    public typealias Source = @Sendable () throws -> (LanguageModel, KernelDevice)

    /// The prompt of the next text.
    public var prompt = "\nkernel\n"
    /// The storage of keys and values for the next text.
    public var storage = StorageChoice.f16
    /// The sampling temperature of the next text; see ``Sampler``.
    public var temperature = 0.65
    /// The total probability of the bytes to draw from; see ``Sampler``.
    public var topP = 0.95
    /// The seed of the next text. Each start increments it, so that every text differs.
    public var seed: UInt64 = 5

    /// The state of the writer.
    public private(set) var phase = Phase.idle
    /// The prompt and its continuation so far.
    public private(set) var text = ""
    /// The name of the device; empty before loading.
    public private(set) var deviceName = ""
    /// The position of the next token.
    public private(set) var position = 0
    /// The maximum length of a text.
    public private(set) var context = Configuration.jargonLM.context
    /// A moving average.
    public private(set) var tokensPerSecond = 0.0
    /// Bytes of the positions in the caches.
    public private(set) var bytesInUse = 0
    /// Bytes of all slots.
    public private(set) var cacheBytes = 0
    /// The position in each slot of the ring.
    public private(set) var slots: [Int?] = []
    /// The newest tokens with their weights.
    public private(set) var attention: [WeighedToken] = []

    private let source: Source
    private var loading: Task<(LanguageModel, KernelDevice), any Error>?
    private var writer: Writer?
    private var work: Task<Void, Never>?

    /// A model without text, which loads the weights when it starts.
    public nonisolated init(source: @escaping Source = WriterModel.bundled) { self.source = source }

    /// The model in this package, on the best device.
    public nonisolated static let bundled: Source = { (try LanguageModel.bundled(), try bestDevice()) }

    /// The choices for a picker.
    public var storages: [StorageChoice] { StorageChoice.all }
    /// Whether a text can be started.
    public var canStart: Bool { phase != .loading && phase != .writing }
    /// Whether there is something to stop.
    public var canStop: Bool { phase == .loading || phase == .writing }
    /// Whether a stopped text can continue.
    public var canContinue: Bool { phase == .stopped }
    /// The fraction of all slots in use, from 0 to 1.
    public var cacheFraction: Double { cacheBytes > 0 ? Double(bytesInUse) / Double(cacheBytes) : 0 }
    /// One line of status.
    public var status: String {
        switch phase {
        case .idle: "Ready"
        case .loading: "Loading the model"
        case .writing: "\(Int(tokensPerSecond.rounded())) tokens/s, position \(position) of \(context)"
        case .stopped: "Stopped at position \(position) of \(context)"
        case .finished: "The context of \(context) tokens is full"
        case .failed(let why): why
        }
    }

    /// Starts a new text from the prompt.
    public func start() {
        guard canStart else { return }
        work?.cancel()
        writer = nil
        (text, position, bytesInUse, cacheBytes, tokensPerSecond) = ("", 0, 0, 0, 0)
        (slots, attention) = ([], [])
        phase = .loading
        let (prompt, storage, temperature, topP, seed) = (prompt, storage, temperature, topP, seed)
        self.seed &+= 1
        work = Task {
            do {
                let (model, device) = try await load()
                guard !Task.isCancelled else { return }
                let writer = try Writer(
                    model, storage: storage, sampler: Sampler(temperature: temperature, topP: topP, seed: seed),
                    device: device, prompt: prompt)
                self.writer = writer
                await write(with: writer)
            } catch {
                if !Task.isCancelled { phase = .failed(error.localizedDescription) }
            }
        }
    }

    /// Stops after the current byte, or before the first.
    public func stop() {
        guard canStop else { return }
        work?.cancel()
        phase = writer == nil ? .idle : .stopped
    }

    /// Continues the stopped text.
    public func `continue`() {
        guard canContinue, let writer else { return }
        let before = work
        work = Task {
            await before?.value
            await write(with: writer)
        }
        phase = .writing
    }

    /// Waits until the current text ends or stops.
    public func settled() async { await work?.value }

    /// Loads once, and again after a failure.
    private func load() async throws -> (LanguageModel, KernelDevice) {
        let task = loading ?? Task.detached { [source] in try source() }
        loading = task
        do {
            let (model, device) = try await task.value
            deviceName = deviceDescription(device)
            context = model.configuration.context
            return (model, device)
        } catch {
            loading = nil
            throw error
        }
    }

    private func write(with writer: Writer) async {
        guard !Task.isCancelled else { return }
        phase = .writing
        do {
            while !Task.isCancelled {
                let update = try await writer.next()
                // A text started meanwhile has its own writer.
                guard self.writer === writer else { return }
                guard let update else {
                    phase = .finished
                    return
                }
                show(update)
            }
        } catch {
            if self.writer === writer { phase = .failed(error.localizedDescription) }
        }
    }

    private func show(_ update: WriterUpdate) {
        let written = update.position - position
        text += update.text
        position = update.position
        bytesInUse = update.bytesInUse
        cacheBytes = update.cacheBytes
        slots = update.slots
        // A moving average, so that the number is readable.
        let speed = update.seconds > 0 ? Double(written) / update.seconds : 0
        tokensPerSecond = tokensPerSecond == 0 ? speed : 0.9 * tokensPerSecond + 0.1 * speed
        let heaviest = update.attended.map(\.weight).max() ?? 0
        let first = update.position - update.attended.count
        attention = update.attended.enumerated().map { index, attended in
            WeighedToken(
                id: first + index, character: Self.sign(of: attended.token),
                weight: heaviest > 0 ? Double(attended.weight / heaviest) : 0)
        }
    }

    private static func sign(of token: UInt8) -> String {
        switch token {
        case UInt8(ascii: "\n"): "⏎"
        case 0x20...0x7E: String(UnicodeScalar(token))
        default: "\u{FFFD}"
        }
    }
}
