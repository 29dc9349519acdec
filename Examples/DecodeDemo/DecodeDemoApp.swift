import SwiftUI

/// A small language model that decodes with the kernels, and a view of its caches.
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
