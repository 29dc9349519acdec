import SwiftUI

/// A small language model that decodes through the kernels, and what happens in its caches meanwhile.
@main
struct DecodeDemoApp: App {
    var body: some Scene {
        #if os(macOS)
            WindowGroup { ContentView() }
                .defaultSize(width: 980, height: 720)
        #else
            WindowGroup { ContentView() }
        #endif
    }
}
