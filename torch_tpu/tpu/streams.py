"""Streams and events. torch.cuda's promises of order hold; work is ordered by its data: no added concurrency."""

from typing import Any

import torch

from torch_tpu.tpu._device import Device, index_of


class Stream(torch.Stream):
    """A stream of `device`. `priority` is accepted and has no effect."""

    def __new__(cls, device: Device = None, priority: int = 0, **kwargs: Any) -> "Stream":
        if "stream_id" in kwargs:
            return super().__new__(cls, **kwargs)
        return super().__new__(cls, torch.device("tpu", index_of(device)), priority=priority)

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """(lowest, highest): there is one priority."""
        return 0, 0


class _EventType(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, torch.Event) and instance.device.type == "tpu"


class Event(metaclass=_EventType):
    """An event of `device`; with `enable_timing`, `elapsed_time` gives milliseconds.

    Makes a plain `torch.Event`: PyTorch 2.13's `elapsed_time` takes no subclass of it.
    """

    def __new__(
        cls,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
        external: bool = False,
        device: Device = None,
    ) -> torch.Event:
        if interprocess or external:
            raise NotImplementedError("the device 'tpu' has no interprocess or external events")
        place = torch.device("tpu", index_of(device))
        return torch.Event(place, enable_timing=enable_timing, blocking=blocking)


class StreamContext:
    """Context manager: the stream, and its device, are current inside it; None changes nothing."""

    def __init__(self, stream: torch.Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> torch.Stream | None:
        if self.stream is not None:
            self.stream.__enter__()
        return self.stream

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        if self.stream is not None:
            self.stream.__exit__(kind, value, traceback)


def stream(stream: torch.Stream | None) -> StreamContext:
    """`with torch.tpu.stream(s):` makes `s` current inside."""
    return StreamContext(stream)


def set_stream(stream: torch.Stream | None) -> None:
    """Makes `stream` current; None changes nothing."""
    if stream is not None:
        torch.accelerator.set_stream(stream)


def current_stream(device: Device = None) -> Stream:
    """The current stream of `device`."""
    current = torch.accelerator.current_stream(index_of(device))
    return _stream(current.stream_id, current.device_index)


def default_stream(device: Device = None) -> Stream:
    """The stream that is current on `device` until another is set."""
    return _stream(0, index_of(device))


def _stream(number: int, device: int) -> Stream:
    kind = torch._C._autograd.DeviceType.PrivateUse1
    return Stream(stream_id=number, device_index=device, device_type=int(kind))
