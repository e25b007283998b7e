"""In-place operators work in the memory of what they write: the peak shows no second copy."""

import gc

import pytest
import torch


def extra_bytes(call):
    """How far `call` raises the peak above what is held before it."""
    gc.collect()
    torch.tpu.synchronize()
    torch.tpu.reset_peak_memory_stats()
    before = torch.tpu.memory_allocated()
    call()
    torch.tpu.synchronize()
    return torch.tpu.max_memory_allocated() - before


@pytest.mark.parametrize("mode", ["STRICT", "DEFER_AND_FUSE"])
def test_a_write_stays_in_its_memory(mode):
    def lists():
        return [[torch.rand(1024, 256, device="tpu") + k for _ in range(2)] for k in range(4)]

    writes = {
        "add": lambda a, b, c, d: torch._foreach_add_(a, b, alpha=2),
        "mul": lambda a, b, c, d: torch._foreach_mul_(a, 0.9),
        "lerp": lambda a, b, c, d: torch._foreach_lerp_(a, b, 0.1),
        "addcmul": lambda a, b, c, d: torch._foreach_addcmul_(a, b, c, 0.1),
        "addcdiv": lambda a, b, c, d: torch._foreach_addcdiv_(a, b, c, 0.1),
        "sqrt": lambda a, b, c, d: torch._foreach_sqrt_(d),
        "single": lambda a, b, c, d: a[0].addcdiv_(b[0], c[0], value=0.1).mul_(2).add_(1),
        "view": lambda a, b, c, d: a[0][3:900].mul_(2),
        "fused": lambda a, b, c, d: torch._fused_adamw_(
            a, b, c, d, [], [torch.tensor(3.0), torch.tensor(3.0)],
            lr=0.1, beta1=0.9, beta2=0.99, weight_decay=0.1, eps=1e-8, amsgrad=False, maximize=False,
        ),
    }  # fmt: skip
    with torch.tpu.set_eager_mode(torch.tpu.EagerMode[mode]):
        for name, write in writes.items():
            write(*lists())
            operands = lists()
            extra = extra_bytes(lambda write=write, operands=operands: write(*operands))
            assert extra < 0.05 * operands[0][0].nbytes, (name, extra)
