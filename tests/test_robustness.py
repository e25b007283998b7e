"""Processes, threads, signals, several devices, and a program cache that others use or break."""

import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import pytest
import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent


def test_threads_meet_the_same_new_program():
    results, gate = [], threading.Barrier(4)

    def work():
        x = torch.arange(35.0, device="tpu").view(5, 7)
        gate.wait()
        results.append((x.cumsum(1) + 3).sum().item())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert results == [results[0]] * 4
    assert results[0] == (torch.arange(35.0).view(5, 7).cumsum(1) + 3).sum().item()


def test_keyboard_interrupt_in_a_loop():
    code = """
import signal, torch
signal.signal(signal.SIGINT, signal.default_int_handler)  # shells start background jobs with it ignored
x = torch.ones(4, device="tpu")
print("ready", flush=True)
try:
    while True:
        x.mul_(1).sum().item()
except KeyboardInterrupt:
    print("interrupted", x.tolist(), flush=True)
"""
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert child.stdout.readline().strip() == "ready"
    time.sleep(0.3)
    child.send_signal(signal.SIGINT)
    out, _ = child.communicate(timeout=60)
    assert out.strip() == "interrupted [1.0, 1.0, 1.0, 1.0]"
    assert child.returncode == 0


def test_exit_right_after_a_backward(tmp_path):
    code = """
import torch
net = torch.nn.Linear(3, 3).to("tpu")
net(torch.ones(2, 3, device="tpu")).sum().backward()
"""
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    for _ in range(10):
        pair = [subprocess.Popen([sys.executable, "-c", code], env=env, cwd=ROOT) for _ in range(2)]
        assert [child.wait(60) for child in pair] == [0, 0]


def test_forked_children_are_refused(output):
    code = """
import os, sys, torch
x = torch.ones(2, device="tpu")
child = os.fork()
if child == 0:
    print((torch.ones(2) + 1).tolist())  # the CPU goes on working
    for use in (lambda: torch.ones(2, device="tpu"), lambda: x + 1, lambda: x.cpu()):
        try:
            use()
            print("no error")
        except RuntimeError as error:
            print("fork" in str(error) and "spawn" in str(error))
    sys.stdout.flush()
    os._exit(0)
status = os.waitpid(child, 0)[1]
print(status, (x + 1).tolist())
"""
    assert output(code).splitlines() == ["[2.0, 2.0]", "True", "True", "True", "0 [2.0, 2.0]"]


class Squares(torch.utils.data.Dataset):
    def __init__(self, device="cpu"):
        self.device = device

    def __len__(self):
        return 8

    def __getitem__(self, i):
        return torch.tensor([float(i * i)], device=self.device)


def test_data_loader_workers():
    torch.ones(1, device="tpu")
    want = [float(i * i) for i in range(8)]
    loader = torch.utils.data.DataLoader(Squares(), batch_size=4, num_workers=1, multiprocessing_context="fork")
    assert torch.cat([batch.to("tpu") for batch in loader]).flatten().tolist() == want
    loader = torch.utils.data.DataLoader(Squares(), batch_size=4, pin_memory=True)
    assert torch.cat([batch.to("tpu", non_blocking=True) for batch in loader]).flatten().tolist() == want
    loader = torch.utils.data.DataLoader(Squares("tpu"), batch_size=4, num_workers=1, multiprocessing_context="fork")
    with pytest.raises(RuntimeError, match="fork"):
        list(loader)


def test_data_loader_spawn():
    loader = torch.utils.data.DataLoader(Squares(), batch_size=4, num_workers=1, multiprocessing_context="spawn")
    got = torch.cat([batch.to("tpu") for batch in loader])
    assert got.flatten().tolist() == [float(i * i) for i in range(8)]


def test_tensors_do_not_cross_processes():
    context = torch.multiprocessing.get_context("spawn")
    queue = context.SimpleQueue()
    x = torch.ones(2, device="tpu")
    model = torch.nn.Linear(2, 2).to("tpu")
    for send in (
        lambda: queue.put(x),
        lambda: queue.put(torch.nn.Parameter(x)),
        lambda: queue.put({"model": model}),
        lambda: context.Process(target=print, args=(model.state_dict(),)).start(),
    ):
        with pytest.raises(
            RuntimeError, match=r"cannot be shared with another process: send tensor\.cpu\(\)"
        ) as refused:
            send()
        assert len(str(refused.value).splitlines()) == 1
    queue.put(x.cpu())
    assert queue.get().tolist() == [1.0, 1.0]


def test_children_may_drop_what_they_inherit(output):
    code = """
import gc, multiprocessing, os, sys, torch
x = torch.arange(4.0, device="tpu")
kept = [x + 1, torch.tpu.Stream(), torch.tpu.Event(), torch.Generator("tpu")]
def child():
    global x, kept
    x = kept = None
    gc.collect()
    print("still here", flush=True)
process = multiprocessing.get_context("fork").Process(target=child)
process.start(); process.join()
print(process.exitcode, x.tolist())
pid = os.fork()
if pid == 0:
    sys.exit(3)  # the interpreter drops everything
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), kept[0].tolist())
"""
    assert output(code).splitlines() == ["still here", "0 [0.0, 1.0, 2.0, 3.0]", "3 [1.0, 2.0, 3.0, 4.0]"]


def test_several_devices(output):
    code = """
import torch
a = torch.arange(6.0).view(2, 3)
x, y = a.to("tpu:0"), a.to("tpu:1")
print(y.device, x.to("tpu:1").device, y.to("tpu:0").tolist() == a.tolist())
print(((y @ y.t()).cpu() == a @ a.t()).all().item(), y.t()[1:].to("tpu:0").tolist() == a.t()[1:].tolist())
z = torch.zeros(2, 3, device="tpu:1")
z.copy_(x); z[:, 1].copy_(x[:, 0]); z[0] += 1
want = a.clone(); want[:, 1] = a[:, 0]; want[0] += 1
print(z.tolist() == want.tolist(), x.tolist() == a.tolist(), z.device)
for use in (lambda: x + y, lambda: torch.cat([x, y]), lambda: x.add_(y), lambda: torch.nn.functional.linear(x, y)):
    try:
        use()
        print("no error")
    except RuntimeError as error:
        print("same device" in str(error) and "tpu:0" in str(error) and "tpu:1" in str(error))
w = torch.ones(3, device="tpu:1", requires_grad=True)
((w * 2).to("tpu:0") * x[0]).sum().backward()
print(w.grad.device, w.grad.tolist())
torch.manual_seed(3)
print(torch.rand(4, device="tpu:1").tolist() == torch.rand(4, device="tpu:0").tolist(), y.new_zeros(1).device)
with torch.tpu.device(1):
    print(torch.ones(1, device="tpu").device, (torch.ones(1, device="tpu") + 1).device)
print(torch.tpu.memory_allocated(1) > 0)
try:
    torch.ones(1, device="tpu:2")
except RuntimeError as error:
    print("2" in str(error), "TORCH_TPU_NUM_DEVICES" in str(error))
import io
file = io.BytesIO(); torch.save(y, file); file.seek(0); print(torch.load(file).device)
file.seek(0); print(torch.load(file, map_location={"tpu:1": "tpu:0"}).device)
"""
    assert output(code, TORCH_TPU_NUM_DEVICES="2").splitlines() == [
        "tpu:1 tpu:1 True",
        "True True",
        "True True tpu:1",
        *["True"] * 4,
        "tpu:1 [0.0, 2.0, 4.0]",
        "True tpu:1",
        "tpu:1 tpu:1",
        "True",
        "True True",
        "tpu:1",
        "tpu:0",
    ]


SMALL = """
import torch
x = torch.arange(6.0, device="tpu").view(2, 3)
print((x * 2 + 1).sum().item(), x.t().softmax(0).sum().item(), torch.tpu.compile_stats()["compilations"])
"""


def cache_files(directory):
    return sorted(path for path in directory.rglob("*") if path.is_file() and path.stat().st_size > 500)


def test_cache_serves_the_next_process(output, tmp_path):
    first = output(SMALL, TORCH_TPU_CACHE_DIR=str(tmp_path)).split()
    second = output(SMALL, TORCH_TPU_CACHE_DIR=str(tmp_path)).split()
    assert first[:2] == second[:2] == ["36.0", "2.0"]
    assert int(first[2]) > 0
    assert second[2] == "0"
    off = output(SMALL, TORCH_TPU_CACHE_DIR=str(tmp_path / "off"), TORCH_TPU_CACHE="0").split()
    assert off == first
    assert not (tmp_path / "off").exists()


@pytest.mark.parametrize("damage", ["half", "empty", "garbage", "flipped"])
def test_damaged_cache_files_are_compiled_again(output, tmp_path, damage):
    good = output(SMALL, TORCH_TPU_CACHE_DIR=str(tmp_path)).split()
    files = cache_files(tmp_path)
    assert files
    for path in files:
        content = path.read_bytes()
        middle = len(content) // 2
        path.write_bytes(
            {
                "half": content[:middle],
                "empty": b"",
                "garbage": b"\x5a" * len(content),
                "flipped": content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :],
            }[damage]
        )
    assert output(SMALL, TORCH_TPU_CACHE_DIR=str(tmp_path)).split() == good
    assert output(SMALL, TORCH_TPU_CACHE_DIR=str(tmp_path)).split() == [*good[:2], "0"]


def test_exchanged_cache_files_never_answer_for_another_program(output, tmp_path):
    good = output(SMALL, TORCH_TPU_CACHE_DIR=str(tmp_path)).split()
    files = cache_files(tmp_path)
    contents = [path.read_bytes() for path in files]
    for path, content in zip(files, contents[1:] + contents[:1], strict=True):
        path.write_bytes(content)
    assert output(SMALL, TORCH_TPU_CACHE_DIR=str(tmp_path)).split()[:2] == good[:2]


def test_processes_share_a_cache_and_may_be_killed(output, tmp_path):
    many = """
import torch
for n in range(1, 40):
    assert (torch.ones(n, device="tpu") + 1).sum().item() == 2 * n
print("done")
"""
    env = {**os.environ, "TORCH_TPU_CACHE_DIR": str(tmp_path)}
    children = [
        subprocess.Popen([sys.executable, "-c", many], env=env, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    deadline = time.monotonic() + 60
    while len(cache_files(tmp_path)) < 5 and time.monotonic() < deadline:
        time.sleep(0.02)
    children[0].kill()
    children[0].communicate()
    for child in children[1:]:
        assert child.communicate(timeout=100)[0].strip() == "done"
    stats = "print(torch.tpu.compile_stats()['compilations'])"
    assert output(many + stats, TORCH_TPU_CACHE_DIR=str(tmp_path)).split() == ["done", "0"]


def test_cache_stays_within_its_limit(output, tmp_path):
    code = """
import torch
for n in range(1, 16):
    (torch.ones(n, device="tpu") + 1).sum().item()
"""
    output(code, TORCH_TPU_CACHE_DIR=str(tmp_path), TORCH_TPU_CACHE_SIZE="40000")
    assert 0 < sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()) <= 60000
    output(code, TORCH_TPU_CACHE_DIR=str(tmp_path), TORCH_TPU_CACHE_SIZE="40000")


USE = """
import torch
print((torch.ones(2) + 1).tolist())
try:
    print((torch.ones(2, device="tpu") + 1).tolist())
except Exception as error:
    print(type(error).__name__, str(error).replace(chr(10), " "))
"""


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({"TORCH_TPU_NUM_DEVICES": "0"}, ["TORCH_TPU_NUM_DEVICES", "0"]),
        ({"TORCH_TPU_NUM_DEVICES": "many"}, ["TORCH_TPU_NUM_DEVICES", "many"]),
        ({"TORCH_TPU_EAGER_MODE": "quick"}, ["TORCH_TPU_EAGER_MODE", "quick", "strict", "debug"]),
        ({"TORCH_TPU_PJRT_PLUGIN": "/nonexistent/plugin.so"}, ["TORCH_TPU_PJRT_PLUGIN", "/nonexistent/plugin.so"]),
        ({"TORCH_TPU_CACHE_SIZE": "big"}, ["TORCH_TPU_CACHE_SIZE", "big"]),
        ({"TORCH_TPU_CACHE_DIR": "/proc/none/cache"}, ["TORCH_TPU_CACHE_DIR", "/proc/none/cache"]),
    ],
)
def test_bad_environment(python, env, words):
    done = python(USE, **env)
    assert done.returncode == 0, done.stderr[-2000:]
    cpu, device = done.stdout.strip().splitlines()
    assert cpu == "[2.0, 2.0]"
    assert device.split()[0] in ("RuntimeError", "ValueError", "NotImplementedError", "OSError"), device
    for word in words:
        assert word in device
    assert len(device) < 400


def test_out_that_shares_a_part_of_an_operand_is_refused_whatever_came_before():
    calls = {
        "add": lambda x, y: torch.add(y, 1, out=x),
        "sin": lambda x, y: torch.sin(y, out=x),
        "mul": lambda x, y: torch.mul(x, y, out=x),
    }
    for device in ("cpu", "tpu"):
        x = torch.arange(12.0).to(device)
        for call in calls.values():
            call(x[:4], x[4:8])  # apart: fine, and of the same shapes
            call(x[:4], x[:4])  # the operand itself: fine
            with pytest.raises(RuntimeError, match="some elements of the input tensor and the written-to tensor"):
                call(x[:4], x[1:5])
        if device == "cpu":
            want = x.clone()
    torch.testing.assert_close(x.cpu(), want)
