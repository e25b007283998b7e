"""Random numbers: seeds and states repeat what was drawn."""

import torch


def draw():
    return torch.rand(50, device="tpu").cpu()


def test_seeds_repeat():
    torch.manual_seed(7)
    a, b = draw(), draw()
    assert not torch.equal(a, b)
    torch.manual_seed(7)
    assert torch.equal(draw(), a)
    torch.tpu.manual_seed(7)
    assert torch.tpu.initial_seed() == 7
    assert torch.equal(draw(), a)
    torch.tpu.manual_seed_all(8)
    assert not torch.equal(draw(), a)


def test_state_repeats():
    draw()
    state = torch.tpu.get_rng_state()
    assert state.dtype == torch.uint8
    assert state.device.type == "cpu"
    assert state.numel() == 16
    a = draw()
    torch.tpu.set_rng_state(state)
    assert torch.equal(draw(), a)
    states = torch.tpu.get_rng_state_all()
    b = draw()
    torch.tpu.set_rng_state_all(states)
    assert torch.equal(draw(), b)
    with torch.random.fork_rng(device_type="tpu"):
        c = draw()
    assert torch.equal(draw(), c)


def test_seed_before_the_device_starts(output):
    code = """
import torch
torch.manual_seed(1); torch.manual_seed(11)
print(torch.tpu.is_initialized())
print(torch.tpu.initial_seed(), [g.initial_seed() for g in torch.tpu.default_generators])
"""
    assert output(code, TORCH_TPU_NUM_DEVICES="2").split("\n") == ["False", "11 [11, 11]"]


def test_random_seed_changes():
    assert torch.tpu.seed() != torch.tpu.seed()
    assert torch.tpu.seed_all() == torch.tpu.initial_seed()


def test_own_generator():
    generator = torch.Generator(device="tpu").manual_seed(3)
    a = torch.rand(9, device="tpu", generator=generator).cpu()
    generator.manual_seed(3)
    assert torch.equal(torch.rand(9, device="tpu", generator=generator).cpu(), a)
    assert 0 <= a.min() <= a.max() < 1
