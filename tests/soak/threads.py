"""Threads that issue operators on tensors of their own and on shared ones; every value is checked."""

import threading
import time
from collections.abc import Callable

import torch


def run(seconds: float, count: int = 8) -> int:
    """Runs `count` threads for `seconds`; returns how many rounds they made. Raises what went wrong in one of them."""
    shared = torch.arange(16.0, device="tpu")
    locked = torch.zeros(16, device="tpu")
    unlocked = torch.zeros(16, device="tpu")
    lock, rounds, errors = threading.Lock(), [0] * count, []
    stop = threading.Event()

    def work(k: int) -> None:
        weight = torch.full((4, 4), float(k), device="tpu", requires_grad=True)
        while not stop.is_set():
            own = (shared * k).view(4, 4)
            assert own[1].sum().item() == 22.0 * k
            own[:, 1].zero_()
            assert own.sum().item() == 92.0 * k
            (weight * own).sum().backward()
            assert torch.equal(weight.grad, own)
            weight.grad = None
            length = 1 + (rounds[k] * 7 + k) % 40  # programs that other threads compile at the same time
            assert (torch.full((length,), float(k), device="tpu") + 1).sum().item() == length * (k + 1)
            with lock:
                locked.add_(1)
            unlocked.add_(1)  # an operator is one step to other threads
            seen = unlocked.clone().tolist()
            assert seen == [seen[0]] * 16
            rounds[k] += 1

    def guarded(k: int, target: Callable[[int], None]) -> None:
        try:
            target(k)
        except BaseException as error:
            errors.append(error)
            stop.set()

    threads = [threading.Thread(target=guarded, args=(k, work)) for k in range(count)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + seconds
    stop.wait(max(0.0, deadline - time.monotonic()))
    stop.set()
    for thread in threads:
        thread.join(60)
    if errors:
        raise errors[0]
    assert not any(thread.is_alive() for thread in threads), "a thread does not end"
    total = sum(rounds)
    assert locked.tolist() == unlocked.tolist() == [float(total)] * 16
    assert shared.tolist() == [float(k) for k in range(16)]
    return total
