#!/usr/bin/env bash
# mnk_version.h has the package's version. Files that cannot include it must name the same one.
. "$(dirname "$0")/common.sh"
version=$(packageVersion)
header=$core/include/MLXNativeKernels/mnk_version.h

# names FILE LINE: the file must contain the line.
names() { grep -qxF -- "$2" "$1" || fail "$1 lacks the line \"$2\", the version in $header"; }
part() { say "$version" | cut -d. -f"$1"; }

names "$header" "#define MNK_VERSION_MAJOR $(part 1)"
names "$header" "#define MNK_VERSION_MINOR $(part 2)"
names Xcode/Configuration/Shared.xcconfig "MARKETING_VERSION = $version"
names README.md "    .package(url: \"https://…/MLXNativeKernels.git\", from: \"$version\")"
page=$(pages | grep GettingStarted)
grep -qF ".package(url: address, from: \"$version\")" "$page" || fail "$page names another version than $version"
[ "$(grep -m 1 '^## ' CHANGELOG.md)" = "## $version" ] || fail "CHANGELOG.md does not begin with version $version"
passed "header, Xcode project, README and change log have version $version"
