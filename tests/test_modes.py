"""Eager modes, program counters and the opt-in to CPU fallback."""

import threading

import pytest
import torch
from torch.tpu import EagerMode


@pytest.fixture(autouse=True)
def _restored():
    before = torch.tpu.eager_mode
    with torch.tpu.set_eager_mode(before):
        yield
    torch.tpu.eager_mode = before


def test_names():
    assert EagerMode.DEFER_NEVER is EagerMode.STRICT
    assert EagerMode.DEFER_NEVER_AND_LAUNCH_BLOCKING is EagerMode.DEBUG
    assert EagerMode.DEFER_AND_FUSE in EagerMode


def test_context_manager_and_bare_call():
    with torch.tpu.set_eager_mode(EagerMode.DEBUG):
        assert torch.tpu.get_eager_mode() is EagerMode.DEBUG
        with torch.tpu.set_eager_mode(EagerMode.STRICT):
            assert torch.tpu.get_eager_mode() is EagerMode.STRICT
        assert torch.tpu.get_eager_mode() is EagerMode.DEBUG
        assert (torch.ones(2, device="tpu") + 1).tolist() == [2.0, 2.0]
    assert torch.tpu.get_eager_mode() is EagerMode.STRICT
    torch.tpu.set_eager_mode(EagerMode.DEBUG)
    assert torch.tpu.get_eager_mode() is EagerMode.DEBUG
    assert torch.tpu.eager_mode is EagerMode.STRICT


def test_process_default_reaches_other_threads_and_a_threads_own_does_not():
    def seen_by_a_thread():
        seen = []
        thread = threading.Thread(target=lambda: seen.append(torch.tpu.get_eager_mode()))
        thread.start()
        thread.join()
        return seen[0]

    torch.tpu.set_eager_mode(EagerMode.DEBUG)
    assert seen_by_a_thread() is EagerMode.STRICT
    torch.tpu.eager_mode = EagerMode.DEBUG
    assert torch.tpu.eager_mode is EagerMode.DEBUG
    assert seen_by_a_thread() is EagerMode.DEBUG


def test_what_is_no_mode_is_refused_and_changes_nothing():
    for wrong in ("strict", 1, None):
        with pytest.raises(TypeError, match=r"EagerMode\.STRICT"):
            torch.tpu.eager_mode = wrong
        with pytest.raises(TypeError, match=r"EagerMode\.STRICT"):
            torch.tpu.set_eager_mode(wrong)
    assert torch.tpu.get_eager_mode() is EagerMode.STRICT
    assert torch.tpu.eager_mode is EagerMode.STRICT


@pytest.mark.parametrize(
    ("env", "mode"),
    [
        ({}, "STRICT"),
        ({"TORCH_TPU_EAGER_MODE": "debug"}, "DEBUG"),
        ({"TORCH_TPU_EAGER_MODE": "STRICT"}, "STRICT"),
        ({"TPU_LAUNCH_BLOCKING": "1"}, "DEBUG"),
        ({"TORCH_TPU_LAUNCH_BLOCKING": "1"}, "DEBUG"),
        ({"TORCH_TPU_LAUNCH_BLOCKING": "0"}, "STRICT"),
        ({"TORCH_TPU_EAGER_MODE": "strict", "TPU_LAUNCH_BLOCKING": "1"}, "STRICT"),
    ],
)
def test_environment(output, env, mode):
    clean = dict.fromkeys(
        ("TORCH_TPU_EAGER_MODE", "TPU_LAUNCH_BLOCKING", "TORCH_TPU_LAUNCH_BLOCKING", "TORCH_TPU_DEFER_AND_FUSE")
    )
    code = "import torch; print(torch.tpu.eager_mode.name, torch.tpu.get_eager_mode().name)"
    assert output(code, **{**clean, **env}) == f"{mode} {mode}"


def test_counters():
    x = torch.ones(3, 5, device="tpu")
    x * 3 + 1
    torch.tpu.synchronize()
    torch.tpu.reset_compile_stats()
    zero = torch.tpu.compile_stats()
    for name in ("compilations", "cache_hits", "disk_hits", "compile_seconds", "executions", "fallbacks"):
        assert zero[name] == 0
    for scale in (3, 4, 5):
        x * scale + 1
    torch.tpu.synchronize()
    stats = torch.tpu.compile_stats()
    assert stats["compilations"] == stats["disk_hits"] == 0
    assert stats["executions"] >= 6
    assert stats["cache_hits"] >= 6


def test_cpu_fallback():
    x = torch.tensor([[2.0, 1.0], [1.0, 2.0]], device="tpu")
    torch.tpu.reset_compile_stats()
    with pytest.raises(NotImplementedError, match=r"airy_ai(.|\n)*cpu_fallback"):
        torch.special.airy_ai(x)
    with torch.tpu.cpu_fallback(True), pytest.warns(UserWarning, match="airy_ai"):
        got = torch.special.airy_ai(x)
    assert got.device.type == "tpu"
    torch.testing.assert_close(got.cpu(), torch.special.airy_ai(x.cpu()))
    assert torch.tpu.compile_stats()["fallbacks"] == 1
    with pytest.raises(NotImplementedError, match="cpu_fallback"):
        torch.special.airy_ai(x)
    torch.tpu.cpu_fallback(True)
    torch.special.airy_ai(x)
    torch.tpu.cpu_fallback(False)
    with pytest.raises(NotImplementedError, match="cpu_fallback"):
        torch.special.airy_ai(x)
