"""Compares one model on the CPU and on the device: what a child process of `python -m tests.models` runs.

Both start from the same weights. The result is one JSON object on the last line of standard output.
"""

import contextlib
import copy
import io
import json
import logging
import time
import traceback
import warnings
from collections.abc import Iterator
from typing import Any

import torch

from tests.models import zoo

LOSS_TOLERANCE = 1e-5  # relative
OUTPUT_TOLERANCE = 1e-4  # of the largest magnitude
GRADIENT_TOLERANCE = 1e-4  # of the largest magnitude in the tensor, or a hundredth of the model's median
LEARNING_RATE = 1e-3
NEW_TOKENS = 16


class Failures(list[str]):
    """What differed, as sentences."""

    def expect(self, condition: bool, text: str) -> None:
        if not condition:
            self.append(text)


def _to_device(inputs: dict[str, Any]) -> dict[str, Any]:
    return {name: value.to("tpu") if isinstance(value, torch.Tensor) else value for name, value in inputs.items()}


def _ties(model: torch.nn.Module) -> set[frozenset[str]]:
    """The groups of names that are one parameter."""
    names: dict[int, set[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(parameter), set()).add(name)
    return {frozenset(group) for group in names.values() if len(group) > 1}


def _floating_outputs(output: Any) -> dict[str, torch.Tensor]:
    return {
        name: value
        for name, value in output.items()
        if isinstance(value, torch.Tensor) and value.is_floating_point() and name != "loss"
    }


def _close(found: torch.Tensor, expected: torch.Tensor, tolerance: float, floor: float = 1e-6) -> bool:
    found = found.detach().cpu()
    if found.shape != expected.shape or found.dtype != expected.dtype or not bool(found.isfinite().all()):
        return False
    scale = max(float(expected.abs().max()), floor) if expected.numel() else 0.0
    return bool((found - expected).abs().max() <= tolerance * scale) if expected.numel() else True


def _distance(found: torch.Tensor, expected: torch.Tensor) -> str:
    if found.shape != expected.shape:
        return f"shape {tuple(found.shape)} instead of {tuple(expected.shape)}"
    return f"off by {float((found.detach().cpu() - expected).abs().max()):.3g} of {float(expected.abs().max()):.3g}"


def _gradient_floor(model: torch.nn.Module) -> float:
    """A magnitude that is small among the gradients of `model`: a hundredth of the median of their largest elements."""
    scales = sorted(float(p.grad.abs().max()) for p in model.parameters() if p.grad is not None)
    return 1e-2 * scales[len(scales) // 2]


def _compare_gradients(failures: Failures, model: torch.nn.Module, reference: torch.nn.Module) -> None:
    expected = dict(reference.named_parameters())
    floor = _gradient_floor(reference)
    for name, parameter in model.named_parameters():
        right = expected[name].grad
        if (parameter.grad is None) != (right is None):
            failures.append(
                f"grad of {name} is {'None' if parameter.grad is None else 'not None'}, on the CPU it is not"
            )
        elif right is not None and not _close(parameter.grad, right, GRADIENT_TOLERANCE, floor):
            failures.append(f"grad of {name} {_distance(parameter.grad, right)}")


def _compare_step(failures: Failures, model: torch.nn.Module, reference: torch.nn.Module) -> None:
    """After one step of AdamW, whose first update is about the learning rate times the gradient's sign.

    Gradients that are only rounding (a key's bias under softmax) have no certain sign.
    """
    expected = dict(reference.named_parameters())
    floor = _gradient_floor(reference)
    for name, parameter in model.named_parameters():
        right = expected[name]
        error = (parameter.detach().cpu() - right.detach()).abs()
        gradient = right.grad if right.grad is not None else torch.zeros_like(right)
        sure = gradient.abs() > 1e-2 * max(float(gradient.abs().max()), floor)
        failures.expect(
            bool((error <= 2.1 * LEARNING_RATE).all()) and bool((error[sure] <= 1e-2 * LEARNING_RATE).all()),
            f"{name} after AdamW is off by {float(error.max()):.3g}",
        )


def _compare_state(failures: Failures, model: torch.nn.Module, reference: torch.nn.Module) -> None:
    """Saves the device's weights, reads them into the CPU's model, and back."""
    state = model.state_dict()
    stream = io.BytesIO()
    torch.save(state, stream)
    stream.seek(0)
    loaded = torch.load(stream, map_location="cpu")
    failures.expect(list(loaded) == list(reference.state_dict()), "state_dict has other keys or another order")
    for name, value in state.items():
        failures.expect(torch.equal(value.cpu(), loaded[name]), f"{name} changed on the way through a file")
    reference.load_state_dict(loaded)
    model.load_state_dict(reference.state_dict())
    for name, value in model.state_dict().items():
        failures.expect(value.device.type == "tpu", f"{name} left the device in load_state_dict")
        failures.expect(torch.equal(value.cpu(), loaded[name]), f"{name} changed on the way through load_state_dict")


def _train_step(model: torch.nn.Module, optimizer: torch.optim.Optimizer, inputs: dict[str, Any]) -> torch.Tensor:
    optimizer.zero_grad()
    loss = model(**inputs).loss
    loss.backward()
    optimizer.step()
    return loss.detach()


def _programs() -> int:
    stats = torch.tpu.compile_stats()
    return int(stats["compilations"] + stats["disk_hits"])


def _forward(
    failures: Failures, model: torch.nn.Module, reference: torch.nn.Module, case: zoo.Case, inputs: Any
) -> None:
    with torch.no_grad():
        expected = reference(**case.inputs)
        found = model(**inputs)
    outputs = _floating_outputs(expected)
    failures.expect(_close(found.loss, expected.loss, LOSS_TOLERANCE), f"loss {_distance(found.loss, expected.loss)}")
    for name, value in outputs.items():
        got = found[name]
        failures.expect(got.device.type == "tpu", f"{name} is on {got.device}")
        failures.expect(_close(got, value, OUTPUT_TOLERANCE), f"{name} {_distance(got, value)}")


def _generate(failures: Failures, model: torch.nn.Module, reference: torch.nn.Module, case: zoo.Case) -> None:
    settings = {"max_new_tokens": NEW_TOKENS, "do_sample": False}
    expected = reference.generate(**case.prompt, **settings)
    found = model.generate(**_to_device(case.prompt), **settings)
    failures.expect(found.device.type == "tpu", f"generated tokens are on {found.device}")
    failures.expect(found.tolist() == expected.tolist(), f"greedy tokens {found.tolist()}, CPU {expected.tolist()}")


def check(name: str) -> dict[str, Any]:
    """Runs all comparisons; the result's `failures` says what differed, its counters what the device did."""
    case = zoo.make(name)
    reference = case.model
    failures = Failures()
    start = time.monotonic()
    model = copy.deepcopy(reference)
    ties = _ties(model)
    model.to("tpu")
    failures.expect(_ties(model) == ties, f"tied weights {ties} became {_ties(model)}")
    failures.expect({p.device.type for p in model.parameters()} <= {"tpu"}, "a parameter stayed on the CPU")
    inputs = _to_device(case.inputs)
    counts = {}

    _forward(failures, model, reference, case, inputs)
    counts["forward"] = _programs()

    reference.train()
    model.train()
    optimizers = [torch.optim.AdamW(m.parameters(), lr=LEARNING_RATE) for m in (reference, model)]
    for m, arguments in ((reference, case.inputs), (model, inputs)):
        loss = m(**arguments).loss
        loss.backward()
        if m is reference:
            expected_loss = loss.detach()
        else:
            failures.expect(
                _close(loss, expected_loss, LOSS_TOLERANCE), f"training loss {_distance(loss, expected_loss)}"
            )
    _compare_gradients(failures, model, reference)
    for optimizer in optimizers:
        optimizer.step()
    _compare_step(failures, model, reference)
    failures.expect(_ties(model) == ties, "weights are no longer tied after a step")
    counts["train"] = _programs()

    for _ in range(2):
        before = _programs()
        _train_step(model, optimizers[1], inputs)
    counts["third step"] = _programs() - before

    _compare_state(failures, model, reference)
    reference.eval()
    model.eval()
    if case.prompt is not None:
        _generate(failures, model, reference, case)
    counts["all"] = _programs()
    stats = torch.tpu.compile_stats()
    failures.expect(stats["fallbacks"] == 0, f"{stats['fallbacks']} operators ran on the CPU")
    failures.expect(counts["third step"] == 0, f"the third training step made {counts['third step']} new programs")
    return {
        "name": name,
        "class": type(reference).__name__,
        "parameters": sum(p.numel() for p in reference.parameters()),
        "decodes": case.prompt is not None,
        "failures": list(failures),
        "programs": counts,
        "compilations": stats["compilations"],
        "compile_seconds": round(stats["compile_seconds"], 1),
        "executions": stats["executions"],
        "seconds": round(time.monotonic() - start, 1),
    }


@contextlib.contextmanager
def _messages() -> Iterator[list[str]]:
    """Collects warnings and log records that speak of the device.

    Not the ones about growing caches: a program for each length is what exact sizes cost.
    """
    found: list[str] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(record.getMessage())

    handler = Handler()
    logging.getLogger("transformers").addHandler(handler)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield found
    logging.getLogger("transformers").removeHandler(handler)
    found.extend(str(w.message) for w in caught if "has needed a new program" not in str(w.message))
    found[:] = sorted({m for m in found if any(word in m.lower() for word in ("tpu", "device", "fallback"))})


def run(name: str) -> None:
    """Prints the result of `check(name)`; an exception is a failure like any other."""
    with _messages() as messages:
        try:
            result = check(name)
        except Exception:
            result = {"name": name, "failures": [traceback.format_exc(limit=-6)]}
    result["messages"] = messages
    print(json.dumps(result), flush=True)
