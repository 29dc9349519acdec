# shellcheck shell=bash
# Sourced by the scripts beside it, which then stand in the repository's root.
# Plain enough for bash 3.2, which is what a Mac has.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf '%s\n' "$*"; }
fail() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

packageVersion() {
  sed -n 's/^#define MNK_VERSION "\(.*\)"$/\1/p' Sources/MLXNativeKernelsCore/include/MLXNativeKernels/mnk_version.h
}

onMac() { [ "$(uname -s)" = Darwin ]; }

# Installs Debian packages, saying which. Call it only when something is missing.
installPackages() {
  command -v apt-get >/dev/null ||
    fail "missing: $*. This system has no apt-get; install the packages that carry the same with its own tool."
  local asRoot=""
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null ||
      fail "missing: $*. Neither root nor sudo is at hand; ask whoever is root to run: apt-get install $*"
    asRoot="sudo"
  fi
  say "installing $* (apt-get)"
  # A fresh image has no package lists; stale lists name files that are gone. One at a time: apt-get does not wait for
  # another's update of the lists, and make -j runs scripts that install side by side.
  mkdir -p .build
  (
    flock -w 900 9 || fail "another script of this clone has been installing packages for 15 minutes"
    $asRoot apt-get update -qq
    $asRoot env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y -qq \
      --no-install-recommends "$@" >/dev/null
  ) 9>.build/installing
}

# A tool of the Swift toolchain: the clang that builds the package is the one that checks it.
toolchain() {
  if onMac; then
    say "/usr/bin/$1"  # stands for the selected Xcode's, and knows its SDK
    return
  fi
  local swift beside
  swift=$(command -v swift)
  for beside in "$(dirname "$swift")/$1" "$(dirname "$(readlink -f "$swift")")/$1"; do
    if [ -x "$beside" ]; then
      say "$beside"
      return
    fi
  done
  command -v "$1" || fail "$1 not found beside $swift. Reinstall the Swift toolchain: it comes with $1."
}

# The documentation's pages.
pages() { ls Sources/MLXNativeKernels/MLXNativeKernels.docc/*.md; }

# examples LANGUAGE FOLDER FILE…: each example in that language becomes a file in FOLDER, which names its page and line. In
# pages of the documentation, an example whose first line is no import is a fragment and is left out.
examples() {
  local language=$1 folder=$2
  shift 2
  mkdir -p "$folder"
  awk -v language="$language" -v folder="$folder" '
    $0 == "```" language { place = FILENAME ":" FNR; next }
    /^```/ { file = place = ""; next }
    place && (FILENAME == "README.md" || /^(import |#import |#include )/) {
      file = sprintf("%s/%03d.%s", folder, ++count, language)
      print "// " place > file
    }
    { place = "" }
    file { print > file }
  ' "$@"
}

# builtObjects FOLDER SOURCES: the objects that SwiftPM has put into FOLDER, without those whose source is gone.
builtObjects() {
  local object source
  find "$1" -name '*.o' | sort | while read -r object; do
    source=${object#"$1/"}
    [ ! -f "$2/${source%.o}" ] || say "$object"
  done
}

# Programs that are run from here on share the kernels that they compile.
keepModules() {
  if onMac; then return; fi
  export PATH="$PWD/.ci/compiler-cache:$PATH" MNK_KEPT_MODULES="$PWD/.build/modules"
}
