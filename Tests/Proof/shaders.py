"""Makes one mistake at a time in a kernel or in a header of kernels: the tests of the fault must fail."""
import re

from common import Failure, Outcome, read, say, tail
from overlay import Overlay
from programs import concurrently, outcome_of, require_passing, run_tests
from table import Fault, faults

LIMIT = 300  # kernels are compiled again for each fault


def prove_fault(program: str, root: str, fault: Fault) -> Outcome:
    try:
        text = read(f"{root}/{fault.file}")
        begin = fault.begin(text)
    except (Failure, FileNotFoundError) as failure:
        return Outcome(fault.name, str(failure))
    overlay = Overlay(f"shaders/{fault.name}", f"{root}/{fault.file}")
    overlay.show(text[:begin] + fault.replace + text[begin + len(fault.find):])
    result = run_tests(program, fault.tests, overlay.environment(), LIMIT)
    if re.search(r"library .* does not compile", result.output):
        return Outcome(fault.name, f"the changed kernel does not compile:\n{tail(result.output)}")
    return outcome_of(fault, result)


def prove(program: str, root: str, chosen: list[Fault], report):
    say(f"{len(chosen)} shader faults")
    tests = sorted({test for fault in chosen for test in fault.tests})
    require_passing(program, tests, {"MNK_HOST_CHECKING": "full"}, report)
    for outcome in concurrently(lambda fault: prove_fault(program, root, fault), chosen):
        report.add(outcome)


def entries() -> list[Fault]:
    return faults("shaders*.toml")
