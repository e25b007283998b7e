"""Child process: `import torch`, with whatever it loads by itself. Prints one JSON object."""

import json

from benchmarks import clock

clock.pin_to_one_core()
before, start = clock.resident_mb(), clock.now()

import torch  # noqa: E402, F401

cost = clock.now() - start
print(json.dumps({"cpu": cost.process, "wall": cost.wall, "mb": clock.resident_mb() - before}))
