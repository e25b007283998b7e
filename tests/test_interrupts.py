"""Ctrl-C: KeyboardInterrupt wherever the program waits, and interpreter and device go on."""

import pytest

from tests.faults.plugin import PATH, environment

pytestmark = pytest.mark.skipif(not PATH.exists(), reason="needs the fault-injecting plugin: run `make build`")

CHILD = """
import faulthandler, os, pathlib, signal, threading, time
import torch
from tests.faults.plugin import FaultPlugin

FOREVER_MS = 600_000
faulthandler.dump_traceback_later(100, exit=True)  # a wait that Ctrl-C does not end
signal.signal(signal.SIGINT, signal.default_int_handler)  # shells start background jobs with it ignored
plugin = FaultPlugin()
mode = torch.tpu.get_eager_mode()
x = torch.zeros(4, device="tpu")
known = torch.ones(3, device="tpu").requires_grad_()
(known * 2).sum().backward()
x.add_(1).sum().item()
torch.tpu.synchronize()

def loop():
    while True:
        x.add_(1)

def loop_of_reads():
    while True:
        x.add_(1).sum().item()

def read():
    torch.ones(2, 3, device="tpu").cos().cpu()

def item():
    torch.ones(2, 4, device="tpu").cos().sum().item()

def synchronize():
    waiting = torch.ones(2, 5, device="tpu").cos()
    torch.tpu.synchronize()

def statistics():
    waiting = torch.ones(2, 6, device="tpu").cos()
    torch.tpu.memory_allocated()

def queue_is_full():
    waiting = torch.ones(2, 7, device="tpu").cos()
    while True:
        x.add_(1)

def backward():
    (torch.ones(2, 8, device="tpu").cos().sum() * known).sum().backward()
    known.grad.cpu()

def debug_mode():
    torch.tpu.set_eager_mode(torch.tpu.EagerMode.DEBUG)
    torch.ones(2, 9, device="tpu").cos()

def nonzero():
    torch.ones(2, 10, device="tpu").cos().nonzero()

main_stat = pathlib.Path(f"/proc/self/task/{threading.get_native_id()}/stat")

def interrupt_when(busy):
    while not busy():
        time.sleep(0.001)
    os.kill(os.getpid(), signal.SIGINT)

def asleep():
    # The main thread sleeps, or wakes up for moments only.
    states = [time.sleep(0.002) or main_stat.read_text().rpartition(")")[2].split()[0] for _ in range(30)]
    return states.count("S") >= 28

for wait in (loop, loop_of_reads, read, item, synchronize, statistics, queue_is_full, backward, debug_mode, nonzero):
    compiles, executes = plugin.compiles(), plugin.executes()
    if wait in (loop, loop_of_reads):
        busy = lambda: plugin.executes() > executes + 10
    else:
        plugin.delay(compile_ms=FOREVER_MS)
        busy = lambda: plugin.compiles() > compiles and asleep()
    watcher = threading.Thread(target=interrupt_when, args=(busy,))
    try:
        watcher.start()
        wait()
        print(wait.__name__, "was not interrupted")
    except KeyboardInterrupt:
        pass
    watcher.join()
    plugin.clear()
    torch.tpu.set_eager_mode(mode)
    known.grad = None
    count = x[0].item()
    good = (
        count >= 1 and x.tolist() == [count] * 4
        and torch.allclose(torch.ones(2, 3, device="tpu").exp().cpu(), torch.ones(2, 3).exp())
        and x.add_(1).tolist() == [count + 1] * 4
    )
    print(wait.__name__, "good" if good else x)
"""


@pytest.mark.parametrize("mode", ["strict", "fuse"])
def test_ctrl_c_is_answered_wherever_the_program_waits(output, mode):
    lines = output(CHILD, **environment(TORCH_TPU_CACHE="0", TORCH_TPU_EAGER_MODE=mode)).splitlines()
    assert len(lines) == 10
    for line in lines:
        assert line.endswith(" good")
