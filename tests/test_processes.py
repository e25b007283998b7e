"""The program cache between processes: shared, killed while writing, damaged, too large, or in an unsafe place."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from tests.faults.plugin import PATH, ROOT, environment

needs_plugin = pytest.mark.skipif(not PATH.exists(), reason="needs the fault-injecting plugin: run `make build`")

SMALL = """
import torch
x = torch.arange(6.0, device="tpu").view(2, 3)
print(x.t().softmax(0).sum().item(), (x * 2 + 1).tolist())
"""
SMALL_VALUES = "2.0 [[1.0, 3.0, 5.0], [7.0, 9.0, 11.0]]"
COUNTS = """
stats = torch.tpu.compile_stats()
print(stats["compilations"], stats["disk_hits"], stats["disk_errors"])
"""
MANY = """
import sys, torch
print("started", flush=True)
for n in range(int(sys.argv[1]), int(sys.argv[1]) + 20):
    for value in (n, 7):
        assert (torch.full((n,), float(value), device="tpu") * 3 - 1).tolist() == [3.0 * value - 1] * n
print("done")
"""


def start(code, directory, *arguments, **env):
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, "TORCH_TPU_CACHE_DIR": str(directory), **env},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )


def assert_only_programs(directory):
    names = [path.name for path in directory.iterdir()]
    assert names
    assert all(name.endswith(".program") for name in names), names


def test_processes_at_once_never_meet_a_wrong_program(tmp_path):
    children = [start(MANY, tmp_path, first) for first in ("1", "11")]  # half of the programs are common to both
    for child in children:
        assert child.communicate(timeout=100)[0].split() == ["started", "done"]
        assert child.returncode == 0
    assert_only_programs(tmp_path)


def test_kill_at_any_moment(output, tmp_path):
    choose = random.Random(0)
    for round_ in range(5):
        pair = [start(MANY, tmp_path, str(1 + 20 * round_ + 7 * k)) for k in range(2)]
        enough = choose.randrange(1, 12)
        for child in pair:
            assert child.stdout.readline() == "started\n"
        seen, deadline = len(list(tmp_path.iterdir())), time.monotonic() + 60
        while len(list(tmp_path.iterdir())) < seen + enough and time.monotonic() < deadline:
            time.sleep(choose.random() / 100)
        for child in pair:
            child.kill()
            child.communicate()
    assert output(f"import sys; sys.argv[1:] = ['3']\n{MANY}", TORCH_TPU_CACHE_DIR=str(tmp_path)).endswith("done")
    assert_only_programs(tmp_path)


def test_kill_in_the_middle_of_a_write(python, output, tmp_path):
    # The second part of the file ends the process, as the file may not grow beyond the first.
    code = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_FSIZE, (48, 48))
"""
    assert python(code + SMALL, TORCH_TPU_CACHE_DIR=str(tmp_path)).returncode == -signal.SIGXFSZ
    left = [path.name for path in tmp_path.iterdir()]
    assert left
    assert not any(name.endswith(".program") for name in left)
    assert output(SMALL, TORCH_TPU_CACHE_DIR=str(tmp_path)) == SMALL_VALUES
    assert_only_programs(tmp_path)


def test_a_full_disk_loses_the_entry_only(output, tmp_path):
    code = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))"
    assert output(code + SMALL, TORCH_TPU_CACHE_DIR=str(tmp_path)) == SMALL_VALUES
    assert list(tmp_path.iterdir()) == []


def test_the_limit_holds_though_each_process_writes_little(output, tmp_path):
    limit = 2_000_000
    for day in range(1, 6):  # what many short processes have left, the oldest first
        path = tmp_path / f"{day:032x}.program"
        path.write_bytes(b"\0" * 900_000)
        os.utime(path, (86400 * day, 86400 * day))
    assert output(SMALL, TORCH_TPU_CACHE_DIR=str(tmp_path), TORCH_TPU_CACHE_SIZE=str(limit)) == SMALL_VALUES
    left = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert sum(left.values()) <= limit
    assert {f"{day:032x}.program" for day in range(1, 6)} & left.keys() == {f"{5:032x}.program", f"{4:032x}.program"}
    assert len(left) > 2  # and those of the process itself


@pytest.mark.parametrize("damage", ["size", "directory", "other"])
def test_a_file_that_is_not_a_program_is_compiled_again(output, tmp_path, damage):
    good = output(SMALL + COUNTS, TORCH_TPU_CACHE_DIR=str(tmp_path)).split("\n")
    assert good[0] == SMALL_VALUES
    for path in tmp_path.iterdir():
        content = bytearray(path.read_bytes())
        if damage == "size":
            content[44:46] = b"\xff\x03"  # the length of the program: terabytes
            path.write_bytes(content)
        elif damage == "directory":
            path.unlink()
            path.mkdir()
        else:
            path.unlink()
            path.symlink_to("/dev/null")
    again = output(SMALL + COUNTS, TORCH_TPU_CACHE_DIR=str(tmp_path)).split("\n")
    assert again[0] == SMALL_VALUES
    assert again[1].split()[0] == good[1].split()[0]  # all of them compiled


@needs_plugin
@pytest.mark.parametrize("fault", ["serialized", "loaded"])
def test_a_program_that_the_plugin_refuses_is_compiled_again(output, tmp_path, fault):
    env = environment(TORCH_TPU_CACHE_DIR=str(tmp_path))
    truncate = f"""
import torch
from tests.faults.plugin import FaultPlugin
torch.ones(1, device="tpu").cpu()
FaultPlugin().truncate({fault}=True)
"""
    damaged = output((truncate if fault == "serialized" else "") + SMALL, **env)
    assert damaged == SMALL_VALUES
    code = (truncate if fault == "loaded" else "") + SMALL + COUNTS
    values, counts = output(code, **env).split("\n")
    compilations, _, errors = map(int, counts.split())
    assert values == SMALL_VALUES
    assert compilations >= errors > 0
    values, counts = output(SMALL + COUNTS, **env).split("\n")
    assert values == SMALL_VALUES
    assert counts.split()[0] == counts.split()[2] == "0"


def test_the_directory_may_go_while_it_is_used(output, tmp_path):
    code = f"""
import os, shutil, torch
directory = {str(tmp_path / "cache")!r}
assert (torch.ones(3, device="tpu") * 2).tolist() == [2.0] * 3
torch.tpu.synchronize()
shutil.rmtree(directory)
for n in (4, 5):
    assert (torch.ones(n, device="tpu") * 2).tolist() == [2.0] * n
torch.tpu._runtime.require().shutdown()  # finishes the writes
print(len(os.listdir(directory)) > 0, oct(os.stat(directory).st_mode & 0o777))
"""
    assert output(code, TORCH_TPU_CACHE_DIR=str(tmp_path / "cache")) == "True 0o700"


REFUSED = """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import torch
    print((torch.ones(3) + 1).tolist())
    try:
        print((torch.ones(3, device="tpu") + 1).tolist())
    except RuntimeError as error:
        print(error)
print(*(str(w.message) for w in caught))
"""


@pytest.mark.parametrize("owner", ["group", "others", "another user"])
def test_an_unsafe_directory_is_refused(output, tmp_path, owner):
    directory = tmp_path / "torchtpu"
    directory.mkdir(mode=0o700)
    if owner == "another user":
        if os.geteuid() != 0:
            pytest.skip("only root can give a directory to another user")
        os.chown(directory, 12345, -1)
        reason = "it belongs to another user"
    else:
        directory.chmod(0o770 if owner == "group" else 0o707)
        reason = "other users may write to it"
    # The default place is left unused with a warning; one that was asked for is an error.
    lines = output(REFUSED, XDG_CACHE_HOME=str(tmp_path), TORCH_TPU_CACHE_DIR=None).splitlines()
    assert lines[:2] == ["[2.0, 2.0, 2.0]"] * 2
    assert reason in lines[2]
    assert str(directory) in lines[2]
    lines = output(REFUSED, TORCH_TPU_CACHE_DIR=str(directory)).splitlines()
    assert lines[0] == "[2.0, 2.0, 2.0]"
    assert reason in lines[1]
    assert "TORCH_TPU_CACHE_DIR" in lines[1]
    assert list(directory.iterdir()) == []
