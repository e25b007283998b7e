"""Reads status.toml, the list of what is excused, and applies it to results."""

import dataclasses
import pathlib
import re
import tomllib
from typing import Any

PATH = pathlib.Path(__file__).with_name("status.toml")
WHY = ("by design", "XLA", "ours")


@dataclasses.dataclass
class Entry:
    """Excuses problems of some operators in one kind of check.

    `ops` and `match` are regular expressions, for the whole operator name and for a part of the problem's text. `off`
    is the loosened limit of a value's relative difference: greater ones are not excused.
    """

    ops: str
    kinds: list[str]
    why: str
    reason: str
    match: str = ""
    off: float | None = None
    used_by: set[str] = dataclasses.field(default_factory=set)

    def excuses(self, op: str, kind: str, problem: dict[str, Any]) -> bool:
        if kind not in self.kinds or not re.fullmatch(self.ops, op):
            return False
        if self.off is not None and (problem["off"] is None or problem["off"] > self.off):
            return False
        return re.search(self.match, f"{problem['at']}: {problem['text']}") is not None


def load() -> list[Entry]:
    entries = [Entry(**row) for row in tomllib.loads(PATH.read_text()).get("entry", [])]
    for entry in entries:
        if entry.why not in WHY or not entry.reason:
            raise ValueError(f"{PATH.name}: {entry.ops}: why is one of {WHY}, and there is a reason")
    return entries


def apply(entries: list[Entry], result: dict[str, Any]) -> str:
    """ "passed", "excused" or "failed"; "none" where there was nothing to compare. Notes the reasons in the result."""
    if not result["compared"]:
        return "none"
    result["reasons"] = []
    failed = False
    for problem in result["problems"]:
        entry = next((e for e in entries if e.excuses(result["op"], result["kind"], problem)), None)
        problem["excused"] = entry is not None
        if entry is None:
            failed = True
        else:
            entry.used_by.add(result["op"])
            note = (entry.why, entry.reason)
            if note not in result["reasons"]:
                result["reasons"].append(note)
    return "failed" if failed else "excused" if result["problems"] else "passed"


def stale(entries: list[Entry], checked: set[tuple[str, str]]) -> list[str]:
    """Entries that excuse nothing although all that they speak of was checked."""
    found = []
    kinds = {kind for _, kind in checked}
    for entry in entries:
        if not kinds.issuperset(entry.kinds):  # a run of some kinds cannot tell
            continue
        meant = {(op, kind) for op, kind in checked if kind in entry.kinds and re.fullmatch(entry.ops, op)}
        if not entry.used_by and meant:
            found.append(f"{entry.ops} {'/'.join(entry.kinds)}: {entry.reason}")
        for name in entry.ops.split("|"):
            if re.escape(name) == name and any(op == name for op, _ in meant) and name not in entry.used_by:
                found.append(f"{name} of {entry.ops} {'/'.join(entry.kinds)}: {entry.reason}")
    return found
