#!/usr/bin/env bash
# Checks rules for Package.swift that SwiftPM does not check, or checks only on a Mac or in another package. Reads the
# manifest as a dependent package sees it, on Linux and on a Mac.
. "$(dirname "$0")/common.sh"

# dump CONDITION: the manifest as JSON; CONDITION is whether Darwin can be imported.
dump() {
  mkdir -p "$scratch/$1"
  sed "s/canImport(Darwin)/$1/" Package.swift >"$scratch/$1/Package.swift"
  swift package --package-path "$scratch/$1" dump-package
}

# check MANIFEST PATHS: prints each broken rule. Both are files.
check() {
  python3 - "$@" <<'PYTHON'
import json, os, re, sys

manifest = json.load(open(sys.argv[1]))
paths = open(sys.argv[2]).read().split("\n")
version = tuple(int(part) for part in manifest["toolsVersion"]["_version"].split(".")[:2])


def within(folder):
    return [path for path in paths if path.startswith(folder + "/")]


def folder_of(target):
    if target.get("path"):
        return target["path"]
    return os.path.join("Tests" if target["type"] == "test" else "Sources", target["name"])


for target in manifest["targets"]:
    name, folder = target["name"], folder_of(target)
    files = within(folder)
    endings = {os.path.splitext(path)[1] for path in files}
    if not name.startswith("MLXNativeKernels"):
        print("target %s: its name must be unique among all packages of a program. Start it with MLXNativeKernels, or "
              "make it conditional on isAsked()" % name)
    for resource in target["resources"]:
        path = os.path.normpath(os.path.join(folder, resource["path"]))
        if not path.startswith(folder + "/"):
            print("target %s: resource %s is outside of %s, and newer SwiftPM warns every user" % (name, path, folder))
        elif path not in paths and not within(path):
            print("target %s: there is no resource %s" % (name, path))
    if target["resources"] and {".mm", ".cpp"} <= endings and version < (6, 1):
        print("target %s: before tools version 6.1, resources add an Objective-C header to each C++ file" % name)
    embeds = [path for path in files if path.endswith((".cpp", ".h", ".hpp"))
              and os.path.isfile(path) and re.search(r"^\s*#\s*embed\b", open(path).read(), re.M)]
    if embeds and version < (6, 1):
        print("target %s: %s uses #embed, which needs tools version 6.1" % (name, embeds[0]))

# On a case-insensitive disk, two such names are one file or folder.
seen = {}
for path in paths:
    while path:
        other = seen.setdefault(path.lower(), path)
        if other != path:
            print("%s and %s are the same on a case-insensitive disk" % (other, path))
            seen[path.lower()] = path
        path = os.path.dirname(path)
PYTHON
}

# refuses WORDS MANIFEST PATHS
refuses() {
  check "$2" "$3" >"$scratch/output"
  grep -qF "$1" "$scratch/output" || failShowing "$scratch/output" "not refused: $1"
}

git ls-files >"$scratch/paths" 2>/dev/null || find . -type f ! -path './.build/*' | sed 's|^\./||' >"$scratch/paths"
for darwin in false true; do
  manifest=$scratch/$darwin.json
  dump "$darwin" >"$manifest"
  broken=$(check "$manifest" "$scratch/paths")
  [ -z "$broken" ] || fail "Package.swift, where canImport(Darwin) is $darwin: $broken"
done
passed "$(grep -c '"resources" :' "$manifest") targets have unique names, a sufficient tools version, and their own resources"
passed "$(wc -l <"$scratch/paths" | tr -d ' ') paths are unique on a case-insensitive disk"

# seed FROM INTO: changes one thing in the manifest.
seed() {
  sed "s|$1|$2|" "$manifest" >"$scratch/seeded.json"
  ! cmp -s "$manifest" "$scratch/seeded.json" || fail "the manifest has no $1"
}
seed '"name" : "MLXNativeKernelsHost"' '"name" : "Bench"'
refuses "target Bench: its name must be unique" "$scratch/seeded.json" "$scratch/paths"
seed '"path" : "Hadamard/Hadamard.metal"' '"path" : "../Hadamard.metal"'
refuses "resource Hadamard.metal is outside of Shaders" "$scratch/seeded.json" "$scratch/paths"
seed '"path" : "Hadamard/Hadamard.metal"' '"path" : "Hadamard/Gone.metal"'
refuses "there is no resource Shaders/Hadamard/Gone.metal" "$scratch/seeded.json" "$scratch/paths"
seed '"_version" : "6.1.0"' '"_version" : "6.0.0"'
refuses "uses #embed" "$scratch/seeded.json" "$scratch/paths"
{ cat "$scratch/paths" && say Shaders/Seeded.mm Shaders/Seeded.cpp | tr ' ' '\n'; } >"$scratch/more"
refuses "resources add an Objective-C header" "$scratch/seeded.json" "$scratch/more"
{ cat "$scratch/paths" && say shaders/seeded.txt; } >"$scratch/more"
refuses "Shaders and shaders are the same" "$manifest" "$scratch/more"
passed "6 seeded faults of a manifest are refused"
