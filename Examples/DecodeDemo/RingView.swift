import SwiftUI

/// The slots of a windowed layer's cache. The newest position overwrites the oldest one's slot, so the ring turns.
struct RingView: View {
    let model: WriterModel

    var body: some View {
        let slots = model.ring
        VStack(spacing: 8) {
            Canvas { context, size in
                for slot in slots {
                    var path = Path()
                    path.addLines(slot.corners(in: size))
                    path.closeSubpath()
                    context.fill(path, with: .color(color(of: slot)))
                }
            }
            .aspectRatio(1, contentMode: .fit)
            .frame(maxWidth: 320)
            Text(model.ringText)
                .font(.callout)
                .monospacedDigit()
                .foregroundStyle(.secondary)
        }
        .frame(maxWidth: .infinity)
        .accessibilityElement(children: .ignore)
        .accessibilityLabel("Slots of a ring")
        .accessibilityValue(model.ringText)
        .accessibilityAddTraits(.updatesFrequently)
    }
}

/// System colors, which follow the light and dark appearance.
private func color(of slot: RingSlot) -> Color {
    switch slot.content {
    case .empty: .secondary.opacity(0.15)
    case .held(let shade): .accentColor.opacity(shade)
    case .newest: .primary
    }
}
