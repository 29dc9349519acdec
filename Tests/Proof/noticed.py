"""Decides whether tests noticed a fault."""
from common import Outcome, tail
from programs import WORKERS, Run, concurrently, run_tests
from table import Fault

LIMIT = 1800


def outcome(fault: Fault, run: Run) -> Outcome:
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
    for run in concurrently(lambda part: run_tests(program, tests, environment, LIMIT, part), parts):
        why = "" if run.status == 0 else f"tests fail without a fault:\n{tail(run.output)}"
        report.add(Outcome("tests without a fault", why, tail(run.output, 1), run.seconds))
