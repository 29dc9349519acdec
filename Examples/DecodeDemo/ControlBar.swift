import SwiftUI

/// The buttons, and one line of status.
struct ControlBar: View {
    let model: WriterModel

    var body: some View {
        ViewThatFits(in: .horizontal) {
            HStack(spacing: 16) {
                buttons
                Spacer(minLength: 16)
                status.lineLimit(1)
            }
            VStack(alignment: .leading, spacing: 8) {
                // A long line wraps; only the buttons have to fit.
                status.frame(minWidth: 0, idealWidth: 0, maxWidth: .infinity, alignment: .leading)
                HStack { buttons }
            }
            // For the largest text sizes.
            VStack(alignment: .leading, spacing: 8) {
                status
                buttons
            }
        }
        .padding()
        .background(.bar)
    }

    @ViewBuilder private var buttons: some View {
        Button("Start", systemImage: "play.fill") { model.start() }
            .keyboardShortcut(.return, modifiers: .command)
            .disabled(!model.canStart)
            .help("Write a new text from the prompt (Command-Return)")
        Button("Stop", systemImage: "stop.fill") { model.stop() }
            .keyboardShortcut(".", modifiers: .command)
            .disabled(!model.canStop)
            .help("Stop after the current token (Command-Period)")
        Button("Continue", systemImage: "forward.fill") { model.continue() }
            .keyboardShortcut(.return, modifiers: [.command, .shift])
            .disabled(!model.canContinue)
            .help("Continue the stopped text (Shift-Command-Return)")
    }

    private var status: some View {
        Text(model.status)
            .font(.callout)
            .monospacedDigit()
            .foregroundStyle(.secondary)
            .accessibilityLabel("Status")
            .accessibilityValue(model.status)
            .accessibilityAddTraits(.updatesFrequently)
    }
}
