#!/usr/bin/env python3
"""generate.py [--check]: writes the Generated folders from the description of the API, or checks them.

The output is tracked, so that neither users nor Xcode need Python.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

if sys.version_info < (3, 11):
    sys.exit("Python is too old to read the description of the API: 3.11 has what is needed.")

import c
import cases
import cxx
import names
import objc
import swift
from model import API, ROOT

HEADERS = "Sources/MLXNativeKernelsCore/include/MLXNativeKernels/Generated"
NOTICE = "Generated from Sources/API by generate.py: change the description instead."


def umbrellas(api):
    """One header with all of each language, so that a new topic is in the API without another list."""
    names = {"Types.hpp": '#include "{}{}.hpp"', "mnk_types.h": '#include "{}mnk_{}.h"', "MNKTypes.h": "#import <{}MNK{}.h>"}
    for name, line in names.items():
        language = {"T": "cxx", "m": "c", "M": "objc"}[name[0]]
        topics = [topic for topic in api.topics if topic.in_language(language)]
        lines = [line.format("MLXNativeKernels/Generated/", topic.stem if language == "c" else topic.camel) for topic in topics]
        yield f"{HEADERS}/{name}", "// Every type of the description.\n#pragma once\n" + "\n".join(sorted(lines)) + "\n"


def outputs(api):
    """The path and the text of every file, before it is formatted."""
    yield "Sources/MLXNativeKernelsCore/CAPI/Generated/Read.hpp", c.declarations(api)
    yield "Sources/MLXNativeKernelsCore/CAPI/Generated/Write.hpp", c.writers(api)
    yield "Sources/MLXNativeKernelsCore/ObjC/Generated/Read.hpp", objc.declarations(api)
    for topic in api.topics:
        yield f"{HEADERS}/{topic.camel}.hpp", cxx.header(topic)
        yield f"{HEADERS}/mnk_{topic.stem}.h", c.header(topic)
        yield f"Sources/MLXNativeKernelsCore/CAPI/Generated/{topic.camel}C.cpp", c.source(topic)
        yield f"{HEADERS}/MNK{topic.camel}.h", objc.header(topic)
        yield f"Sources/MLXNativeKernelsCore/ObjC/Generated/MNK{topic.camel}.mm", objc.source(topic)
        if text := swift.source(topic):
            yield f"Sources/MLXNativeKernels/Generated/{topic.camel}.swift", text
    yield from umbrellas(api)
    yield "Sources/MLXNativeKernels/MLXNativeKernels.docc/Generated/Names.md", names.page(api)
    yield from cases.outputs(api)


def write(folder):
    """Writes everything below a folder, formatted as this project formats."""
    shutil.copy(ROOT / ".clang-format", folder)
    shutil.copy(ROOT / ".swift-format", folder)
    written = []
    for name, text in outputs(API()):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text.rstrip()}\n\n<!-- {NOTICE} -->\n" if path.suffix == ".md" else f"// {NOTICE}\n{text}")
        written.append(path)
    clang = shutil.which("clang-format-14") or "clang-format"
    subprocess.run([clang, "-i", *(path for path in written if path.suffix not in (".swift", ".md"))], check=True)
    swifts = [path for path in written if path.suffix == ".swift"]
    subprocess.run(["swift", "format", "format", "-i", *swifts], check=True)
    return [path.relative_to(folder) for path in written]


def main():
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        names = write(folder)
        tracked = {path.relative_to(ROOT) for top in ("Sources", "Tests") for path in (ROOT / top).rglob("Generated/*")
                   if path.is_file() and NOTICE in path.read_text()}
        stale = [name for name in names
                 if not (ROOT / name).exists() or (ROOT / name).read_text() != (folder / name).read_text()]
        extra = sorted(tracked - set(names))
        if sys.argv[1:] == ["--check"]:
            if stale or extra:
                sys.exit("These files are not what Sources/API describes. Run: make generate\n" +
                         "\n".join(map(str, stale + extra)))
            print(f"generate: {len(names)} files are what Sources/API describes")
            return
        for name in extra:
            (ROOT / name).unlink()
        for name in stale:
            (ROOT / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(folder / name, ROOT / name)
        print(f"generate: {len(stale)} of {len(names)} files written, {len(extra)} removed")


main()
