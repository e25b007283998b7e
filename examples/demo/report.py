"""The demo's results: a table as text, and the picture of the curves."""

from pathlib import Path
from typing import Any, NamedTuple

from examples.demo.job import TRACED_STEPS


class Job(NamedTuple):
    """A job of the demo. Its values agree when the first TRACED_STEPS of them (all, where `whole`) differ by
    `tolerance` at most, relative to values above 1; its score lies between `lowest` and `highest` each way."""

    module: str
    title: str
    axis: str
    whole: bool
    tolerance: float
    lowest: float
    highest: float


JOBS = (
    Job("digits", "vision transformer, handwritten digits", "loss", False, 1e-4, 0.95, 1.0),
    Job("characters", "GPT, Python's own library", "loss", False, 1e-4, 0.0, 2.5),
    Job("speech", "silero-vad, 30 s of audio", "speech probability", True, 1e-3, 0.5, 1.0),
)

FUSED = "tpu, fused"
WAYS = ("cpu", "tpu", FUSED)

Result = dict[str, Any]


def difference(job: Job, ours: Result, theirs: Result) -> float:
    last = None if job.whole else TRACED_STEPS
    pairs = zip(ours["values"][:last], theirs["values"][:last], strict=True)
    return max(abs(a - b) / max(1.0, abs(b)) for a, b in pairs)


def problems(job: Job, results: dict[str, Result]) -> list[str]:
    """What is wrong with a job's results, in words; empty when all is well."""
    found = [f"{job.module} on {way}: {result['error']}" for way, result in results.items() if "error" in result]
    if found:
        return found
    for way, result in results.items():
        if not job.lowest <= result["score"] <= job.highest:
            found.append(f"{job.module} on {way}: {result['text']}, wanted {job.lowest:g} to {job.highest:g}")
        gap = difference(job, result, results["cpu"])
        if not gap <= job.tolerance:
            found.append(f"{job.module} on {way}: values differ by {gap:.1e}, allowed {job.tolerance:.0e}")
    return found


def table(results: dict[str, dict[str, Result]]) -> str:
    head = (
        "job",
        "device",
        "result",
        "values differ by",
        "steps/s",
        "first step",
        "compiled",
        "from disk",
        "peak memory",
    )
    rows = [head]
    for job in JOBS:
        for way, result in results.get(job.module, {}).items():
            rows.append((job.title, way, *cells(job, way, result, results[job.module])))
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def cells(job: Job, way: str, result: Result, all_ways: dict[str, Result]) -> tuple[str, ...]:
    if "error" in result:
        return ("failed: " + result["error"][:60], *("–",) * 6)
    compared = way != "cpu" and "values" in all_ways.get("cpu", {})
    memory = megabytes(result["process_peak"]) + " process"
    if result["device_peak"] is not None:
        memory = f"{megabytes(result['device_peak'])} device, {memory}"
    return (
        result["text"],
        f"{difference(job, result, all_ways['cpu']):.0e} of {job.tolerance:.0e}" if compared else "–",
        f"{result['steps_per_second']:.0f}",
        f"{result['first_step']:.2f} s",
        "–" if result["compiled"] is None else str(result["compiled"]),
        "–" if result["from_disk"] is None else str(result["from_disk"]),
        memory,
    )


def megabytes(count: int) -> str:
    return f"{count / 2**20:.0f} MB"


def picture(results: dict[str, dict[str, Result]], path: Path) -> None:
    """One panel a job, one curve a way; the CPU's is drawn widest, under ours."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, len(JOBS), figsize=(5 * len(JOBS), 3.6), layout="constrained")
    for job, panel in zip(JOBS, panels, strict=True):
        styles = (("#c8c8c8", 5.0), ("#7fb2e5", 2.5), ("#1a66b3", 0.8))
        for way, (color, width) in zip(WAYS, styles, strict=True):
            values = results.get(job.module, {}).get(way, {}).get("values", [])
            panel.plot(values, label=way, color=color, linewidth=width)
        panel.set_title(job.title)
        panel.set_xlabel("chunk" if job.whole else "step")
        panel.set_ylabel(job.axis)
        panel.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)
