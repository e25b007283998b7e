"""A device that is full: one clear error, what is there stays right, and what is freed is there again."""

import pytest

MIB = 1 << 20

SETUP = f"""
import torch
MIB = {MIB}

def refused(call):
    try:
        call()
    except torch.OutOfMemoryError as error:
        return str(error)
    raise SystemExit("nothing was refused")

held = torch.full((MIB,), 3.0, device="tpu")          # 4 MiB
small = torch.arange(4.0).to("tpu")
"""


@pytest.mark.parametrize("mode", ["strict", "debug"])
def test_a_full_device_says_who_holds_what_and_loses_nothing(output, mode):
    code = (
        SETUP
        + """
message = refused(lambda: torch.cat([held, held]))    # 8 MiB more
print(message)
assert torch.equal(held.cpu(), torch.full((MIB,), 3.0))
assert small.add_(1).tolist() == [1.0, 2.0, 3.0, 4.0]
refused(lambda: torch.zeros(3 * MIB).to("tpu"))
refused(lambda: held.repeat(2))
stats = torch.tpu.memory_stats()
assert stats["num_ooms"] == 3 and stats["num_alloc_retries"] == 3, stats
del held
assert torch.full((2 * MIB,), 1.0, device="tpu").sum().item() == 2 * MIB
"""
    )
    said = output(code, TORCH_TPU_MEMORY_LIMIT=str(10 * MIB), TORCH_TPU_EAGER_MODE=mode)
    assert "cat" in said
    assert "limit of 10.0 MiB" in said
    assert "4.0 MiB  float32[1048576]  made by full" in said
    assert "TORCH_TPU_TRACEBACKS=1" in said


def test_the_report_names_lines_where_they_are_recorded(output):
    code = SETUP + "print(refused(lambda: torch.cat([held, held])))"
    said = output(code, TORCH_TPU_MEMORY_LIMIT=str(10 * MIB), TORCH_TPU_TRACEBACKS="1")
    assert "made by full at <string>:12 in <module>" in said


@pytest.mark.parametrize("mode", ["strict", "debug"])
def test_a_refused_write_leaves_the_tensor_as_it_was(output, mode):
    code = (
        SETUP
        + """
alias = torch.empty_like(held).copy_(held)             # shares the value until one is written
refused(lambda: held.add_(1))
assert torch.equal(held.cpu(), torch.full((MIB,), 3.0))
assert torch.equal(alias.cpu(), held.cpu())
del alias
assert held.add_(1)[0].item() == 4.0                   # in place: no second buffer
"""
    )
    output(code, TORCH_TPU_MEMORY_LIMIT=str(6 * MIB), TORCH_TPU_EAGER_MODE=mode)


def test_a_training_step_that_does_not_fit_can_be_tried_smaller(output):
    code = """
import torch
from torch import nn
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64)).to("tpu")
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
def step(batch):
    loss = model(torch.ones(batch, 64, device="tpu")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.item()
first = step(8)
before = [p.detach().cpu() for p in model.parameters()]
try:
    step(1 << 14)
except torch.OutOfMemoryError:
    pass
else:
    raise SystemExit("nothing was refused")
optimizer.zero_grad()
assert all(torch.equal(p.detach().cpu(), b) for p, b in zip(model.parameters(), before))
print(step(8) < first)
"""
    assert output(code, TORCH_TPU_MEMORY_LIMIT=str(8 * MIB)) == "True"


@pytest.mark.parametrize("limit", ["much", "-1", "0"])
def test_a_limit_that_is_none_is_said_at_the_first_use(python, limit):
    done = python(
        "import torch; print(torch.ones(1).item()); torch.ones(1, device='tpu')", TORCH_TPU_MEMORY_LIMIT=limit
    )
    assert done.stdout.strip() == "1.0"
    assert f"ValueError: TORCH_TPU_MEMORY_LIMIT={limit} is not a number of bytes" in done.stderr
