#!/usr/bin/env bash
# What a package that depends on this one by URL gets: on Linux the repository without submodules, and no examples.
. "$(dirname "$0")/common.sh"
unset MNK_SOFT_METAL MNK_TOOLS MNK_BENCHES MNK_OPTIMIZE MNK_HOST_AVX512  # only for this repository's builds
if ! git rev-parse --git-dir >/dev/null 2>&1; then
  skipped "a consumer's graph: this is not a git repository"
  exit
fi

# The tracked files with their changes, in a repository of their own. Submodules stay links to their hosts.
repository=$scratch/MLXNativeKernels.git
changed=$(git stash create)
git clone -q --bare "file://$PWD" "$repository"
git push -q "$repository" "${changed:-HEAD}:refs/heads/tested"
mkdir -p "$scratch/consumer/Sources/consumer"
say 'import MLXNativeKernels' >"$scratch/consumer/Sources/consumer/main.swift"
cat >"$scratch/consumer/Package.swift" <<SWIFT
// swift-tools-version: 6.1
import PackageDescription

let package = Package(
    name: "consumer",
    dependencies: [.package(url: "file://$repository", branch: "tested")],
    targets: [
        .executableTarget(
            name: "consumer", dependencies: [.product(name: "MLXNativeKernels", package: "MLXNativeKernels")])
    ])
SWIFT
checkout=$scratch/consumer/.build/checkouts/MLXNativeKernels

# The settings that the documentation recommends on Linux, for this process only. Resolving works everywhere with them.
export GIT_CONFIG_COUNT=2 GIT_CONFIG_VALUE_0=none GIT_CONFIG_VALUE_1=none
GIT_CONFIG_KEY_0=$(sed -n 's/^ *git config --global \(submodule.*fmt.update\) none$/\1/p' "$(pages | grep GettingStarted)")
export GIT_CONFIG_KEY_0 GIT_CONFIG_KEY_1=${GIT_CONFIG_KEY_0/fmt/metal-cpp}
swift package --package-path "$scratch/consumer" --cache-path "$scratch/cache" resolve >"$scratch/output" 2>&1 ||
  failShowing "$scratch/output" "the package cannot be resolved"
[ -z "$(find "$checkout/Sources/ThirdParty" -type f)" ] ||
  fail "SwiftPM fetches submodules in spite of the documented settings"
passed "a consumer can resolve the package without its submodules, which Linux does not need"

# A target needs a name that is unique in the whole program, even one that the program does not use.
swift package --package-path "$checkout" describe --type json >"$scratch/described" 2>"$scratch/output" ||
  failShowing "$scratch/output" "the package cannot be described"
grep -q '"path" : "Sources/MLXNativeKernels"' "$scratch/described" || failShowing "$scratch/described" "there is no library"
if grep -E '"path" : "Examples' "$scratch/described"; then fail "a consumer gets targets of the examples (above)"; fi
passed "a consumer gets no target of the examples"
