"""Child process: reads "operator<TAB>kind" lines, answers each with one line of JSON."""

import faulthandler
import json
import os
import sys
import time
import traceback
import warnings
from typing import Any


def check(name: str, kind: str) -> dict[str, Any]:
    """The result of one case: comparisons made, problems found, seconds."""
    from tests.conformance import checks, plan

    op = next(op for op in plan.DATABASE if op.formatted_name == name)
    started = time.monotonic()
    try:
        compared, problems = checks.KINDS[kind](op)
        found = [{"at": p.at, "text": p.text, "off": p.off} for p in problems]
    except Exception as error:
        compared, found = 1, [{"at": "check", "text": f"{error!r}\n{traceback.format_exc()[-1500:]}", "off": None}]
    return {"op": name, "kind": kind, "compared": compared, "problems": found, "seconds": time.monotonic() - started}


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever the operators print must not mix with the answers
    faulthandler.enable()
    warnings.simplefilter("ignore")
    import torch

    torch.set_num_threads(1)
    for line in sys.stdin:
        name, kind = line.rstrip("\n").split("\t")
        print(json.dumps(check(name, kind)), file=answers, flush=True)


if __name__ == "__main__":
    main()
