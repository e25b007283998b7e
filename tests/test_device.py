"""torch.tpu and torch.accelerator: which devices there are, which is current, and errors for those that are not."""

import importlib
import threading

import pytest
import torch


def test_names():
    x = torch.ones(2, device="tpu")
    assert x.is_tpu
    assert x.device == torch.device("tpu", 0)
    assert torch.ones(2).tpu().device.type == "tpu"
    assert torch.nn.Linear(2, 2).tpu().weight.device.type == "tpu"
    assert torch.get_device_module("tpu") is torch.tpu
    assert torch.accelerator.current_accelerator().type == "tpu"
    assert torch.accelerator.is_available()
    assert importlib.import_module("torch.tpu.memory") is torch.tpu.memory


def test_count_and_platform():
    assert torch.tpu.is_available()
    assert torch.tpu.device_count() == torch.accelerator.device_count() >= 1
    assert torch.tpu.platform() in ("cpu", "tpu")
    assert torch.tpu.platform_version()
    assert torch.tpu.is_initialized()
    properties = torch.tpu.get_device_properties()
    assert properties.name == torch.tpu.get_device_name("tpu:0")
    assert properties.total_memory >= 0
    major, minor = torch.tpu.get_device_capability()
    assert major >= 0
    assert minor == 0
    assert torch.tpu.is_bf16_supported()
    assert torch.bfloat16 in torch.tpu.get_amp_supported_dtype()


def test_several_devices(output):
    code = """
import torch
print(torch.tpu.device_count(), torch.tpu.current_device())
torch.tpu.set_device("tpu:1")
print(torch.ones(1, device="tpu").device, torch.accelerator.current_device_index())
with torch.tpu.device(0):
    print(torch.ones(1, device="tpu").device)
    with torch.tpu.device_of(torch.ones(1, device="tpu:1")):
        print(torch.tpu.current_device())
    with torch.tpu.device_of(torch.ones(1)):
        print(torch.tpu.current_device())
print(torch.tpu.current_device())
a, b = torch.ones(2, device="tpu:0"), torch.ones(2, device="tpu:1")
try:
    a + b
except RuntimeError as error:
    print("same device" in str(error))
print((a.to("tpu:1") + b).tolist())
"""
    want = ["2", "0", "tpu:1", "1", "tpu:0", "1", "0", "1", "True", "[2.0,", "2.0]"]
    assert output(code, TORCH_TPU_NUM_DEVICES="2").split() == want


def test_device_that_does_not_exist():
    count = torch.tpu.device_count()
    for use in (
        lambda: torch.tpu.set_device(count),
        lambda: torch.tpu.device(f"tpu:{count}"),
        lambda: torch.tpu.synchronize(count),
        lambda: torch.ones(1, device=f"tpu:{count}"),
        lambda: torch.ones(1).to(f"tpu:{count}"),
    ):
        with pytest.raises(RuntimeError, match="device"):
            use()
    assert torch.tpu.current_device() == 0
    with pytest.raises(ValueError, match="tpu device"):
        torch.tpu.set_device("cuda:0")
    with pytest.raises(TypeError, match=r"1\.5"):
        torch.tpu.set_device(1.5)


def test_negative_index_changes_nothing():
    with torch.tpu.device(-1):
        assert torch.tpu.current_device() == 0
    assert torch.tpu.exchange_device(-1) == -1


def test_mixed_devices_are_refused():
    x, y = torch.ones(2, 2, device="tpu"), torch.ones(2, 2)
    for use in (lambda: x + y, lambda: x @ y, lambda: torch.cat([x, y]), lambda: x.add_(y)):
        with pytest.raises(RuntimeError, match="same device"):
            use()
    assert x.tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert (x + torch.tensor(2.0)).tolist() == [[3.0, 3.0], [3.0, 3.0]]


def test_wrong_arguments_raise_what_the_cpu_raises():
    def cases(device):
        x = torch.ones(2, 3, device=device)
        return [
            lambda: x @ x,
            lambda: x + torch.ones(4, device=device),
            lambda: x[5],
            lambda: x.sum(7),
            lambda: x.view(4, 4),
            lambda: x.int().add_(0.5),
            lambda: torch.cat([x, torch.ones(3, 2, device=device)]),
        ]

    for on_tpu, on_cpu in zip(cases("tpu"), cases("cpu"), strict=True):
        with pytest.raises(Exception) as want:
            on_cpu()
        with pytest.raises(want.type) as got:
            on_tpu()
        assert str(got.value).split("\n")[0] == str(want.value).split("\n")[0]


def test_current_device_is_a_threads_own(output):
    code = """
import threading, torch
torch.tpu.set_device(1)
seen = []
thread = threading.Thread(target=lambda: seen.append(torch.tpu.current_device()))
thread.start(); thread.join()
print(seen, torch.tpu.current_device())
"""
    assert output(code, TORCH_TPU_NUM_DEVICES="2") == "[0] 1"


def test_backward_on_another_thread():
    x = torch.ones(3, device="tpu", requires_grad=True)
    thread = threading.Thread(target=lambda: (x * 2).sum().backward())
    thread.start()
    thread.join()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


def test_printing():
    assert repr(torch.ones(2, device="tpu")) == "tensor([1., 1.], device='tpu:0')"
    x = torch.ones(2, device="tpu", requires_grad=True)
    assert "grad_fn=<MulBackward0>" in repr(x * 2)
    assert repr(torch.zeros(0, 3, device="tpu")) == "tensor([], device='tpu:0', size=(0, 3))"
    before = torch.tpu.compile_stats()
    repr(torch.arange(7.0).to("tpu"))
    after = torch.tpu.compile_stats()
    assert before["compilations"] == after["compilations"]


def test_serialization(tmp_path):
    x = torch.arange(6.0).view(2, 3)
    torch.save({"x": x.to("tpu"), "row": x.to("tpu")[1]}, tmp_path / "x.pt")
    loaded = torch.load(tmp_path / "x.pt")
    assert loaded["x"].device.type == "tpu"
    assert torch.equal(loaded["x"].cpu(), x)
    on_cpu = torch.load(tmp_path / "x.pt", map_location="cpu")
    assert on_cpu["x"].device.type == "cpu"
    assert torch.equal(on_cpu["row"], x[1])


def test_four_devices_by_index(output):
    code = """
import torch
print(torch.tpu.device_count(), torch.accelerator.device_count())
a = torch.arange(4.0)
print([a.to(f"tpu:{i}").device.index for i in range(4)], a.tpu(2).device, a.to(3).device, a.to("tpu").device)
with torch.tpu.device("tpu:3"):
    print(a.tpu().device, torch.zeros(2, device="tpu").device, torch.nn.Linear(1, 1).tpu().weight.device)
with torch.accelerator.device_index(1):
    print(torch.tpu.current_device(), torch.empty(1, device="tpu").device)
chain = a
for i in (0, 3, 1, 2):
    chain = (chain.to(i) + i)
print(chain.device, chain.tolist() == (a + 6).tolist())
print(torch.tpu.can_device_access_peer(0, 3), torch.tpu.can_device_access_peer(1, 1))
tpu = torch.tpu
print([tpu.get_device_properties(i).id for i in range(4)], tpu.get_device_name(3) == tpu.get_device_name(0))
for i in range(4):
    torch.tpu.synchronize(i)
net = torch.nn.Linear(4, 4)
for i in (1, 3):
    net.to(i)
    print(net(a.to(i)).device)
print(torch.equal(net.weight.to(0).to(2).cpu(), net.weight.cpu()), repr(a.to(3)))
"""
    assert output(code, TORCH_TPU_NUM_DEVICES="4").splitlines() == [
        "4 4",
        "[0, 1, 2, 3] tpu:2 tpu:3 tpu:0",
        "tpu:3 tpu:3 tpu:3",
        "1 tpu:1",
        "tpu:2 True",
        "True False",
        "[0, 1, 2, 3] True",
        "tpu:1",
        "tpu:3",
        "True tensor([0., 1., 2., 3.], device='tpu:3')",
    ]


def test_waits_for_the_device_can_be_found():
    x = torch.arange(4.0, device="tpu")
    assert torch.tpu.get_sync_debug_mode() == 0
    try:
        for mode, code in (("warn", 1), ("error", 2), (0, 0), (2, 2)):
            torch.tpu.set_sync_debug_mode(mode)
            assert torch.tpu.get_sync_debug_mode() == code
        y = (x * 2)[1:].sum() + torch.ones((), device="tpu")  # nothing waits here
        for wait in (y.item, y.cpu, x.tolist, x.nonzero, lambda: bool(y > 0), lambda: x[x > 1]):
            with pytest.raises(RuntimeError, match="called a synchronizing tpu operation"):
                wait()
        torch.tpu.set_sync_debug_mode("warn")
        with pytest.warns(UserWarning, match=r"called a synchronizing tpu operation: item\(\)"):
            assert y.item() == 13.0
        with pytest.raises(RuntimeError, match="invalid value of debug_mode"):
            torch.tpu.set_sync_debug_mode("loud")
    finally:
        torch.tpu.set_sync_debug_mode("default")
    assert y.item() == 13.0
