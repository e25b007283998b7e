"""A process that used the device ends well, whatever is still alive then."""

import pytest

START = "import torch\nx = torch.arange(4.0, device='tpu', requires_grad=True)\n"

ENDINGS = {
    "after backward, graph alive": ("y = (x * 2).sum(); y.backward(retain_graph=True)", 0),
    "work in flight": ("y = torch.rand(7, 9, device='tpu').cumsum(0).softmax(1) @ torch.rand(9, 3, device='tpu')", 0),
    "streams, events, generators": (
        "kept = [torch.tpu.Stream(), torch.tpu.Event(enable_timing=True), torch.Generator('tpu')]\n"
        "kept[1].record(kept[0])",
        0,
    ),
    "pinned memory and snapshots": (
        "torch.tpu.memory._record_memory_history()\n"
        "kept = [x + 1, torch.ones(3).pin_memory(), torch.tpu.memory._snapshot()]",
        0,
    ),
    "a thread that never ends": (
        # idle: one that runs operators aborts PyTorch on the CPU just the same
        "import threading\n"
        "started = threading.Event()\n"
        "def work():\n"
        "    y = x.detach() + 1\n"
        "    started.set()\n"
        "    threading.Event().wait()\n"
        "threading.Thread(target=work, daemon=True).start()\n"
        "started.wait(60)",
        0,
    ),
    "a thread that outlives the main one": (
        "import threading, time\n"
        "def work():\n"
        "    threading.main_thread().join()\n"
        "    print('late', (x.detach() + 1).sum().item(), flush=True)\n"
        "threading.Thread(target=work).start()",
        0,
    ),
    "an exception": ("raise SystemExit(7)", 7),
    "an atexit function": ("import atexit\natexit.register(lambda: print('late', (x + 1).sum().item()))", 0),
    "a cycle with __del__": (
        "class Holder:\n    def __del__(self):\n        self.x.add_(1).sum()\nh = Holder(); h.me = h; h.x = x.detach()",
        0,
    ),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_process_ends_well(python, ending):
    code, status = ENDINGS[ending]
    done = python(START + code)
    assert done.returncode == status, done.stderr[-2000:]
    assert not done.stderr.strip(), done.stderr[-2000:]
    if "late" in code:
        assert done.stdout.strip() == "late 10.0"


@pytest.mark.parametrize("mode", ["strict", "fuse"])
def test_an_atexit_function_of_before_the_import(output, mode):
    # It runs after the engine has ended its threads: what it needs is compiled where it is called.
    code = """
import atexit
@atexit.register
def last():
    print((torch.ones(3, device="tpu") * 5 - x).tolist(), x.exp().sum().item() > 3)
import torch
x = torch.ones(3, device="tpu")
torch.ones(2, 2, device="tpu").cos()
"""
    assert output(code, TORCH_TPU_EAGER_MODE=mode, TORCH_TPU_CACHE="0") == "[4.0, 4.0, 4.0] True"
