// A stub of Apple's module, to type-check files under `#if canImport(Metal)` on Linux. No type is Sendable here; some
// are in some versions of Apple's SDK.

public protocol MTLDevice: AnyObject {
    var name: String { get }
    var registryID: UInt64 { get }
}

public protocol MTLResource: AnyObject {
    var device: any MTLDevice { get }
    var label: String? { get set }
}

public protocol MTLBuffer: MTLResource {
    var length: Int { get }
    func contents() -> UnsafeMutableRawPointer
}

public protocol MTLCommandQueue: AnyObject {
    var device: any MTLDevice { get }
    func makeCommandBuffer() -> (any MTLCommandBuffer)?
}

public protocol MTLCommandBuffer: AnyObject {
    var commandQueue: any MTLCommandQueue { get }
    var error: (any Error)? { get }
    func commit()
    func waitUntilCompleted()
}

// swift-format-ignore: AlwaysUseLowerCamelCase
public func MTLCreateSystemDefaultDevice() -> (any MTLDevice)? { nil }
