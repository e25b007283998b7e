"""The command torch-tpu."""

import os
import pathlib
import subprocess
import sysconfig
import time

import pytest
import torch

COMMAND = pathlib.Path(sysconfig.get_path("scripts")) / "torch-tpu"


@pytest.fixture
def command(tmp_path):
    """command(*arguments, **env): runs torch-tpu with a cache of its own and returns the completed process."""

    def run(*arguments, **env):
        merged = {**os.environ, "TORCH_TPU_CACHE_DIR": str(tmp_path / "cache"), **env}
        return subprocess.run([COMMAND, *arguments], env=merged, capture_output=True, text=True, timeout=120)

    return run


def filled(tmp_path, sizes):
    """A cache directory with files of these sizes, the first used last."""
    directory = tmp_path / "cache"
    directory.mkdir(mode=0o700)
    for age, size in enumerate(sizes):
        path = directory / f"{age:032x}.program"
        path.write_bytes(b"x" * size)
        then = time.time() - age * 86400
        os.utime(path, (then, then))
    return directory


def names(directory):
    return sorted(int(path.stem, 16) for path in directory.glob("*.program"))


def test_info_names_versions_devices_and_the_cache(command, tmp_path):
    done = command("info", TORCH_TPU_NUM_DEVICES="2")
    assert done.returncode == 0, done.stderr
    for text in (torch.__version__, "tpu:1", "STRICT", str(tmp_path / "cache")):
        assert text in done.stdout


def test_info_says_why_the_device_cannot_be_used(command):
    done = command("info", TORCH_TPU_PJRT_PLUGIN="/nowhere/plugin.so")
    assert done.returncode == 1
    assert "cannot be used" in done.stdout
    assert "/nowhere/plugin.so" in done.stdout


def test_programs_are_listed_counted_and_removed(command, tmp_path, output):
    code = "import torch; print((torch.ones(3, device='tpu') + 1).tolist())"
    output(code, TORCH_TPU_CACHE_DIR=str(tmp_path / "cache"))
    listed = command("cache", "ls").stdout.splitlines()
    assert len(listed) == len(list((tmp_path / "cache").glob("*.program"))) > 0
    assert f"programs   {len(listed)}" in command("cache", "stats").stdout
    assert f"removed {len(listed)} programs" in command("cache", "clear").stdout
    assert command("cache", "ls").stdout == ""


def test_prune_takes_the_least_recently_used(command, tmp_path):
    directory = filled(tmp_path, [100, 100, 100, 100])
    command("cache", "prune", "--size", "250")
    assert names(directory) == [0, 1]
    command("cache", "prune", TORCH_TPU_CACHE_SIZE="100")
    assert names(directory) == [0]


def test_prune_by_age(command, tmp_path):
    directory = filled(tmp_path, [100, 100, 100])
    command("cache", "prune", "--days", "1.5")
    assert names(directory) == [0, 1]


@pytest.mark.parametrize(
    ("arguments", "env", "said"),
    [
        (("cache", "prune", "--size", "much"), {}, "is no number of bytes"),
        (("cache", "ls"), {"TORCH_TPU_CACHE": "0"}, "switched off"),
        (("cache", "stats"), {"TORCH_TPU_CACHE_SIZE": "-1"}, "TORCH_TPU_CACHE_SIZE=-1"),
        (("fly",), {}, "invalid choice"),
    ],
)
def test_what_is_wrong_is_said(command, arguments, env, said):
    done = command(*arguments, **env)
    assert done.returncode != 0
    assert said in done.stderr
    assert "Traceback" not in done.stderr
