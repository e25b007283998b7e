"""Writes docs/conformance.md."""

import collections
import pathlib
from typing import Any

PAGE = pathlib.Path(__file__).resolve().parent.parent.parent / "docs" / "conformance.md"
VERDICTS = ("passed", "excused", "failed")

HEAD = """\
# Conformance

PyTorch's own operator tests (OpInfo, from the wheel), run on the device in strict mode and compared with CPU eager
PyTorch: every operator that the training and inference of 512 models uses. A case is an operator and a kind of check,
on up to 12 of upstream's sample inputs. Written by `make conformance`; the reasons are in
`tests/conformance/status.toml`.

| kind | what is compared |
|---|---|
| float32, int64 | forward results |
| out= | right size, with gaps, empty, too large (warning), wrong dtype (error) |
| in-place | plain and with gaps, float32 and int64 |
| non-contiguous | inputs with gaps, and with dimensions swapped in memory |
| strides | how results lie in memory |
| zero-size, 0-d | values, or the CPU's error class |
| errors | upstream's wrong calls: class and text |
| gradients | first derivatives, against CPU autograd |

"By design": the device differs on purpose. "XLA": the compiler's or its runtime's doing, with evidence. "Ours": to fix.
Where the CPU refuses a value (an index out of range, say) and strict mode does not, the call is made once more in debug
mode, which is to refuse it.
"""


def _counts(results: list[dict[str, Any]]) -> collections.Counter[str]:
    return collections.Counter(r["verdict"] for r in results if r["verdict"] != "none")


def summary(results: list[dict[str, Any]]) -> str:
    counts = _counts(results)
    total = sum(counts.values())
    return f"{total} cases: " + ", ".join(f"{counts[v]} {v}" for v in VERDICTS) + f" ({_share(counts)} pass)"


def _share(counts: collections.Counter[str]) -> str:
    return f"{100 * counts['passed'] / max(sum(counts.values()), 1):.1f} %"


def write(results: list[dict[str, Any]], kinds: list[str], uncovered: list[str]) -> None:
    lines = [HEAD, "| kind | cases | passed | excused | failed | pass |", "|---|---|---|---|---|---|"]
    for kind in [*kinds, "all"]:
        counts = _counts([r for r in results if kind in (r["kind"], "all")])
        cells = [str(sum(counts.values())), *(str(counts[v]) for v in VERDICTS), _share(counts)]
        lines.append(f"| {kind} | {' | '.join(cells)} |")
    lines += ["", "## Cases that do not pass", "", "| operator | kind | why | reason |", "|---|---|---|---|"]
    for r in sorted(results, key=lambda r: (r["op"], r["kind"])):
        if r["verdict"] in ("excused", "failed"):
            notes = list(r["reasons"])
            notes += [("failed", _cell(p)) for p in r["problems"] if not p["excused"]][:1]
            for why, reason in notes:
                lines.append(f"| {r['op']} | {r['kind']} | {why} | {reason} |")
    lines += ["", "## Operators without an OpInfo", "", "Upstream has no samples for these; `tests/operators` has:", ""]
    lines.append(", ".join(f"`{name}`" for name in uncovered) + ".")
    PAGE.write_text("\n".join(lines) + "\n")


def _cell(problem: dict[str, Any]) -> str:
    return f"{problem['at']}: {problem['text']}".replace("|", "\\|").replace("\n", " ")[:160]
