"""Child process: the training step of a small transformer in PyTorch, on `--device`. Prints one JSON object.

2 layers, width 256, 4 heads, feed-forward 1024, vocabulary 512, batch 4 of 128 tokens, AdamW, float32, and one
`loss.item()` a step. `train_jax.py` is the same step in JAX.
"""

import argparse
import json

from benchmarks import clock

clock.pin_to_one_core()

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

LAYERS, WIDTH, HEADS, HIDDEN, VOCABULARY, BATCH, LENGTH = 2, 256, 4, 1024, 512, 4, 128


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, HIDDEN), nn.Linear(HIDDEN, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, _ = x.shape
        q, k, v = (
            part.view(b, t, HEADS, WIDTH // HEADS).transpose(1, 2) for part in self.qkv(self.norm1(x)).chunk(3, dim=-1)
        )
        attention = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attention.transpose(1, 2).reshape(b, t, WIDTH))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        return self.head(self.norm(self.blocks(x)))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="tpu")
    parser.add_argument("--steps", type=int, default=12)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = Model().to(arguments.device)
    data = torch.randint(VOCABULARY, (BATCH, LENGTH + 1))
    x, y = data[:, :-1].to(arguments.device), data[:, 1:].to(arguments.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    if arguments.device != "cpu":
        torch.tpu.synchronize()
    steps: list[clock.Cost] = []
    losses: list[float] = []
    for _ in range(arguments.steps):
        start = clock.now()
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        steps.append(clock.now() - start)
    stats = dict(torch.tpu.compile_stats()) if arguments.device == "tpu" else {}
    print(json.dumps({"steps": steps, "losses": losses, "stats": stats, "peak_mb": clock.peak_mb()}))


if __name__ == "__main__":
    main()
