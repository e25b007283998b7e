"""The device fails: one clear exception, nothing lost, the device goes on. See tests/faults/scenarios.py."""

import functools
import json
import os
import subprocess
import sys

import pytest

from tests.faults import fused
from tests.faults.plugin import PATH, ROOT, environment
from tests.faults.scenarios import SCENARIOS

pytestmark = pytest.mark.skipif(not PATH.exists(), reason="needs the fault-injecting plugin: run `make build`")


@functools.cache
def outcomes(mode):
    """What `python -m tests.faults` printed for one mode: all scenarios share one process."""
    env = {**os.environ, **environment(TORCH_TPU_CACHE="0")}
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults", mode], env=env, cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.strip().splitlines()[-1])


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("mode", ["strict", "debug"])
def test_fault(mode, name):
    problem = outcomes(mode)[name]
    assert problem is None, problem


@pytest.mark.parametrize("name", fused.SCENARIOS)
def test_fault_in_a_group(name):
    problem = outcomes("defer_and_fuse")[name]
    assert problem is None, problem
