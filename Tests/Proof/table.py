"""Reads the tables of faults: TOML files beside this one, whose entries name a file, a text in it and tests."""
import glob
import tomllib
from dataclasses import dataclass

from common import FOLDER, ROOT, Failure, fail, read

KINDS = ("expression", "statement")


@dataclass
class Fault:
    """One realistic mistake, and the tests that must notice it."""
    name: str
    file: str
    find: str
    replace: str
    tests: list[str]
    kind: str = "expression"
    crash: bool = False  # whether the end of the process counts as noticed
    fuzz: str = ""       # the fuzz target that must notice it, too

    def begin(self, text: str) -> int:
        """Where the text begins in the file. It must be there once: a fault follows moves, but not edits."""
        count = text.count(self.find)
        if count != 1:
            raise Failure(f"the text to replace is {count} times in {self.file}, not once")
        return text.index(self.find)


def load(path: str) -> dict:
    with open(f"{FOLDER}/{path}", "rb") as file:
        try:
            return tomllib.load(file)
        except tomllib.TOMLDecodeError as error:
            fail(f"{path}: {error}")


def faults(pattern: str) -> list[Fault]:
    """The faults of the tables, checked for what would make them pass without a proof."""
    found = {}
    entries = [entry for path in sorted(glob.glob(pattern, root_dir=FOLDER)) for entry in load(path)["fault"].items()]
    for name, entry in entries:
        try:
            fault = Fault(name, **entry)
        except TypeError as error:
            fail(f"{name}: {error}")
        if name in found:
            fail(f"two faults are named {name}")
        if fault.kind not in KINDS or not (fault.tests or fault.fuzz) or fault.find == fault.replace:
            fail(f"{name}: needs a kind of {KINDS}, tests or a fuzz target, and a replacement")
        found[name] = fault
    return list(found.values())


def text_of(fault: Fault) -> str:
    try:
        return read(f"{ROOT}/{fault.file}")
    except FileNotFoundError:
        raise Failure(f"{fault.file} does not exist") from None
