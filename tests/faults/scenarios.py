"""What must hold when the device fails: each function is one check, run by `python -m tests.faults` on the
fault-injecting plugin in one eager mode. Every failure is one exception that names the operator; what the failed
operator was to write keeps its former value; nothing else changes; the device goes on.

In debug mode every error is raised at the call. In strict mode a failure of a program that is still being compiled, or
is queued behind one, is raised at the first read of a value that depends on it.
"""

import gc
import re
import threading

import torch
from torch import nn

from tests.faults.plugin import RESOURCE_EXHAUSTED, FaultPlugin, How

TPU = "tpu"
DOT, ADD, MULTIPLY, SUBTRACT = (f"stablehlo.{name}" for name in ("dot_general", "add", "multiply", "subtract"))


def debug() -> bool:
    return torch.tpu.get_eager_mode() is torch.tpu.EagerMode.DEBUG


def outcome(call):
    """(what `call` returned, None), or (None, the exception it raised)."""
    try:
        return call(), None
    except Exception as error:
        return None, error


def message(error, kind=RuntimeError):
    """The text of the error of an injected fault."""
    assert type(error) is kind, repr(error)
    text = str(error)
    assert "injected" in text or "out of memory" in text, text
    return text


def error_of(call, kind=RuntimeError):
    """The message of the exception that `call` must raise."""
    value, error = outcome(call)
    assert error is not None, f"no exception, but {value}"
    return message(error, kind)


def late_error(call, read, kind=RuntimeError):
    """The one error of `call`: raised by it in debug mode, by `read` of its result in strict mode."""
    if debug():
        return error_of(call, kind)
    result = call()
    return error_of(lambda: read(result), kind)


def settled(*tensors):
    """The tensors, with everything that makes them done."""
    torch.tpu.synchronize()
    return tensors if len(tensors) > 1 else tensors[0]


def ready(*calls):
    """Compiles what the calls need, so that they run when they are called."""
    for call in calls:
        call()
    torch.tpu.synchronize()


def numbers(*shape, device=TPU):
    count = 1
    for size in shape:
        count *= size
    return torch.arange(float(count), device="cpu").reshape(shape).to(device)


def same(got, want):
    assert torch.equal(got.cpu(), want.cpu()), (got.cpu(), want.cpu())


# ---- Compilation ----


def compile_fails_and_the_operator_is_blamed(plugin: FaultPlugin):
    a, b, other = settled(numbers(3, 4), numbers(4, 5), numbers(7))
    plugin.fail_compile(match=DOT)
    if debug():
        text = error_of(lambda: a @ b)
    else:
        y = a @ b
        z = y + 1
        same(other * 2, numbers(7, device="cpu") * 2)
        text = error_of(z.cpu)
        assert error_of(y.cpu) == text
        assert error_of(lambda: print(z)) == text
    assert re.search(r"\bmm\b", text), text
    assert "add" not in text, text
    assert "compiler" in text, text
    same(a, numbers(3, 4, device="cpu"))
    same(b, numbers(4, 5, device="cpu"))
    same(a @ b, a.cpu() @ b.cpu())  # what it failed for has passed


def compile_fails_in_place(plugin: FaultPlugin):
    x, y = settled(numbers(3, 5), numbers(5))
    view = x[1]
    plugin.fail_compile(match=MULTIPLY)
    text = late_error(lambda: x.mul_(y), lambda got: got.cpu())
    assert "mul_" in text
    want = numbers(3, 5, device="cpu")
    same(x, want)
    same(view, want[1])
    same(x.mul_(y), want.mul_(y.cpu()))
    same(view, want[1])


def dependants_of_a_failed_write_fail_and_are_undone(plugin: FaultPlugin):
    if debug():
        return  # the call raises: there are none
    x, total, other = settled(numbers(6), numbers(6), numbers(6))
    plugin.fail_compile(match=SUBTRACT)
    x.sub_(0.5)
    total.add_(x)
    x.mul_(2)
    copy, fresh = x.clone(), x + 1
    other.add_(1)
    text = error_of(fresh.cpu)
    assert "sub_" in text
    # Reported once; then the storages are as if the call, and what followed from it, had not been made.
    same(x, numbers(6, device="cpu"))
    same(total, numbers(6, device="cpu"))
    same(other, numbers(6, device="cpu") + 1)
    # Values that never existed go on saying why.
    assert error_of(copy.cpu) == text
    assert error_of(fresh.cpu) == text
    same(x.sub_(0.5), numbers(6, device="cpu") - 0.5)


def two_failures_are_two_errors(plugin: FaultPlugin):
    if debug():
        return
    x, y = settled(numbers(2, 9), numbers(9, 2))
    plugin.fail_compile(nth=0)
    x.sub_(3)
    y.div_(3)
    assert "sub_" in error_of(x.cpu)
    assert "div_" in error_of(y.cpu)
    plugin.clear()
    same(x, numbers(2, 9, device="cpu"))
    same(y, numbers(9, 2, device="cpu"))


def compile_runs_out_of_memory(plugin: FaultPlugin):
    a = settled(numbers(3, 3))
    plugin.fail_compile(match=DOT, code=RESOURCE_EXHAUSTED)
    text = late_error(lambda: a @ a, lambda got: got.cpu(), torch.OutOfMemoryError)
    assert "mm" in text
    same(a @ a, a.cpu() @ a.cpu())


def every_compilation_fails(plugin: FaultPlugin):
    a = settled(numbers(11))
    ready(lambda: a + 1)
    plugin.fail_compile(nth=0)
    for _ in range(3):
        assert "exp" in late_error(a.exp, lambda got: got.cpu())
    same(a + 1, a.cpu() + 1)
    plugin.clear()
    torch.testing.assert_close(a.exp().cpu(), a.cpu().exp())


# ---- Execution at the call ----


def execute_fails_at_the_call(plugin: FaultPlugin):
    a, b = settled(numbers(4, 4), numbers(4, 4))
    ready(lambda: a @ b, lambda: a + b)
    plugin.fail_execute(match=DOT)
    text = error_of(lambda: a @ b)
    assert re.search(r"\bmm\b", text)
    same(a, numbers(4, 4, device="cpu"))
    same(a @ b, a.cpu() @ b.cpu())
    plugin.fail_execute(nth=2, match=ADD)
    same(a + b, a.cpu() + b.cpu())
    error_of(lambda: a + b)
    same(a + b, a.cpu() + b.cpu())


def execute_fails_in_place(plugin: FaultPlugin):
    writes = {
        "add_": lambda x: x.add_(2),
        "mul_": lambda x: x.mul_(x),
        "view": lambda x: x[1:3].sub_(1),
        "transposed": lambda x: x.t().mul_(3),
        "strided": lambda x: x[:, ::2].add_(x[:, 1::2]),
        "index_put": lambda x: x.index_put_((torch.tensor([0, 2], device=TPU),), torch.ones(4, device=TPU)),
        "clamp_": lambda x: x.clamp_(1, 5),
        "out": lambda x: torch.add(x, 1, out=x),
        "foreach": lambda x: torch._foreach_add_([x], 1.5),
        "masked_fill": lambda x: x.masked_fill_(x > 3, 0),
        "addmm_": lambda x: x.addmm_(x, x),
        "random_": lambda x: x[0].uniform_(),
    }
    for name, write in writes.items():
        ready(lambda write=write: write(numbers(4, 4)))
        x = numbers(4, 4)
        alias, other, version = x.view(16), x + 0, x._version
        settled(x, other)
        plugin.fail_execute(nth=0)
        error_of(lambda write=write, x=x: write(x))
        plugin.clear()
        same(x, numbers(4, 4, device="cpu"))
        same(alias, numbers(16, device="cpu"))
        same(other, numbers(4, 4, device="cpu"))
        assert x._version == version, name
        settled(x)
        before = torch.tpu.memory_allocated()
        write(x)
        del alias, other
        assert torch.tpu.memory_allocated() <= before


def writes_without_a_read(plugin: FaultPlugin):
    """What is overwritten without being read is let go of first: after a failure it is as before or says so."""
    writes = {
        "fill_": lambda x: x.fill_(7),
        "copy_": lambda x: x.copy_(torch.ones(4, device=TPU)),
        "out": lambda x: torch.add(torch.ones(4, 4, device=TPU), 1, out=x),
        "normal_": lambda x: x.normal_(),
    }
    for write in writes.values():
        ready(lambda write=write: write(numbers(4, 4)))
        x = settled(numbers(4, 4))
        plugin.fail_execute(nth=0)
        error_of(lambda write=write, x=x: write(x))
        plugin.clear()
        value, error = outcome(x.cpu)
        if error is None:
            same(value, numbers(4, 4))
        else:
            message(error)
        x.copy_(numbers(4, 4, device="cpu"))
        same(x.add_(1), numbers(4, 4, device="cpu") + 1)


def donated_memory_that_is_gone_says_so(plugin: FaultPlugin):
    x, y = settled(numbers(8), numbers(8))
    ready(lambda: numbers(8).add_(y))
    kept, view = settled(x + 0, x[2:4])
    plugin.fail_execute(match=ADD, how=How.CONSUMED)
    text = error_of(lambda: x.add_(y))
    assert "add_" in text
    for use in (x.cpu, x.tolist, view.cpu, lambda: x.sum().item(), lambda: x[0].item()):
        assert "add_" in error_of(use)
    same(kept, y)
    same(y, numbers(8, device="cpu"))
    x.copy_(y)
    same(x.add_(y), 2 * numbers(8, device="cpu"))
    same(view, 2 * numbers(8, device="cpu")[2:4])


def memory_shared_with_another_tensor_is_not_given_up(plugin: FaultPlugin):
    x, y = settled(numbers(8), numbers(8))
    ready(lambda: numbers(8).add_(y))
    shared = torch.empty(8, device=TPU).copy_(x)  # the same array until one of them is written to
    plugin.fail_execute(match=ADD, how=How.CONSUMED)
    error_of(lambda: x.add_(y))
    same(x, numbers(8, device="cpu"))
    same(shared, numbers(8, device="cpu"))


def errors_of_the_device_itself(plugin: FaultPlugin):
    a, b = settled(numbers(4, 4), numbers(4, 4))
    ready(lambda: a @ b, lambda: (a + 1).sum())
    plugin.fail_execute(match=DOT, how=How.LATER)
    if debug():
        text = error_of(lambda: a @ b)
    else:
        y = a @ b
        z = (y + 1).sum()
        text = error_of(y.cpu)
        error_of(z.item)
        error_of(lambda: torch.tpu.synchronize() or y.cpu())
    assert re.search(r"\bmm\b", text)
    same(a @ b, a.cpu() @ b.cpu())


# ---- Execution of what is queued ----


def queued_execution_fails(plugin: FaultPlugin):
    if debug():
        return  # nothing is ever queued
    x, y, slow = settled(numbers(12), numbers(12), numbers(2, 13))
    ready(lambda: numbers(12).add_(y), lambda: y * 3, lambda: y + 1)
    plugin.delay(compile_ms=200)
    plugin.fail_execute(nth=1, match=ADD)
    compiling = slow.cos()
    x.add_(y)
    dependant, innocent = x * 3, y * 3
    text = error_of(dependant.cpu)
    assert "add_" in text
    assert "mul" not in text
    torch.testing.assert_close(compiling.cpu(), numbers(2, 13, device="cpu").cos())
    same(innocent, y.cpu() * 3)
    same(x, numbers(12, device="cpu"))
    same(x.add_(y), 2 * numbers(12, device="cpu"))


def queued_write_loses_donated_memory(plugin: FaultPlugin):
    if debug():
        return
    x, y, slow = settled(numbers(12), numbers(12), numbers(2, 14))
    ready(lambda: numbers(12).add_(y), lambda: numbers(12).mul_(3))
    plugin.delay(compile_ms=200)
    plugin.fail_execute(nth=1, match=ADD, how=How.CONSUMED)
    slow.cos()
    x.add_(y)
    x.mul_(3)
    assert "add_" in error_of(x.cpu)
    assert "add_" in error_of(x.cpu)
    same(y, numbers(12, device="cpu"))
    x.zero_()
    same(x.add_(y), numbers(12, device="cpu"))


def copies_of_a_value_that_never_came(plugin: FaultPlugin):
    if debug():
        return
    x, y, slow = settled(numbers(12), torch.ones(12, device=TPU), numbers(2, 15))
    ready(lambda: numbers(12).add_(1))
    plugin.delay(compile_ms=200)
    plugin.fail_execute(nth=1, match=ADD)
    slow.cos()
    x.add_(1)
    y.copy_(x)
    clone = x.detach().clone()
    assert "add_" in error_of(x.cpu)
    same(x, numbers(12, device="cpu"))
    for taken in (y, clone):  # never the value that x has now
        assert "add_" in error_of(taken.cpu)
    y.fill_(2)
    same(y, torch.full((12,), 2.0))


def queued_work_runs_out_of_memory(plugin: FaultPlugin):
    if debug():
        return
    x, slow = settled(numbers(1000), numbers(2, 16))
    ready(lambda: x + 1, lambda: numbers(1000).mul_(2))
    plugin.delay(compile_ms=200)
    slow.cos()
    big = x + 1
    x.mul_(2)
    plugin.limit(2000)
    assert "add" in error_of(big.cpu, torch.OutOfMemoryError)
    same(x, numbers(1000, device="cpu") * 2)
    plugin.clear()
    same(x + 1, numbers(1000, device="cpu") * 2 + 1)


# ---- Memory ----


def out_of_memory(plugin: FaultPlugin):
    x = settled(numbers(1000))
    host = torch.ones(1000)
    ready(lambda: x + 1, lambda: numbers(1000).add_(x), lambda: x.sum())
    plugin.limit(1000)
    assert "add" in error_of(lambda: x + 1, torch.OutOfMemoryError)
    error_of(lambda: host.to(TPU), torch.OutOfMemoryError)
    error_of(lambda: torch.tensor([1.0] * 1000, device=TPU), torch.OutOfMemoryError)
    error_of(lambda: x.copy_(host), torch.OutOfMemoryError)
    error_of(lambda: x[1:].copy_(host[1:]), torch.OutOfMemoryError)
    same(x, numbers(1000, device="cpu"))
    x.add_(x)  # in its own memory
    same(x, 2 * numbers(1000, device="cpu"))
    assert x.sum().item() == 999000.0
    plugin.clear()
    same(x + 1, 2 * numbers(1000, device="cpu") + 1)


def out_of_memory_in_a_training_step(plugin: FaultPlugin):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 4)).to(TPU)
    data = settled(torch.randn(64, 16).to(TPU))

    def step():
        net.zero_grad()
        loss = net(data).square().mean()
        loss.backward()
        return loss.item()

    want = step()
    gradients = [p.grad.cpu() for p in net.parameters()]
    net.zero_grad()
    gc.collect()
    base = torch.tpu.memory_allocated()
    failures = 0
    for room in range(0, 30000, 2500):
        plugin.limit(room)
        try:
            step()
        except torch.OutOfMemoryError:
            failures += 1
        plugin.clear()
        net.zero_grad()
        gc.collect()
        assert torch.tpu.memory_allocated() <= base + 8192, "the graph of the failed step still lives"
    assert failures > 3
    assert step() == want
    for p, gradient in zip(net.parameters(), gradients, strict=True):
        same(p.grad, gradient)


def a_failed_resize_changes_nothing(plugin: FaultPlugin):
    x = settled(numbers(6))
    for size in (1 << 50, 1 << 39):
        _, error = outcome(lambda size=size: x.resize_(size))
        assert type(error) is torch.OutOfMemoryError, repr(error)
        assert x.shape == (6,)
        same(x, numbers(6, device="cpu"))
    grown = numbers(6)
    ready(lambda: numbers(6).resize_(600).fill_(0))
    plugin.limit(400)
    try:
        grown.resize_(600)
    except torch.OutOfMemoryError:
        assert grown.shape == (6,)
    same(grown[:6], numbers(6, device="cpu"))


# ---- Autograd and optimizers ----


def failed_forward_and_backward_free_the_graph(plugin: FaultPlugin):
    weight = settled(numbers(20, 20).div_(100).requires_grad_())

    def loss():
        return ((weight @ weight).tanh() @ weight).sum()

    loss().backward()
    want = weight.grad.cpu()
    weight.grad = None
    gc.collect()
    torch.tpu.synchronize()
    base = torch.tpu.memory_allocated()
    for nth in range(1, 6):
        plugin.fail_execute(nth=nth, match=DOT)
        text = error_of(lambda: loss().backward())
        assert re.search(r"\bmm\b", text)
        gc.collect()
        weight.grad = None
        assert torch.tpu.memory_allocated() <= base + 4096
    plugin.clear()
    loss().backward()
    torch.testing.assert_close(weight.grad.cpu(), want)


def a_failed_write_leaves_saved_values_valid(plugin: FaultPlugin):
    x = numbers(5)
    weight = settled(torch.ones(5, device=TPU).requires_grad_())
    ready(lambda: numbers(5).add_(1))
    y = (weight * x).sum()
    settled(y)
    plugin.fail_execute(match=ADD)
    error_of(lambda: x.add_(1))
    plugin.clear()
    y.backward()
    same(weight.grad, numbers(5, device="cpu"))


def a_failed_optimizer_step_leaves_no_garbage(plugin: FaultPlugin):
    kinds = {
        "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
        "foreach": lambda p: torch.optim.AdamW(p, lr=0.1, weight_decay=0.0, foreach=True),
        "loop": lambda p: torch.optim.AdamW(p, lr=0.1, weight_decay=0.0, foreach=False),
        "fused": lambda p: torch.optim.AdamW(p, lr=0.1, weight_decay=0.0, fused=True),
    }
    for kind, make in kinds.items():
        for how in (How.REFUSED, How.CONSUMED):
            failed = 0
            for nth in (1, 2, 3, 5):
                values = [numbers(4, 4, device="cpu") / 7, numbers(3, device="cpu")]
                params = [value.clone().to(TPU).requires_grad_() for value in values]
                mirror = [value.clone().requires_grad_() for value in values]
                optimizer, want = make(params), make(mirror)

                def gradients(params=params, mirror=mirror):
                    for p, m in zip(params, mirror, strict=True):
                        m.grad = torch.sin(m.detach() + 1)
                        p.grad = m.grad.to(TPU)

                for _ in range(2):
                    gradients()
                    optimizer.step()
                    want.step()
                old = [m.detach().clone() for m in mirror]
                gradients()
                settled(*params)
                plugin.fail_execute(nth=nth, how=how)
                _, error = outcome(optimizer.step)
                if error is not None:
                    message(error)
                    failed += 1
                plugin.clear()
                want.step()
                for p, before, after in zip(params, old, mirror, strict=True):
                    got, error = outcome(p.detach().cpu)
                    if error is not None:
                        assert how is How.CONSUMED, error
                        message(error)
                        continue
                    close = [torch.allclose(got, value, rtol=1e-5, atol=1e-6) for value in (before, after.detach())]
                    assert any(close), (kind, how, nth, got, before, after)
            assert failed, (kind, how)


def a_failed_first_step_can_be_repeated(plugin: FaultPlugin):
    values = [numbers(4, 5, device="cpu") / 7, numbers(5, device="cpu")]
    for fused in (False, True):
        params = [value.clone().to(TPU).requires_grad_() for value in values]
        mirror = [value.clone().requires_grad_() for value in values]
        optimizer = torch.optim.AdamW(params, lr=0.1, fused=fused, foreach=not fused)
        want = torch.optim.AdamW(mirror, lr=0.1, fused=fused)
        for p, m in zip(params, mirror, strict=True):
            m.grad = torch.sin(m.detach())
            p.grad = m.grad.to(TPU)
        settled(*params)
        plugin.fail_compile(nth=0, match="stablehlo.sqrt")
        if debug():
            error_of(optimizer.step)
        else:
            optimizer.step()
            errors = [error for _, error in (outcome(p.detach().cpu) for p in params) if error is not None]
            assert len(errors) == 1, (fused, errors)
            message(errors[0])
            for p, value in zip(params, values, strict=True):
                got = p.detach().cpu()  # weight decay has its own program
                assert any(torch.allclose(got, value * factor) for factor in (1, 1 - 0.1 * 0.01)), (got, value)
        plugin.clear()
        with torch.no_grad():
            for p, value in zip(params, values, strict=True):
                p.copy_(value)
        optimizer.state.clear()
        optimizer.step()
        want.step()
        for p, m in zip(params, mirror, strict=True):
            torch.testing.assert_close(p.detach().cpu(), m.detach())


# ---- Around it ----


def the_same_seed_gives_the_same_numbers_after_a_failure(plugin: FaultPlugin):
    torch.manual_seed(7)
    want = torch.rand(5, device=TPU).cpu()
    plugin.fail_execute(nth=0)
    error_of(lambda: torch.rand(5, device=TPU))
    plugin.clear()
    torch.manual_seed(7)
    same(torch.rand(5, device=TPU), want)


def data_dependent_sizes_fail_at_the_call(plugin: FaultPlugin):
    x = settled(numbers(9))
    ready(lambda: x.nonzero(), lambda: x[x > 3])
    plugin.fail_execute(nth=0)
    error_of(lambda: x.nonzero())
    error_of(lambda: x[x > 3])
    plugin.clear()
    same(x[x > 3], numbers(9, device="cpu")[4:])


def threads_see_their_own_failures(plugin: FaultPlugin):
    base = settled(numbers(16))
    ready(lambda: base + 1, lambda: base * 2, lambda: base.sum())
    plugin.fail_execute(nth=0, match=MULTIPLY)
    problems, failed = [], []

    def additions():
        try:
            for _ in range(200):
                same(base + 1, numbers(16, device="cpu") + 1)
        except BaseException as error:
            problems.append(error)

    def products():
        try:
            for _ in range(50):
                assert "mul" in error_of(lambda: base * 2)
                failed.append(1)
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work) for work in (additions, products, additions)]
    mode = torch.tpu.get_eager_mode()
    torch.tpu.eager_mode = mode
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not problems, problems[0]
    assert len(failed) == 50


def slow_executions_change_nothing(plugin: FaultPlugin):
    x = settled(numbers(3))
    plugin.delay(compile_ms=50, execute_ms=20)
    for _ in range(3):
        x.add_(1)
    same(x, numbers(3, device="cpu") + 3)


SCENARIOS = {
    name: value
    for name, value in globals().items()
    if callable(value) and getattr(value, "__annotations__", {}).get("plugin") is FaultPlugin
}
