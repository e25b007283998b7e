"""`python -m tests.models [--only gpt2,llama] [--warm]`: every model of the zoo in a process of its own.

Without --only it writes docs/models.md. Each process starts from an empty program cache unless --warm is given.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "models.md"
LIMIT_SECONDS = 1200

HEAD = """\
# Models

Tiny models of the transformers library with random weights (width 64, two layers), the same on the CPU and on the
device, float32. Compared: outputs and loss (1e-5 relative), every gradient (1e-4 of the largest), which gradients are
`None`, one AdamW step, tied weights, a `state_dict` round trip, and for decoders 16 greedy tokens through the cache. A
third training step must make no new program. Written by `make models`.

Programs: forward alone; with backward and optimizer; with generation. Seconds: everything that the device did in a new
process with an empty program cache, compilation included, beside the CPU's own work; a second process compiles nothing.

| model | class | parameters | agrees | programs | seconds |
|---|---|---|---|---|---|
"""


def run_child(name: str, cache: str | None = None) -> dict[str, Any]:
    """The result of `tests.models.check.run` in a new process."""
    environment = dict(os.environ)
    if cache is not None:
        environment["TORCH_TPU_CACHE_DIR"] = cache
    try:
        child = subprocess.run(
            [sys.executable, "-c", f"from tests.models import check; check.run({name!r})"],
            cwd=ROOT, env=environment, capture_output=True, text=True, timeout=LIMIT_SECONDS,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return {"name": name, "failures": [f"no result after {LIMIT_SECONDS} s"], "messages": []}
    lines = child.stdout.strip().splitlines()
    if child.returncode != 0 or not lines:
        return {"name": name, "failures": [f"exit code {child.returncode}: {child.stderr[-2000:]}"], "messages": []}
    return json.loads(lines[-1])


def _row(result: dict[str, Any]) -> str:
    if "class" not in result:
        return f"| {result['name']} | | | no: {result['failures'][0].strip().splitlines()[-1]} | | |"
    programs = result["programs"]
    counts = f"{programs['forward']}, {programs['train']}, {programs['all'] if result['decodes'] else '–'}"
    verdict = "yes" if not result["failures"] else f"no: {result['failures'][0]}"
    return (
        f"| {result['name']} | {result['class']} | {result['parameters']:,} | {verdict} | {counts} | "
        f"{result['seconds']:.0f} |"
    )


def main() -> int:
    from tests.models import zoo

    parser = argparse.ArgumentParser(prog="python -m tests.models", description=__doc__)
    parser.add_argument("--only", default=",".join(zoo.MODELS), help="comma-separated names")
    parser.add_argument("--warm", action="store_true", help="use the usual program cache")
    arguments = parser.parse_args()
    results = []
    for name in arguments.only.split(","):
        if name not in zoo.MODELS:
            parser.error(f"no model {name!r}; there are {', '.join(zoo.MODELS)}")
        with tempfile.TemporaryDirectory() as cache:
            result = run_child(name, None if arguments.warm else cache)
        results.append(result)
        print(_row(result), flush=True)
        for text in result["failures"][:20] + [f"said: {m}" for m in result["messages"]]:
            print("    " + text.replace("\n", "\n    "), flush=True)
    if len(results) == len(zoo.MODELS):
        PAGE.write_text(HEAD + "".join(_row(result) + "\n" for result in results))
    return int(any(result["failures"] for result in results))


if __name__ == "__main__":
    sys.exit(main())
