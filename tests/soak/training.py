"""Many steps of one training loop: what the process and the device hold must not grow with them."""

import dataclasses
import gc
import os

import torch
from torch import nn


@dataclasses.dataclass
class Growth:
    """Bytes a step: of the process (resident), of live device buffers, and of device buffers' number."""

    host: float
    device: float
    buffers: float
    loss: float


def resident_bytes() -> int:
    """Memory of this process that is in use."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def run(steps: int, warm_up: int) -> Growth:
    """Trains a small MLP with AdamW and a schedule; growth is measured over `steps` steps after `warm_up` ones."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Dropout(0.1), nn.LayerNorm(16), nn.Linear(16, 4)).to("tpu")
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step / 1000))  # new numbers each step
    data = torch.randn(64, 32, 8)
    total = torch.zeros((), device="tpu")

    def train(count: int, start: int) -> float:
        loss = torch.zeros(())
        for step in range(start, start + count):
            x = data[step % 64].to("tpu")
            loss = nn.functional.mse_loss(net(x), x[:, :4].tanh())
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            schedule.step()
            total.add_(loss.detach())
            if step % 10 == 0:
                loss.item()
        return float(loss.item())

    def held() -> tuple[int, int, int]:
        gc.collect()
        torch.tpu.synchronize()
        stats = torch.tpu.memory_stats()
        return resident_bytes(), stats["allocated_bytes.all.current"], stats["allocation.all.current"]

    train(warm_up, 0)
    before = held()
    loss = train(steps, warm_up)
    growth = [(after - first) / steps for first, after in zip(before, held(), strict=True)]
    return Growth(*growth, loss=loss)
