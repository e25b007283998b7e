"""Random numbers: a generator for each device, whose state is its seed and offset."""

from collections.abc import Callable, Iterable

import torch

from torch_tpu import _runtime
from torch_tpu.tpu._device import Device, device_count, index_of


def _generator(device: Device) -> torch.Generator:
    index = index_of(device)
    generator: torch.Generator = _runtime.started().default_generator(index)
    return generator


def default_generators() -> tuple[torch.Generator, ...]:
    """The generator of each device."""
    return tuple(_generator(index) for index in range(_runtime.started().device_count()))


def manual_seed(seed: int) -> None:
    """Seeds the current device's generator; before the device has started, when it does."""
    seed = int(seed)
    _when_usable("seed", lambda: _seed([None], seed))


def manual_seed_all(seed: int) -> None:
    """Seeds every device's generator; before the device has started, when it does. torch.manual_seed calls it."""
    seed = int(seed)
    _when_usable("seed_all", lambda: _seed(range(device_count()), seed))


def _when_usable(name: str, action: Callable[[], None]) -> None:
    # A program for the CPU seeds too: nothing may start, and nothing may fail, where the device cannot be used.
    if _runtime.startup_error() is None and not _runtime.require().is_in_bad_fork():
        _runtime.when_started(name, action)


def _seed(devices: Iterable[Device], seed: int) -> None:
    for device in devices:
        _generator(device).manual_seed(seed)


def seed() -> int:
    """Seeds the current device's generator at random and returns the seed."""
    return _generator(None).seed()


def seed_all() -> int:
    """Seeds every device's generator with one random number and returns it."""
    value = seed()
    manual_seed_all(value)
    return value


def initial_seed() -> int:
    """The seed of the current device's generator."""
    return _generator(None).initial_seed()


def get_rng_state(device: Device = "tpu") -> torch.Tensor:
    """The state of a device's generator: a uint8 tensor on the CPU."""
    return _generator(device).get_state()


def get_rng_state_all() -> list[torch.Tensor]:
    """The state of every device's generator."""
    return [generator.get_state() for generator in default_generators()]


def set_rng_state(new_state: torch.Tensor, device: Device = "tpu") -> None:
    """Restores what `get_rng_state` returned."""
    _generator(device).set_state(new_state)


def set_rng_state_all(new_states: Iterable[torch.Tensor]) -> None:
    """Restores what `get_rng_state_all` returned."""
    for generator, state in zip(default_generators(), new_states, strict=True):
        generator.set_state(state)


def _get_rng_state_offset(device: Device = "tpu") -> int:
    return _generator(device).get_offset()


def _set_rng_state_offset(offset: int, device: Device = "tpu") -> None:
    _generator(device).set_offset(offset)
