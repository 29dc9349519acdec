import Foundation
import JargonLM
import MLXNativeKernels

/// The demo: writes a text, compares storages, then writes the report.
struct DecodeDemo {
    private let arguments: Arguments
    private let model: LanguageModel
    private let device: KernelDevice
    private let prompt: [UInt8]
    private let report: ReportFile?
    private let interruption = Interruption()
    private var terminal = Terminal()

    init(_ arguments: Arguments) throws {
        self.arguments = arguments
        device = try chosenDevice(arguments.device)
        model = try LanguageModel.bundled()
        do throws(ModelError) {
            prompt = try promptTokens(arguments.prompt, context: model.configuration.context)
        } catch {
            throw BadArgument(message: "--prompt: \(error)")
        }
        report = try arguments.report.map(ReportFile.init)
    }

    mutating func run() throws {
        try introduce()
        let (text, outcome) = try write()
        guard !arguments.table.isEmpty else { return }
        var gathering = ReportGathering(isWanted: report != nil)
        let scores = try compare(&gathering)
        try terminal.line()
        try terminal.line(storageTable(scores, on: device, bold: terminal.bold))
        if let report {
            let page = reportPage(try gather(gathering, text, outcome, scores))
            try report.write(page)
            try terminal.line("\nreport: \(report.name), \(bytesText(page.utf8.count))")
        }
    }

    private func introduce() throws {
        let sizes = model.configuration
        try terminal.line(
            """
            model    jargon-lm: \(sizes.layers) layers, \(sizes.heads) query and \(sizes.kvHeads) KV heads, \
            head dim \(sizes.headDim), window \(sizes.window) in every other layer
            device   \(deviceDescription(device))
            storage  \(arguments.storage.name)
            """)
    }

    /// Shows the prompt and streams its continuation. Returns all bytes, and a status line about them.
    private mutating func write() throws -> ([UInt8], String) {
        var sampler = try Sampler(temperature: arguments.temperature, topP: arguments.topP, seed: arguments.seed)
        let session = try DecodeSession(model, storage: arguments.storage, on: device)
        let room = model.configuration.context - prompt.count
        var shown = ByteText()
        var text: [UInt8] = []
        try terminal.line()
        do {
            for step in 0...min(arguments.tokens, room) {
                try interruption.check()
                let bytes = step == 0 ? prompt : [sampler.choose(session.newestLogits)]
                _ = try session.logits(after: bytes)
                text += bytes
                for byte in bytes { try terminal.stream(shown.append(byte)) }
                if terminal.wantsStatus { try terminal.status(status(session)) }
            }
        } catch {
            try? terminal.endStream()
            throw error
        }
        try terminal.stream(shown.finish())
        try terminal.endStream()
        let outcome = try status(session)
        try terminal.line(outcome)
        return (text, outcome)
    }

    private func status(_ session: DecodeSession) throws -> String {
        let costs = session.costs
        let speed = decimalText(costs.seconds > 0 ? Double(costs.tokens) / costs.seconds : 0, digits: 0)
        let dispatches = decimalText(Double(costs.dispatches) / Double(max(costs.tokens, 1)), digits: 1)
        let place = device.kind == .host ? " (CPU)" : ""
        return try "\(speed) tokens/s\(place) · position \(session.position) of \(model.configuration.context) · "
            + "cache \(bytesText(session.bytesInUse)) of \(bytesText(session.cacheBytes)) (\(session.storage.name)) · "
            + "\(dispatches) dispatches/token"
    }

    /// Reads the same passage with every storage. Returns the largest storage first.
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
                    bar.show(
                        "reading the passage with \(storage.name)",
                        (Double(scores.count) + part) / Double(storages.count))
                    if scores.isEmpty { try gathering.watchRing(session) }
                })
        }
        return scores.sorted { $0.bytesPerToken > $1.bytesPerToken }
    }

    /// Collects the contents of the report.
    private func gather(
        _ gathering: ReportGathering, _ text: [UInt8], _ outcome: String, _ scores: [PassageScore]
    ) throws -> ReportData {
        var bar = ProgressBar()
        defer { bar.end() }
        return try gathering.data(
            prompt: prompt, text: text, writing: outcome, scores: scores, model: model, device: device
        ) { part in
            try interruption.check()
            bar.show("collecting the report", part)
        }
    }
}
