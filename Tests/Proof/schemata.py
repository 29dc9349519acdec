"""Builds every fault of the core into one program, each behind a condition, so that one build serves all of them."""
import os
import subprocess

from common import OUT, ROOT, Failure, write_if_changed
from table import Fault, text_of

TREE = f"{OUT}/tree"
PROGRAM = f"{TREE}/.build/tests/debug/core-tests"
HEADER = "Tests/Proof/Fault.hpp"


def conditional(fault: Fault) -> str:
    condition = f'mnkFault("{fault.name}")'
    if fault.kind == "statement":
        return f"{{ if ({condition}) {{ {fault.replace} }} else {{ {fault.find} }} }}"
    return f"({condition} ? ({fault.replace}) : ({fault.find}))"


def with_faults(text: str, faults: list[Fault]) -> str:
    """The file with its faults, each found in the text without any. Lines keep their numbers."""
    pieces, end = [], 0
    for begin, fault in sorted(((fault.begin(text), fault) for fault in faults), key=lambda each: each[0]):
        if begin < end:
            raise Failure(f"{fault.name} overlaps another fault of {fault.file}")
        pieces += [text[end:begin], conditional(fault)]
        end = begin + len(fault.find)
    return f'#include "{TREE}/{HEADER}"\n#line 1\n{"".join(pieces)}{text[end:]}'


def changed_files(faults: list[Fault]) -> dict[str, str]:
    by_file = {}
    for fault in faults:
        by_file.setdefault(fault.file, []).append(fault)
    return {file: with_faults(text_of(own[0]), own) for file, own in by_file.items()}


def tracked_files() -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                            check=True, capture_output=True, text=True).stdout
    return [file for file in listed.split("\0") if file and os.path.isfile(f"{ROOT}/{file}")]


def remove_others(kept: set[str]):
    for folder, folders, files in os.walk(TREE):
        if folder == TREE:
            folders.remove(".build") if ".build" in folders else None
        for file in files:
            if os.path.relpath(f"{folder}/{file}", TREE) not in kept:
                os.remove(f"{folder}/{file}")


def copy_tree(faults: list[Fault]):
    """Writes only files that changed, so that the next build is small."""
    changed = changed_files(faults)
    tracked = tracked_files()
    for file in tracked:
        if file in changed:
            data = changed[file].encode()
        else:
            with open(f"{ROOT}/{file}", "rb") as source:
                data = source.read()
        write_if_changed(f"{TREE}/{file}", data)
        os.chmod(f"{TREE}/{file}", os.stat(f"{ROOT}/{file}").st_mode)
    remove_others(set(tracked))
    os.makedirs(f"{TREE}/.build", exist_ok=True)
    if not os.path.lexists(f"{TREE}/.build/metal-cpp"):
        os.symlink(f"{ROOT}/.build/metal-cpp", f"{TREE}/.build/metal-cpp")
