"""Random numbers: seeds and states repeat what was drawn."""

import pickle

import pytest
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


def test_fork_rng_puts_back_what_it_finds():
    torch.manual_seed(5)
    draw()
    want = (draw(), torch.rand(3))
    torch.manual_seed(5)
    draw()
    for devices in (None, [0], ["tpu:0"]):
        with torch.random.fork_rng(devices=devices, device_type="tpu"):
            torch.manual_seed(99)
            draw()
            torch.rand(3)
    got = (draw(), torch.rand(3))
    assert torch.equal(got[0], want[0])
    assert torch.equal(got[1], want[1])
    with torch.random.fork_rng(enabled=False, device_type="tpu"):
        torch.manual_seed(5)
    draw()
    assert torch.equal(draw(), want[0])


def test_states_are_seed_and_offset():
    torch.tpu.manual_seed(1)
    assert torch.tpu.random._get_rng_state_offset() == 0
    first = draw()
    offset = torch.tpu._get_rng_state_offset()
    assert offset > 0
    second = draw()
    torch.tpu._set_rng_state_offset(0)
    assert torch.equal(draw(), first)
    torch.tpu._set_rng_state_offset(offset, "tpu:0")
    assert torch.equal(draw(), second)
    with pytest.raises(RuntimeError, match="16 bytes"):
        torch.tpu.set_rng_state(torch.zeros(5, dtype=torch.uint8))
    with pytest.raises(TypeError, match="ByteTensor"):
        torch.tpu.set_rng_state(torch.zeros(16))


def test_generators_travel():
    generator = torch.Generator("tpu").manual_seed(21)
    torch.rand(3, device="tpu", generator=generator)
    copies = [generator.clone_state(), pickle.loads(pickle.dumps(generator)), torch.Generator("tpu")]
    copies[2].set_state(generator.get_state())
    want = torch.rand(7, device="tpu", generator=generator).cpu()
    for copied in copies:
        assert copied.device.type == "tpu"
        assert copied.initial_seed() == 21
        assert torch.equal(torch.rand(7, device="tpu", generator=copied).cpu(), want)
    with pytest.raises(RuntimeError, match="'tpu' device type for generator"):
        torch.rand(3, device="tpu", generator=torch.Generator())


def test_generators_are_a_devices_own(output):
    code = """
import torch
torch.manual_seed(3)
print(len(torch.tpu.default_generators), [g.device.index for g in torch.tpu.default_generators])
with torch.tpu.device(2):
    torch.tpu.manual_seed(8)
print([g.initial_seed() for g in torch.tpu.default_generators])
states = torch.tpu.get_rng_state_all()
a = [torch.rand(5, device=f"tpu:{i}").cpu() for i in range(4)]
print(torch.equal(a[0], a[1]), torch.equal(a[0], a[2]))
torch.tpu.set_rng_state(states[2], "tpu:3")
print(torch.equal(torch.rand(5, device="tpu:3").cpu(), a[2]), torch.tpu.get_rng_state(1).tolist() != states[1].tolist())
torch.tpu.set_rng_state_all(states)
with torch.random.fork_rng(devices=[0, 2], device_type="tpu"):
    for i in range(4):
        torch.rand(5, device=f"tpu:{i}")
print([torch.equal(torch.rand(5, device=f"tpu:{i}").cpu(), a[i]) for i in range(4)])
"""
    assert output(code, TORCH_TPU_NUM_DEVICES="4").splitlines() == [
        "4 [0, 1, 2, 3]",
        "[3, 3, 8, 3]",
        "True False",
        "True True",
        "[True, False, True, False]",
    ]
