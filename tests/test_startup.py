"""Being installed is harmless: whatever is wrong, `import torch` works, warns once, and the device says what to do."""

import pytest

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
