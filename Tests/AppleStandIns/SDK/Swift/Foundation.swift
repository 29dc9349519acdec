// A stub of the Swift part of Apple's module: how errors, strings and collections bridge between the languages. The
// compiler knows the names with underscores. Type-checked only.
@_exported public import Foundation

public protocol LocalizedError: Error {
    var errorDescription: String? { get }
    var failureReason: String? { get }
    var recoverySuggestion: String? { get }
}

public protocol ContiguousBytes {
    func withUnsafeBytes<Value>(_ body: (UnsafeRawBufferPointer) throws -> Value) rethrows -> Value
}
extension Array: ContiguousBytes where Element == UInt8 {}

extension NSObject: Hashable {
    public static func == (left: NSObject, right: NSObject) -> Bool { left.isEqual(right) }
    public func hash(into hasher: inout Hasher) { hasher.combine(hash) }
}

extension NSError: Error {
    public var _domain: String { domain }
    public var _code: Int { code }
}
extension Error {
    public var localizedDescription: String { "" }
}
public enum _GenericObjCError: Error { case nilError }
public let _nilObjCError: any Error = _GenericObjCError.nilError
public func _convertNSErrorToError(_ error: NSError?) -> any Error { error ?? _nilObjCError }
public func _convertErrorToNSError(_ error: any Error) -> NSError { NSError() }

// The protocol of types that NS_ERROR_ENUM declares.
public protocol _ErrorCodeProtocol: Equatable, RawRepresentable {
    associatedtype _ErrorType: _BridgedStoredNSError where _ErrorType.Code == Self
}
public protocol _BridgedStoredNSError: Error, Hashable {
    associatedtype Code: _ErrorCodeProtocol
    static var errorDomain: String { get }
    var _nsError: NSError { get }
    init(_nsError error: NSError)
}
extension _BridgedStoredNSError {
    public static func == (left: Self, right: Self) -> Bool { left._nsError == right._nsError }
    public func hash(into hasher: inout Hasher) { hasher.combine(_nsError.code) }
    public var userInfo: [String: Any] { _nsError.userInfo }
}
extension _BridgedStoredNSError where Code.RawValue == Int {
    public var code: Code { Code(rawValue: _nsError.code)! }
}

public protocol Bridged: _ObjectiveCBridgeable {}
extension Bridged {
    public func _bridgeToObjectiveC() -> _ObjectiveCType { fatalError() }
    public static func _forceBridgeFromObjectiveC(_ source: _ObjectiveCType, result: inout Self?) {}
    public static func _conditionallyBridgeFromObjectiveC(_ source: _ObjectiveCType, result: inout Self?) -> Bool {
        false
    }
    public static func _unconditionallyBridgeFromObjectiveC(_ source: _ObjectiveCType?) -> Self { fatalError() }
}
extension String: Bridged { public typealias _ObjectiveCType = NSString }
extension Int: Bridged { public typealias _ObjectiveCType = NSNumber }
extension Bool: Bridged { public typealias _ObjectiveCType = NSNumber }
extension Array: _ObjectiveCBridgeable, Bridged { public typealias _ObjectiveCType = NSArray }
extension Set: _ObjectiveCBridgeable, Bridged { public typealias _ObjectiveCType = NSSet }
extension Dictionary: _ObjectiveCBridgeable, Bridged { public typealias _ObjectiveCType = NSDictionary }
public struct Data: Sendable, Bridged { public typealias _ObjectiveCType = NSData }
public struct URL: Sendable, Bridged {
    public typealias _ObjectiveCType = NSURL
    public init(fileURLWithPath path: String) {}
}

extension NSNumber: ExpressibleByIntegerLiteral {
    public required convenience init(integerLiteral value: Int) { self.init(value: value) }
}
