"""Precision and compiler options: each setting has programs of its own, and leaving it brings the old ones back."""

import threading

import pytest
import torch

pytestmark = pytest.mark.usefixtures("strict")
options = torch.tpu.compiler.custom_compiler_options


def compilations(work):
    """How many programs `work` needed that were not in memory."""
    torch.tpu.synchronize()
    before = torch.tpu.compile_stats()
    work()
    torch.tpu.synchronize()
    after = torch.tpu.compile_stats()
    return sum(after[name] - before[name] for name in ("compilations", "disk_hits"))


def test_options_have_programs_of_their_own():
    x = torch.arange(12.0, device="tpu").view(3, 4)

    def work():
        assert (x * 3 + 1).sum().item() == 210.0

    def work_strictly():
        with torch.tpu.set_eager_mode(torch.tpu.EagerMode.STRICT):
            work()

    work()
    assert compilations(work) == 0
    with options({"xla_cpu_enable_fast_math": "true"}):
        assert compilations(work) > 0
        assert compilations(work) == 0
        with options({"xla_cpu_parallel_codegen_split_count": "2"}):
            assert compilations(work) > 0
        assert compilations(work) == 0
        seen = []
        thread = threading.Thread(target=lambda: seen.append(compilations(work_strictly)))
        thread.start()
        thread.join()
        assert seen == [0]  # another thread has its own
    assert compilations(work) == 0


def test_wrong_options_are_refused_at_once():
    with pytest.raises(ValueError, match="xla_no_such_option"), options({"xla_no_such_option": "1"}):
        pytest.fail("entered")
    with pytest.raises(ValueError, match="options"), options({"xla_cpu_parallel_codegen_split_count": "many"}):
        pytest.fail("entered")
    with pytest.raises(TypeError, match="texts"), options({"xla_cpu_enable_fast_math": True}):
        pytest.fail("entered")
    assert (torch.ones(2, device="tpu") + 1).tolist() == [2.0, 2.0]


def test_precision():
    x = torch.arange(6.0, device="tpu").view(2, 3)

    def work():
        assert (x @ x.t()).tolist() == [[5.0, 14.0], [14.0, 50.0]]

    def sums():
        assert (x + 1).sum().item() == 21.0

    work()
    sums()
    assert torch.get_float32_matmul_precision() == "highest"
    with torch.tpu.precision(torch.tpu.Precision.DEFAULT):
        assert torch.get_float32_matmul_precision() == "medium"
        assert compilations(work) == 1  # not the program of the other precision
        assert compilations(sums) == 0  # precision is no part of these
    assert torch.get_float32_matmul_precision() == "highest"
    assert compilations(work) == 0
    with pytest.raises(TypeError, match="Precision"), torch.tpu.precision("high"):
        pytest.fail("entered")


def test_excess_precision():
    x = torch.arange(5.0, device="tpu")

    def work():
        assert (x - 1).tolist() == [-1.0, 0.0, 1.0, 2.0, 3.0]

    work()
    assert torch.tpu.allow_excess_precision is False
    torch.tpu.allow_excess_precision = True
    try:
        assert torch.tpu.allow_excess_precision is True
        assert compilations(work) == 1
    finally:
        torch.tpu.allow_excess_precision = False
    assert compilations(work) == 0


def test_excess_precision_before_the_device_starts(output):
    code = """
import torch
torch.tpu.allow_excess_precision = True
print(torch.tpu.is_initialized(), torch.tpu.allow_excess_precision)
print((torch.ones(2, device="tpu") + 1).tolist(), torch.tpu.allow_excess_precision)
"""
    assert output(code).splitlines() == ["False True", "[2.0, 2.0] True"]
