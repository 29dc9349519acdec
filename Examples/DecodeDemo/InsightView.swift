import SwiftUI

/// The device and the caches while the model writes.
struct InsightView: View {
    let model: WriterModel

    var body: some View {
        ScrollView {
            VStack(alignment: .leading, spacing: 24) {
                numbers
                Titled("Cache") { gauge }
                Titled("Slots of a ring") { RingView(model: model) }
                Titled("Attention of one head") { AttentionView(model: model) }
            }
            .padding()
        }
    }

    private var numbers: some View {
        VStack(alignment: .leading, spacing: 6) {
            LabeledContent("Device", value: model.deviceText).accessibilityElement(children: .combine)
            LabeledContent("Speed", value: model.speedText).accessibilityElement(children: .combine)
            LabeledContent("Position", value: model.positionText).accessibilityElement(children: .combine)
        }
        .monospacedDigit()
    }

    private var gauge: some View {
        Gauge(value: model.cacheFraction) {
            Text("Bytes in use, of all slots")
        } currentValueLabel: {
            Text(model.cacheText).monospacedDigit()
        }
        .gaugeStyle(.linearCapacity)
        .accessibilityElement(children: .ignore)
        .accessibilityLabel("Cache")
        .accessibilityValue(model.cacheText)
    }

    /// A heading with its content.
    private struct Titled<Content: View>: View {
        let title: LocalizedStringKey
        let content: Content

        init(_ title: LocalizedStringKey, @ViewBuilder content: () -> Content) {
            self.title = title
            self.content = content()
        }

        var body: some View {
            VStack(alignment: .leading, spacing: 8) {
                Text(title)
                    .font(.headline)
                    .accessibilityAddTraits(.isHeader)
                content
            }
        }
    }
}
