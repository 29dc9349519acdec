import SwiftUI

/// The text on one side, the caches on the other, and the buttons below. Each window has its own writer.
struct ContentView: View {
    @State private var model = WriterModel()
    @Environment(\.scenePhase) private var scenePhase

    var body: some View {
        VStack(spacing: 0) {
            #if os(macOS)
                HSplitView {
                    WritingView(model: model)
                        .frame(minWidth: 320, maxWidth: .infinity, maxHeight: .infinity)
                    InsightView(model: model)
                        .frame(minWidth: 260, idealWidth: 340, maxWidth: 480, maxHeight: .infinity)
                }
            #else
                PhoneLayout(model: model)
            #endif
            Divider()
            ControlBar(model: model)
        }
        #if os(macOS)
            .frame(minWidth: 620, minHeight: 480)
        #endif
        .onDisappear { model.stop() }
        // The system forbids GPU work in the background. A stopped text can continue.
        .onChange(of: scenePhase) {
            if scenePhase == .background { model.stop() }
        }
    }
}

#if os(iOS)
    /// Both sides if they fit, otherwise the selected one.
    struct PhoneLayout: View {
        let model: WriterModel
        @Environment(\.horizontalSizeClass) private var width
        @State private var side = Side.text

        private enum Side: Hashable { case text, caches }

        var body: some View {
            if width == .regular {
                HStack(spacing: 0) {
                    WritingView(model: model)
                    Divider()
                    InsightView(model: model)
                        .frame(maxWidth: 380)
                }
            } else {
                VStack(spacing: 0) {
                    Picker("Shown", selection: $side) {
                        Text("Text").tag(Side.text)
                        Text("Caches").tag(Side.caches)
                    }
                    .pickerStyle(.segmented)
                    .padding([.horizontal, .top])
                    switch side {
                    case .text: WritingView(model: model)
                    case .caches: InsightView(model: model)
                    }
                }
            }
        }
    }
#endif
