"""Streams and events: torch.cuda's names, and its promises of order."""

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


def test_events():
    start, end = torch.tpu.Event(enable_timing=True), torch.tpu.Event(enable_timing=True)
    start.record()
    x = torch.ones(128, 128, device="tpu")
    x @ x
    end.record()
    end.synchronize()
    assert end.query()
    assert start.elapsed_time(end) >= 0
    torch.tpu.current_stream().wait_event(end)
    with pytest.raises(NotImplementedError):
        torch.tpu.Event(interprocess=True)
