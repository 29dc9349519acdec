"""Runs the fuzzer, the injection of failed allocations, and the self tests that seed faults into the project."""
import os
import re

from common import ROOT, Outcome, say, tail
from programs import Run, concurrently, run
from schemata import PROGRAM, TREE
from table import Fault, load

LIMIT = 1800


def fuzz(target: str, fault: str = "") -> Run:
    settings = load("runs.toml")["fuzz"][0]
    cases = settings["cases"][target or "all"]
    command = [".ci/fuzz", "--built", os.path.dirname(PROGRAM), "--seed", str(settings["seed"]), "--cases", str(cases)]
    return run(command + (["--target", target] if target else []), {"MNK_FAULT": fault}, LIMIT, TREE)


def prove_fuzz_fault(fault: Fault) -> Outcome:
    """The closing line counts failures; without it, the program did not get that far, or crashed as the entry says."""
    result = fuzz(fault.fuzz, fault.name)
    ended = result.timed_out or (result.crashed and fault.crash)
    found = ended or re.search(r"seed \d+: [1-9]\d* failures?", result.output)
    why = "" if found else f"the fuzzer finds nothing in {fault.fuzz}:\n{tail(result.output, 4)}"
    note = "noticed after the limit" if result.timed_out else f"noticed by {fault.fuzz}"
    return Outcome(f"fuzz {fault.name}", why, note, result.seconds)


def prove_fuzz(chosen: list[Fault], report):
    chosen = [fault for fault in chosen if fault.fuzz]
    say(f"the fuzzer, and {len(chosen)} core faults that it must notice")
    for target in ["", *sorted({fault.fuzz for fault in chosen})]:
        result = fuzz(target)
        why = "" if result.status == 0 else f"it fails without a fault:\n{tail(result.output)}"
        report.add(Outcome(f"fuzz {target or 'all targets'}", why, tail(result.output, 1), result.seconds))
    for outcome in concurrently(prove_fuzz_fault, chosen):
        report.add(outcome)


def prove_injection(report):
    """Fewer points than recorded would mean that calls are no longer made, or allocations no longer seen."""
    for entry in load("runs.toml")["injection"]:
        result = run([".ci/inject", *entry["arguments"]], limit=LIMIT, cwd=ROOT)
        points = sum(int(number) for number in re.findall(entry["points"], result.output))
        why = ""
        if result.status != 0:
            why = f"it fails:\n{tail(result.output)}"
        elif points < entry["least"]:
            why = f"{points} points were found, and {entry['least']} are recorded"
        report.add(Outcome(f"inject {' '.join(entry['arguments'])}", why, f"{points} points", result.seconds))


def prove_project(report):
    for entry in load("runs.toml")["project"]:
        result = run(entry["command"], entry.get("environment", {}), LIMIT, ROOT)
        why = "" if result.status == 0 else f"it fails:\n{tail(result.output)}"
        report.add(Outcome(" ".join(entry["command"]), why, tail(result.output, 1), result.seconds))
