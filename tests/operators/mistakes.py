"""Wrong calls made from right ones."""

import dataclasses
from collections.abc import Iterator

import torch
from operators.values import Case, Spec, map_specs


def _change(case: Case, index: int, **fields: object) -> Case:
    """The case with its tensor number `index` changed."""
    count = -1

    def one(spec: Spec) -> Spec:
        nonlocal count
        count += 1
        return dataclasses.replace(spec, **fields) if count == index else spec

    args, kwargs = map_specs(one, (case.args, case.kwargs))
    return Case(args, kwargs, case.function)


def mistakes(case: Case) -> Iterator[tuple[str, Case]]:
    specs = case.specs()
    free = [i for i, spec in enumerate(specs) if spec.dtype is None and spec.shape]
    if len(free) > 1:
        last = specs[free[-1]].shape
        yield "shape", _change(case, free[-1], shape=(*last[:-1], last[-1] + 4))
        yield "rank", _change(case, free[-1], shape=(2, 7, 2, 3, 2))
        yield "dtype", _change(case, free[-1], dtype=torch.int64)
    elif free:
        yield "rank", _change(case, free[0], shape=())
    for index, spec in enumerate(specs):
        if spec.kind == "index":
            yield "index dtype", _change(case, index, dtype=torch.float32)
            break
