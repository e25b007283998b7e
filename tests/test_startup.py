"""Being installed is harmless: whatever is wrong, `import torch` works, warns once, and the device says what to do."""

import os
import pathlib
import subprocess
import sys

import pytest
import torch

from tests.faults.plugin import PATH, environment

USE = """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import torch
texts = [str(w.message) for w in caught if "tpu" in str(w.message)]
print(len(texts), torch.ones(2).sum().item())
torch.manual_seed(1)
print(torch.tpu.is_available(), torch.tpu.device_count())
for use in (lambda: torch.ones(2, device="tpu"), lambda: torch.ones(2).to("tpu")):
    try:
        use()
    except Exception as error:
        print(type(error).__name__, error)
"""


def test_import_starts_nothing(output):
    text = output(
        "import sys, torch; print(torch.tpu.is_initialized(), 'torch._dynamo' in sys.modules, 'sympy' in sys.modules)\n"
        "torch.manual_seed(0); print(torch.tpu.is_available(), torch.tpu.is_initialized())"
    )
    assert text.split() == ["False", "False", "False", "True", "False"]


def test_import_in_either_order_and_without_autoload(output):
    works = "; print(torch.ones(2, device='tpu').sum().item())"
    assert output("import torch_tpu, torch" + works) == "2.0"
    assert output("import torch, torch_tpu" + works) == "2.0"
    assert output("import torch, torch_tpu" + works, TORCH_DEVICE_BACKEND_AUTOLOAD="0") == "2.0"
    assert output("import torch; print(hasattr(torch, 'tpu'))", TORCH_DEVICE_BACKEND_AUTOLOAD="0") == "False"


@pytest.mark.parametrize(
    ("variable", "value", "kind", "words"),
    [
        ("TORCH_TPU_EAGER_MODE", "nonsense", "ValueError", ("nonsense", "strict", "debug", "fuse")),
    ],
)
def test_bad_mode_in_environment(output, variable, value, kind, words):
    lines = output(USE, **{variable: value}).splitlines()
    assert lines[0] == "1 2.0"
    assert lines[1] == "False 0"
    assert len(lines) == 4
    for line in lines[2:]:
        assert line.startswith(kind)
        assert all(word in line for word in words), line


def test_missing_plugin_is_one_sentence_at_first_use(output):
    lines = output(USE, TORCH_TPU_PJRT_PLUGIN="/nowhere/plugin.so").splitlines()
    assert lines[0].endswith("2.0")
    errors = lines[2:]
    assert len(errors) == 2, errors
    assert all(line.startswith("RuntimeError") and "/nowhere/plugin.so" in line for line in errors)


def test_warnings_as_errors_do_not_break_import(output):
    code = "import warnings; warnings.simplefilter('error'); import torch; print(torch.ones(1).item())"
    assert output(code, TORCH_TPU_EAGER_MODE="nonsense") == "1.0"


def test_other_torch_and_the_other_package_are_named(output):
    code = """
import importlib.metadata, warnings
warnings.simplefilter("ignore")
original = importlib.metadata.version
importlib.metadata.version = lambda name: "0.2.0" if name == "torch-tpu" else original(name)
import torch
try:
    torch.ones(1, device="tpu")
except RuntimeError as error:
    print(error)
"""
    assert "pip uninstall torch-tpu" in output(code)


def test_module_conversion_keeps_ties_and_optimizers():
    import torch
    from torch import nn

    module = nn.ModuleDict({"a": nn.Linear(3, 3), "b": nn.Linear(3, 3)})
    module["b"].weight = module["a"].weight
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    module.to("tpu")
    assert module["b"].weight is module["a"].weight
    assert all(p is q for p, q in zip(optimizer.param_groups[0]["params"], module.parameters(), strict=True))
    assert module["a"].weight.device.type == "tpu"


def test_process_ends_well_after_backward(python):
    code = """
import torch
x = torch.ones(4, device="tpu", requires_grad=True)
(x * x).sum().backward()
print(x.grad.cpu().tolist())
"""
    for _ in range(3):
        done = python(code)
        assert done.returncode == 0, done.stderr[-2000:]
        assert done.stdout.strip() == "[2.0, 2.0, 2.0, 2.0]"


CPU_PROGRAM = """
torch.manual_seed(3)
net = torch.nn.Linear(3, 2)
optimizer = torch.optim.AdamW(net.parameters(), lr=0.1)
net(torch.rand(4, 3)).sum().backward()
optimizer.step()
batch = next(iter(torch.utils.data.DataLoader(torch.rand(4, 3), batch_size=2)))
print([round(v, 4) for v in net(batch).flatten().tolist()])
"""


@pytest.fixture(scope="module")
def cpu_values():
    """What the CPU program prints where torchtpu is not loaded at all."""
    env = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    done = subprocess.run([sys.executable, "-c", "import torch" + CPU_PROGRAM], env=env, capture_output=True, text=True)
    return done.stdout.strip()


def assert_only_the_device_fails(text, cpu_values, *words, kind="RuntimeError"):
    """`text` is what USE and CPU_PROGRAM printed: the device is refused in one sentence, the CPU's values are right."""
    lines = text.splitlines()
    assert lines[0].split()[1] == "2.0"
    first, second = lines[2:-1]
    assert first == second
    assert first.startswith(kind)
    assert len(first) < 400
    for word in words:
        assert word in first, first
    assert lines[-1] == cpu_values


@pytest.mark.parametrize(
    ("breaks", "words"),
    [
        ("text", ["cannot load the PJRT plugin"]),
        ("empty", ["cannot load the PJRT plugin"]),
        ("directory", ["not a file"]),
        ("library", ["not a PJRT plugin", "GetPjrtApi"]),
        ("table", ["GetPjrtApi", "nothing"]),
        ("version", ["PJRT version", "install a matching plugin"]),
        ("size", ["PJRT version", "install a matching plugin"]),
        ("initialize", ["cannot initialise the PJRT plugin", "the plugin does not start"]),
        ("client", ["cannot start the PJRT plugin", "there is no client"]),
    ],
)
def test_broken_plugin(output, tmp_path, cpu_values, breaks, words):
    path, env = tmp_path / "plugin.so", {}
    if breaks == "text":
        path.write_text("not a library\n")
    elif breaks == "empty":
        path.touch()
    elif breaks == "directory":
        path.mkdir()
    elif breaks == "library":
        path = pathlib.Path(torch.__file__).parent / "lib" / "libtorch_global_deps.so"
    else:
        if not PATH.exists():
            pytest.skip("needs the fault-injecting plugin: run `make build`")
        path, env = PATH, environment(FAULT_PLUGIN_BREAKS=breaks)
    text = output(USE + CPU_PROGRAM, **{**env, "TORCH_TPU_PJRT_PLUGIN": str(path)})
    assert_only_the_device_fails(text, cpu_values, *words)


def test_no_plugin_is_installed(output, cpu_values):
    hide = """
import importlib.util
original = importlib.util.find_spec
hidden = ("xla_plugins", "libtpu")
importlib.util.find_spec = lambda name, *rest: None if name.startswith(hidden) else original(name, *rest)
"""
    text = output(hide + USE + CPU_PROGRAM, TORCH_TPU_PJRT_PLUGIN=None, TPU_LIBRARY_PATH=None)
    assert_only_the_device_fails(text, cpu_values, "pip install")


@pytest.mark.parametrize("version", ["2.12.1", "2.14.0+cpu", "3.0.0a0+git123"])
def test_another_torch_is_named(output, cpu_values, version):
    pretend = f"""
import importlib.metadata
original = importlib.metadata.EntryPoint.load
def load(entry_point):
    import torch
    torch.__version__ = {version!r}
    return original(entry_point)
importlib.metadata.EntryPoint.load = load
"""
    text = output(pretend + USE + CPU_PROGRAM)
    assert text.startswith("1 ")  # warned about once
    assert_only_the_device_fails(text, cpu_values, "2.13", version, "pip install")


def test_an_extension_that_does_not_load(output, cpu_values):
    text = output("import sys; sys.modules['torch_tpu._C'] = None" + USE + CPU_PROGRAM)
    assert text.startswith("1 ")
    assert_only_the_device_fails(text, cpu_values, "extension module", "reinstall")
