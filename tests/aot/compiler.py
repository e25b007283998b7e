"""libtpu as a compiler, in child processes because it can end its process; passes are remembered by content."""

import hashlib
import importlib.metadata
import importlib.util
import pathlib
import subprocess
import tempfile
from collections.abc import Iterable

from tests.aot.collect import ROOT, Program

TOOL = ROOT / "build" / "tests" / "cpp" / "aot_compile"
PASSES = ROOT / "build" / "aot-passes.txt"
TOPOLOGIES = ("v5e:1x1", "tpu7x:1x1x1")
LIMIT_SECONDS = 1200


def libtpu() -> str | None:
    """Where libtpu is installed, or None."""
    spec = importlib.util.find_spec("libtpu")
    return str(pathlib.Path(spec.origin).parent / "libtpu.so") if spec is not None and spec.origin else None


class Compiler:
    """Compiles programs for one topology.

    Attributes:
        compiled: how many programs the compiler has seen; the others had passed before.
    """

    def __init__(self, topology: str, passes: pathlib.Path = PASSES) -> None:
        self.topology = topology
        self.compiled = 0
        self._passes = passes
        self._known = set(passes.read_text().split()) if passes.exists() else set()
        self._version = importlib.metadata.version("libtpu")

    def refusals(self, programs: Iterable[Program]) -> dict[Program, str]:
        """The programs the compiler does not take, with its reasons."""
        waiting = {p.digest: p for p in programs if self._key(p) not in self._known}
        refused: dict[Program, str] = {}
        with tempfile.TemporaryDirectory() as directory:
            for digest, program in waiting.items():
                (pathlib.Path(directory) / digest).write_text(program.text)
            while waiting:
                results = self._run([str(pathlib.Path(directory) / digest) for digest in waiting])
                for digest, reason in results.items():
                    program = waiting.pop(digest)
                    self.compiled += 1
                    if reason is None:
                        self._remember(program)
                    else:
                        refused[program] = reason
        return refused

    def _run(self, paths: list[str]) -> dict[str, str | None]:
        """Reasons by digest, None for a program that passed, up to one that ended the process. At least one."""
        try:
            child = subprocess.run(
                [str(TOOL), str(libtpu()), self.topology, *paths],
                capture_output=True, text=True, timeout=LIMIT_SECONDS,
            )  # fmt: skip
            output, end = child.stdout, f"the compiler ended the process ({child.returncode}): {child.stderr[-300:]}"
        except subprocess.TimeoutExpired as timeout:
            stdout = timeout.stdout or b""
            output = stdout.decode() if isinstance(stdout, bytes) else stdout
            end = f"not compiled after {LIMIT_SECONDS} s"
        results: dict[str, str | None] = {}
        started = None
        for line in output.splitlines():
            head, _, rest = line.partition("\t")
            if head == "START":
                started = pathlib.Path(rest).name
            elif started is not None and pathlib.Path(head).name == started:
                results[started] = None if rest.startswith("OK\t") else rest
                started = None
        if started is not None:
            results[started] = " ".join(end.split())
        if not results:
            raise RuntimeError(f"{TOOL.name} compiled nothing for {self.topology}: {end}")
        return results

    def _key(self, program: Program) -> str:
        return hashlib.sha256(f"{self._version} {self.topology} {program.digest}".encode()).hexdigest()

    def _remember(self, program: Program) -> None:
        key = self._key(program)
        self._known.add(key)
        with self._passes.open("a") as file:
            file.write(key + "\n")
