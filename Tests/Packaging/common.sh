# shellcheck shell=bash disable=SC2034,SC1091
# Sourced by the tests beside it. They stand in the repository's root, take the folder of the built products as $1,
# and print a line `passed: …` or `skipped: …` for each thing they checked.
. "$(dirname "${BASH_SOURCE[0]}")/../../.ci/common.sh"
products=${1:-.build/debug}
core=Sources/MLXNativeKernelsCore
host=Sources/MLXNativeKernelsHost
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

passed() { say "passed: $*"; }
skipped() { say "skipped: $*"; }
