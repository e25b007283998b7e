"""Pinned host memory: made by pin_memory, recognised by is_pinned, counted, and good for copies both ways."""

import threading

import pytest
import torch

MIB = 1 << 20


def test_pinning_a_tensor():
    x = torch.arange(6.0)
    assert not x.is_pinned()
    pinned = x.pin_memory()
    assert pinned.is_pinned()
    assert pinned.device.type == "cpu"
    assert torch.equal(pinned, x)
    assert pinned[2:4].is_pinned()
    assert pinned.pin_memory() is pinned
    assert pinned.untyped_storage().is_pinned()
    assert not pinned.clone().is_pinned()
    assert torch.zeros(3, pin_memory=True).is_pinned()
    assert torch.empty(0).pin_memory().numel() == 0
    with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
        torch.ones(2, device="tpu").pin_memory()


def test_copies_to_and_from_pinned_memory():
    pinned = torch.arange(1000.0).pin_memory()
    on_tpu = pinned.to("tpu", non_blocking=True)
    pinned.zero_()  # the copy has read its source already
    assert on_tpu.sum().item() == 499500.0
    target = torch.empty(1000, pin_memory=True)
    target.copy_(on_tpu, non_blocking=True)
    torch.tpu.synchronize()
    assert torch.equal(target, torch.arange(1000.0))


def test_statistics():
    before = torch.tpu.host_memory_stats()
    x = torch.empty(MIB, dtype=torch.uint8, pin_memory=True)
    torch.tpu.reset_peak_host_memory_stats()
    stats = torch.tpu.host_memory_stats()
    for quantity in ("allocated_bytes", "active_bytes"):
        assert stats[f"{quantity}.current"] - before[f"{quantity}.current"] == MIB
        assert stats[f"{quantity}.peak"] == stats[f"{quantity}.current"]
    assert stats["num_host_alloc"] == before["num_host_alloc"] + 1
    assert torch.tpu.host_memory_stats_as_nested_dict()["allocations"]["current"] == stats["allocations.current"]
    del x
    after = torch.tpu.host_memory_stats()
    assert after["allocated_bytes.current"] == before["allocated_bytes.current"]
    assert after["num_host_free"] == before["num_host_free"] + 1
    torch.tpu.reset_accumulated_host_memory_stats()
    assert torch.tpu.host_memory_stats()["allocated_bytes.allocated"] == 0
    torch.accelerator.empty_host_cache()


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        return {"x": torch.tensor([float(i)]), "name": str(i)}


@pytest.mark.parametrize("workers", [0, 1])
def test_data_loader(workers):
    context = "fork" if workers else None
    loader = torch.utils.data.DataLoader(
        Rows(), batch_size=4, pin_memory=True, num_workers=workers, multiprocessing_context=context
    )
    batches = list(loader)
    assert all(batch["x"].is_pinned() for batch in batches)
    on_tpu = torch.cat([batch["x"].to("tpu", non_blocking=True) for batch in batches])
    assert on_tpu.flatten().tolist() == [float(i) for i in range(8)]
    assert [name for batch in batches for name in batch["name"]] == [str(i) for i in range(8)]


def test_threads_and_forked_children(output):
    def churn():
        for _ in range(200):
            assert torch.ones(100).pin_memory().is_pinned()

    threads = [threading.Thread(target=churn) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    code = """
import os, torch
x = torch.ones(2, device="tpu").cpu().pin_memory()
child = os.fork()
if child == 0:
    assert x.is_pinned() and torch.ones(3).pin_memory().is_pinned()
    del x
    os._exit(0)
print(os.waitpid(child, 0)[1])
"""
    assert output(code) == "0"
