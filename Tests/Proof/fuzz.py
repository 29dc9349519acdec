"""Runs the fuzzer with faults of the core that it must notice, too."""
import os
import re

from common import Outcome, say, tail
from programs import Run, concurrently, run
from schemata import PROGRAM, TREE
from table import Fault

LIMIT = 1800
# By target; without one, the run is over all targets.
CASES = {"": 2000, "KVCacheWrite": 300, "MultiRoPE": 1000, "CacheFile": 200, "AttentionCache": 200}


def fuzz(target: str, fault: str = "") -> Run:
    command = [".ci/fuzz", "--built", os.path.dirname(PROGRAM), "--seed", "1", "--cases", str(CASES[target])]
    return run(command + (["--target", target] if target else []), {"MNK_FAULT": fault}, LIMIT, TREE)


def prove_fault(fault: Fault) -> Outcome:
    """The closing line counts failures; without it, the program did not get that far, or crashed as the entry says."""
    result = fuzz(fault.fuzz, fault.name)
    ended = result.timed_out or (result.crashed and fault.crash)
    found = ended or re.search(r"seed \d+: [1-9]\d* failures?", result.output)
    why = "" if found else f"the fuzzer finds nothing in {fault.fuzz}:\n{tail(result.output, 4)}"
    note = "noticed after the limit" if result.timed_out else f"noticed by {fault.fuzz}"
    return Outcome(f"fuzz {fault.name}", why, note, result.seconds)


def prove(chosen: list[Fault], report):
    say(f"the fuzzer, and {len(chosen)} core faults that it must notice")
    for target in ["", *sorted({fault.fuzz for fault in chosen})]:
        result = fuzz(target)
        why = "" if result.status == 0 else f"it fails without a fault:\n{tail(result.output)}"
        report.add(Outcome(f"fuzz {target or 'all targets'}", why, tail(result.output, 1), result.seconds))
    for outcome in concurrently(prove_fault, chosen):
        report.add(outcome)
