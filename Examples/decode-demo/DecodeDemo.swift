import Foundation
import JargonLM
import MLXNativeKernels

/// The demo: writes a text, then compares storages, then writes the report.
struct DecodeDemo {
    private let arguments: Arguments
    private let model: LanguageModel
    private let device: KernelDevice
    private let interruption = Interruption()
    private var terminal = Terminal()

    init(_ arguments: Arguments) throws {
        self.arguments = arguments
        if let file = arguments.report { try checkWritable(file) }
        device = try chosenDevice(arguments.device)
        model = try LanguageModel.bundled()
    }

    mutating func run() throws {
        introduce()
        let (text, outcome) = try write()
        guard !arguments.table.isEmpty else { return }
        var gathering = ReportGathering(isWanted: arguments.report != nil)
        let scores = try compare(&gathering)
        terminal.line()
        terminal.line(storageTable(scores, bold: terminal.bold))
        if let file = arguments.report {
            let page = reportPage(
                try gathering.data(
                    prompt: arguments.prompt, text: text, writing: outcome, scores: scores, model: model,
                    device: device))
            try Data(page.utf8).write(to: URL(fileURLWithPath: file), options: .atomic)
            terminal.line("\nreport: \(file), \(bytesText(page.utf8.count))")
        }
    }

    private func introduce() {
        let sizes = model.configuration
        terminal.line(
            """
            model    jargon-lm: \(sizes.layers) layers, \(sizes.heads) query heads over \(sizes.kvHeads), \
            head dim \(sizes.headDim), every second layer with a window of \(sizes.window)
            device   \(device.name)
            storage  \(arguments.storage.name)
            """)
    }

    /// Streams the prompt and what the model makes of it. Gives all bytes, and a line about them.
    private mutating func write() throws -> ([UInt8], String) {
        var sampler = try Sampler(temperature: arguments.temperature, topP: arguments.topP, seed: arguments.seed)
        let session = try DecodeSession(model, storage: arguments.storage, on: device)
        let prompt = arguments.prompt.isEmpty ? [UInt8(ascii: "\n")] : Array(arguments.prompt.utf8)
        let room = model.configuration.context - prompt.count
        guard room >= 0 else {
            throw BadArgument(message: "--prompt is longer than the context, \(-room) bytes too long")
        }
        var shown = ByteText()
        var text: [UInt8] = []
        terminal.line()
        do {
            for step in 0..<prompt.count + min(arguments.tokens, room) {
                try interruption.check()
                let byte = step < prompt.count ? prompt[step] : sampler.choose(session.newestLogits)
                _ = try session.logits(after: byte)
                text.append(byte)
                terminal.stream(shown.append(byte))
                if terminal.wantsStatus { terminal.status(status(session)) }
            }
        } catch {
            terminal.endStream()
            throw error
        }
        terminal.stream(shown.finish())
        terminal.endStream()
        let outcome = status(session)
        terminal.line(outcome)
        return (text, outcome)
    }

    private func status(_ session: DecodeSession) -> String {
        let costs = session.costs
        let speed = costs.seconds > 0 ? Double(costs.tokens) / costs.seconds : 0
        return "\(rounded(speed, 0)) tokens/s · position \(session.position) of \(model.configuration.context) · "
            + "cache \(bytesText(session.bytesInUse)) of \(bytesText(session.cacheBytes)) (\(session.storage.name)) · "
            + "\(rounded(Double(costs.dispatches) / Double(max(costs.tokens, 1)), 1)) dispatches per token"
    }

    /// Reads the same passage with every storage.
    private func compare(_ gathering: inout ReportGathering) throws -> [PassageScore] {
        let all = try Data(contentsOf: modelFolder().appendingPathComponent("passage.txt"))
        let passage = Array(all.prefix(arguments.passage + 1))
        let storages = arguments.table
        var bar = ProgressBar()
        defer { bar.end() }
        var scores: [PassageScore] = []
        for storage in storages {
            scores.append(
                try PassageScore(of: passage, by: model, storage: storage, on: device) { session in
                    try interruption.check()
                    let part = Double(session.position) / Double(passage.count - 1)
                    bar.show("reading with \(storage.name)", (Double(scores.count) + part) / Double(storages.count))
                    if scores.isEmpty { gathering.watchRing(session) }
                })
        }
        return scores
    }
}

/// A report takes a minute to gather: whether it can be written is known before that.
private func checkWritable(_ file: String) throws {
    let place = URL(fileURLWithPath: file)
    var isFolder: ObjCBool = false
    let exists = FileManager.default.fileExists(atPath: place.path, isDirectory: &isFolder)
    let folder = place.deletingLastPathComponent().path
    guard !(exists && isFolder.boolValue), FileManager.default.isWritableFile(atPath: folder) else {
        throw ModelError(
            code: .invalidArgument, what: "the report cannot be written", got: file,
            expected: "a file in a folder that can be written to", fix: "Name another place with --report.")
    }
}
