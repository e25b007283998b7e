"""The state of one fuzz run: tensors that live on both devices, the steps so far, and the comparison."""

import itertools
import random
from collections.abc import Callable, Sequence

import torch

Tensors = Sequence[torch.Tensor]
MAX_LIVE = 7


class Mismatch(AssertionError):
    """The device and the CPU differ; the text lists the steps that lead there."""


def done(result: object) -> None:
    """For steps that hand their target back: there is no new tensor."""


def positions(t: torch.Tensor) -> list[int]:
    """The bytes of the storage at which the elements start, in row-major order."""
    at = torch.zeros(t.shape, dtype=torch.int64)
    for dim, (size, stride) in enumerate(zip(t.shape, t.stride(), strict=True)):
        shape = [1] * t.dim()
        shape[dim] = size
        at = at + (torch.arange(size) * stride).view(shape)
    return ((at + t.storage_offset()) * t.element_size()).flatten().tolist()


def occupied(t: torch.Tensor) -> set[int]:
    """The bytes of the storage that the tensor shows."""
    return {p + k for p in positions(t) for k in range(t.element_size())}


def overlaps_itself(t: torch.Tensor) -> bool:
    """Whether two elements share memory, so that what a write leaves is not defined."""
    return len(occupied(t)) < t.numel() * t.element_size()


def same_storage(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.untyped_storage()._cdata == b.untyped_storage()._cdata


def same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    def bits(t: torch.Tensor) -> torch.Tensor:
        return t.resolve_conj().resolve_neg().flatten().clone(memory_format=torch.contiguous_format).view(torch.uint8)

    return a.numel() == 0 or torch.equal(bits(a), bits(b))


class World:
    """`cpu[i]` and `tpu[i]` are the same tensor on the two devices, compared after every `steps_a_look` steps."""

    def __init__(self, seed: int, steps_a_look: int = 1) -> None:
        self.steps_a_look = steps_a_look
        self.rng = random.Random(seed)
        self.cpu: list[torch.Tensor] = []
        self.tpu: list[torch.Tensor] = []
        self.steps: list[str] = []
        self.raised = 0
        # Storages seen as another type: their floats may be NaNs and denormals, which are moved but not computed with.
        self.bits_only: set[int] = set()

    def add(self, cpu: torch.Tensor, tpu: torch.Tensor) -> None:
        self.cpu.append(cpu)
        self.tpu.append(tpu)

    def drop_some(self) -> None:
        while len(self.cpu) > MAX_LIVE:
            at = self.rng.randrange(len(self.cpu))
            del self.cpu[at], self.tpu[at]

    def mark(self, t: torch.Tensor) -> None:
        self.bits_only.add(t.untyped_storage()._cdata)

    def is_marked(self, t: torch.Tensor) -> bool:
        return t.untyped_storage()._cdata in self.bits_only

    def computes(self, t: torch.Tensor) -> bool:
        """Whether arithmetic on the tensor is exact."""
        return not (self.is_marked(t) and (t.is_floating_point() or t.is_complex()))

    def step(self, text: str, act: Callable[[Tensors], torch.Tensor | None], bits_only: bool = False) -> bool:
        """Runs `act` on both sides; keeps the tensor it returns. Returns whether it ran through."""
        self.steps.append(text)
        results, errors = [], []
        for side in (self.cpu, self.tpu):
            try:
                results.append(act(side))
                errors.append(None)
            except Exception as error:
                results.append(None)
                errors.append(error)
        want, got = errors
        if type(want) is not type(got):
            raise Mismatch(self.report(f"CPU raises {want!r}, the device {got!r}")) from got or want
        if want is None and isinstance(results[0], torch.Tensor):
            self.add(*results)
            if bits_only:
                self.mark(results[0])
        self.raised += want is not None
        if len(self.steps) % self.steps_a_look == 0:
            self.compare()
        self.drop_some()
        return want is None

    def compare(self) -> None:
        for i, (a, b) in enumerate(zip(self.cpu, self.tpu, strict=True)):
            for name in ("shape", "stride", "storage_offset", "dtype", "is_contiguous", "is_conj", "_version"):
                x, y = getattr(a, name), getattr(b, name)
                x, y = (x(), y()) if callable(x) else (x, y)
                if x != y:
                    raise Mismatch(self.report(f"tensor {i}: {name} is {y}, the CPU has {x}"))
            if a.untyped_storage().nbytes() != b.untyped_storage().nbytes():
                sizes = b.untyped_storage().nbytes(), a.untyped_storage().nbytes()
                raise Mismatch(self.report(f"tensor {i}: storage of {sizes[0]} bytes, the CPU has {sizes[1]}"))
            if b.device.type != "tpu":
                raise Mismatch(self.report(f"tensor {i} is on {b.device}"))
            if not a.untyped_storage().nbytes():
                continue
            host = b.detach().cpu()
            want = a.detach()
            if not (torch.equal(want, host) or same_bits(want, host)):
                raise Mismatch(self.report(f"tensor {i} is\n{host}\nthe CPU has\n{want}"))
        for i, j in itertools.combinations(range(len(self.cpu)), 2):
            same = same_storage(self.cpu[i], self.cpu[j])
            if same != same_storage(self.tpu[i], self.tpu[j]):
                raise Mismatch(self.report(f"tensors {i} and {j}: one storage on the CPU is {same}"))
            if same and self.cpu[i].numel() and self.cpu[j].numel():
                want, got = (side[i].data_ptr() - side[j].data_ptr() for side in (self.cpu, self.tpu))
                if want != got:
                    raise Mismatch(self.report(f"data_ptr of {i} and {j} differ by {got}, on the CPU by {want}"))

    def report(self, problem: str) -> str:
        return "\n".join([*self.steps, problem])
