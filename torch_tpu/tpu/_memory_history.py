"""torch.tpu.memory's record of allocations and its snapshots, in the form of PyTorch's memory visualiser.

Pages to look at them with: pytorch.org/memory_viz, and the functions of torch.cuda._memory_viz.
"""

import inspect
import pickle
import sys
import threading
from collections.abc import Sequence
from typing import Any

import torch
from torch._utils import _augment_memory_snapshot_stack_traces

from torch_tpu import _runtime
from torch_tpu.tpu._device import Device

_STACKS = {None: 0, "state": 1, "alloc": 2, "all": 2}
_ACTIONS = ("alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "oom", "snapshot")

_lock = threading.Lock()
_settings: dict[str, Any] = {}
_skipped: frozenset[str] = frozenset()


def record(
    enabled: str | None = "all",
    context: str | None = "all",
    stacks: str = "all",
    max_entries: int = sys.maxsize,
    device: Device = None,
    clear_history: bool = False,
    compile_context: bool = False,
    global_record_annotations: bool = False,
    skip_actions: Sequence[str] | None = None,
) -> None:
    """Records what makes and frees memory, on all devices; None as `enabled` stops.

    `enabled`: "state" keeps the stacks of live memory, "all" a record of every allocation and free besides, the last
    `max_entries` of a device. `context`: whose Python stacks are kept: None, "state" (of live memory), "alloc" or "all"
    (of the record's allocations too; frees have none). `skip_actions` leaves kinds of entries out of snapshots.
    `stacks` and `device` are accepted: stacks hold the operator and Python's frames, never C++ frames. Raises
    ValueError for other values and NotImplementedError for `compile_context` and `global_record_annotations`.
    """
    global _settings, _skipped
    if compile_context or global_record_annotations:
        raise NotImplementedError("torch.tpu records neither compile contexts nor record_function's annotations")
    if enabled not in (None, "state", "all"):
        raise ValueError(f"expected state to be 'state', 'all', or None, but got: {enabled!r}")
    if context not in _STACKS:
        raise ValueError(f"expected context to be 'state', 'alloc', 'all', or None, but got: {context!r}")
    if stacks not in ("python", "all"):
        raise ValueError(f"expected stacks to be 'python' or 'all', but got: {stacks!r}")
    unknown = set(skip_actions or ()) - set(_ACTIONS)
    if unknown:
        raise ValueError(f"unknown actions to skip: {', '.join(sorted(unknown))}; there are {', '.join(_ACTIONS)}")
    extension = _runtime.started()
    with _lock:
        _skipped = frozenset(skip_actions or ())
        if enabled is None:
            _settings = {}
            extension.stop_memory_history()
        else:
            _settings = {"enabled": enabled, "context": context, "stacks": stacks, "max_entries": max_entries}
            extension.start_memory_history(enabled == "all", _STACKS[context], max_entries, clear_history)


def _record_memory_history(enabled: Any = "all", *args: Any, **kwargs: Any) -> None:
    if isinstance(enabled, bool):
        _record_legacy(enabled, *args, **kwargs)
    else:
        record(enabled, *args, **kwargs)


_record_memory_history.__doc__ = record.__doc__
vars(_record_memory_history)["__signature__"] = inspect.signature(record)


def _record_legacy(
    enabled: bool,
    record_context: bool = True,
    trace_alloc_max_entries: int = 1,
    trace_alloc_record_context: bool = False,
    device: Device = None,
    record_context_cpp: bool = False,
    clear_history: bool = False,
) -> None:
    context = "alloc" if trace_alloc_record_context else "state" if record_context else None
    record("all" if enabled else None, context, "all", trace_alloc_max_entries, device, clear_history)


def _snapshot(device: Device = None, augment_with_fx_traces: bool = False) -> dict[str, Any]:
    """Memory as it is now and what was recorded, of all devices: CUDA's dictionary.

    Each array of the device is a segment of one block. `address` is a name, not a place: it grows with every allocation
    and never comes back. The innermost frame, of the file "torch.tpu", names the operator that made the memory; blocks
    and entries have it under "operator" besides, and blocks the `data_ptr()` of a storage that holds them.
    """
    snapshot: dict[str, Any] = _runtime.started().memory_snapshot(with_events=True)
    with _lock:
        settings, skipped = dict(_settings), _skipped
    if skipped:
        traces = snapshot["device_traces"]
        snapshot["device_traces"] = [[e for e in trace if e["action"] not in skipped] for trace in traces]
    snapshot["external_annotations"] = []
    snapshot["allocator_settings"] = settings
    return _augment_memory_snapshot_stack_traces(snapshot) if augment_with_fx_traces else snapshot


def _dump_snapshot(filename: str = "dump_snapshot.pickle", augment_with_fx_traces: bool = False) -> None:
    """Writes `_snapshot()` to a file that pytorch.org/memory_viz opens."""
    snapshot = _snapshot(augment_with_fx_traces=augment_with_fx_traces)
    with open(filename, "wb") as file:
        pickle.dump(snapshot, file)


def memory_snapshot(mempool_id: Any = None, include_traces: bool = True) -> list[dict[str, Any]]:
    """The segments of `_snapshot`: what lives on all devices now. There are no pools but (0, 0)."""
    if mempool_id is not None and tuple(mempool_id) != (0, 0):
        return []
    segments: list[dict[str, Any]] = _runtime.started().memory_snapshot(with_events=False)["segments"]
    return segments


def _allocation_traceback(data_ptr: int) -> list[dict[str, Any]] | None:
    """The frames of the call that made the storage at `data_ptr`, None where that was not recorded."""
    frames: list[dict[str, Any]] | None = _runtime.started().allocation_traceback(data_ptr)
    return frames


def _set_memory_metadata(metadata: str) -> None:
    """A text to keep with all that is recorded from now on; "" for none."""
    _runtime.require().set_memory_metadata(metadata)


def _get_memory_metadata() -> str:
    """What `_set_memory_metadata` set."""
    return str(_runtime.require().memory_metadata())


def _save_segment_usage(filename: str = "output.svg", snapshot: Any = None) -> None:
    """Writes a flame graph of the segments, as torch.cuda.memory does; the first call downloads flamegraph.pl."""
    _write(filename, torch.cuda._memory_viz.segments(_snapshot() if snapshot is None else snapshot))


def _save_memory_usage(filename: str = "output.svg", snapshot: Any = None) -> None:
    """Writes a flame graph of who made the memory, as torch.cuda.memory does; the first downloads flamegraph.pl."""
    _write(filename, torch.cuda._memory_viz.memory(_snapshot() if snapshot is None else snapshot))


def _write(filename: str, text: str) -> None:
    with open(filename, "w") as file:
        file.write(text)
