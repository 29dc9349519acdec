"""Runs test programs: the C++ tests with names that start with given prefixes, for a limited time."""
import os
import re
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

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
