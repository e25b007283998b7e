"""Runs every benchmark and writes docs/benchmarks.md. Each measurement is a child process pinned to one core.

Everything is a ratio of two things measured in turn in this run: medians of CPU time, wall clock beside it. "Cold" is a
new process with an empty disk cache.
"""

import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "docs" / "benchmarks.md"

SECTIONS = ["operators", "fusion", "diagnostics", "training", "import"]

Json = dict[str, Any]


class Row(NamedTuple):
    """One line of a results table; `limit` and `goal` are None where the row is only reported."""

    what: str
    value: float | None
    unit: str
    limit: float | None
    goal: float | None
    note: str


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def child(module: str, *arguments: str, python: Path | None = None, env: dict[str, str] | None = None) -> Json:
    """The JSON object that `python -m benchmarks.<module>` prints last, or {"error": ...} when it fails."""
    command = [str(python or sys.executable), "-m", f"benchmarks.{module}", *arguments]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **(env or {})}, capture_output=True, text=True)
    if done.returncode != 0:
        last = (done.stderr.strip() or f"exit status {done.returncode}").splitlines()[-1]
        say(f"  {module} {' '.join(arguments)}: {last}")
        return {"error": last}
    return json.loads(done.stdout.strip().splitlines()[-1])


def median(values: Iterable[float]) -> float:
    return statistics.median(values)


def spread(values: Iterable[float]) -> str:
    ordered = sorted(values)
    return f"{ordered[0]:.2f} to {ordered[-1]:.2f}"


def ratio_row(
    what: str,
    unit: str,
    above: list[float],
    below: list[float],
    note: str,
    limit: float | None = None,
    goal: float | None = None,
) -> Row:
    """The median of `above` over `below`, two things measured in turn."""
    ratios = [a / b for a, b in zip(above, below, strict=True)]
    return Row(what, median(ratios), unit, limit, goal, f"{note}; ratios {spread(ratios)}")


def operator_rows(repeats: int) -> list[Row]:
    say("cached operators: PyTorch CPU and tpu in turn, one process")
    ours = child("operators", "--repeats", str(repeats))
    say("the same with the null plugin")
    null = child(
        "operators",
        *("--rows", "chain", "--repeats", str(repeats)),
        env={"TORCH_TPU_PJRT_PLUGIN": str(null_plugin()), "TORCH_TPU_CACHE": "0"},
    )
    names = {
        "chain": "`x = x + y`, 8 by 8",
        "add_": "`x.add_(y)`, 8 by 8",
        "select": "`x[i]`",
        "view": "`x.view(64)`",
        "empty": "`torch.empty(8, 8)`",
        "addmm": "`addmm`, 64 by 64",
        "adamw": "fused AdamW step, 100 parameters of 64 by 64",
    }
    limits = {("chain", "issuing"): (3.5, 2.5), ("chain", "all"): (5.0, 3.0)}
    rows = [
        operator_row(names[key], clock, ours, key, *limits.get((key, clock), (None, None)))
        for key in names
        for clock in ("issuing", "all")
    ]
    rows[2:2] = [operator_row(names["chain"] + ", null plugin", "issuing", null, "chain", 2.0, 1.5)]
    return rows


def diagnostic_rows(repeats: int) -> list[Row]:
    say("debug mode and tracebacks: strict and watched in turn, one process")
    result = child("diagnostics", "--repeats", str(repeats))
    names = {
        "tracebacks": "`x = x + y`, 8 by 8, `TORCH_TPU_TRACEBACKS=1`",
        "debug": "`x = x + y`, 8 by 8, debug mode",
        "debug gather": "`x.gather(1, i)`, 64 by 64, debug mode with its index check",
        "anomalies": "`x = x + y`, 8 by 8, `detect_anomalies()`",
    }

    def row(key: str, name: str) -> Row:
        if "error" in result:
            return Row(name, None, "× strict", None, None, result["error"])
        strict, watched = ([sample[1] for sample in result[key][way]] for way in ("strict", "watched"))
        note = f"{median(strict):.2f} and {median(watched):.2f} us a call, all threads"
        return ratio_row(name, "× strict", watched, strict, note)

    return [row(key, name) for key, name in names.items()]


def fusion_rows(repeats: int) -> list[Row]:
    say("DeferAndFuse: strict and fused in turn, one process")
    result = child("fusion", "--repeats", str(repeats))
    names = {
        "mlp": "MLP of 3 layers, AdamW, batch of 16",
        "decoder": "decoder of 4 layers, width 64, 32 tokens, AdamW",
        "pointwise": "600 pointwise operators on 64 numbers",
        "matrices": "3 products of 1024 by 1024 matrices with pointwise operators",
    }

    def row(key: str, name: str) -> Row:
        if "error" in result:
            return Row(name, None, "times strict's speed", None, None, result["error"])
        strict, fused = result[key]["strict"], result[key]["fused"]
        note = f"{1e3 * median(strict):.2f} and {1e3 * median(fused):.2f} ms a step"
        return ratio_row(name, "times strict's speed", strict, fused, note)

    chain = "`x = x + y`, 8 by 8, recorded"
    return [
        *(row(key, name) for key, name in names.items()),
        operator_row(chain, "issuing", result, "chain", None, None),
        operator_row(f"{chain} and run fused", "all", result, "chain", None, None),
    ]


def null_plugin() -> Path:
    found = sorted((ROOT / "build").rglob("*null_plugin.so"))
    return found[0] if found else ROOT / "build" / "null_plugin.so"


def operator_row(name: str, clock: str, result: Json, key: str, limit: float | None, goal: float | None) -> Row:
    what = f"{name}: {'issuing thread' if clock == 'issuing' else 'all threads'}"
    entry = result.get(key, result)
    if "error" in entry:
        return Row(what, None, "× PyTorch CPU", limit, goal, entry["error"])
    column = 0 if clock == "issuing" else 1
    cpu, tpu = ([sample[column] for sample in entry[device]] for device in ("cpu", "tpu"))
    wall_cpu, wall_tpu = (median(sample[2] for sample in entry[device]) for device in ("cpu", "tpu"))
    note = f"{median(cpu):.2f} and {median(tpu):.2f} us a call (wall {wall_cpu:.2f} and {wall_tpu:.2f})"
    return ratio_row(what, "× PyTorch CPU", tpu, cpu, note, limit, goal)


def training_rows(repeats: int, steps: int, jax: Path) -> list[Row]:
    runs: dict[str, list[Json]] = {"cold": [], "warm": [], "jax": [], "cpu": []}
    for i in range(repeats):
        say(f"training step: round {i + 1} of {repeats}")
        with tempfile.TemporaryDirectory(prefix="torch_tpu_bench_") as cache:
            env = {"TORCH_TPU_CACHE_DIR": cache}
            os.chmod(cache, 0o700)
            runs["cold"].append(child("train_torch", "--steps", str(steps), env=env))
            runs["warm"].append(child("train_torch", "--steps", str(steps), env=env))
        runs["jax"].append(child("train_jax", "--steps", str(steps), python=jax, env={"JAX_PLATFORMS": "cpu"}))
        runs["cpu"].append(child("train_torch", "--device", "cpu", "--steps", str(steps)))
    failed = next((run["error"] for group in runs.values() for run in group if "error" in run), None)
    if failed is None:
        check_losses(runs)

    def first(run: Json, by: int = 1) -> float:
        return run["steps"][0][by] + run["steps"][1][by]

    def steady(run: Json, by: int = 1) -> float:
        return median(step[by] for step in run["steps"][4:])

    def row(what: str, measure: Callable[..., float], a: str, b: str, limit: float | None, goal: float | None) -> Row:
        unit = "× PyTorch CPU" if b == "cpu" else "× JAX jit"
        if failed is not None:
            return Row(what, None, unit, limit, goal, failed)
        ratios = [measure(x) / measure(y) for x, y in zip(runs[a], runs[b], strict=True)]
        ours, theirs = median(map(measure, runs[a])), median(map(measure, runs[b]))
        wall = median(measure(x, by=2) for x in runs[a])
        note = f"{1e3 * ours:.0f} and {1e3 * theirs:.0f} ms (ours by the wall {1e3 * wall:.0f}); {spread(ratios)}"
        if measure is first:
            stats = runs[a][0]["stats"]
            note += f"; {stats.get('compilations', 0)} compiled, {stats.get('disk_hits', 0)} from disk"
        return Row(what, median(ratios), unit, limit, goal, note)

    return [
        row("training step, steps 1 + 2 cold", first, "cold", "jax", 1.2, 0.8),
        row("the same, second process with the disk cache", first, "warm", "jax", 0.25, 0.15),
        row("the same, steady step", steady, "warm", "jax", 1.1, 1.0),
        row("the same, steady step", steady, "warm", "cpu", None, None),
    ]


def check_losses(runs: dict[str, list[Json]]) -> None:
    expected = runs["cpu"][0]["losses"]
    for run in runs["cold"] + runs["warm"]:
        for ours, theirs in zip(run["losses"], expected, strict=True):
            if abs(ours - theirs) > 1e-4 * abs(theirs):
                raise SystemExit(f"benchmarks: losses differ: {ours} on tpu, {theirs} on CPU")


def import_rows(repeats: int) -> list[Row]:
    say("import torch, without and with torch_tpu")
    pairs = [
        (child("import_cost", env={"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}), child("import_cost"))
        for _ in range(repeats + 1)
    ][1:]  # the first pair warms the page cache
    failed = next((run["error"] for pair in pairs for run in pair if "error" in run), None)
    rows = []
    for what, key, limit, goal in (("seconds", "cpu", 0.4, 0.2), ("MB resident", "mb", 80.0, 40.0)):
        if failed is not None:
            rows.append(Row(f"`import torch`: {what} above without", None, what, limit, goal, failed))
            continue
        without, with_ours = (median(pair[i][key] for pair in pairs) for i in (0, 1))
        wall = median(b["wall"] - a["wall"] for a, b in pairs)
        note = f"{without:.2f} and {with_ours:.2f}" + (f"; by the wall {wall:.2f} above" if key == "cpu" else "")
        rows.append(Row(f"`import torch`: {what} above without", with_ours - without, what, limit, goal, note))
    return rows


def table(rows: list[Row]) -> list[str]:
    lines = ["| what | result | limit | goal | | how |", "|---|---|---|---|---|---|"]
    for row in rows:
        value = "failed" if row.value is None else f"**{row.value:.2f}** {row.unit}"
        limit, goal = ("–" if bound is None else f"{bound:g}" for bound in (row.limit, row.goal))
        lines.append(f"| {row.what} | {value} | {limit} | {goal} | {verdict(row)} | {row.note} |")
    return lines


def verdict(row: Row) -> str:
    if row.limit is None or row.goal is None:
        return ""
    if row.value is None or row.value > row.limit:
        return "over the limit"
    return "goal" if row.value <= row.goal else "within"


def machine() -> str:
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("torch", "xla-cpu-pjrt"))
    cores = len(os.sched_getaffinity(0))
    return f"{platform.machine()}, {cores} cores (each measurement pinned to one), {versions}"


def write(sections: dict[str, list[Row]], repeats: int) -> str:
    lines = [
        "# Benchmarks",
        "",
        f"Written by `make bench` on {datetime.date.today().isoformat()}: {machine()}.",
        "",
        f"A and B run in turn, {repeats} times; a result is the median of the ratios of CPU time (user and system, all",
        'threads, unless "issuing thread" is said). Wall clock is beside it for reading only. Cold: a new process and',
        "an empty disk cache.",
    ]
    for title, rows in sections.items():
        lines += ["", f"## {title}", "", *table(rows)]
    lines += [
        "",
        "Peers on other machines, for orientation: 1000 cached adds cost 6.1 times PyTorch CPU on the issuing thread",
        "and 16 on all threads with torch-tpu 0.2.0, 6.8 and 7 with JAX called op by op; cold training steps 1 + 2",
        "cost torch-tpu 0.93 times JAX jit.",
        "",
        "The training step: 2 layers, width 256, 4 heads, feed-forward 1024, vocabulary 512, batch 4 of 128 tokens,",
        "AdamW, float32, one `loss.item()` a step (`benchmarks/train_torch.py`, `benchmarks/train_jax.py`).",
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument(
        "--steps", type=int, default=14, help="steps of the training run (the first four are not steady)"
    )
    parser.add_argument("--only", nargs="+", choices=SECTIONS, help="print these, write no page")
    parser.add_argument("--jax", type=Path, default=ROOT / ".venv" / "jax" / "bin" / "python", help="a Python with JAX")
    arguments = parser.parse_args()
    chosen = arguments.only or SECTIONS
    sections: dict[str, list[Row]] = {}
    if "operators" in chosen:
        sections["Cached operators"] = operator_rows(arguments.repeats)
    if "fusion" in chosen:
        sections["DeferAndFuse"] = fusion_rows(arguments.repeats)
    if "diagnostics" in chosen:
        sections["Watching"] = diagnostic_rows(arguments.repeats)
    if "training" in chosen:
        sections["A training step"] = training_rows(arguments.repeats, arguments.steps, arguments.jax)
    if "import" in chosen:
        sections["Import"] = import_rows(arguments.repeats)
    page = write(sections, arguments.repeats)
    print(page)
    if arguments.only is None:
        OUTPUT.write_text(page)
    over = [row.what for rows in sections.values() for row in rows if verdict(row) == "over the limit"]
    if over:
        say(f"over the limit: {'; '.join(over)}")
        raise SystemExit(1)
