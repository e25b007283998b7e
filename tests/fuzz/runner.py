"""One seed of the fuzz: a starting set of tensors, then views and writes in turn."""

import warnings

import torch

from tests.fuzz import gradients
from tests.fuzz.views import view_step
from tests.fuzz.world import Mismatch, World
from tests.fuzz.writes import write_step

SHAPES = [(4, 6), (2, 3, 4), (12,), (4, 2)]
DTYPES = [torch.float32, torch.float32, torch.int32, torch.int64, torch.bool, torch.uint8, torch.bfloat16]
STEPS = 24


def _start(world: World) -> None:
    shape = world.rng.choice(SHAPES)
    for _ in range(2):
        dtype = world.rng.choice(DTYPES)
        host = torch.arange(torch.Size(shape).numel()).view(shape) % 5
        if dtype not in (torch.uint8, torch.bool):
            host = host - 2
        host = host.to(dtype)
        world.add(host, host.to("tpu"))


def run_seed(seed: int) -> None:
    """Raises Mismatch, with the steps that lead to it, where the device and the CPU differ."""
    modes = torch.tpu.EagerMode
    mode = (modes.STRICT, modes.DEFER_AND_FUSE, modes.STRICT, modes.DEBUG)[seed % 4]
    try:
        with torch.tpu.set_eager_mode(mode), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # expanded tensors, resized outputs
            world = World(seed, steps_a_look=6 if mode is modes.DEFER_AND_FUSE else 1)
            _start(world)
            for _ in range(STEPS):
                (view_step if world.rng.random() < 0.45 else write_step)(world)
            world.compare()
            gradients.run(seed)
    except Mismatch as error:
        raise Mismatch(f"seed {seed}\n{error}") from error
