"""Writes docs/operators.md from the operator table and PyTorch's dispatcher (`make docs`); --check only compares."""

import pathlib
import re
import sys
from typing import Any

import torch

from torch_tpu import _C, decompose

PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs" / "operators.md"
# Kernels for hardware and formats that the device does not have.
_ELSEWHERE = re.compile(
    r"cudnn|miopen|mkldnn|mps|cuda|hip|_cslt|_fbgemm|fbgemm|quantized|sparse|nested|jagged|_vulkan|xnnpack|mkl_|_for_cpu"
    r"|flash_attention|efficient_attention|_coalesce|crow_|ccol_|csr|csc|coo|int_repr|qscheme|q_per|q_scale|q_zero"
    r"|dequantize|fake_quantize|fused_moving_avg|_weight_int|_nnpack|_cufft|semi_structured|_scaled_grouped|_test_"
)


def functional_overloads() -> dict[str, list[str]]:
    """The functional, non-view overloads of aten by operator name."""
    found: dict[str, list[str]] = {}
    for qualified in torch._C._dispatch_get_all_op_names():
        namespace, _, name = qualified.partition("::")
        base, _, overload = name.partition(".")
        if namespace != "aten" or base.startswith("__") or base.endswith("_") or _ELSEWHERE.search(base):
            continue
        schema = torch._C._get_schema(f"aten::{base}", overload)
        written = any(a.alias_info is not None and a.alias_info.is_write for a in schema.arguments)
        views = any(r.alias_info is not None for r in schema.returns)
        tensors = "Tensor" in str(schema)
        if not written and not views and tensors and not overload.startswith(("dimname", "names", "Dimname")):
            found.setdefault(base, []).append(overload)
    return found


def how(base: str, overload: str, rows: dict[str, Any]) -> str:
    """How the device computes an overload: "lowering", "composite", "decomposition", "kernel" or ""."""
    name = f"{base}.{overload}" if overload else base
    qualified = f"aten::{name}"

    def has(key: str) -> bool:
        return bool(torch._C._dispatch_has_kernel_for_dispatch_key(qualified, key))

    if name in rows or f"{base}.default" in rows:
        return "lowering"
    if has("CompositeImplicitAutograd") or has("CompositeExplicitAutograd"):
        return "composite"
    if has("CompositeExplicitAutogradNonFunctional") and any(row.partition(".")[0] == base for row in rows):
        return "composite"
    if decompose.has_decomposition(qualified):
        return "decomposition"
    return "kernel" if has("PrivateUse1") and not has("CompositeExplicitAutogradNonFunctional") else ""


def names(texts: list[str]) -> str:
    return ", ".join(f"`{text}`" for text in sorted(texts))


def page() -> str:
    """The page's text."""
    table = {row["name"].removesuffix(".default"): row for row in _C.operator_table()}
    ways: dict[str, list[str]] = {"composite": [], "decomposition": [], "kernel": [], "": []}
    for base, overloads in functional_overloads().items():
        found = {how(base, overload, table) for overload in overloads}
        if "lowering" not in found and not base.startswith("_"):
            ways[next(way for way in ("composite", "decomposition", "kernel", "") if way in found)].append(base)
    lines = [
        "# Operators",
        "",
        "Written by `make docs` from the operator table and PyTorch's dispatcher. An operator's in-place, `out=` and",
        "foreach forms come with it. Views (`view`, `transpose`, `slice`, ...) cost no program and are not listed.",
        "",
        "| how | operators |",
        "|---|---|",
        f"| a lowering of its own: one program | {len(table)} overloads |",
        f"| composed by PyTorch's C++ of other operators | {len(ways['composite'])} |",
        f"| PyTorch's core decomposition: one program, numbers are part of the key | {len(ways['decomposition'])} |",
        f"| a size that depends on values: a count, a host read, a program | {len(ways['kernel'])} |",
        f"| not available: an error that names `torch.tpu.cpu_fallback(True)` | {len(ways[''])} |",
        "",
        "Left out are operators for other hardware, for sparse, nested and quantised tensors, and, in all but the",
        "first line, PyTorch's internal ones.",
        "",
        "## Lowerings",
        "",
        "Static arguments are part of a program's key; other numbers are values, and changing them compiles nothing.",
        "",
        "| operator | static numbers | tolerance class |",
        "|---|---|---|",
    ]
    lines += [f"| `{name}` | {row['statics']} | {row['tolerance']} |" for name, row in sorted(table.items())]
    sections = {"composite": "Composites", "decomposition": "Decompositions", "kernel": "Data-dependent sizes"}
    for way, title in {**sections, "": "Not available"}.items():
        lines += ["", f"## {title}", "", names(ways[way]) + "."]
    return "\n".join(lines) + "\n"


def main() -> None:
    text = page()
    if "--check" in sys.argv:
        sys.exit(PAGE.read_text() != text and "docs/operators.md is out of date: run `make docs`")
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
