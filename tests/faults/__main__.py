"""python -m tests.faults strict|debug|defer_and_fuse [name...]: runs the scenarios in this process.

It must have been started with `tests.faults.plugin.environment()`; prints what happened as JSON: per name null, or the
traceback of what did not hold.
"""

import json
import sys
import traceback

import torch

from tests.faults import fused
from tests.faults.plugin import FaultPlugin
from tests.faults.scenarios import SCENARIOS


def main() -> None:
    mode, *names = sys.argv[1:]
    torch.tpu.eager_mode = torch.tpu.EagerMode[mode.upper()]
    torch.ones(1, device="tpu").cpu()
    plugin = FaultPlugin()
    results: dict[str, str | None] = {}
    scenarios = fused.SCENARIOS if mode == "defer_and_fuse" else SCENARIOS
    for name in names or scenarios:
        torch.manual_seed(0)
        results[name] = None
        try:
            scenarios[name](plugin)
        except BaseException:
            results[name] = traceback.format_exc()
        plugin.clear()
    print(json.dumps(results))


if __name__ == "__main__":
    main()
