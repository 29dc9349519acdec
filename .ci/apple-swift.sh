# shellcheck shell=bash
# shellcheck disable=SC2154  # root, core and appleSDK are of the files that are sourced before
# Sourced after apple.sh by .ci/check-apple. Type-checks Swift on this machine as a Mac compiles it.
#
# Where Metal can be imported, a stub Swift module replaces it. Where Objective-C can be imported, the compiler imports
# the framework's own headers as on a Mac, so names, throws, async and Sendable are checked as Swift imports them. Two
# things are stubs: Tests/AppleStandIns/SDK replaces Foundation, and this machine's standard library gets the one type
# that every NSError** needs and only Apple's library has. This does not check Apple's own headers or run anything.
#
# The demo app is type-checked for macOS and iOS against stubs of the SwiftUI names that it uses. This does not show
# that the oldest supported systems have these names.
swiftc=$(toolchain swiftc)

# typecheckMetal FILE…
typecheckMetal() {
  "$swiftc" -typecheck -swift-version 6 -warnings-as-errors -D SWIFT_PACKAGE -module-name MLXNativeKernels \
    -I "$root/swift" -Xcc "-fmodule-map-file=$core/include/module.modulemap" -Xcc "-I$core/include" "$@"
}

makeMetalModule() {
  mkdir -p "$root/swift"
  "$swiftc" -emit-module -parse-as-library -module-name Metal "$appleSDK/Swift/Metal.swift" \
    -emit-module-path "$root/swift/Metal.swiftmodule"
}

# withObjectiveC WORD…: runs the compiler with Objective-C. BOOL is bool, as on Apple silicon.
withObjectiveC() {
  "$swiftc" -frontend "$@" -swift-version 6 -warnings-as-errors -enable-objc-interop \
    -disable-objc-attr-requires-foundation-module -module-cache-path "$root/swift-objc/cache" \
    -I "$root/swift-objc" -I "$appleSDK/Frameworks" -Xcc -D__APPLE__=1 -Xcc -fobjc-runtime=macosx-14 \
    -Xcc -U__OBJC_BOOL_IS_BOOL -Xcc -D__OBJC_BOOL_IS_BOOL=1 -Xcc -isystem -Xcc "$appleSDK" \
    -Xcc "-fmodule-map-file=$core/include/module.modulemap" -Xcc "-I$core/include"
}

# Builds the standard library's declarations and that type once for each compiler.
makeSwiftModule() {
  local module=$root/swift-objc/Swift.swiftmodule text=$root/swift-objc/Swift.swiftinterface interface flags
  interface=$(dirname "$(readlink -f "$swiftc")")/../lib/swift/linux/Swift.swiftmodule
  interface=$interface/$(uname -m)-unknown-linux-gnu.swiftinterface
  [ -f "$interface" ] || fail "$interface is missing. Reinstall the Swift toolchain."
  if [ "$module" -nt "$interface" ] && [ "$module" -nt .ci/apple-swift.sh ]; then return; fi
  mkdir -p "$root/swift-objc"
  {
    cat "$interface"
    say 'public struct AutoreleasingUnsafeMutablePointer<Pointee> {}'
  } >"$text"
  flags=$(sed -n 's|^// swift-module-flags: ||p' "$interface" | sed 's/ -O / -Onone /')
  # The library is known to be valid. Lazy checking takes seconds instead of a minute.
  # shellcheck disable=SC2086  # a list of words
  "$swiftc" -frontend -emit-module $flags -experimental-lazy-typecheck -experimental-skip-all-function-bodies \
    -experimental-skip-non-exportable-decls "$text" -o "$module"
}

makeFoundationModule() {
  withObjectiveC -emit-module -parse-as-library -module-name Foundation "$appleSDK/Swift/Foundation.swift" \
    -o "$root/swift-objc/Foundation.swiftmodule"
}

# checkTwins: checks the part of the Swift API that uses Objective-C. Other files are only read for what it uses.
checkTwins() {
  local twins=Sources/MLXNativeKernels/ObjectiveC.swift
  # shellcheck disable=SC2046  # a list of words
  withObjectiveC -typecheck -D SWIFT_PACKAGE -module-name MLXNativeKernels -primary-file "$twins" \
    $(swiftSources | grep -vxF "$twins")
}

# withCore WORD…: runs the compiler with the C API as a module, in the app's language mode.
withCore() {
  "$swiftc" -swift-version 6 -warnings-as-errors -parse-as-library -I "$root/swift-app" -I "$root/swift" \
    -Xcc "-fmodule-map-file=$core/include/module.modulemap" -Xcc "-I$core/include" \
    -Xcc "-fmodule-map-file=$host/include/module.modulemap" -Xcc "-I$host/include" "$@"
}

# makeAppModules: builds the modules that the app imports, after makeMetalModule. Xcode defines no SWIFT_PACKAGE.
makeAppModules() {
  local out=$root/swift-app system
  mkdir -p "$out"
  # shellcheck disable=SC2046  # a list of words
  withCore -emit-module -D SWIFT_PACKAGE -module-name MLXNativeKernels $(swiftSources) \
    -emit-module-path "$out/MLXNativeKernels.swiftmodule"
  withCore -emit-module -module-name Accelerate "$appleSDK/Swift/Accelerate.swift" \
    -emit-module-path "$out/Accelerate.swiftmodule"
  for system in macOS iOS; do
    copiesOf "$out/$system-sdk" "$appleSDK/Swift/SwiftUI.swift"
    withCore -emit-module -D "FOR_$system" -module-name SwiftUI "$out/$system-sdk/SwiftUI.swift" \
      -emit-module-path "$out/$system-sdk/SwiftUI.swiftmodule"
  done
}

# copiesOf FOLDER FILE…: no flag makes os(macOS) or os(iOS) true on this machine, so copies test a custom condition
# instead, which -D sets. Line numbers do not change.
copiesOf() {
  local folder=$1 file
  rm -rf "$folder"
  mkdir -p "$folder"
  shift
  for file in "$@"; do sed -E 's/os\((macOS|iOS)\)/FOR_\1/g' "$file" >"$folder/$(basename "$file")"; done
}

# typecheckApp SYSTEM FILE…: with the language model, which the app compiles.
typecheckApp() {
  local system=$1 folder=$root/swift-app/$1
  shift
  copiesOf "$folder" Examples/JargonLM/*.swift "$@"
  withCore -typecheck -D "FOR_$system" -module-name DecodeDemo -I "$folder-sdk" "$folder"/*.swift
}
