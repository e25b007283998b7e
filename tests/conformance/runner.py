"""Runs cases in child processes: a crash or a hang is the failure of one case, and the run goes on."""

import concurrent.futures
import json
import os
import pathlib
import selectors
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LIMIT_SECONDS = 180  # of one case
CASES_PER_CHILD = 400  # memory of programs and entries goes back now and then


class Child:
    def __init__(self) -> None:
        self.log = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.conformance.worker"],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True, env=dict(os.environ),
        )  # fmt: skip
        self.answered = 0

    def ask(self, name: str, kind: str) -> dict[str, Any]:
        """The child's answer; a failure that says how the child ended where it gave none."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{name}\t{kind}\n")
        self.process.stdin.flush()
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            ready = selector.select(LIMIT_SECONDS)
        line = self.process.stdout.readline() if ready else ""
        if line:
            self.answered += 1
            return json.loads(line)
        if ready:
            self.process.wait()
            self.log.seek(0)
            text = f"the process ended with {self.process.returncode}: {self.log.read()[-1500:]}"
        else:
            text = f"no answer after {LIMIT_SECONDS} s"
        self.end()
        return {
            "op": name, "kind": kind, "compared": 1, "seconds": 0.0,
            "problems": [{"at": "process", "text": text, "off": None}],
        }  # fmt: skip

    def end(self) -> None:
        self.process.kill()
        self.process.wait()

    def usable(self) -> bool:
        return self.process.poll() is None and self.answered < CASES_PER_CHILD


def _run_share(cases: list[tuple[str, str]], done: Callable[[dict[str, Any]], None]) -> None:
    child = Child()
    try:
        for name, kind in cases:
            if not child.usable():
                child.end()
                child = Child()
            done(child.ask(name, kind))
    finally:
        child.end()


def run_cases(
    cases: list[tuple[str, str]], jobs: int = 1, done: Callable[[dict[str, Any]], None] = lambda result: None
) -> list[dict[str, Any]]:
    """The results of (operator, kind) cases, in their order; `done` hears of each when it is there."""
    results: dict[tuple[str, str], dict[str, Any]] = {}

    def note(result: dict[str, Any]) -> None:
        results[(result["op"], result["kind"])] = result
        done(result)

    names = list(dict.fromkeys(name for name, _ in cases))
    shares = [[c for c in cases if names.index(c[0]) % jobs == i] for i in range(jobs)]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for future in [pool.submit(_run_share, share, note) for share in shares if share]:
            future.result()
    return [results[case] for case in cases]
