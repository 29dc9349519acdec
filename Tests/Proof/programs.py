"""Runs test programs, the C++ tests with names that start with given prefixes, for a limited time, and decides whether
they noticed a fault."""
import os
import re
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from common import Outcome, tail
from table import Fault

PASSING_LIMIT = 1800
WORKERS = min(2, os.cpu_count() or 1)  # each may use hundreds of MB while it compiles kernels


@dataclass
class Run:
    """How a program ended, and what it printed."""
    status: int
    output: str
    seconds: float
    timed_out: bool = False

    @property
    def crashed(self) -> bool:
        return self.status < 0 and not self.timed_out

    def failed_tests(self) -> list[str]:
        return re.findall(r"^FAILED (\S+)", self.output, re.M)


def run(command: list[str], environment: dict[str, str] = {}, limit: float = 120, cwd: str | None = None) -> Run:
    """Ends the program's children with it, if it runs out of time."""
    begin = time.monotonic()
    process = subprocess.Popen(command, env=os.environ | environment, cwd=cwd, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, start_new_session=True)
    timed_out = False
    try:
        output, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        timed_out = True
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
    return Run(process.returncode, output.decode(errors="replace"), time.monotonic() - begin, timed_out)


def run_tests(program: str, tests: list[str], environment: dict[str, str] = {}, limit: float = 120,
              part: str = "1/1") -> Run:
    only = [word for test in tests for word in ("--only", test)]
    return run([program, "proof", "--part", part, *only], environment, limit)


def concurrently(function, items):
    """Yields results in the order of the items."""
    with ThreadPoolExecutor(WORKERS) as executor:
        yield from executor.map(function, items)


def outcome_of(fault: Fault, run: Run) -> Outcome:
    """Failed tests notice a fault, and so does a run without an end; a crash only if the entry expects one."""
    if run.timed_out:
        return Outcome(fault.name, note="noticed: the tests did not end in time", seconds=run.seconds)
    failed = run.failed_tests()
    if run.crashed and not fault.crash:
        return Outcome(fault.name, f"the tests crashed with signal {-run.status}, which the entry does not expect:\n"
                       + tail(run.output, 8), seconds=run.seconds)
    if run.status == 0:
        return Outcome(fault.name, f"no test in {', '.join(fault.tests)} fails", seconds=run.seconds)
    if not failed and not run.crashed:
        return Outcome(fault.name, f"no test ran, or the program failed:\n{tail(run.output, 8)}", seconds=run.seconds)
    note = f"noticed by {', '.join(failed[:3])}" if failed else f"noticed: signal {-run.status}"
    return Outcome(fault.name, note=note, seconds=run.seconds)


def require_passing(program: str, tests: list[str], environment: dict[str, str], report):
    """Without a fault, every test must pass."""
    parts = [f"{part}/{WORKERS}" for part in range(1, WORKERS + 1)]
    for run in concurrently(lambda part: run_tests(program, tests, environment, PASSING_LIMIT, part), parts):
        why = "" if run.status == 0 else f"tests fail without a fault:\n{tail(run.output)}"
        report.add(Outcome("tests without a fault", why, tail(run.output, 1), run.seconds))
