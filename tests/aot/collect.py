"""The programs a model of tests/models needs: run in a process of its own, which writes each of them to a directory."""

import dataclasses
import hashlib
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


@dataclasses.dataclass(frozen=True)
class Program:
    """StableHLO text, and the operators it is for."""

    name: str
    text: str

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


def forward(name: str) -> None:
    """One forward pass with loss on the device, in the collecting process."""
    import torch

    from tests.models import zoo

    case = zoo.make(name)
    case.model.to("tpu")
    inputs = {key: value.to("tpu") if isinstance(value, torch.Tensor) else value for key, value in case.inputs.items()}
    with torch.no_grad():
        case.model(**inputs)
    torch.tpu.synchronize()


def train(name: str) -> None:
    """One forward and backward pass and a step of AdamW on the device, in the collecting process."""
    import torch

    from tests.models import zoo

    case = zoo.make(name)
    case.model.to("tpu").train()
    inputs = {key: value.to("tpu") if isinstance(value, torch.Tensor) else value for key, value in case.inputs.items()}
    optimizer = torch.optim.AdamW(case.model.parameters())
    case.model(**inputs).loss.backward()
    optimizer.step()
    torch.tpu.synchronize()


def programs_of(name: str, what: str, directory: pathlib.Path) -> list[Program]:
    """The programs of `what` ("forward" or "train") of the model `name`, dumped into `directory` on the way.

    Raises RuntimeError where the model does not run.
    """
    environment = {**os.environ, "TORCH_TPU_DUMP_DIR": str(directory)}
    code = f"from tests.aot import collect; collect.{what}({name!r})"
    child = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True)
    if child.returncode != 0:
        raise RuntimeError(f"{name} does not run ({child.returncode}): {child.stderr[-2000:]}")
    found = []
    for path in sorted(directory.glob("*.mlir")):
        first, _, text = path.read_text().partition("\n")
        found.append(Program(first.removeprefix("// "), text))
    return found
