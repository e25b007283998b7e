"""Shared by all tests: a program cache inside the tree, and Python children with an environment of their own."""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
os.environ.setdefault("TORCH_TPU_CACHE_DIR", str(ROOT / "build" / "test-cache"))

import torch  # noqa: E402


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


@pytest.fixture
def strict():
    """Operators run when they are called, whatever the process's mode: for tests that count what each of them does."""
    with torch.tpu.set_eager_mode(torch.tpu.EagerMode.STRICT):
        yield


@pytest.fixture
def python():
    """python(code, **env): runs `code` in a new process and returns the completed process; None unsets a variable."""

    def run(code, timeout=120, **env):
        merged = {**os.environ, **env}
        merged = {name: value for name, value in merged.items() if value is not None}
        return subprocess.run(
            [sys.executable, "-c", code], env=merged, cwd=ROOT, capture_output=True, text=True, timeout=timeout
        )

    return run


@pytest.fixture
def output(python):
    """output(code, **env): what `code` printed; fails with the child's error where it did not end well."""

    def run(code, **env):
        done = python(code, **env)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout.strip()

    return run
