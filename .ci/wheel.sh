# shellcheck shell=bash
# Sourced after common.sh by scripts that take headers from PyPI wheels. Wheels are third-party files: their SHA-256 is
# checked, only named files are unpacked, and nothing in them runs.
temporary=""
trap '[ -z "$temporary" ] || rm -rf "$temporary"' EXIT

# unpack WHEEL SHA256 FOLDER RULE…: a rule PREFIX=NAME=PATTERN copies files below PREFIX whose remaining path matches
# the regular expression to FOLDER/NAME. Each rule must match a file.
unpack() {
  python3 - "$@" <<'PYTHON'
import hashlib, os, re, stat, sys, zipfile

wheel, expected, folder = sys.argv[1:4]
rules = [rule.split("=", 2) for rule in sys.argv[4:]]
with open(wheel, "rb") as file:
    got = hashlib.sha256(file.read()).hexdigest()
if got != expected:
    sys.exit("error: %s is not the pinned file (got sha256 %s, expected %s). Find out why it changed before you "
             "change the pin." % (os.path.basename(wheel), got, expected))
archive = zipfile.ZipFile(wheel)
for prefix, under, pattern in rules:
    kept = 0
    for entry in archive.infolist():
        name = entry.filename[len(prefix):]
        if not entry.filename.startswith(prefix) or entry.is_dir() or not re.fullmatch(pattern, name):
            continue
        kind = stat.S_IFMT(entry.external_attr >> 16)
        if ".." in name or kind not in (0, stat.S_IFREG) or entry.file_size > 4 << 20:
            sys.exit("error: the wheel has an entry that is not a plain header: %r" % entry.filename)
        target = os.path.join(folder, under, *name.split("/"))
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with archive.open(entry) as source, open(target, "xb") as file:
            file.write(source.read())
        kept += 1
    if kept == 0:
        sys.exit("error: the wheel has no %s%s" % (prefix, pattern))
    print("kept %d files of %s" % (kept, prefix))
PYTHON
}

# isFetched FOLDER SHA256
isFetched() { [ "$(cat "$1/stamp" 2>/dev/null)" = "$2" ]; }

# fetch FOLDER PLATFORM PACKAGE SHA256 RULE…: does nothing if FOLDER is current.
fetch() {
  local folder=$1 platform=$2 package=$3 sha256=$4
  shift 4
  if isFetched "$folder" "$sha256"; then return; fi
  if ! python3 -m pip --version >/dev/null 2>&1; then
    if onMac; then fail "python3 with pip not found. Install Xcode's command line tools: xcode-select --install"; fi
    installPackages python3 python3-pip
  fi
  say "$folder: fetching from the wheel $package"
  mkdir -p "$(dirname "$folder")"
  temporary=$(mktemp -d "$(dirname "$folder")/fetching.XXXXXX")
  # A connection that stalls without an error would wait forever.
  local try
  for try in 1 2 3; do
    if limited 300 python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary=:all: \
      --platform "$platform" --python-version 3.11 --dest "$temporary" "$package"; then break; fi
    [ "$try" != 3 ] || fail "pip could not download $package. Check the network. Headers from elsewhere can be put into" \
      "$folder, with a file stamp that holds $sha256."
  done
  unpack "$temporary"/*.whl "$sha256" "$temporary/headers" "$@"
  say "$sha256" >"$temporary/headers/stamp"
  # A concurrent fetch writes the same files; the first one stays.
  if ! isFetched "$folder" "$sha256"; then
    if [ -e "$folder" ] || [ -L "$folder" ]; then mv "$folder" "$temporary/before"; fi
    mv "$temporary/headers" "$folder"
  fi
  rm -rf "$temporary"
  temporary=""
}
