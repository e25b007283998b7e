"""What must hold in DeferAndFuse when the device fails: a group that fails runs again operator by operator, so that one
fault is healed, and one that stays is blamed on its operator; what does not depend on it is right."""

import re

import torch

from tests.faults.plugin import RESOURCE_EXHAUSTED, FaultPlugin, How
from tests.faults.scenarios import MULTIPLY, error_of, numbers, ready, same, settled


def pairs():
    """A group of three operators, of which one multiplies; two results."""
    x = numbers(5, 3)
    torch.tpu.synchronize()
    y = (x + 1) * 3
    z = x - 2
    return y, z, y - 1


def check(y, z, w):
    x = numbers(5, 3, device="cpu")
    same(y, (x + 1) * 3)
    same(z, x - 2)
    same(w, (x + 1) * 3 - 1)


def a_group_that_fails_once_is_healed(plugin: FaultPlugin):
    ready(lambda: check(*pairs()))
    ready(lambda: check(*pairs()))
    plugin.fail_execute()
    check(*pairs())
    plugin.clear()
    check(*pairs())


def the_failing_operator_is_found(plugin: FaultPlugin):
    plugin.fail_execute(nth=0, match=MULTIPLY)
    y, z, w = pairs()
    text = error_of(y.cpu)
    assert re.search(r"\bmul\(float32\[5, 3\]", text), text
    assert "sub" not in text, text
    assert "TORCH_TPU_TRACEBACKS" in text, text
    same(z, numbers(5, 3, device="cpu") - 2)
    assert error_of(w.cpu) == text
    plugin.clear()
    check(*pairs())


def recorded_lines_are_named(plugin: FaultPlugin):
    plugin.fail_execute(nth=0, match=MULTIPLY)
    with torch.tpu.debug.record_tracebacks():
        y, z, _ = pairs()
        text = error_of(y.cpu)
    assert re.search(r"fused\.py:\d+ in pairs", text), text
    same(z, numbers(5, 3, device="cpu") - 2)


def a_fused_program_that_cannot_be_compiled_is_done_without(plugin: FaultPlugin):
    x = settled(numbers(7, 2))
    plugin.fail_compile(nth=1)
    y = (x + 1) * 5
    same(y - 1, (numbers(7, 2, device="cpu") + 1) * 5 - 1)
    for _ in range(3):
        same((x + 1) * 5 - 1, (numbers(7, 2, device="cpu") + 1) * 5 - 1)


def every_compilation_fails(plugin: FaultPlugin):
    x = settled(numbers(3, 11))
    plugin.fail_compile(nth=0)
    y = x.exp() * 5
    text = error_of(y.cpu)
    assert "exp" in text, text
    plugin.clear()
    same(x - 2, numbers(3, 11, device="cpu") - 2)


def a_group_that_does_not_fit_runs_apart(plugin: FaultPlugin):
    ready(lambda: check(*pairs()))
    ready(lambda: check(*pairs()))
    plugin.fail_execute(nth=1, code=RESOURCE_EXHAUSTED)
    check(*pairs())


def donated_memory_that_is_gone_is_one_error(plugin: FaultPlugin):
    x = settled(numbers(9))

    def step():
        x.add_(1)
        x.mul_(2)
        return x + 0

    ready(lambda: step().cpu(), lambda: step().cpu(), lambda: step().cpu())
    other = settled(numbers(4))
    plugin.fail_execute(how=How.CONSUMED)
    result = step()
    error_of(result.cpu)
    same(other + 1, numbers(4, device="cpu") + 1)
    plugin.clear()
    x.copy_(numbers(9, device="cpu"))
    same(step(), (numbers(9, device="cpu") + 1) * 2)


SCENARIOS = {
    function.__name__: function
    for function in (
        a_group_that_fails_once_is_healed,
        the_failing_operator_is_found,
        recorded_lines_are_named,
        a_fused_program_that_cannot_be_compiled_is_done_without,
        every_compilation_fails,
        a_group_that_does_not_fit_runs_apart,
        donated_memory_that_is_gone_is_one_error,
    )
}
