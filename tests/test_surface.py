"""torch.cuda's names on the device: each is there with the same parameters, or listed with a reason."""

import importlib
import inspect
import pathlib
import re
import types

import pytest
import torch

from torch_tpu.tpu._absent import ABSENT, ABSENT_OF_TORCH_TPU

ROOT = pathlib.Path(__file__).resolve().parent.parent


def public_names(module):
    named = getattr(module, "__all__", None)
    if named is not None:
        return sorted(named)
    own = (name for name, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__)
    return sorted(name for name in own if not name.startswith("_"))


def cuda_modules():
    """torch.cuda and its public submodules that torch.tpu has as well."""
    return ["", *(name for name in CUDA_SUBMODULES if name not in ABSENT)]


CUDA_SUBMODULES = [
    *("amp", "comm", "gds", "graphs", "green_contexts", "jiterator", "memory"),
    *("nccl", "nvtx", "profiler", "random", "sparse", "streams", "tunable"),
]


def counterpart(path):
    cuda = importlib.import_module(f"torch.cuda.{path}" if path else "torch.cuda")
    tpu = getattr(torch.tpu, path) if path else torch.tpu
    return cuda, tpu


def test_every_name_is_there_or_has_a_reason():
    missing, both = [], []
    for path in cuda_modules():
        cuda, tpu = counterpart(path)
        for name in public_names(cuda):
            if hasattr(tpu, name) == (name in ABSENT):
                (both if name in ABSENT else missing).append(f"{path}.{name}".lstrip("."))
    assert not missing, f"neither in torch.tpu nor in torch_tpu/tpu/_absent.py: {missing}"
    assert not both, f"in torch.tpu and listed as absent: {both}"


def test_absent_names_are_torch_cudas_and_say_why():
    cuda = {name for path in cuda_modules() for name in public_names(counterpart(path)[0])} | set(CUDA_SUBMODULES)
    assert set(ABSENT) <= cuda
    for name, reason in {**ABSENT, **ABSENT_OF_TORCH_TPU}.items():
        with pytest.raises(AttributeError, match=re.escape(reason)):
            getattr(torch.tpu, name)
    with pytest.raises(AttributeError, match=r"has no attribute 'nothing_of_the_kind'$"):
        torch.tpu.nothing_of_the_kind
    with pytest.raises(AttributeError, match="no allocator"):
        torch.tpu.memory.caching_allocator_alloc


def parameters(function):
    return list(inspect.signature(function).parameters.values())


def comparable():
    for path in cuda_modules():
        cuda, tpu = counterpart(path)
        for name in public_names(cuda):
            function = getattr(cuda, name)
            if name in ABSENT or isinstance(function, types.ModuleType) or not callable(function):
                continue
            try:
                inspect.signature(function)
            except ValueError:
                continue  # C++ types: the tensor types
            yield f"{path}.{name}".lstrip("."), function, getattr(tpu, name)


@pytest.mark.parametrize(("name", "cuda", "tpu"), [pytest.param(*case, id=case[0]) for case in comparable()])
def test_parameters(name, cuda, tpu):
    want, got = parameters(cuda), parameters(tpu)
    if name.endswith("Storage"):
        assert [p.name for p in got] == [p.name for p in want]
        return
    shared = got[: len(want)]
    assert [p.name for p in shared] == [p.name for p in want]
    assert [p.kind for p in shared] == [p.kind for p in want]
    for mine, theirs in zip(shared, want, strict=True):
        if theirs.default == "cuda":
            assert mine.default == "tpu"
        else:
            assert mine.default == theirs.default, mine.name
    assert all(p.default is not inspect.Parameter.empty for p in got[len(want) :]), "new parameters need defaults"


def test_names_of_the_torch_tpu_package():
    here = """EagerMode Event Precision Stream allow_excess_precision compiler current_device current_stream
        default_generators default_stream device device_count device_of eager_mode get_amp_supported_dtype
        get_device_name get_device_properties get_rng_state initial_seed is_available is_initialized manual_seed
        manual_seed_all precision set_device set_eager_mode set_rng_state set_stream stream synchronize"""
    assert not [name for name in here.split() if not hasattr(torch.tpu, name)]
    assert {mode.name for mode in torch.tpu.Precision} == {"DEFAULT", "HIGH", "HIGHEST"}
    assert list(inspect.signature(torch.tpu.compiler.custom_compiler_options).parameters) == ["options"]


def test_methods_of_streams_and_events():
    for cuda, tpu in (
        (torch.cuda.Stream, torch.tpu.Stream()),
        (torch.cuda.Event, torch.tpu.Event()),
    ):
        theirs = {name for name in vars(cuda) if not name.startswith("_")}
        assert not {name for name in theirs if not hasattr(tpu, name)}
    assert torch.tpu.Stream.priority_range() == (0, 0)


def test_the_documentation_lists_what_is_absent():
    page = (ROOT / "docs" / "from-cuda.md").read_text()
    rows = [
        dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", part, re.MULTILINE)) for part in re.split(r"^## ", page, flags=re.M)
    ]
    assert ABSENT in rows
    assert ABSENT_OF_TORCH_TPU in rows


def test_constants_and_errors():
    assert torch.tpu.has_half
    assert not torch.tpu.has_magma
    assert not torch.tpu.is_tf32_supported()
    assert torch.tpu.OutOfMemoryError is torch.OutOfMemoryError
    assert not torch.tpu.is_current_stream_capturing()
    torch.tpu.ipc_collect()


@pytest.mark.parametrize(
    "name", ["Float", "Half", "BFloat16", "Double", "Int", "Long", "Short", "Char", "Byte", "Bool"]
)
def test_tensor_types(name):
    kind, on_cpu = getattr(torch.tpu, f"{name}Tensor"), getattr(torch, f"{name}Tensor")
    x = kind([1, 0])
    assert isinstance(x, kind)
    assert x.tolist() == on_cpu([1, 0]).tolist()
    assert x.type() == f"torch.tpu.{name}Tensor"
    assert not isinstance(on_cpu([1, 0]), kind)
    assert kind(2, 3).shape == (2, 3)
    assert kind().shape == (0,)
    moved = on_cpu([1, 0]).type(kind)
    assert isinstance(moved, kind)
    assert torch.equal(moved, x)


def test_storage_types():
    storage = torch.arange(3.0, device="tpu").storage()
    assert isinstance(storage, torch.tpu.FloatStorage)
    assert not isinstance(storage, torch.tpu.HalfStorage)
    assert not isinstance(torch.arange(3.0).storage(), torch.tpu.FloatStorage)
    made = torch.tpu.FloatStorage([1.0, 2.0])
    assert made.device.type == "tpu"
    assert made.tolist() == [1.0, 2.0]
    with pytest.raises(RuntimeError, match="Not available for tpu storage"):
        torch.tpu.FloatStorage.from_buffer(b"")


def test_names_of_tensors_modules_and_storages():
    assert torch.ones(2).tpu().is_tpu
    assert torch.ones(2).tpu(0, non_blocking=True).device == torch.device("tpu", 0)
    assert not torch.ones(2).is_tpu
    net = torch.nn.Linear(2, 2)
    assert net.tpu() is net
    assert net.weight.is_tpu
    packed = torch.nn.utils.rnn.pack_sequence([torch.ones(3, 2), torch.ones(2, 2)]).tpu()
    assert packed.is_tpu
    assert packed.data.device.type == "tpu"
    storage = torch.arange(2.0).untyped_storage().tpu()
    assert storage.is_tpu
    assert storage.tolist() == torch.arange(2.0).untyped_storage().tolist()
    assert torch.arange(2.0, device="tpu").storage().is_tpu


def test_data_parallel(output):
    code = """
import torch
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.ReLU(), torch.nn.Linear(4, 2)).eval()
x = torch.randn(6, 3)
net(x).square().sum().backward()
want = [p.grad.clone() for p in net.parameters()]
net.zero_grad()
net.to("tpu")
parallel = torch.nn.DataParallel(net)
out = parallel(x)  # from the CPU, in the background streams
print(parallel.device_ids, out.device, out.shape)
out.square().sum().backward()
torch.testing.assert_close([p.grad.cpu() for p in net.parameters()], want)
parts = torch.tpu.comm.scatter(x.to("tpu"), [0, 1], dim=0)
print([p.device.index for p in parts], torch.equal(torch.tpu.comm.gather(parts, 0, "cpu"), x))
print([t.device.index for t in torch.tpu.comm.broadcast(x.to("tpu"), [0, 1])])
print(torch.equal(torch.tpu.comm.reduce_add([x.to("tpu:0"), x.to("tpu:1")], 1).cpu(), x + x))
"""
    assert output(code, TORCH_TPU_NUM_DEVICES="2").splitlines() == [
        "[0, 1] tpu:0 torch.Size([6, 2])",
        "[0, 1] True",
        "[0, 1]",
        "True",
    ]
