"""torch.accelerator: every function of it, called on the device."""

import pytest
import torch

ACC = torch.accelerator


def test_nothing_is_left_out():
    tested = {
        "Graph",
        "current_accelerator",
        "current_device_idx",
        "current_device_index",
        "current_stream",
        "device_count",
        "device_index",
        "empty_cache",
        "empty_host_cache",
        "get_device_capability",
        "get_memory_info",
        "is_available",
        "max_memory_allocated",
        "max_memory_reserved",
        "memory_allocated",
        "memory_reserved",
        "memory_stats",
        "reset_accumulated_memory_stats",
        "reset_peak_memory_stats",
        "set_device_idx",
        "set_device_index",
        "set_stream",
        "synchronize",
    }
    assert set(ACC.__all__) == tested


def test_devices():
    assert ACC.is_available()
    assert ACC.current_accelerator() == torch.device("tpu")
    assert ACC.current_accelerator(check_available=True) == torch.device("tpu")
    assert ACC.device_count() == torch.tpu.device_count()
    ACC.set_device_index(0)
    ACC.set_device_index("tpu:0")
    assert ACC.current_device_index() == 0
    with pytest.warns(FutureWarning):
        ACC.set_device_idx(0)
    with pytest.warns(FutureWarning):
        assert ACC.current_device_idx() == 0
    with ACC.device_index(0):
        assert ACC.current_device_index() == 0
    with ACC.device_index(None):
        assert ACC.current_device_index() == 0
    with pytest.raises(RuntimeError, match="device"):
        ACC.set_device_index(ACC.device_count())
    ACC.synchronize()
    ACC.synchronize("tpu:0")
    assert torch.device(0) == torch.ones(1, device=0).device == torch.device("tpu", 0)


def test_capability_names_the_dtypes_that_work():
    supported = ACC.get_device_capability()["supported_dtypes"]
    assert ACC.get_device_capability("tpu:0")["supported_dtypes"] == supported
    every = {value for value in vars(torch).values() if isinstance(value, torch.dtype)}
    for dtype in every:
        try:
            torch.zeros(2, dtype=dtype, device="tpu").to(torch.float32).to(dtype).to(torch.float32).cpu()
            works = True
        except (TypeError, RuntimeError):
            works = False
        assert works == (dtype in supported), dtype


def test_streams():
    default = ACC.current_stream()
    stream = torch.Stream("tpu")
    ACC.set_stream(stream)
    assert ACC.current_stream("tpu:0") == stream
    ACC.set_stream(default)
    with stream:
        assert ACC.current_stream() == stream
    assert ACC.current_stream() == default


def test_memory():
    ACC.empty_cache()
    ACC.empty_host_cache()
    base = ACC.memory_allocated()
    ACC.reset_peak_memory_stats()
    ACC.reset_accumulated_memory_stats(0)
    x = torch.ones(1000, device="tpu") + 1
    ACC.synchronize()
    assert ACC.memory_allocated() >= base + x.nbytes
    assert ACC.memory_reserved() >= ACC.memory_allocated(0)
    assert ACC.max_memory_allocated() >= ACC.memory_allocated("tpu:0")
    assert ACC.max_memory_reserved() >= ACC.memory_reserved()
    stats = ACC.memory_stats()
    assert stats["allocated_bytes.all.current"] == torch.tpu.memory_allocated()
    assert stats["allocated_bytes.all.allocated"] >= x.nbytes
    assert stats["allocation.all.current"] == stats["segment.all.current"] == stats["active.all.current"] > 0
    free, total = ACC.get_memory_info()
    assert 0 < free < total


def test_graphs_are_refused_in_one_sentence():
    with pytest.raises(RuntimeError, match=r"Graph is not supported on device type: tpu") as refused:
        ACC.Graph()
    assert len(str(refused.value).splitlines()) == 1
