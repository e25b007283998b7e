"""Short versions of `make soak`, and that an optimizer's step makes no second copy of the parameters."""

import pytest
import torch
from torch import nn

from tests.soak import threads, training

MODES = [torch.tpu.EagerMode.STRICT, torch.tpu.EagerMode.DEFER_AND_FUSE]


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name.lower())
def test_threads_on_shared_and_own_tensors(mode):
    with torch.tpu.set_eager_mode(mode):
        assert threads.run(3) > 0


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name.lower())
def test_training_steps_hold_nothing_back(mode):
    with torch.tpu.set_eager_mode(mode):
        growth = training.run(400, 200)
    assert growth.device < 100  # numbers that were used before are kept, up to a limit


@pytest.mark.parametrize("options", [{"fused": True}, {"foreach": True}], ids=["fused", "foreach"])
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name.lower())
def test_an_adamw_step_updates_in_place(mode, options):
    with torch.tpu.set_eager_mode(mode):
        layers = [nn.Linear(512, 512) for _ in range(8)]  # 8 MiB of parameters
        model = nn.Sequential(*layers).to("tpu")
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, **options)
        size = sum(p.nbytes for p in model.parameters())

        def step():
            for p in model.parameters():
                p.grad = torch.full_like(p, 0.1)
            torch.tpu.synchronize()
            torch.tpu.reset_peak_memory_stats()
            held = torch.tpu.memory_allocated()
            optimizer.step()
            torch.tpu.synchronize()
            return torch.tpu.max_memory_allocated() - held

        more = [step() for _ in range(7)]
    # foreach AdamW makes one list of denominators as it goes; parameters and moments are never copied.
    assert max(more[2:]) < (0.1 if options.get("fused") else 1.6) * size, [n / size for n in more]
