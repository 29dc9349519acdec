import SwiftUI

/// The prompt with its options, and the generated text.
struct WritingView: View {
    let model: WriterModel

    var body: some View {
        VStack(alignment: .leading, spacing: 16) {
            PromptView(model: model)
            TextStream(text: model.text)
        }
        .padding()
    }
}

/// The prompt and the options of the next text.
struct PromptView: View {
    @Bindable var model: WriterModel
    @ScaledMetric private var editorHeight = 72.0

    var body: some View {
        VStack(alignment: .leading, spacing: 8) {
            Text("Prompt")
                .font(.headline)
                .accessibilityHidden(true)
            TextEditor(text: $model.prompt)
                .font(.body.monospaced())
                .autocorrectionDisabled()
                #if os(iOS)
                    .textInputAutocapitalization(.never)
                #endif
                .frame(height: editorHeight)
                .overlay { RoundedRectangle(cornerRadius: 6).stroke(.separator) }
                .accessibilityLabel("Prompt")
            ViewThatFits(in: .horizontal) {
                HStack(spacing: 24) {
                    storage.fixedSize()
                    temperature.frame(minWidth: 220)
                }
                VStack(alignment: .leading, spacing: 8) {
                    storage
                    temperature
                }
            }
        }
    }

    private var storage: some View {
        HStack {
            // A phone hides a picker's own label.
            Text("Cache storage")
                .accessibilityHidden(true)
            Picker("Cache storage", selection: $model.storage) {
                ForEach(model.storages) { choice in
                    Text(choice.name).tag(choice)
                }
            }
            .labelsHidden()
        }
        .help("Storage of keys and values for the next text")
    }

    private var temperature: some View {
        HStack {
            Text("Temperature")
                .accessibilityHidden(true)
            Slider(value: $model.temperature, in: WriterModel.temperatures, step: 0.1) {
                Text("Temperature")
            }
            .labelsHidden()
            .accessibilityValue(model.temperatureText)
            Text(model.temperatureText)
                .monospacedDigit()
                .accessibilityHidden(true)
        }
        .help("Randomness of sampling; 0 always takes the most likely byte")
    }
}

/// Selectable text that scrolls to its end while it grows.
struct TextStream: View {
    let text: String

    private enum Part: Hashable { case text }

    var body: some View {
        ScrollViewReader { reader in
            ScrollView {
                Text(text)
                    .font(.body.monospaced())
                    .textSelection(.enabled)
                    .frame(maxWidth: .infinity, alignment: .leading)
                    .accessibilityAddTraits(.updatesFrequently)
                    .id(Part.text)
            }
            .onChange(of: text) { reader.scrollTo(Part.text, anchor: .bottom) }
        }
        .frame(maxWidth: .infinity, maxHeight: .infinity)
        .accessibilityElement(children: .contain)
        .accessibilityLabel("Generated text")
    }
}
