"""Memory statistics follow tensors that are made and dropped, under torch.cuda's keys."""

import gc
import re

import pytest
import torch

MIB = 1 << 20

QUANTITIES = [
    "allocation",
    "segment",
    "active",
    "inactive_split",
    "allocated_bytes",
    "reserved_bytes",
    "active_bytes",
    "inactive_split_bytes",
    "requested_bytes",
]
COUNTERS = [
    "num_alloc_retries",
    "num_ooms",
    "num_sync_all_streams",
    "num_device_alloc",
    "num_device_free",
    "num_oom_rejections",
    "max_split_size",
]
METRICS = ["current", "peak", "allocated", "freed"]


def settled():
    gc.collect()
    torch.tpu.synchronize()
    return torch.tpu.memory_allocated()


def test_allocated_and_peak():
    torch.ones(MIB, device="tpu") + 1  # the engine keeps the number 1
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
    assert torch.tpu.device_memory_used() == total - free
    assert torch.tpu.get_device_properties().total_memory == total
    torch.tpu.empty_cache()
    torch.tpu.reset_accumulated_memory_stats()
    assert torch.tpu.memory_stats()["allocated_bytes.all.allocated"] == 0


def test_statistics_have_torch_cudas_keys():
    want = {
        *(f"{q}.{pool}.{m}" for q in QUANTITIES for pool in ("all", "small_pool", "large_pool") for m in METRICS),
        *(f"oversize_{what}.{m}" for what in ("allocations", "segments") for m in METRICS),
        *COUNTERS,
    }
    stats = torch.tpu.memory_stats()
    assert set(stats) == want
    assert all(isinstance(value, int) and value >= 0 for value in stats.values())
    assert list(stats) == sorted(stats)
    nested = torch.tpu.memory_stats_as_nested_dict()
    assert nested["allocation"]["all"]["current"] == stats["allocation.all.current"]
    assert nested["reserved_bytes_by_private_pools"] == {}


def test_small_and_large_memory_are_told_apart():
    gc.collect()

    def current():
        stats = torch.tpu.memory_stats()
        return {
            pool: (stats[f"allocated_bytes.{pool}.current"], stats[f"allocation.{pool}.current"])
            for pool in ("all", "small_pool", "large_pool")
        }

    before = current()
    small = torch.zeros(MIB // 4 - 1, device="tpu") + 1
    middle = current()
    large = torch.zeros(MIB // 4, device="tpu") + 1
    after = current()
    gain = {pool: middle[pool][0] - before[pool][0] for pool in before}
    assert gain["large_pool"] == 0
    assert gain["all"] == gain["small_pool"] >= small.nbytes
    gain = {pool: after[pool][0] - middle[pool][0] for pool in before}
    assert gain["large_pool"] == large.nbytes
    for now in (before, middle, after):
        assert now["all"] == tuple(a + b for a, b in zip(now["small_pool"], now["large_pool"], strict=True))


@pytest.mark.usefixtures("strict")
def test_totals_grow_with_every_allocation():
    torch.tpu.reset_accumulated_memory_stats()
    x = torch.ones(1000, device="tpu")
    for _ in range(5):
        x = x + 1
    del x
    settled()
    stats = torch.tpu.memory_stats()
    assert stats["allocated_bytes.all.allocated"] >= 6 * 4000
    assert stats["allocated_bytes.all.freed"] >= 6 * 4000
    assert stats["num_device_alloc"] == stats["allocation.all.allocated"] >= 6
    assert stats["num_device_free"] == stats["allocation.all.freed"] >= 6


def test_asking_does_not_start_the_device(output):
    code = """
import torch
print(torch.tpu.memory_allocated(), torch.tpu.max_memory_reserved(), torch.tpu.memory_stats() == {})
print(torch.tpu.host_memory_stats() == {}, torch.accelerator.memory_allocated())
torch.tpu.empty_cache(); torch.accelerator.empty_cache(); torch.accelerator.empty_host_cache()
print(torch.tpu.is_initialized())
"""
    assert output(code).splitlines() == ["0 0 True", "True 0", "False"]


def test_summary():
    x = torch.ones(3 * MIB, device="tpu")
    text = torch.tpu.memory_summary()
    table = {row.split("|")[1].strip(): row.split("|")[2:-1] for row in text.splitlines() if row.count("|") == 6}
    allocated = table["Allocated memory"][0].split()
    size = int(allocated[0]) * {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20}[allocated[1]]
    assert x.nbytes <= size + (1 << 20)
    assert size <= torch.tpu.memory_allocated()
    assert "from large pool" in text
    assert len({len(row) for row in text.splitlines()}) == 1
    short = torch.tpu.memory_summary("tpu:0", abbreviated=True)
    assert "from large pool" not in short
    assert "device ID 0" in short
    assert re.search(r"OOMs: \d+ ", short)


def test_old_names_warn():
    with pytest.warns(FutureWarning, match="memory_reserved"):
        assert torch.tpu.memory_cached() == torch.tpu.memory_reserved()
    with pytest.warns(FutureWarning, match="max_memory_reserved"):
        assert torch.tpu.max_memory_cached() == torch.tpu.max_memory_reserved()
    for old in (torch.tpu.reset_max_memory_allocated, torch.tpu.reset_max_memory_cached):
        with pytest.warns(FutureWarning, match="resets all peak memory stats"):
            old()


def test_allocator_backend():
    assert torch.tpu.get_allocator_backend() == "pjrt"


def test_statistics_are_a_devices_own(output):
    code = """
import torch
torch.tpu.init()
before = [torch.tpu.memory_allocated(i) for i in range(4)]
x = torch.ones(1000, device="tpu:2")
print([torch.tpu.memory_allocated(i) - before[i] for i in range(4)])
with torch.tpu.device(2):
    print(torch.tpu.memory_allocated() == torch.tpu.memory_allocated("tpu:2") > torch.tpu.memory_allocated(0))
torch.tpu.reset_peak_memory_stats(1)
print([s["device"] for s in torch.tpu.memory_snapshot() if s["total_size"] == 4000])
"""
    assert output(code, TORCH_TPU_NUM_DEVICES="4").splitlines() == ["[0, 0, 4000, 0]", "True", "[2]"]


def test_memory_fraction(output):
    code = """
import torch
print(torch.tpu.get_per_process_memory_fraction(), torch.tpu.mem_get_info()[1])
torch.tpu.set_per_process_memory_fraction(0.3)
print(torch.tpu.get_per_process_memory_fraction("tpu:0"), torch.tpu.get_per_process_memory_fraction(1))
torch.tpu.memory._record_memory_history()
for device, count in ((0, 20), (0, 90), (1, 90), (0, 20)):
    try:
        x = torch.ones(count << 18, device=f"tpu:{device}")  # MiB
        print(count, "fits")
    except torch.OutOfMemoryError as error:
        print(count, "does not", "set_per_process_memory_fraction" in str(error))
stats = torch.tpu.memory_stats()
print(stats["num_ooms"], stats["num_alloc_retries"] >= 1, torch.tpu.memory_stats(1)["num_ooms"])
(oom,) = [e for e in torch.tpu.memory._snapshot()["device_traces"][0] if e["action"] == "oom"]
print(oom["size"] >= 90 << 20, oom["device_free"] <= 30 << 20, any(f["name"] == "<module>" for f in oom["frames"]))
torch.tpu.set_per_process_memory_fraction(0.0)
try:
    torch.ones(8, device="tpu")
except torch.OutOfMemoryError:
    print("nothing fits")
"""
    limit = 100 << 20
    env = {"TORCH_TPU_MEMORY_LIMIT": str(limit), "TORCH_TPU_NUM_DEVICES": "2", "TORCH_TPU_EAGER_MODE": "strict"}
    done = output(code, **env).splitlines()
    assert done == [
        f"1.0 {limit}",
        "0.3 1.0",
        "20 fits",
        "90 does not True",
        "90 fits",
        "20 fits",
        "1 True 0",
        "True True True",
        "nothing fits",
    ]


def test_wrong_memory_fractions():
    assert torch.tpu.get_per_process_memory_fraction() == 1.0
    for fraction in (1, "0.5"):
        with pytest.raises(TypeError, match="must be `float`"):
            torch.tpu.set_per_process_memory_fraction(fraction)
    for fraction in (-0.1, 1.5):
        with pytest.raises(ValueError, match="Allowed range: 0~1"):
            torch.tpu.set_per_process_memory_fraction(fraction)
    assert torch.tpu.get_per_process_memory_fraction("tpu") == 1.0
