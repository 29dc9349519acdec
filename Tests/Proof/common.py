"""What the parts of the proof share: paths, failures, output and outcomes."""
import os
import sys
from dataclasses import dataclass, field

FOLDER = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.dirname(os.path.dirname(FOLDER))
OUT = f"{ROOT}/.build/proof"


class Failure(Exception):
    """A fault that does not apply any more, or a check that fails without a fault."""


@dataclass
class Outcome:
    """What became of one fault or one run. `why` is empty if it was noticed or passed."""
    name: str
    why: str = ""
    note: str = ""
    seconds: float = 0


@dataclass
class Report:
    """Prints outcomes as they come, and counts them."""
    outcomes: list[Outcome] = field(default_factory=list)

    def add(self, outcome: Outcome):
        self.outcomes.append(outcome)
        word = "FAILED" if outcome.why else "passed"
        print(f"{word}: {outcome.name} ({outcome.seconds:.0f} s): {outcome.why or outcome.note}", flush=True)

    def close(self) -> int:
        failed = [outcome for outcome in self.outcomes if outcome.why]
        for outcome in failed:
            print(f"unnoticed or not applicable: {outcome.name}: {outcome.why}")
        print(f"proof: {len(self.outcomes) - len(failed)} passed, {len(failed)} failed")
        return 1 if failed or not self.outcomes else 0


def read(path: str) -> str:
    with open(path, encoding="utf-8", newline="") as file:
        return file.read()


def write_if_changed(path: str, data: bytes):
    """Keeps the file's time if its contents stay, so that builds redo only what changed."""
    try:
        with open(path, "rb") as file:
            if file.read() == data:
                return
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)


def say(text: str):
    print(text, flush=True)


def tail(text: str, lines: int = 30) -> str:
    return "\n".join(text.splitlines()[-lines:])


def fail(text: str):
    sys.exit(f"error: {text}")
