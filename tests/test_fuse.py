"""DeferAndFuse: strict's values from fewer programs and less memory; errors and order as in strict."""

import threading

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.tpu import EagerMode


@pytest.fixture(autouse=True)
def _fuse():
    with torch.tpu.set_eager_mode(EagerMode.DEFER_AND_FUSE):
        yield
    assert torch.tpu.pending() == 0


def strict(call):
    with torch.tpu.set_eager_mode(EagerMode.STRICT):
        return call()


def test_nothing_runs_until_a_value_is_read():
    x = torch.arange(6.0).view(2, 3).to("tpu")
    runs = torch.tpu.compile_stats()["executions"]
    y = (x * 2).relu()
    y += 1
    z = y.t()[1:].sum(0)
    assert torch.tpu.pending() == 4
    assert not torch.tpu.is_materialized(z)
    assert torch.tpu.compile_stats()["executions"] == runs
    want = ((torch.arange(6.0).view(2, 3) * 2).relu() + 1).t()[1:].sum(0)
    assert torch.equal(z.cpu(), want)
    assert torch.tpu.pending() == 0
    assert torch.tpu.is_materialized(y)


@pytest.mark.parametrize(
    "read",
    [
        lambda x: x.sum().item(),
        lambda x: x.tolist(),
        lambda x: x.cpu(),
        lambda x: repr(x),
        lambda x: bool((x > 0).all()),
        lambda x: x.nonzero(),
        lambda x: torch.tpu.synchronize(),
        lambda x: torch.tpu.flush(),
        lambda x: torch.Event("tpu").record(),
        lambda x: torch.tpu.memory_allocated(),
    ],
)
def test_what_materialises(read):
    y = torch.ones(4, device="tpu") + 1
    assert torch.tpu.pending() > 0
    read(y)
    assert torch.tpu.is_materialized(y)


def test_leaving_the_mode_and_operators_of_other_modes_materialise():
    with torch.tpu.set_eager_mode(EagerMode.DEFER_AND_FUSE):
        y = torch.ones(4, device="tpu") + 1
    assert torch.tpu.is_materialized(y)
    y = y + 1
    assert strict(lambda: (y * 2).tolist()) == [6.0] * 4


def test_results_that_nobody_can_read_never_take_memory():
    n = 1 << 18
    x = torch.ones(n, device="tpu")
    strict(lambda: torch.tpu.synchronize())
    torch.tpu.reset_peak_memory_stats()
    before = torch.tpu.memory_allocated()
    y = x
    for _ in range(20):
        y = (y * 1.5 + 1).tanh()
    y.sum().item()
    assert torch.tpu.max_memory_allocated() - before <= 2 * 4 * n
    kept_out = torch.tpu.fusion_stats()["values_kept_out"]
    del y
    (x + 3) * 2  # dropped at once
    torch.tpu.flush()
    assert torch.tpu.fusion_stats()["values_kept_out"] == kept_out + 2


def test_in_place_updates_take_over_the_memory_of_what_they_replace():
    n = 1 << 18
    x = torch.ones(n, device="tpu")
    x.sum().item()
    torch.tpu.reset_peak_memory_stats()
    before = torch.tpu.memory_allocated()
    for _ in range(3):
        for _ in range(10):
            x.mul_(1.01).add_(1)
        x[0].item()
    assert torch.tpu.max_memory_allocated() - before < 4 * n


def test_steps_of_one_structure_soon_compile_nothing():
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4)).to("tpu")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    counts = []
    for step in range(14):
        x = torch.full((4, 8), float(step), device="tpu")
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        loss.item()
        counts.append(torch.tpu.compile_stats()["compilations"] + torch.tpu.compile_stats()["disk_hits"])
    assert counts[9:] == [counts[9]] * 5


def _train(device, steps=20):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(11, 16), nn.LayerNorm(16), nn.Linear(16, 32), nn.SiLU(), nn.Linear(32, 11))
    model = model.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for step in range(steps):
        tokens = ((torch.arange(12) * (step % 5 + 1)) % 11).to(device)
        loss = functional.cross_entropy(model(tokens[:-1]), tokens[1:])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return torch.tensor(losses, dtype=torch.float64)


def test_training_losses_follow_strict_and_the_cpu():
    fused = _train("tpu")
    torch.testing.assert_close(fused, strict(lambda: _train("tpu")), rtol=1e-6, atol=0)
    torch.testing.assert_close(fused, _train("cpu"), rtol=1e-5, atol=0)


def test_random_numbers_are_the_same_in_every_mode():
    def draws():
        torch.tpu.manual_seed(7)
        x = torch.rand(5, device="tpu")
        y = functional.dropout(torch.ones(64, device="tpu"), 0.4)
        z = torch.randn(3, 4, device="tpu").add_(1)
        return torch.cat([x, y, torch.randperm(9, device="tpu").float()]).cpu(), z.cpu()

    (exact, normal), (want, want_normal) = draws(), strict(draws)
    assert torch.equal(exact, want)
    torch.testing.assert_close(normal, want_normal, rtol=1e-6, atol=1e-6)  # a formula of several steps, fused


def test_changing_numbers_and_offsets_reuse_programs():
    x = torch.zeros(16, 4, device="tpu")

    def step(i):
        x[i % 16].add_(0.5 * i)
        return (x * (0.1 * i)).sum().item()

    got = [step(i) for i in range(6)]
    compiled = torch.tpu.compile_stats()["compilations"]
    got += [step(i) for i in range(6, 16)]
    assert torch.tpu.compile_stats()["compilations"] == compiled
    host = torch.zeros(16, 4)
    want = []
    for i in range(16):
        host[i % 16].add_(0.5 * i)
        want.append((host * (0.1 * i)).sum().item())
    assert got == pytest.approx(want, rel=1e-5)


def test_argument_errors_are_raised_at_the_call_and_record_nothing():
    x, y = torch.ones(2, 3, device="tpu"), torch.ones(4, device="tpu")
    torch.tpu.flush()
    with pytest.raises(RuntimeError, match="size of tensor a"):
        x + y
    with pytest.raises(RuntimeError, match="mat1 and mat2"):
        x @ x
    assert torch.tpu.pending() == 0


def test_threads_record_into_one_order():
    x = torch.zeros(64, device="tpu")
    lock = threading.Lock()

    def work():
        with torch.tpu.set_eager_mode(EagerMode.DEFER_AND_FUSE):
            for _ in range(50):
                with lock:
                    x.add_(1)
                own = torch.full((8,), 2.0, device="tpu") * 3
                assert own.sum().item() == 48.0

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert x.tolist() == [200.0] * 64


def test_a_long_stream_runs_without_being_asked():
    x = torch.zeros(4, device="tpu")
    for _ in range(5000):
        x = x + 1
    assert torch.tpu.pending() < 5000
    assert x.tolist() == [5000.0] * 4
    assert torch.tpu.fusion_stats()["flushes"]["length"] > 0


def test_what_is_recorded_runs_when_nothing_more_comes():
    y = torch.ones(4, device="tpu") + 1
    done = threading.Event()
    for _ in range(200):
        if torch.tpu.is_materialized(y):
            break
        done.wait(0.05)
    assert torch.tpu.is_materialized(y)


def test_expect_no_compile_names_the_group(output):
    code = """
import torch
x = torch.ones(3, 19, device="tpu")
kept = x * 3  # recorded before: not concerned
with torch.tpu.expect_no_compile():
    y = x.hypot(x).tanh()
    try:
        y.cpu()
    except RuntimeError as error:
        print(error)
print(kept.sum().item())
"""
    said, *_, value = output(code, TORCH_TPU_CACHE="0", TORCH_TPU_EAGER_MODE="fuse").splitlines()
    assert "expect_no_compile" in said
    assert "hypot" in said
    assert value == "171.0"


def test_the_report_says_what_ran_and_why():
    torch.tpu.reset_fusion_stats()
    x = torch.ones(4, device="tpu")
    for _ in range(3):
        ((x + 1) * 2).sum().item()
    text = torch.tpu.fusion_report()
    assert "3 host read" in text
    assert "operators recorded" in text
    stats = torch.tpu.fusion_stats()
    assert stats["operators"] == 10
    assert stats["groups"] == 3
