"""A character-level GPT on the sources of Python's own standard library, and a sample from it."""

import string
import sysconfig
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

from examples.demo.job import Run, run_as_process

ALPHABET = string.digits + string.ascii_letters + string.punctuation + " \n"
WIDTH, HEADS, LAYERS, CONTEXT = 128, 4, 2, 64
BATCH, STEPS, CORPUS_CHARACTERS = 16, 350, 4_000_000
SAMPLE_CHARACTERS, TEMPERATURE = 300, 0.8
PROMPT = '    def __init__(self, name):\n        """'


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        attention = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attention.transpose(1, 2).reshape(b, t, WIDTH))
        return x + self.mlp(self.norm2(x))


class CharacterModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(ALPHABET), WIDTH)
        self.positions = nn.Parameter(0.02 * torch.randn(CONTEXT, WIDTH))
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, len(ALPHABET), bias=False)
        nn.init.normal_(self.embedding.weight, std=0.02)
        self.head.weight = self.embedding.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(self.blocks(self.embedding(tokens) + self.positions)))


def corpus() -> torch.Tensor:
    """The library's top-level modules in order of name, as indices into ALPHABET; other characters are left out."""
    files = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    text = "".join(path.read_text(encoding="utf-8", errors="ignore") for path in files)[:CORPUS_CHARACTERS]
    index = {ord(character): i for i, character in enumerate(ALPHABET)}
    return torch.tensor([index[code] for code in map(ord, text) if code in index])


def encode(text: str) -> torch.Tensor:
    return torch.tensor([ALPHABET.index(character) for character in text])


@torch.no_grad()
def sample(model: CharacterModel, device: str) -> str:
    """Continues PROMPT. The window stays on the device and has one size: nothing compiles after the first character."""
    window = encode(PROMPT.rjust(CONTEXT, "\n")[-CONTEXT:]).to(device)[None]
    drawn = []
    for _ in range(SAMPLE_CHARACTERS):
        logits = model(window)[:, -1] / TEMPERATURE
        gumbel = -torch.log(-torch.log(torch.rand(logits.shape, device=device).clamp_min(1e-9)))
        following = (logits + gumbel).argmax(-1, keepdim=True)
        window = torch.cat([window[:, 1:], following], dim=1)
        drawn.append(following)
    return "".join(ALPHABET[i] for i in torch.cat(drawn, dim=1)[0].tolist())


def train(device: str) -> None:
    data = corpus().to(device)
    model = CharacterModel().to(device)
    offsets = torch.arange(CONTEXT + 1, device=device)
    run = Run(total=STEPS)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=2e-3, total_steps=STEPS)
    for _ in range(STEPS):
        starts = torch.randint(len(data) - CONTEXT - 1, (BATCH, 1)).to(device)
        tokens = data[starts + offsets]
        optimizer.zero_grad()
        loss = F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        run.step(loss.item())
    last = sum(run.values[-20:]) / 20
    run.finish(device, score=last, text=f"loss {last:.2f} nats a character", sample=PROMPT + sample(model, device))


if __name__ == "__main__":
    run_as_process(train)
