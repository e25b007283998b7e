"""`python -m tests.conformance [--ops REGEX] [--kinds float32,out=] [--jobs N] [--all]`: PyTorch's operator tests.

Checks every operator of the census, or of the whole database with --all, and writes docs/conformance.md when nothing
was left out. Ends with 1 where a case fails or an entry of status.toml is stale.
"""

import argparse
import json
import os
import pathlib
import re
import sys
import time
from typing import Any

from tests.conformance import report, status
from tests.conformance.runner import ROOT, run_cases

os.environ.setdefault("TORCH_TPU_CACHE_DIR", str(ROOT / "build" / "test-cache"))


def main() -> int:
    from tests.conformance import checks, plan

    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("--ops", default="", help="regular expression: the operators' names (OpInfo.formatted_name)")
    parser.add_argument("--kinds", default=",".join(checks.KINDS), help=f"some of {', '.join(checks.KINDS)}")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--all", action="store_true", help="the whole operator database, not only the census")
    parser.add_argument("--json", type=pathlib.Path, help="write the results to this file too")
    arguments = parser.parse_args()
    kinds = arguments.kinds.split(",")
    if unknown := set(kinds) - set(checks.KINDS):
        parser.error(f"no kind {', '.join(unknown)}; there are {', '.join(checks.KINDS)}")
    ops = plan.DATABASE if arguments.all else plan.census_ops()
    names = [op.formatted_name for op in ops if re.search(arguments.ops, op.formatted_name)]
    entries = status.load()
    started = time.monotonic()

    def show(result: dict[str, Any]) -> None:
        result["verdict"] = status.apply(entries, result)
        if result["verdict"] == "failed":
            print(f"{result['op']} {result['kind']}", flush=True)
            for problem in result["problems"]:
                if not problem["excused"]:
                    print(f"    {problem['at']}: {problem['text']}", flush=True)

    results = run_cases([(name, kind) for name in names for kind in kinds], arguments.jobs, show)
    stale = status.stale(entries, {(r["op"], r["kind"]) for r in results})
    for text in stale:
        print(f"status.toml, stale: {text}")
    print(report.summary(results), f"{time.monotonic() - started:.0f} s")
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1))
    if not arguments.ops and set(kinds) == set(checks.KINDS) and not arguments.all:
        report.write(results, kinds, plan.uncovered())
    return int(bool(stale) or any(r["verdict"] == "failed" for r in results))


if __name__ == "__main__":
    sys.exit(main())
