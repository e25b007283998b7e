"""Memory counters follow tensors that are made and dropped."""

import gc

import torch

MIB = 1 << 20


def settled():
    gc.collect()
    torch.tpu.synchronize()
    return torch.tpu.memory_allocated()


def test_allocated_and_peak():
    base = settled()
    x = torch.ones(MIB, device="tpu")
    assert settled() - base == 4 * MIB
    view = x[5:].view(-1)
    assert settled() - base == 4 * MIB
    del view
    torch.tpu.reset_peak_memory_stats()
    y = x + 1
    assert torch.tpu.max_memory_allocated() - base >= 8 * MIB
    del x, y
    assert settled() == base
    torch.tpu.reset_peak_memory_stats()
    assert torch.tpu.max_memory_allocated() == torch.tpu.memory_allocated()


def test_names_agree():
    x = torch.ones(100, device="tpu")
    stats = torch.tpu.memory_stats()
    assert stats["allocated_bytes.all.current"] == torch.tpu.memory_allocated("tpu:0") >= x.nbytes
    assert torch.accelerator.memory_allocated() == torch.tpu.memory_allocated()
    assert torch.tpu.memory_reserved() >= torch.tpu.memory_allocated()
    assert torch.tpu.max_memory_reserved() >= torch.tpu.memory_reserved()
    free, total = torch.tpu.mem_get_info()
    assert 0 <= free <= total
    torch.tpu.empty_cache()
    torch.tpu.reset_accumulated_memory_stats()
    assert torch.tpu.memory_stats()["allocated_bytes.all.allocated"] == 0
