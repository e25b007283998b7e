"""`python -m tests.aot [--only gpt2,vit] [--what forward|train]`: the models' programs through the TPU compiler.

Without options it writes docs/aot.md. Programs that passed in an earlier run are not compiled again.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from tests.aot.collect import ROOT, programs_of
from tests.aot.compiler import TOPOLOGIES, Compiler, libtpu
from tests.models import zoo

PAGE = ROOT / "docs" / "aot.md"

HEAD = """\
# Programs and the TPU compiler

libtpu compiles for TPUs that are not there. `make aot` runs the forward pass of every model of `docs/models.md`, takes
the programs it is made of, and compiles them for {topologies}.
Numbers: programs, and how many the compiler took.

| model | programs | {columns} |
|---|---|{rule}
"""


def _refusal_lines(refusals: dict[tuple[str, str, str], set[str]]) -> str:
    if not refusals:
        return "\nRefused: none.\n"
    lines = ["\nRefused:\n"]
    for (operators, topology, reason), models in sorted(refusals.items()):
        lines.append(f"- `{operators}` for {topology} ({', '.join(sorted(models))}): {reason}")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.aot", description=__doc__)
    parser.add_argument("--only", default=",".join(zoo.MODELS), help="comma-separated names")
    parser.add_argument("--what", default="forward", choices=["forward", "train"])
    arguments = parser.parse_args()
    if libtpu() is None:
        print("the TPU compiler is not installed: pip install libtpu")
        return 1
    compilers = [Compiler(topology) for topology in TOPOLOGIES]
    rows = []
    refusals: dict[tuple[str, str, str], set[str]] = {}
    for name in arguments.only.split(","):
        with tempfile.TemporaryDirectory() as directory:
            programs = programs_of(name, arguments.what, Path(directory))
        taken = []
        for compiler in compilers:
            refused = compiler.refusals(programs)
            taken.append(str(len(programs) - len(refused)))
            for program, reason in refused.items():
                refusals.setdefault((program.name, compiler.topology, reason), set()).add(name)
        rows.append(f"| {name} | {len(programs)} | {' | '.join(taken)} |\n")
        print(rows[-1], end="", flush=True)
    print(_refusal_lines(refusals).strip())
    print(f"compiled {sum(compiler.compiled for compiler in compilers)} programs; the others had passed before")
    if arguments.what == "forward" and len(rows) == len(zoo.MODELS):
        head = HEAD.format(
            topologies=" and ".join(f"`{t}`" for t in TOPOLOGIES),
            columns=" | ".join(TOPOLOGIES),
            rule="---|" * len(TOPOLOGIES),
        )
        PAGE.write_text(head + "".join(rows) + _refusal_lines(refusals))
    return int(bool(refusals))


if __name__ == "__main__":
    sys.exit(main())
