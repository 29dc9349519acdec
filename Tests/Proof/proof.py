#!/usr/bin/env python3
"""Replays every fault that the tests must notice, and names those that no test notices any more.
The tables beside this file list the faults; a part can be run alone, and so can one fault."""
import argparse
import fnmatch
import sys
import time

sys.dont_write_bytecode = True
if sys.version_info < (3, 11):
    sys.exit("error: the proof needs Python 3.11 or newer, whose library reads TOML")

import barriers
import core
import fuzz
import shaders
from common import ROOT, Failure, Outcome, Report, fail, say
from schemata import TREE

PARTS = ("barriers", "shaders", "core", "fuzz")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", choices=PARTS, help="run only this part; may be repeated")
    parser.add_argument("--fault", default="", help="run only faults or kernels whose names match, such as 'ring-*'")
    parser.add_argument("--list", action="store_true", help="list the faults")
    parser.add_argument("--program", help="core-tests for barriers and shader faults; by default one is built")
    parser.add_argument("--tests", default="", help="only barriers whose tests begin with this")
    return parser.parse_args()


def matches(name: str, pattern: str) -> bool:
    return not pattern or fnmatch.fnmatchcase(name, pattern)


class Chosen:
    """What the arguments ask for, of each part."""

    def __init__(self, options):
        self.barriers = [entry for entry in barriers.entries(options.tests) if matches(entry[0], options.fault)]
        self.shaders = [fault for fault in shaders.entries() if matches(fault.name, options.fault)]
        self.core = [fault for fault in core.entries() if matches(fault.name, options.fault)]
        self.fuzz = [fault for fault in self.core if fault.fuzz]
        self.parts = options.only or PARTS

    def has(self, part: str) -> bool:
        return part in self.parts and bool(getattr(self, part))

    def list(self):
        for file, tests in self.barriers if self.has("barriers") else []:
            say(f"barriers  {file}: {', '.join(tests)}")
        for part in ("shaders", "core"):
            for fault in getattr(self, part) if self.has(part) else []:
                say(f"{part:<9} {fault.name}: {fault.file}: {', '.join(fault.tests)}"
                    f"{f'; fuzz {fault.fuzz}' if fault.fuzz else ''}")


def timed(part: str, function, *args):
    begin = time.monotonic()
    function(*args)
    say(f"{part}: {time.monotonic() - begin:.0f} s\n")


def prove(chosen: Chosen, program: str | None, report: Report):
    root = ROOT if program else TREE
    program = program or core.build(report)
    if chosen.has("barriers"):
        timed("barriers", barriers.prove, program, root, chosen.barriers, report)
    if chosen.has("shaders"):
        timed("shaders", shaders.prove, program, root, chosen.shaders, report)
    if chosen.has("core"):
        timed("core", core.prove, program, chosen.core, report)
    if chosen.has("fuzz"):
        timed("fuzz", fuzz.prove, chosen.fuzz, report)


def main() -> int:
    options = arguments()
    chosen = Chosen(options)
    if options.list:
        chosen.list()
        return 0
    if options.program and any(chosen.has(part) for part in ("core", "fuzz")):
        fail("--program has no core faults: combine it with --only barriers or --only shaders")
    if not any(chosen.has(part) for part in chosen.parts):
        if options.fault:
            fail(f"no fault is named {options.fault}")
        say("proof: no barrier has such tests")
        return 0
    report = Report()
    try:
        prove(chosen, options.program, report)
    except Failure as failure:
        report.add(Outcome("proof", str(failure)))
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
