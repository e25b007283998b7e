"""Copies, pickles, files, conversions and printing: what other parts of PyTorch do with our tensors."""

import copy
import io
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
import safetensors.torch as safetensors
import torch
from torch import nn

TPU = torch.device("tpu", 0)


def same(a, b):
    return a.untyped_storage()._cdata == b.untyped_storage()._cdata


def shared():
    x = torch.arange(12.0).view(3, 4).to("tpu")
    return {"x": x, "row": x[1], "turned": x.t(), "number": x[2, 3]}


def check_shared(parts, device):
    assert all(t.device.type == device for t in parts.values())
    assert parts["row"].tolist() == [4.0, 5.0, 6.0, 7.0]
    assert parts["turned"].stride() == (1, 4)
    assert parts["number"].item() == 11.0
    parts["row"].mul_(2)
    assert parts["x"].tolist() == [[0.0, 1.0, 2.0, 3.0], [8.0, 10.0, 12.0, 14.0], [8.0, 9.0, 10.0, 11.0]]
    assert parts["turned"][0].tolist() == [0.0, 8.0, 8.0]
    assert same(parts["x"], parts["row"])


def test_deepcopy_keeps_views_together():
    parts = shared()
    copied = copy.deepcopy(parts)
    check_shared(copied, "tpu")
    assert parts["row"].tolist() == [4.0, 5.0, 6.0, 7.0]
    model = nn.Linear(3, 3).to("tpu")
    twin = copy.deepcopy(model)
    assert torch.equal(twin.weight, model.weight)
    assert not same(twin.weight, model.weight)


def test_pickle():
    parts = pickle.loads(pickle.dumps(shared()))  # each with a storage of its own, as on the CPU
    for name, value in shared().items():
        assert torch.equal(parts[name], value), name
        assert parts[name].device == TPU
        assert parts[name].stride() == value.stride()
    whole = pickle.loads(pickle.dumps(torch.arange(3, device="tpu")))
    assert whole.device == TPU
    assert whole.tolist() == [0, 1, 2]


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("target", [None, "cpu", "tpu:0", {"tpu:0": "cpu"}])
def test_save_and_load(zipped, target):
    file = io.BytesIO()
    torch.save(shared(), file, _use_new_zipfile_serialization=zipped)
    file.seek(0)
    check_shared(torch.load(file, map_location=target), "cpu" if target in ("cpu", {"tpu:0": "cpu"}) else "tpu")


READ_WITHOUT_THE_BACKEND = """
import sys, torch
try:
    torch.load(sys.argv[1])
except Exception as error:
    print(type(error).__name__, "map_location" in str(error) or "tpu" in str(error))
for weights_only in (True, False):
    saved = torch.load(sys.argv[1], map_location="cpu", weights_only=weights_only)
    assert hasattr(torch, "tpu") is False
    model, optimizer = saved["model"], saved["optimizer"]
    net = torch.nn.Linear(3, 2)
    net.load_state_dict(model)
    print(torch.equal(net.weight, saved["want"]), type(saved["parameter"]).__name__, saved["parameter"].requires_grad)
    print(saved["row"].tolist(), saved["row"].untyped_storage().data_ptr() == saved["x"].untyped_storage().data_ptr())
    print(saved["half"].dtype, sorted(optimizer["state"][0]), optimizer["state"][0]["exp_avg"].device)
"""


def test_files_are_readable_where_the_backend_is_absent(tmp_path):
    net = nn.Linear(3, 2).to("tpu")
    optimizer = torch.optim.AdamW(net.parameters())
    net(torch.ones(1, 3, device="tpu")).sum().backward()
    optimizer.step()
    x = torch.arange(6.0).view(2, 3).to("tpu")
    torch.save(
        {
            "model": net.state_dict(),
            "optimizer": optimizer.state_dict(),
            "parameter": nn.Parameter(x),
            "want": net.weight.detach().cpu(),
            "x": x,
            "row": x[1],
            "half": x.bfloat16(),
        },
        tmp_path / "saved.pt",
    )
    done = subprocess.run(
        [sys.executable, "-c", READ_WITHOUT_THE_BACKEND, str(tmp_path / "saved.pt")],
        env={**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    lines = done.stdout.splitlines()
    assert lines[0] == "RuntimeError True"
    assert lines[1:4] == lines[4:7]
    assert lines[1:4] == [
        "True Parameter True",
        "[3.0, 4.0, 5.0] True",
        "torch.bfloat16 ['exp_avg', 'exp_avg_sq', 'step'] cpu",
    ]


def test_files_from_a_device_that_is_not_here(output, tmp_path):
    path = tmp_path / "x.pt"
    save = f"import torch; torch.save(torch.arange(3.0, device='tpu:1'), {str(path)!r})"
    output(save, TORCH_TPU_NUM_DEVICES="2")
    with pytest.raises(RuntimeError, match="map_location"):
        torch.load(path)
    assert torch.load(path, map_location="tpu").tolist() == [0.0, 1.0, 2.0]
    assert torch.load(path, map_location={"tpu:1": "tpu:0"}).device == TPU
    assert torch.load(path, map_location=lambda storage, location: storage).device.type == "cpu"
    assert torch.load(path, map_location="cpu", mmap=True).tolist() == [0.0, 1.0, 2.0]


def test_load_from_cpu_to_the_device():
    file = io.BytesIO()
    x = torch.arange(12.0).view(3, 4)
    torch.save({"x": x, "row": x[1], "turned": x.t(), "number": x[2, 3]}, file)
    file.seek(0)
    check_shared(torch.load(file, map_location="tpu"), "tpu")


def test_state_dict_round_trip_between_devices():
    on_tpu = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)).to("tpu")
    on_cpu = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    on_cpu.load_state_dict(on_tpu.state_dict())
    for name, value in on_cpu.state_dict().items():
        assert torch.equal(value, on_tpu.state_dict()[name].cpu()), name
    on_tpu.load_state_dict(on_cpu.state_dict(), assign=False)
    assert on_tpu[0].weight.device == TPU


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(5, 4)
        self.head = nn.Linear(4, 5, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, x):
        return self.head(self.embed(x))


def test_moving_a_module_keeps_ties_and_the_optimizer():
    model = Tied()
    weight = model.embed.weight
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    want = copy.deepcopy(model)
    model.to("tpu")
    assert model.embed.weight is weight
    assert model.head.weight is weight
    x = torch.tensor([1, 2])
    for net, inputs in ((model, x.to("tpu")), (want, x)):
        net(inputs).square().sum().backward()
    optimizer.step()
    torch.optim.SGD(want.parameters(), lr=0.5).step()
    torch.testing.assert_close(model.embed.weight.cpu(), want.embed.weight)
    model.cpu()
    assert model.head.weight is weight
    assert weight.device.type == "cpu"
    model.to("tpu").bfloat16()
    assert model.head.weight is model.embed.weight
    assert weight.dtype is torch.bfloat16


def test_conversions_on_the_cpu_go_pytorchs_own_way(output):
    code = """
import torch, weakref
assert not torch.__future__.get_swap_module_params_on_conversion()
m = torch.nn.Linear(2, 2)
kept = weakref.ref(m.weight)  # swapping would refuse
m.double().load_state_dict({"weight": torch.ones(2, 2), "bias": torch.zeros(2)})
assert kept() is m.weight and m.weight.tolist() == [[1.0, 1.0], [1.0, 1.0]]
m.share_memory()
del kept
weight = m.weight
m.to("tpu").load_state_dict({"weight": torch.ones(2, 2) * 3, "bias": torch.zeros(2)})
assert m.weight is weight and weight.tolist() == [[3.0, 3.0], [3.0, 3.0]]
assert not torch.__future__.get_swap_module_params_on_conversion()
print("fine")
"""
    assert output(code) == "fine"


class Scripted(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
        self.second.weight = self.first.weight
        self.register_buffer("scale", torch.full((4,), 2.0))

    def forward(self, x):
        return self.second(self.first(x)) * self.scale


def test_moving_a_scripted_module_keeps_ties_buffers_and_gradients():
    cpu, tpu = torch.jit.script(Scripted()), torch.jit.script(Scripted())
    tpu.load_state_dict(cpu.state_dict())
    x = torch.randn(3, 4)
    for module in (cpu, tpu):
        module(x).sum().backward()
    tpu = tpu.to("tpu")
    assert {t.device.type for t in [*tpu.parameters(), *tpu.buffers()]} == {"tpu"}
    torch.testing.assert_close(tpu(x.to("tpu")).cpu(), cpu(x))
    torch.testing.assert_close(tpu.first.weight.grad.cpu(), cpu.first.weight.grad)
    with torch.no_grad():
        tpu.first.weight.zero_()
    assert tpu.second.weight.abs().sum().item() == 0  # still tied
    back = tpu.to("cpu")
    torch.testing.assert_close(back(x), cpu.second.bias.expand(3, 4) * 2)
    assert {p.dtype for p in tpu.double().parameters()} == {torch.float64}


def test_swap_tensors():
    a, b = torch.ones(2, device="tpu"), torch.zeros(3)
    torch.utils.swap_tensors(a, b)
    assert a.device.type == "cpu"
    assert b.tolist() == [1.0, 1.0]
    b.add_(1)
    assert b.tolist() == [2.0, 2.0]


def test_storages():
    x = torch.arange(4, dtype=torch.int32, device="tpu")
    storage = x.untyped_storage()
    assert storage.device == TPU
    assert storage.nbytes() == 16
    assert bytes(storage.cpu().tolist()) == np.arange(4, dtype=np.int32).tobytes()
    assert storage.clone().device == TPU
    other = torch.empty(4, dtype=torch.int32, device="tpu")
    other.untyped_storage().copy_(storage)
    assert other.tolist() == [0, 1, 2, 3]


def test_host_memory_is_refused_in_one_sentence():
    x = torch.ones(2, device="tpu")
    with pytest.raises(TypeError, match=r"can't convert tpu:0 device type tensor to numpy"):
        x.numpy()
    with pytest.raises(TypeError, match="numpy"):
        np.asarray(x)
    with pytest.raises((BufferError, ValueError, RuntimeError), match=r"tpu.*\.cpu\(\)") as refused:
        torch.utils.dlpack.to_dlpack(x)
    assert len(str(refused.value).strip().splitlines()) == 1
    with pytest.raises((BufferError, ValueError, RuntimeError), match=r"tpu.*\.cpu\(\)"):
        np.from_dlpack(x)
    with pytest.raises((BufferError, ValueError, RuntimeError), match=r"tpu.*\.cpu\(\)"):
        x.__dlpack__()
    assert np.from_dlpack(x, device="cpu").tolist() == [1.0, 1.0]
    assert torch.from_dlpack(torch.ones(2)).tolist() == [1.0, 1.0]


def test_numpy_in_and_out():
    x = torch.from_numpy(np.arange(6, dtype=np.int16).reshape(2, 3)).to("tpu")
    assert x.cpu().numpy().tolist() == [[0, 1, 2], [3, 4, 5]]
    assert torch.as_tensor(np.float32([1, 2]), device="tpu").tolist() == [1.0, 2.0]
    assert torch.tensor([[True], [False]], device="tpu").tolist() == [[True], [False]]
    assert torch.tensor([1 + 2j], device="tpu").tolist() == [1 + 2j]


PRINTED = {
    "whole floats": lambda: torch.arange(4.0),
    "fractions": lambda: torch.tensor([[0.5, -1.25], [1e-6, 3e5]]),
    "not finite": lambda: torch.tensor([float("nan"), float("inf"), -1.0]),
    "integers": lambda: torch.tensor([[1, -200], [3, 4]]),
    "bool": lambda: torch.tensor([True, False]),
    "uint8": lambda: torch.tensor([1, 255], dtype=torch.uint8),
    "bfloat16": lambda: torch.tensor([1.5, -2.0], dtype=torch.bfloat16),
    "float16": lambda: torch.tensor([1.5, -2.0], dtype=torch.float16),
    "float64": lambda: torch.tensor([1.5, -2.0], dtype=torch.float64),
    "complex": lambda: torch.tensor([1 + 2j, -3j]),
    "empty": lambda: torch.zeros(0, 3),
    "one number": lambda: torch.tensor(3.5),
    "large": lambda: torch.arange(5000.0).view(50, 100),
    "a view": lambda: torch.arange(24).view(2, 3, 4)[:, ::2].transpose(0, 2),
    "requires_grad": lambda: torch.ones(2, requires_grad=True),
    "parameter": lambda: nn.Parameter(torch.ones(2)),
}


@pytest.mark.parametrize("what", PRINTED)
def test_printing(what):
    x = PRINTED[what]()
    on_tpu = x.detach().to("tpu").requires_grad_(x.requires_grad)
    if isinstance(x, nn.Parameter):
        on_tpu = nn.Parameter(on_tpu.detach())

    def plain(text):
        return "".join(text.replace("device='tpu:0'", "").replace(",", "").split())

    assert "device='tpu:0'" in repr(on_tpu)
    assert plain(repr(on_tpu)) == plain(repr(x))
    if x.numel() == 1:
        assert f"{on_tpu:.2f}" == f"{x:.2f}"


def test_printing_a_result_names_its_function():
    x = torch.ones(2, device="tpu", requires_grad=True)
    assert "grad_fn=<MulBackward0>" in repr(x * 2)
    assert str(nn.Linear(2, 3).to("tpu")) == str(nn.Linear(2, 3))


def test_non_blocking_copies():
    x = torch.arange(1000.0)
    y = x.to("tpu", non_blocking=True)
    x.zero_()
    assert y.sum().item() == 499500.0
    back = y.to("cpu", non_blocking=True)
    torch.tpu.synchronize()
    assert back.sum().item() == 499500.0


def test_safetensors(tmp_path):
    x = torch.arange(6.0).view(2, 3)
    half = x.to(torch.bfloat16)
    safetensors.save_file({"x": x.to("tpu"), "half": half.to("tpu")}, tmp_path / "x.safetensors")
    loaded = safetensors.load_file(tmp_path / "x.safetensors")
    assert torch.equal(loaded["x"], x)
    assert torch.equal(loaded["half"], half)
    assert torch.equal(safetensors.load(safetensors.save({"x": x.to("tpu")}))["x"], x)
    on_tpu = {name: value.to("tpu") for name, value in loaded.items()}
    assert torch.equal(on_tpu["half"].cpu(), half)
    model = nn.Linear(3, 2).to("tpu")
    safetensors.save_model(model, tmp_path / "model.safetensors")
    other = nn.Linear(3, 2).to("tpu")
    safetensors.load_model(other, tmp_path / "model.safetensors")
    assert torch.equal(other.weight, model.weight)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.int8, torch.bool])
def test_dtypes_travel_both_ways(dtype):
    x = torch.tensor([0, 1, 2, 3, 100]).to(dtype)
    assert torch.equal(x.to("tpu").cpu(), x)
    assert torch.equal(x.to("tpu", torch.float32).cpu(), x.float())
    assert torch.equal(x.to("tpu").to("cpu", torch.float64), x.double())
    strided = torch.arange(24).view(2, 3, 4).to(dtype)[:, 1:, ::2].transpose(0, 2)
    assert torch.equal(strided.to("tpu").cpu(), strided)
