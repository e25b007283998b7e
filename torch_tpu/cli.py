"""The command `torch-tpu`: what is installed and how the device sees it, and the disk cache of programs."""

import argparse
import dataclasses
import pathlib
import platform
import sys
import time
from collections.abc import Sequence

import torch

import torch_tpu
from torch_tpu import _runtime

_SUFFIX = ".program"


@dataclasses.dataclass(frozen=True)
class CachedProgram:
    """A file of the cache: its key, its size in bytes and when it was last used (seconds since the epoch)."""

    path: pathlib.Path
    bytes: int
    used: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    parsed = _parser().parse_args(arguments)
    try:
        return int(parsed.run(parsed) or 0)
    except (RuntimeError, ValueError, OSError) as error:
        print(f"torch-tpu: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="torch-tpu", description="TorchTPU's installation and program cache.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    info = commands.add_parser(
        "info", help="versions, plugin, devices, settings; exit status 1 if the device is unusable"
    )
    info.set_defaults(run=_info)
    cache = commands.add_parser("cache", help="the disk cache of compiled programs")
    actions = cache.add_subparsers(required=True, metavar="ACTION")
    actions.add_parser("ls", help="one line a program, most recently used first").set_defaults(run=_list)
    actions.add_parser("stats", help="how many, how large, the limit").set_defaults(run=_stats)
    actions.add_parser("clear", help="removes all of them").set_defaults(run=_clear)
    prune = actions.add_parser("prune", help="removes the least recently used down to the limit")
    prune.add_argument("--size", type=_bytes, metavar="BYTES", help="the limit, instead of TORCH_TPU_CACHE_SIZE")
    prune.add_argument("--days", type=float, metavar="N", help="also what has not been used for N days")
    prune.set_defaults(run=_prune)
    return parser


def _bytes(text: str) -> int:
    units = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
    number, unit = (text[:-1], units[text[-1].lower()]) if text[-1:].lower() in units else (text, 1)
    if not number.isdigit():
        raise argparse.ArgumentTypeError(f"'{text}' is no number of bytes, such as 500000000, 500M or 2G")
    return int(number) * unit


def _size(count: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"


# -- info -------------------------------------------------------------------------------------------------------------


def _info(_: argparse.Namespace) -> int:
    rows = [("torchtpu", torch_tpu.__version__), ("torch", torch.__version__), ("python", platform.python_version())]
    problem = None
    try:
        torch.tpu.init()
    except (RuntimeError, ValueError) as error:
        problem = str(error)
    if problem is None:
        rows.append(("platform", f"{torch.tpu.platform()} ({torch.tpu.platform_version().splitlines()[0]})"))
        for index in range(torch.tpu.device_count()):
            properties = torch.tpu.get_device_properties(index)
            rows.append((f"tpu:{index}", f"{properties.name}, {_size(properties.total_memory)}"))
        rows.append(("eager mode", torch.tpu.get_eager_mode().name))
    else:
        rows.append(("device", f"cannot be used: {problem}"))
    if _runtime.startup_error() is None:
        directory, limit = _settings()
        rows.append(("program cache", f"{directory}, at most {_size(limit)}" if directory else "off"))
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(f"{name:{width}}  {value}")
    return 0 if problem is None else 1


# -- cache ------------------------------------------------------------------------------------------------------------


def _settings() -> tuple[str, int]:
    directory, limit = _runtime.require().disk_cache_settings()
    return str(directory), int(limit)


def _programs() -> list[CachedProgram]:
    """The cache's programs, most recently used first. Raises ValueError where the cache is switched off."""
    directory, _ = _settings()
    if not directory:
        raise ValueError(
            "the program cache is switched off (TORCH_TPU_CACHE=0, or neither HOME nor XDG_CACHE_HOME is set)"
        )
    found = []
    for path in pathlib.Path(directory).glob(f"*{_SUFFIX}"):
        try:
            status = path.stat()
        except FileNotFoundError:  # another process prunes
            continue
        found.append(CachedProgram(path, status.st_size, status.st_mtime))
    return sorted(found, key=lambda program: program.used, reverse=True)


def _list(_: argparse.Namespace) -> None:
    for program in _programs():
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(program.used))
        print(f"{program.path.name.removesuffix(_SUFFIX)}  {program.bytes:>10}  {used}")


def _stats(_: argparse.Namespace) -> None:
    programs = _programs()
    directory, limit = _settings()
    print(f"directory  {directory}")
    print(f"programs   {len(programs)}")
    print(f"size       {_size(sum(program.bytes for program in programs))} of {_size(limit)}")


def _clear(_: argparse.Namespace) -> None:
    _remove(_programs())


def _prune(parsed: argparse.Namespace) -> None:
    programs = _programs()
    limit = parsed.size if parsed.size is not None else _settings()[1]
    oldest = time.time() - parsed.days * 86400 if parsed.days is not None else float("-inf")
    total = 0
    doomed = []
    for program in programs:
        total += program.bytes
        if total > limit or program.used < oldest:
            doomed.append(program)
    _remove(doomed)


def _remove(programs: list[CachedProgram]) -> None:
    for program in programs:
        program.path.unlink(missing_ok=True)
    print(f"removed {len(programs)} programs, {_size(sum(program.bytes for program in programs))}")
