"""Streams and events: torch.cuda's names, and its promises of order and time."""

import threading
import time

import pytest
import torch


def test_current_and_default():
    default = torch.tpu.default_stream()
    assert torch.tpu.current_stream() == default
    stream = torch.tpu.Stream()
    assert isinstance(stream, torch.Stream)
    assert stream != default
    with torch.tpu.stream(stream) as inside:
        assert inside is stream
        assert torch.tpu.current_stream() == stream
    assert torch.tpu.current_stream() == default
    torch.tpu.set_stream(stream)
    assert torch.accelerator.current_stream() == stream
    torch.tpu.set_stream(default)
    with torch.tpu.stream(None):
        assert torch.tpu.current_stream() == default


def test_types_and_identity():
    stream = torch.tpu.Stream(priority=-1)
    with stream:
        current = torch.tpu.current_stream()
    for s in (stream, current, torch.tpu.default_stream(), torch.tpu.current_stream("tpu:0")):
        assert type(s) is torch.tpu.Stream
        assert s.device == torch.device("tpu", 0)
    assert current == stream
    assert hash(current) == hash(stream)
    assert len({stream, current, torch.tpu.Stream()}) == 2
    assert torch.Stream("tpu") != stream
    assert isinstance(torch.tpu.Event(), torch.tpu.Event)
    assert not isinstance(torch.ones(1), torch.tpu.Event)


def test_order_across_streams():
    stream = torch.tpu.Stream()
    x = torch.ones(64, device="tpu")
    with torch.tpu.stream(stream):
        for _ in range(5):
            x.add_(1)
    torch.tpu.current_stream().wait_stream(stream)
    x.record_stream(stream)
    assert x.sum().item() == 64 * 6
    assert stream.query()
    stream.synchronize()


def test_memory_recorded_on_a_stream_keeps_its_values():
    main, side = torch.tpu.current_stream(), torch.tpu.Stream()
    x = torch.arange(1000.0, device="tpu")
    side.wait_stream(main)
    with side:
        y = x * 2
    x.record_stream(side)
    del x
    junk = [torch.full((1000,), -1.0, device="tpu") for _ in range(20)]
    main.wait_stream(side)
    assert y.sum().item() == 999000.0
    assert junk[0][0].item() == -1


def test_events_order_streams():
    side, done = torch.tpu.Stream(), torch.tpu.Event()
    x = torch.zeros(16, device="tpu")
    with side:
        x += 1
        done.record(side)
    torch.tpu.current_stream().wait_event(done)
    x *= 3
    event = torch.tpu.current_stream().record_event()
    side.wait_event(event)
    with side:
        x += 1
    done.wait()
    side.synchronize()
    assert x.tolist() == [4.0] * 16
    assert event.query()
    generic = torch.Event("tpu")
    generic.record()
    generic.synchronize()
    assert generic.query()


def test_events_time_the_work_between_them():
    start, end = torch.tpu.Event(enable_timing=True), torch.tpu.Event(enable_timing=True)
    x = torch.ones(128, 128, device="tpu")
    (x @ x).sum().item()
    before = time.perf_counter()
    start.record()
    for _ in range(3):
        x @ x
    end.record()
    end.synchronize()
    outside = (time.perf_counter() - before) * 1e3
    assert end.query()
    assert 0 < start.elapsed_time(end) <= outside  # milliseconds
    assert end.elapsed_time(start) < 0


def test_events_that_cannot_tell_the_time():
    untimed, timed = torch.tpu.Event(), torch.tpu.Event(enable_timing=True)
    timed.record()
    with pytest.raises(ValueError, match="enable_timing=True"):
        untimed.elapsed_time(timed)
    with pytest.raises(ValueError, match="must be recorded"):
        timed.elapsed_time(torch.tpu.Event(enable_timing=True))
    with pytest.raises(NotImplementedError):
        torch.tpu.Event(interprocess=True)
    with pytest.raises(NotImplementedError):
        torch.tpu.Event(external=True)


def test_the_current_stream_is_a_threads_own():
    stream, seen = torch.tpu.Stream(), []
    with stream:
        thread = threading.Thread(target=lambda: seen.append(torch.tpu.current_stream()))
        thread.start()
        thread.join()
        assert torch.tpu.current_stream() == stream
    assert seen == [torch.tpu.default_stream()]


def test_streams_of_several_devices(output):
    code = """
import torch
s = torch.tpu.Stream(1)
print(s.device, torch.tpu.current_stream(1).device, torch.tpu.default_stream("tpu:1").device)
with s:
    print(torch.tpu.current_device(), torch.tpu.current_stream() == s, torch.ones(1, device="tpu").device)
print(torch.tpu.current_device(), torch.tpu.current_stream(1) == torch.tpu.default_stream(1))
e = torch.tpu.Event(device=1)
e.record(s); e.synchronize(); print(e.device)
torch.tpu.set_stream(s)
print(torch.tpu.current_device(), torch.tpu.current_stream() == s)
torch.tpu.synchronize(1)
"""
    assert output(code, TORCH_TPU_NUM_DEVICES="2").splitlines() == [
        "tpu:1 tpu:1 tpu:1",
        "1 True tpu:1",
        "0 True",
        "tpu:1",
        "1 True",
    ]
