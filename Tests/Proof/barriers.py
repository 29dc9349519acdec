"""Removes each barrier of each kernel once: the tests must find the race that follows. If they still pass, the barrier
is unnecessary or untested."""
import re
import time

from common import Failure, Outcome, read, say, tail
from overlay import Overlay
from programs import concurrently, run_tests
from table import load

CALL = re.compile(r"\b(?:simdgroup|threadgroup)_barrier\(")
WHOLE_CALL = re.compile(r"\b(?:simdgroup|threadgroup)_barrier\([^)]*\);")
# The finding may be in a header that the file includes, or in a file that includes it.
FINDING = re.compile(r"[A-Za-z0-9]+\.(?:h|metal):[0-9]+ (?:reads|writes)[^;\n]*; no [a-z]+_barrier\([a-z_]+\)")
LIMIT = 300  # a missing barrier can also deadlock a test


def entries(only_tests: str = "") -> list[tuple[str, list[str]]]:
    """Files of kernels, and their tests."""
    return [(file, tests) for file, tests in load("barriers.toml")["kernel"].items()
            if any(test.startswith(only_tests) for test in tests)]


def barrier_lines(text: str, file: str) -> list[int]:
    lines = []
    for number, line in enumerate(text.splitlines(), 1):
        calls = CALL.findall(line.split("//")[0])
        if len(calls) > 1:
            raise Failure(f"{file}:{number}: two barriers on one line. Put each on its own line.")
        if calls and not WHOLE_CALL.search(line):
            raise Failure(f"{file}:{number}: a barrier call must be on one line")
        if calls:
            lines.append(number)
    if not lines:
        raise Failure(f"{file} has no barriers")
    return lines


def without(text: str, number: int) -> str:
    """Removes only the call, so that every other line keeps its number."""
    lines = text.splitlines(keepends=True)
    lines[number - 1] = WHOLE_CALL.sub(";", lines[number - 1])
    return "".join(lines)


def check_barrier(program: str, tests: list[str], overlay: Overlay) -> tuple[str, str]:
    """What is wrong, and otherwise what was found."""
    result = run_tests(program, tests, overlay.environment(), LIMIT)
    if result.status == 0:
        return f"no test in {', '.join(tests)} fails without this barrier", ""
    if result.timed_out:
        return f"the tests did not end within {LIMIT} s", ""
    found = FINDING.search(result.output)
    return ("", f"needed: {found[0]}") if found else ("the tests fail, but not for the missing barrier", "")


def prove_kernel(program: str, root: str, file: str, tests: list[str]) -> list[Outcome]:
    begin = time.monotonic()
    try:
        text = read(f"{root}/{file}")
        lines = barrier_lines(text, file)
        overlay = Overlay("barriers/" + file.replace("/", "-"), f"{root}/{file}")
        overlay.show(text)
        result = run_tests(program, tests, overlay.environment(), LIMIT)
        if result.status != 0:
            raise Failure(f"the tests {', '.join(tests)} fail with all barriers in place:\n{tail(result.output)}")
    except (Failure, FileNotFoundError) as failure:
        return [Outcome(file, str(failure), seconds=time.monotonic() - begin)]
    outcomes = []
    for line in lines:
        begin = time.monotonic()
        overlay.show(without(text, line))
        why, note = check_barrier(program, tests, overlay)
        outcomes.append(Outcome(f"{file}:{line}", why, note, time.monotonic() - begin))
    return outcomes


def prove(program: str, root: str, chosen: list[tuple[str, list[str]]], report):
    say(f"barriers of {len(chosen)} kernels")
    for outcomes in concurrently(lambda entry: prove_kernel(program, root, *entry), chosen):
        for outcome in outcomes:
            report.add(outcome)
