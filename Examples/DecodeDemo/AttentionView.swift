import SwiftUI

/// The newest tokens, shaded by their weight for the next one. The heaviest are also underlined, so that color is not
/// the only cue.
struct AttentionView: View {
    let model: WriterModel
    @ScaledMetric private var cell = 14.0

    var body: some View {
        LazyVGrid(columns: [GridItem(.adaptive(minimum: cell), spacing: 1)], spacing: 1) {
            ForEach(model.attention) { token in
                Text(token.character)
                    .font(.callout.monospaced())
                    .underline(token.isHeavy)
                    .frame(maxWidth: .infinity)
                    .background(Color.accentColor.opacity(token.shade))
            }
        }
        .frame(maxWidth: .infinity)
        .accessibilityElement(children: .ignore)
        .accessibilityLabel("Attention of one head")
        .accessibilityValue(model.attentionText)
        .accessibilityAddTraits(.updatesFrequently)
    }
}
