"""Makes one mistake at a time in the core or the Host device: the tests of the fault must fail. All faults are built
into one program, which has the active one's name in its environment."""
import subprocess

from common import Failure, Outcome, ROOT, say, tail
from programs import concurrently, outcome_of, require_passing, run, run_tests
from schemata import PROGRAM, TREE, copy_tree
from table import Fault, faults, text_of

LIMIT = 120
BUILD_LIMIT = 3600


def applicable(chosen: list[Fault], report) -> list[Fault]:
    """Without the faults that no longer apply, which are reported."""
    left = []
    for fault in chosen:
        try:
            fault.begin(text_of(fault))
            left.append(fault)
        except Failure as failure:
            report.add(Outcome(fault.name, str(failure)))
    return left


def build(report) -> str:
    """Builds the tests with all faults of the tables, so that a choice of faults rebuilds nothing."""
    every = []
    for fault in entries():
        try:
            fault.begin(text_of(fault))
            every.append(fault)
        except Failure:
            continue  # its part reports it
    subprocess.run([f"{ROOT}/.ci/metal-cpp"], check=True)
    copy_tree(every)
    # One cheap suite, because the build of the Makefile ends with a run.
    result = run(["make", "test", "FILTER=Shape."], {"MAKEFLAGS": "", "MAKEOVERRIDES": ""}, BUILD_LIMIT, TREE)
    if result.status != 0:
        raise Failure(f"the tree with all faults does not build:\n{tail(result.output, 60)}")
    report.add(Outcome("build with all core faults", note=f"{len(every)} faults", seconds=result.seconds))
    return PROGRAM


def prove_fault(program: str, fault: Fault) -> Outcome:
    return outcome_of(fault, run_tests(program, fault.tests, {"MNK_FAULT": fault.name}, LIMIT))


def prove(program: str, chosen: list[Fault], report):
    chosen = applicable([fault for fault in chosen if fault.tests], report)
    say(f"{len(chosen)} core faults")
    require_passing(program, sorted({test for fault in chosen for test in fault.tests}), {}, report)
    for outcome in concurrently(lambda fault: prove_fault(program, fault), chosen):
        report.add(outcome)


def entries() -> list[Fault]:
    return faults("core*.toml")
