# shellcheck shell=bash
# Sourced by the scripts beside it; changes to the repository's root. Must run in bash 3.2, which macOS ships.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf '%s\n' "$*"; }
fail() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# failShowing FILE MESSAGE: also prints the file.
failShowing() {
  cat "$1" >&2
  fail "$2"
}

# refuseWarnings MESSAGE: a failure, except on a Mac, where newer compilers and SDKs warn about correct code.
refuseWarnings() {
  onMac || fail "$@"
  say "$@"
}

# limited SECONDS COMMAND…: runs it, and ends it with status 124 if it takes longer, after a list of what then runs.
limited() {
  local seconds=$1 process waited=0
  shift
  "$@" &
  process=$!
  # A process in the background ignores the signal of Ctrl-C.
  trap 'endTree "$process"; exit 130' INT TERM
  while kill -0 "$process" 2>/dev/null; do
    if [ "$waited" -ge "$seconds" ]; then
      say "not done after $seconds s: $*. Running:" >&2
      ps -A -o pid,ppid,etime,stat,args >&2 || true
      endTree "$process"
      trap - INT TERM
      return 124
    fi
    sleep 1
    waited=$((waited + 1))
  done
  trap - INT TERM
  wait "$process"
}

# endTree PROCESS: ends it and what it started.
endTree() {
  local child
  kill -STOP "$1" 2>/dev/null || true
  for child in $(ps -A -o pid=,ppid= | awk -v parent="$1" '$2 == parent { print $1 }'); do endTree "$child"; done
  kill -KILL "$1" 2>/dev/null || true
}

packageVersion() {
  sed -n 's/^#define MNK_VERSION "\(.*\)"$/\1/p' Sources/MLXNativeKernelsCore/include/MLXNativeKernels/mnk_version.h
}

onMac() { [ "$(uname -s)" = Darwin ]; }

# installPackages [PACKAGE…]: installs Debian packages that are missing.
installPackages() {
  [ $# -gt 0 ] || return 0
  command -v apt-get >/dev/null ||
    fail "missing: $*. This system has no apt-get; install the equivalent packages with its package manager."
  local asRoot="" bounded="-o Acquire::http::Timeout=60 -o Acquire::https::Timeout=60 -o Acquire::Retries=3"
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null ||
      fail "missing: $*. This user is not root and has no sudo. Ask an administrator to run: apt-get install $*"
    asRoot="sudo"
  fi
  say "installing $* (apt-get)"
  # A fresh image has no package lists, and stale lists name deleted files. The lock is needed because make -j runs
  # scripts that install at the same time, and apt-get does not wait for another update of the lists.
  mkdir -p .build
  (
    flock -w 900 9 || fail "another script has been installing packages for 15 minutes"
    $asRoot apt-get $bounded update -qq
    $asRoot env DEBIAN_FRONTEND=noninteractive apt-get $bounded -o DPkg::Lock::Timeout=300 install -y -qq \
      --no-install-recommends "$@" >/dev/null
  ) 9>.build/installing
}

# Prints the path of a Swift toolchain tool: the clang that builds the package must also check it.
toolchain() {
  if onMac; then
    say "/usr/bin/$1"  # runs the selected Xcode's tool, with its SDK
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

pages() { ls Sources/MLXNativeKernels/MLXNativeKernels.docc/*.md; }

# examples LANGUAGE FOLDER FILE…: writes each example in that language to a file in FOLDER that names its page and line.
# Skips fragments: documentation examples that do not start with an import.
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

# builtObjects FOLDER SOURCES: lists SwiftPM's objects in FOLDER, without those of deleted sources.
builtObjects() {
  local object source
  find "$1" -name '*.o' | sort | while read -r object; do
    source=${object#"$1/"}
    [ ! -f "$2/${source%.o}" ] || say "$object"
  done
}

# Lets programs that run from here on share compiled kernels.
keepModules() {
  if onMac; then return; fi
  export PATH="$PWD/.ci/compiler-cache:$PATH" MNK_KEPT_MODULES="$PWD/.build/modules"
}
