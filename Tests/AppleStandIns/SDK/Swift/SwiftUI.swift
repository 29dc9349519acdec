// A stub of Apple's module with the names that Examples/DecodeDemo uses, to type-check its views on Linux. Names that
// Apple has on one system only are under #if here, too.
@_exported public import Foundation
@_exported public import Observation

private func none<Value>() -> Value { fatalError() }

@MainActor @preconcurrency public protocol View {
    associatedtype Body: View
    @ViewBuilder var body: Body { get }
}
@MainActor @preconcurrency public protocol Scene {
    associatedtype Body: Scene
    @SceneBuilder var body: Body { get }
}
@MainActor @preconcurrency public protocol App {
    associatedtype Body: Scene
    @SceneBuilder var body: Body { get }
    init()
}
extension App { public static func main() {} }

extension Never: View, Scene { public var body: Never { return none() } }
/// The body of a view or scene does not matter here.
@MainActor @preconcurrency public protocol Leaf {}
extension Leaf { public var body: Never { return none() } }
public struct EmptyView: View, Leaf { public nonisolated init() {} }
public struct TupleView<each Part: View>: View, Leaf {}
public enum Either<First, Second> {}
extension Either: View, Leaf where First: View, Second: View {}
extension Optional: View, Leaf where Wrapped: View {}

@resultBuilder public enum ViewBuilder {
    public static func buildExpression<Content: View>(_ content: Content) -> Content { content }
    public static func buildBlock() -> EmptyView { EmptyView() }
    public static func buildBlock<Content: View>(_ content: Content) -> Content { content }
    public static func buildBlock<each Part: View>(_ parts: repeat each Part) -> TupleView<repeat each Part> { none() }
    public static func buildIf<Content: View>(_ content: Content?) -> Content? { content }
    public static func buildEither<First: View, Second: View>(first: First) -> Either<First, Second> { none() }
    public static func buildEither<First: View, Second: View>(second: Second) -> Either<First, Second> { none() }
}
@resultBuilder public enum SceneBuilder {
    public static func buildBlock<Content: Scene>(_ content: Content) -> Content { content }
}
public struct WindowGroup<Content: View>: Scene, Leaf {
    public nonisolated init(@ViewBuilder content: @escaping () -> Content) {}
}
#if os(macOS)
    extension Scene { public nonisolated func defaultSize(width: CGFloat, height: CGFloat) -> some Scene { self } }
#endif

// State.
@propertyWrapper @dynamicMemberLookup public struct Binding<Value> {
    public init(get: @escaping () -> Value, set: @escaping (Value) -> Void) {}
    public var wrappedValue: Value {
        get { none() }
        nonmutating set {}
    }
    public var projectedValue: Binding<Value> { self }
    public subscript<Part>(dynamicMember path: WritableKeyPath<Value, Part>) -> Binding<Part> { none() }
}
@propertyWrapper public struct State<Value> {
    public init(wrappedValue: Value) {}
    public var wrappedValue: Value {
        get { none() }
        nonmutating set {}
    }
    public var projectedValue: Binding<Value> { none() }
}
@propertyWrapper @dynamicMemberLookup public struct Bindable<Value: AnyObject & Observable> {
    public init(wrappedValue: Value) { self.wrappedValue = wrappedValue }
    public var wrappedValue: Value
    public var projectedValue: Bindable<Value> { self }
    public subscript<Part>(dynamicMember path: ReferenceWritableKeyPath<Value, Part>) -> Binding<Part> { none() }
}
@propertyWrapper public struct ScaledMetric<Value: BinaryFloatingPoint> {
    public init(wrappedValue: Value) { self.wrappedValue = wrappedValue }
    public let wrappedValue: Value
}
@propertyWrapper public struct Environment<Value> {
    public init(_ path: KeyPath<EnvironmentValues, Value>) {}
    public var wrappedValue: Value { none() }
}
public struct EnvironmentValues {
    public var scenePhase = ScenePhase.active
    #if os(iOS)
        public var horizontalSizeClass: UserInterfaceSizeClass?
    #endif
}
public enum ScenePhase: Sendable, Comparable { case background, inactive, active }
public enum UserInterfaceSizeClass: Sendable { case compact, regular }

// Texts and styles.
public struct LocalizedStringKey: ExpressibleByStringInterpolation, Sendable {
    public init(stringLiteral value: String) {}
}
public struct Text: View, Leaf {
    public nonisolated init(_ key: LocalizedStringKey) {}
    @_disfavoredOverload public nonisolated init<Content: StringProtocol>(_ content: Content) {}
    public nonisolated func font(_ font: Font?) -> Text { self }
    public nonisolated func monospacedDigit() -> Text { self }
    public nonisolated func underline(_ isActive: Bool = true) -> Text { self }
}
public struct Font: Sendable {
    public static let body = Font(), callout = Font(), headline = Font()
    public func monospaced() -> Font { self }
}
public protocol ShapeStyle: Sendable {}
extension Color: View, Leaf {}
public struct Color: ShapeStyle {
    // swift-format-ignore: DontRepeatTypeInStaticProperties
    public static let accentColor = Color(), primary = Color(), secondary = Color()
    public func opacity(_ opacity: Double) -> Color { self }
}
public struct HierarchicalShapeStyle: ShapeStyle {}
public struct SeparatorShapeStyle: ShapeStyle {}
public struct Material: ShapeStyle {}
extension ShapeStyle where Self == HierarchicalShapeStyle { public static var secondary: Self { Self() } }
extension ShapeStyle where Self == SeparatorShapeStyle { public static var separator: Self { Self() } }
extension ShapeStyle where Self == Material { public static var bar: Self { Self() } }

// Drawing.
public struct Path {
    public init() {}
    public mutating func addLines(_ lines: [CGPoint]) {}
    public mutating func closeSubpath() {}
}
public struct GraphicsContext {
    public struct Shading { public static func color(_ color: Color) -> Shading { Shading() } }
    public func fill(_ path: Path, with shading: Shading) {}
}
// It may draw in the background, so the closure may only capture Sendable values.
public struct Canvas<Symbols: View>: View, Leaf {
    public nonisolated init(
        renderer: @escaping @Sendable (inout GraphicsContext, CGSize) -> Void
    ) where Symbols == EmptyView {}
}
public struct RoundedRectangle {
    public nonisolated init(cornerRadius: CGFloat) {}
    public nonisolated func stroke(_ style: some ShapeStyle, lineWidth: CGFloat = 1) -> some View { EmptyView() }
}

// Layout.
public enum HorizontalAlignment: Sendable { case leading, center, trailing }
public enum Alignment: Sendable { case center, leading, trailing }
public struct UnitPoint: Sendable { public static let bottom = UnitPoint() }
public enum ContentMode: Sendable { case fit, fill }
public enum Axis {
    public struct Set: OptionSet, Sendable {
        public let rawValue: Int8
        public init(rawValue: Int8) { self.rawValue = rawValue }
        public static let horizontal = Set(rawValue: 1), vertical = Set(rawValue: 2)
    }
}
public enum Edge {
    public struct Set: OptionSet, Sendable {
        public let rawValue: Int8
        public init(rawValue: Int8) { self.rawValue = rawValue }
        public static let top = Set(rawValue: 1), horizontal = Set(rawValue: 2), all = Set(rawValue: 7)
    }
}
public struct VStack<Content: View>: View, Leaf {
    public nonisolated init(
        alignment: HorizontalAlignment = .center, spacing: CGFloat? = nil, @ViewBuilder content: () -> Content
    ) {}
}
public struct HStack<Content: View>: View, Leaf {
    public nonisolated init(spacing: CGFloat? = nil, @ViewBuilder content: () -> Content) {}
}
public struct ViewThatFits<Content: View>: View, Leaf {
    public nonisolated init(in axes: Axis.Set = [.horizontal, .vertical], @ViewBuilder content: () -> Content) {}
}
public struct ScrollView<Content: View>: View, Leaf {
    public nonisolated init(_ axes: Axis.Set = .vertical, @ViewBuilder content: () -> Content) {}
}
public struct ScrollViewProxy { public func scrollTo<ID: Hashable>(_ id: ID, anchor: UnitPoint? = nil) {} }
public struct ScrollViewReader<Content: View>: View, Leaf {
    public nonisolated init(@ViewBuilder content: @escaping (ScrollViewProxy) -> Content) {}
}
public struct GridItem: Sendable {
    public enum Size: Sendable { case adaptive(minimum: CGFloat, maximum: CGFloat = .infinity) }
    public init(_ size: Size, spacing: CGFloat? = nil) {}
}
public struct LazyVGrid<Content: View>: View, Leaf {
    public nonisolated init(columns: [GridItem], spacing: CGFloat? = nil, @ViewBuilder content: () -> Content) {}
}
public struct Divider: View, Leaf { public nonisolated init() {} }
public struct Spacer: View, Leaf { public nonisolated init(minLength: CGFloat? = nil) {} }
public struct ForEach<Data: RandomAccessCollection, ID: Hashable, Content: View>: View, Leaf {
    public nonisolated init(_ data: Data, @ViewBuilder content: @escaping (Data.Element) -> Content)
    where Data.Element: Identifiable, ID == Data.Element.ID {}
}
#if os(macOS)
    public struct HSplitView<Content: View>: View, Leaf {
        public nonisolated init(@ViewBuilder content: () -> Content) {}
    }
#endif

// Controls.
public struct Button<Label: View>: View, Leaf {
    public nonisolated init(_ key: LocalizedStringKey, systemImage: String, action: @escaping @MainActor () -> Void)
    where Label == EmptyView {}
}
public struct Picker<Label: View, Selection: Hashable, Content: View>: View, Leaf {
    public nonisolated init(
        _ key: LocalizedStringKey, selection: Binding<Selection>, @ViewBuilder content: () -> Content
    ) where Label == Text {}
}
public protocol PickerStyle {}
public struct SegmentedPickerStyle: PickerStyle {}
extension PickerStyle where Self == SegmentedPickerStyle { public static var segmented: Self { Self() } }
public struct Slider<Label: View>: View, Leaf {
    public nonisolated init<Value: BinaryFloatingPoint>(
        value: Binding<Value>, in bounds: ClosedRange<Value> = 0...1, step: Value.Stride = 1,
        @ViewBuilder label: () -> Label, onEditingChanged: @escaping (Bool) -> Void = { _ in }
    ) where Value.Stride: BinaryFloatingPoint {}
}
public struct TextEditor: View, Leaf { public nonisolated init(text: Binding<String>) {} }
public struct LabeledContent<Label: View, Content: View>: View, Leaf {
    public nonisolated init<Value: StringProtocol>(_ key: LocalizedStringKey, value: Value)
    where Label == Text, Content == Text {}
}
public struct Gauge<Label: View, Current: View>: View, Leaf {
    public nonisolated init<Value: BinaryFloatingPoint>(
        value: Value, in bounds: ClosedRange<Value> = 0...1, @ViewBuilder label: () -> Label,
        @ViewBuilder currentValueLabel: () -> Current
    ) where Value.Stride: BinaryFloatingPoint {}
}
public protocol GaugeStyle {}
public struct LinearCapacityGaugeStyle: GaugeStyle {}
extension GaugeStyle where Self == LinearCapacityGaugeStyle { public static var linearCapacity: Self { Self() } }
public struct KeyEquivalent: ExpressibleByExtendedGraphemeClusterLiteral, Sendable {
    public init(extendedGraphemeClusterLiteral value: Character) {}
    public static let `return`: KeyEquivalent = "\r"
}
public struct EventModifiers: OptionSet, Sendable {
    public let rawValue: Int
    public init(rawValue: Int) { self.rawValue = rawValue }
    public static let command = EventModifiers(rawValue: 1), shift = EventModifiers(rawValue: 2)
}
public protocol TextSelectability {}
public struct EnabledTextSelectability: TextSelectability {}
extension TextSelectability where Self == EnabledTextSelectability { public static var enabled: Self { Self() } }
#if os(iOS)
    public struct TextInputAutocapitalization: Sendable { public static let never = TextInputAutocapitalization() }
    extension View {
        public nonisolated func textInputAutocapitalization(_ kind: TextInputAutocapitalization?) -> some View { self }
    }
#endif

// Accessibility.
public enum AccessibilityChildBehavior: Sendable { case ignore, contain, combine }
public struct AccessibilityTraits: OptionSet, Sendable {
    public let rawValue: Int
    public init(rawValue: Int) { self.rawValue = rawValue }
    public static let isHeader = AccessibilityTraits(rawValue: 1), updatesFrequently = AccessibilityTraits(rawValue: 2)
}

// What every view can do.
extension View {
    public nonisolated func accessibilityAddTraits(_ traits: AccessibilityTraits) -> some View { self }
    public nonisolated func accessibilityElement(children: AccessibilityChildBehavior = .ignore) -> some View { self }
    public nonisolated func accessibilityHidden(_ isHidden: Bool) -> some View { self }
    public nonisolated func accessibilityLabel(_ key: LocalizedStringKey) -> some View { self }
    public nonisolated func accessibilityValue<Value: StringProtocol>(_ value: Value) -> some View { self }
    public nonisolated func aspectRatio(_ ratio: CGFloat? = nil, contentMode: ContentMode) -> some View { self }
    public nonisolated func autocorrectionDisabled(_ isDisabled: Bool = true) -> some View { self }
    public nonisolated func background(_ style: some ShapeStyle) -> some View { self }
    public nonisolated func disabled(_ isDisabled: Bool) -> some View { self }
    public nonisolated func fixedSize() -> some View { self }
    public nonisolated func font(_ font: Font?) -> some View { self }
    public nonisolated func foregroundStyle(_ style: some ShapeStyle) -> some View { self }
    public nonisolated func frame(
        width: CGFloat? = nil, height: CGFloat? = nil, alignment: Alignment = .center
    ) -> some View { self }
    public nonisolated func frame(
        minWidth: CGFloat? = nil, idealWidth: CGFloat? = nil, maxWidth: CGFloat? = nil, minHeight: CGFloat? = nil,
        idealHeight: CGFloat? = nil, maxHeight: CGFloat? = nil, alignment: Alignment = .center
    ) -> some View { self }
    public nonisolated func gaugeStyle(_ style: some GaugeStyle) -> some View { self }
    public nonisolated func help(_ key: LocalizedStringKey) -> some View { self }
    public nonisolated func id(_ id: some Hashable) -> some View { self }
    public nonisolated func keyboardShortcut(
        _ key: KeyEquivalent, modifiers: EventModifiers = .command
    ) -> some View { self }
    public nonisolated func labelsHidden() -> some View { self }
    public nonisolated func lineLimit(_ number: Int?) -> some View { self }
    public nonisolated func monospacedDigit() -> some View { self }
    public nonisolated func onChange<Value: Equatable>(
        of value: Value, initial: Bool = false, _ action: @escaping () -> Void
    ) -> some View { self }
    public nonisolated func onDisappear(perform action: (() -> Void)? = nil) -> some View { self }
    public nonisolated func overlay(
        alignment: Alignment = .center, @ViewBuilder content: () -> some View
    ) -> some View { self }
    public nonisolated func padding(_ edges: Edge.Set = .all, _ length: CGFloat? = nil) -> some View { self }
    public nonisolated func pickerStyle(_ style: some PickerStyle) -> some View { self }
    public nonisolated func tag(_ tag: some Hashable) -> some View { self }
    public nonisolated func textSelection(_ selectability: some TextSelectability) -> some View { self }
}
