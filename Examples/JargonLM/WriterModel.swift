import Foundation
import MLXNativeKernels
import Observation

/// What an app shows of a writer, and what its buttons do. Views contain no logic.
@MainActor @Observable
public final class WriterModel {
    /// Where the writer is.
    public enum Phase: Equatable, Sendable {
        /// Nothing was asked for yet.
        case idle
        /// The model is being read, or the device is being made.
        case loading
        /// Bytes are being written.
        case writing
        /// Stopped by the reader; can go on.
        case stopped
        /// The context is full.
        case finished
        /// Something failed, and this says what.
        case failed(String)
    }

    /// One token of the text with what it weighs in the newest attention.
    public struct WeighedToken: Identifiable, Equatable, Sendable {
        /// Its position.
        public let id: Int
        /// One character; a byte that is not one is shown as a symbol.
        public let character: String
        /// From 0 to 1, where 1 is the heaviest token now.
        public let weight: Double
    }

    /// Makes the device and the model; another one can be given for tests.
    public typealias Source = @Sendable () throws -> (LanguageModel, KernelDevice)

    /// What the next text begins with.
    public var prompt = "\nkernel\n"
    /// How the next text keeps keys and values.
    public var storage = StorageChoice.f16
    /// How freely the next text is written; see ``Sampler``.
    public var temperature = 0.65
    /// The part of all odds that bytes are drawn from; see ``Sampler``.
    public var topP = 0.95
    /// What the next text is drawn with. Each start counts it up, so that every text is another one.
    public var seed: UInt64 = 5

    /// Where the writer is.
    public private(set) var phase = Phase.idle
    /// The prompt, and what was made of it so far.
    public private(set) var text = ""
    /// The name of the device; empty before it is made.
    public private(set) var deviceName = ""
    /// The position that the next token gets.
    public private(set) var position = 0
    /// Positions that a text may have.
    public private(set) var context = Configuration.jargonLM.context
    /// A mean over the newest tokens.
    public private(set) var tokensPerSecond = 0.0
    /// Bytes of the positions that are held.
    public private(set) var bytesInUse = 0
    /// Bytes of all slots.
    public private(set) var cacheBytes = 0
    /// The position in each slot of a ring.
    public private(set) var slots: [Int?] = []
    /// The newest tokens with their weights.
    public private(set) var attention: [WeighedToken] = []

    private let source: Source
    private var loading: Task<(LanguageModel, KernelDevice), any Error>?
    private var writer: Writer?
    private var work: Task<Void, Never>?

    /// A model that has written nothing, and reads its weights when it starts.
    public nonisolated init(source: @escaping Source = WriterModel.bundled) { self.source = source }

    /// The model of this package, on the best device here.
    public nonisolated static let bundled: Source = { (try LanguageModel.bundled(), try bestDevice()) }

    /// Choices for a picker.
    public var storages: [StorageChoice] { StorageChoice.all }
    /// Whether a text can be started.
    public var canStart: Bool { phase != .loading && phase != .writing }
    /// Whether there is something to stop.
    public var canStop: Bool { phase == .loading || phase == .writing }
    /// Whether a stopped text can go on.
    public var canContinue: Bool { phase == .stopped }
    /// How much of all slots is taken, from 0 to 1.
    public var cacheFraction: Double { cacheBytes > 0 ? Double(bytesInUse) / Double(cacheBytes) : 0 }
    /// One line for people.
    public var status: String {
        switch phase {
        case .idle: "Ready"
        case .loading: "Loading the model"
        case .writing: "\(Int(tokensPerSecond.rounded())) tokens/s, position \(position) of \(context)"
        case .stopped: "Stopped at position \(position) of \(context)"
        case .finished: "The context of \(context) is full"
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

    /// Goes on where it was stopped.
    public func `continue`() {
        guard canContinue, let writer else { return }
        let before = work
        work = Task {
            await before?.value
            await write(with: writer)
        }
        phase = .writing
    }

    /// Waits until nothing is being written.
    public func settled() async { await work?.value }

    /// Loads once, however often it is called; again after a failure.
    private func load() async throws -> (LanguageModel, KernelDevice) {
        let task = loading ?? Task.detached { [source] in try source() }
        loading = task
        do {
            let made = try await task.value
            deviceName = made.1.name
            context = made.0.configuration.context
            return made
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
                // A text that was started meanwhile has its own writer.
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
        // A mean that forgets, so that the number can be read.
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
