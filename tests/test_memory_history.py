"""Memory snapshots: what lives and who made it, the record of allocations, and PyTorch's own tools reading them."""

import gc
import itertools
import pathlib
import pickle

import pytest
import torch
from torch.cuda import _memory_viz as viz

memory = torch.tpu.memory
HERE = pathlib.Path(__file__).name


@pytest.fixture
def recording():
    """record(...): starts a fresh record; stopped and emptied after the test."""

    def record(**arguments):
        memory._record_memory_history(clear_history=True, **arguments)

    yield record
    memory._record_memory_history(max_entries=0, clear_history=True)
    memory._record_memory_history(None)
    memory._set_memory_metadata("")


def make_something():
    return torch.ones(777, device="tpu").mul(3)


def block_of(tensor, segments):
    (found,) = [b for s in segments for b in s["blocks"] if b["data_ptr"] == tensor.untyped_storage().data_ptr()]
    return found


def trace():
    return memory._snapshot()["device_traces"][0]


def test_snapshot_accounts_for_all_memory():
    x, y = make_something(), torch.zeros(3, device="tpu") + 1
    segments = torch.tpu.memory_snapshot()
    assert sum(s["total_size"] for s in segments) == torch.tpu.memory_reserved()
    for tensor in (x, y):
        block = block_of(tensor, segments)
        assert block["size"] == block["requested_size"] == tensor.nbytes
        assert block["state"] == "active_allocated"
    assert block_of(x, segments)["operator"].endswith("mul")
    pointer = x.untyped_storage().data_ptr()
    del x
    gc.collect()
    assert pointer not in [b["data_ptr"] for s in torch.tpu.memory_snapshot() for b in s["blocks"]]
    spans = sorted((s["address"], s["address"] + s["total_size"]) for s in segments)
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(spans))
    assert torch.tpu.memory_snapshot(mempool_id=(0, 1)) == []


def test_blocks_name_the_line_that_made_them(recording):
    recording()
    x = make_something()
    frames = block_of(x, memory._snapshot()["segments"])["frames"]
    assert frames[0]["filename"] == "torch.tpu"
    assert "mul" in frames[0]["name"]
    names = [f["name"] for f in frames if pathlib.Path(f["filename"]).name == HERE]
    assert names[:2] == ["make_something", "test_blocks_name_the_line_that_made_them"]
    line = make_something.__code__.co_firstlineno + 1
    assert frames[1]["line"] == line
    assert memory._allocation_traceback(x.untyped_storage().data_ptr()) == frames
    assert memory._allocation_traceback(12345) is None


def test_work_that_waits_for_the_compiler_is_recorded_at_its_call(recording):
    recording()
    x = torch.rand(3, 61, device="tpu").cumsum(1).softmax(0)
    block = block_of(x, memory._snapshot()["segments"])
    assert "softmax" in block["operator"]
    assert any(f["name"].startswith("test_work_that_waits") for f in block["frames"])


def test_copies_and_backward_are_recorded(recording):
    recording()
    x = torch.arange(50.0).to("tpu").requires_grad_()
    (x * x).sum().backward()
    segments = memory._snapshot()["segments"]
    for tensor in (x, x.grad):
        assert any(f["name"].startswith("test_copies") for f in block_of(tensor, segments)["frames"])


@pytest.mark.usefixtures("strict")
def test_record_tells_allocations_and_frees(recording):
    recording()
    x = make_something()
    del x
    torch.tpu.synchronize()
    events = [e for e in trace() if e.get("size") == 777 * 4]
    live = {}
    for event in events:
        if event["action"] == "alloc":
            assert event["addr"] not in live
            live[event["addr"]] = event["size"]
        elif event["action"] == "free_completed":
            live.pop(event["addr"])
    assert not live
    assert [e["action"] for e in events].count("alloc") == 2
    assert [e["action"] for e in events].count("free_requested") == 2
    times = [e["time_us"] for e in trace()]
    assert times == sorted(times)
    made = [e for e in events if e["action"] == "alloc"]
    assert all(any(f["name"] == "make_something" for f in e["frames"]) for e in made)
    assert all("ones" in e["operator"] or "mul" in e["operator"] for e in events)


def test_temporary_memory_of_programs_is_recorded(recording):
    x = torch.rand(64, 64, device="tpu")
    torch.linalg.qr(x)
    recording()
    torch.linalg.qr(x)
    torch.tpu.synchronize()
    events = [e for e in trace() if e["action"] in ("alloc", "free_completed")]
    pairs = [(a, b) for a, b in itertools.pairwise(events) if a["addr"] == b["addr"]]
    assert any(a["action"] == "alloc" and "qr" in a["operator"] for a, b in pairs)


@pytest.mark.usefixtures("strict")
def test_limits_and_choices(recording):
    recording(max_entries=4)
    for _ in range(10):
        make_something()
    torch.tpu.synchronize()
    assert len([e for e in trace() if e["action"] != "free_requested"]) == 4
    recording(context=None)
    x = make_something()
    assert len(block_of(x, memory._snapshot()["segments"])["frames"]) == 1
    assert all(len(e["frames"]) <= 1 for e in trace())
    recording(context="state")
    y = make_something()
    assert len(block_of(y, memory._snapshot()["segments"])["frames"]) > 1
    assert all(len(e["frames"]) <= 1 for e in trace())
    recording(enabled="state")
    z = make_something()
    assert trace() == []
    assert len(block_of(z, memory._snapshot()["segments"])["frames"]) > 1
    recording(skip_actions=["free_requested", "snapshot"])
    make_something()
    torch.tpu.synchronize()
    assert {e["action"] for e in trace()} == {"alloc", "free_completed"}
    memory._record_memory_history(None)
    kept = len(trace())
    make_something()
    assert len(trace()) == kept


@pytest.mark.usefixtures("strict")
def test_metadata(recording):
    recording()
    memory._set_memory_metadata("step 7")
    assert memory._get_memory_metadata() == "step 7"
    make_something()
    memory._set_memory_metadata("")
    make_something()
    texts = [e["user_metadata"] for e in trace() if e["action"] == "alloc" and e["size"] == 777 * 4]
    assert texts == ["step 7", "step 7", "", ""]


def test_old_form(recording):
    memory._record_memory_history(True, trace_alloc_max_entries=100, trace_alloc_record_context=True)
    x = make_something()
    assert any(e["action"] == "alloc" and len(e["frames"]) > 1 for e in trace())
    assert len(block_of(x, memory._snapshot()["segments"])["frames"]) > 1
    memory._record_memory_history(False)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"enabled": "everything"}, ValueError),
        ({"context": "some"}, ValueError),
        ({"stacks": "cpp"}, ValueError),
        ({"skip_actions": ["allocs"]}, ValueError),
        ({"compile_context": True}, NotImplementedError),
        ({"global_record_annotations": True}, NotImplementedError),
    ],
)
def test_wrong_arguments(arguments, error):
    with pytest.raises(error):
        memory._record_memory_history(**arguments)


def test_pytorchs_visualiser_reads_it(recording, tmp_path):
    recording()
    x = make_something()
    big = torch.zeros(6 << 20, device="tpu") + 1
    make_something()
    path = tmp_path / "snapshot.pickle"
    memory._dump_snapshot(str(path))
    snapshot = pickle.loads(path.read_bytes())
    assert set(snapshot) >= {"segments", "device_traces", "allocator_settings", "external_annotations"}
    for page in (viz.trace_plot(snapshot), viz.trace_plot(snapshot, plot_segments=True), viz.segment_plot(snapshot)):
        assert "MemoryViz.js" in page
    stacks = viz.memory(snapshot, format_flamegraph=str)
    line = next(row for row in stacks.splitlines() if row.endswith(f" {x.nbytes}") and "make_something" in row)
    assert line.split(" ")[0].startswith("stream_0;active_allocated;")
    assert "mul" in line
    assert "active_allocated" in viz.segments(snapshot, format_flamegraph=str)
    assert "only_after" in viz.compare([], snapshot["segments"], format_flamegraph=str)
    summary = viz.segsum(snapshot)  # checks that blocks and segments add up
    assert "24.0MiB allocated" in summary
    assert f"total_allocated: {viz.Bytes(torch.tpu.memory_allocated())}" in summary
    text = viz.trace(snapshot)
    assert "3.0KiB" in text
    assert "del " in text
    freed = viz.trace_plot(pickle.loads(path.read_bytes()), filter_freed=True)
    assert len(freed) < len(viz.trace_plot(snapshot))
    del big


def test_recording_on_several_threads_and_at_exit(output):
    code = """
import threading, torch
torch.tpu.memory._record_memory_history(max_entries=50)
def work(k):
    x = torch.full((8,), float(k), device="tpu", requires_grad=True)
    for _ in range(50):
        (x * k).sum().backward()
threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
for t in threads: t.start()
for t in threads: t.join()
snapshot = torch.tpu.memory._snapshot()
trace = snapshot["device_traces"][0]
print(len(trace) >= 50, any("work" == f["name"] for e in trace for f in e["frames"]))
"""
    assert output(code) == "True True"
