"""DeferAndFuse from the outside: what waits, what ran fused, and why it ran when it did."""

from typing import Any

import torch

from torch_tpu import _runtime


def flush() -> None:
    """Hands the operators that DeferAndFuse has recorded to the device, without waiting for it."""
    _runtime.require().flush()


def pending() -> int:
    """How many operators are recorded and have not been handed to the device."""
    return int(_runtime.require().pending())


def is_materialized(tensor: torch.Tensor) -> bool:
    """Whether a tensor's value has been handed to the device: False while the operator that makes it is recorded.

    Raises TypeError for what is no tensor, ValueError for a tensor of another device.
    """
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"expected a tensor, but got: {tensor!r}")
    if tensor.device.type != "tpu":
        raise ValueError(f"Expected a tpu tensor, but got one on {tensor.device}")
    return bool(_runtime.started().is_materialized(tensor))


def fusion_stats() -> dict[str, Any]:
    """Counts of this process since its start or `reset_fusion_stats`.

    operators (recorded), flushes (by reason), groups (that ran), fused_groups (of them, as one program),
    different_groups (with programs of their own), values_kept_out and bytes_kept_out (results that never took memory).
    """
    stats: dict[str, Any] = _runtime.require().fusion_stats()
    return stats


def reset_fusion_stats() -> None:
    """Sets the counts to zero."""
    _runtime.require().reset_fusion_stats()


def fusion_report() -> str:
    """The counts as a text to read."""
    stats = fusion_stats()
    flushes = {reason: count for reason, count in stats["flushes"].items() if count}
    reasons = ", ".join(f"{count} {reason.replace('_', ' ')}" for reason, count in flushes.items()) or "none"
    groups, fused = stats["groups"], stats["fused_groups"]
    return (
        f"{stats['operators']} operators recorded, {groups} groups run, {fused} of them fused "
        f"({stats['different_groups']} different ones)\n"
        f"flushes: {reasons}\n"
        f"{stats['values_kept_out']} results of {stats['bytes_kept_out'] / 2**20:.1f} MiB never took memory"
    )
