"""Child process: strict and DeferAndFuse in turn on workloads of many small operators. Prints one JSON object.

Per workload: seconds of CPU time of all threads for one step, after its programs are compiled; and of a chain of adds,
microseconds a call while recording (issuing thread) and in all, beside PyTorch's on the CPU.
"""

import argparse
import json
import time
from collections.abc import Callable

from benchmarks import clock, operators
from benchmarks.operators import torch

nn, functional = torch.nn, torch.nn.functional
Step = Callable[[], object]
QUIET_SECONDS = 2.0  # without a new program: then the background compiler has nothing left


def mlp() -> Step:
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)).to("tpu")
    return training(model, torch.randn(16, 64), torch.randint(10, (16,)))


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(self.norm1(x)).unflatten(-1, (3, 4, -1)).permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).flatten(2))
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


def decoder() -> Step:
    layers = [
        nn.Embedding(100, 64),
        *(Block(64) for _ in range(4)),
        nn.LayerNorm(64),
        nn.Linear(64, 100),
        nn.Flatten(0, 1),
    ]
    return training(nn.Sequential(*layers).to("tpu"), torch.randint(100, (1, 32)), torch.randint(100, (32,)))


def training(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> Step:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    x, y = x.to("tpu"), y.to("tpu")

    def step() -> object:
        loss = functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()

    return step


def pointwise() -> Step:
    x = torch.randn(64, device="tpu")

    @torch.no_grad()
    def step() -> object:
        y = x
        for _ in range(200):
            y = (y * 1.01 + 0.1).sigmoid()
        return y[0].item()

    return step


def matrices() -> Step:
    x, w = torch.randn(1024, 1024, device="tpu"), torch.randn(1024, 1024, device="tpu") * 0.03

    @torch.no_grad()
    def step() -> object:
        y = x
        for _ in range(3):
            y = (y @ w).relu() + x
        return y[0, 0].item()

    return step


WORKLOADS = {"mlp": mlp, "decoder": decoder, "pointwise": pointwise, "matrices": matrices}
MODES = {"strict": torch.tpu.EagerMode.STRICT, "fused": torch.tpu.EagerMode.DEFER_AND_FUSE}


def warm_up(step: Step) -> None:
    """Runs steps until nothing has been compiled for a while: fused programs are compiled in the background."""
    compiled, since = -1, time.monotonic()
    while time.monotonic() - since < QUIET_SECONDS:
        step()
        time.sleep(0.05)
        now = torch.tpu.compile_stats()["compilations"]
        if now != compiled:
            compiled, since = now, time.monotonic()


def seconds(step: Step, calls: int) -> float:
    start = clock.now()
    for _ in range(calls):
        step()
    torch.tpu.synchronize()
    return (clock.now() - start).process / calls


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=7)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    result: dict[str, object] = {}
    for name, make in WORKLOADS.items():
        steps = {}
        for mode, value in MODES.items():
            torch.manual_seed(0)
            with torch.tpu.set_eager_mode(value):
                steps[mode] = make()
                warm_up(steps[mode])
        samples: dict[str, list[float]] = {mode: [] for mode in MODES}
        for _ in range(arguments.repeats):
            for mode, value in MODES.items():
                with torch.tpu.set_eager_mode(value):
                    samples[mode].append(seconds(steps[mode], 10))
        result[name] = samples
    bodies = {device: operators.chain(device) for device in ("cpu", "tpu")}
    chain: dict[str, list[list[float]]] = {"cpu": [], "tpu": []}
    with torch.no_grad(), torch.tpu.set_eager_mode(MODES["fused"]):
        warm_up(lambda: operators.cost_per_call(*bodies["tpu"], "tpu"))
        operators.cost_per_call(*bodies["cpu"], "cpu")
        for _ in range(arguments.repeats):
            for device, (body, calls) in bodies.items():
                chain[device].append(operators.cost_per_call(body, calls, device))
    result["chain"] = chain
    print(json.dumps(result))


if __name__ == "__main__":
    main()
