"""Runs the jobs of the demo on the CPU and on `tpu`, strict and fused, each in its own process, and compares them."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from examples.demo import report

ROOT = Path(__file__).resolve().parent.parent.parent
PICTURE = ROOT / "demo_out" / "losses.png"
BAR = 30


class Progress:
    """One line that is redrawn on a terminal; elsewhere a line at the start and at the end of each job."""

    def __init__(self, name: str) -> None:
        self.name, self.start, self.live = name, time.monotonic(), sys.stderr.isatty()

    def show(self, done: int, total: int, value: float) -> None:
        if self.live:
            filled = BAR * done // total
            bar = "#" * filled + "." * (BAR - filled)
            self._write(f"\r{self.name:<24} [{bar}] {done}/{total}  {value:8.4f}  {self._seconds()}\x1b[K")

    def begin(self) -> None:
        self._write(f"{self.name:<24} starting" + ("" if self.live else "\n"))

    def end(self, text: str) -> None:
        self._write(("\r" if self.live else "") + f"{self.name:<24} {text}  {self._seconds()}\x1b[K\n")

    def _seconds(self) -> str:
        return f"{time.monotonic() - self.start:.0f} s"

    def _write(self, text: str) -> None:
        sys.stderr.write(text if self.live else text.replace("\x1b[K", ""))
        sys.stderr.flush()


def run(module: str, way: str) -> dict[str, Any]:
    """The result of a job, or {"error": its last line} when its process failed."""
    progress = Progress(f"{module} on {way}")
    progress.begin()
    command = [sys.executable, "-W", "ignore", "-m", f"examples.demo.{module}", "--device", way.split(",")[0]]
    environment = {**os.environ, **({"TORCH_TPU_EAGER_MODE": "fuse"} if way == report.FUSED else {})}
    result: dict[str, Any] = {}
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process,
    ):
        assert process.stdout is not None
        for line in process.stdout:
            event = json.loads(line)
            if "done" in event:
                progress.show(event["done"], event["total"], event["value"])
            else:
                result = event
        if process.wait() != 0 or not result:
            errors.seek(0)
            text = errors.read().strip()
            result = {"error": text.splitlines()[-1] if text else f"exit status {process.returncode}"}
            sys.stderr.write("\n" + text + "\n")
    progress.end(result.get("text", "failed"))
    return result


def main() -> None:
    parser = argparse.ArgumentParser(prog="examples.demo", description=__doc__)
    names = [job.module for job in report.JOBS]
    parser.add_argument("jobs", nargs="*", metavar="job", help=f"of {', '.join(names)}; all when none is named")
    arguments = parser.parse_args()
    unknown = set(arguments.jobs) - set(names)
    if unknown:
        parser.error(f"no job {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    start = time.monotonic()
    jobs = [job for job in report.JOBS if not arguments.jobs or job.module in arguments.jobs]
    results = {job.module: {way: run(job.module, way) for way in report.WAYS} for job in jobs}

    print(f"\n{report.table(results)}\n")
    sample = results.get("characters", {}).get("tpu", {}).get("sample")
    if sample is not None:
        print(f"A sample from the GPT, drawn on tpu:\n\n{sample}\n")
    report.picture(results, PICTURE)
    print(f"Curves: {os.path.relpath(PICTURE)}. {time.monotonic() - start:.0f} seconds in all.")
    failures = [text for job in jobs for text in report.problems(job, results[job.module])]
    for text in failures:
        print(f"demo: {text}", file=sys.stderr)
    if failures:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
