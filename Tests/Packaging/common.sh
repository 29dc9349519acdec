# shellcheck shell=bash disable=SC2034,SC1091
# Sourced by the tests beside it. They run in the repository's root, take the folder of built products as $1, and print
# a line `passed: …` or `skipped: …` for each check.
. "$(dirname "${BASH_SOURCE[0]}")/../../.ci/common.sh"
products=${1:-.build/debug}
core=Sources/MLXNativeKernelsCore
host=Sources/MLXNativeKernelsHost
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

passed() { say "passed: $*"; }
skipped() { say "skipped: $*"; }
