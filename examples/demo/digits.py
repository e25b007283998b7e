"""A vision transformer on the 1,797 handwritten digits (8 by 8 pixels) that scikit-learn ships."""

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

from examples.demo.job import Run, run_as_process

PATCH, SIDE, WIDTH, HEADS, LAYERS, CLASSES = 2, 8, 64, 4, 2, 10
BATCH, EPOCHS, TEST_IMAGES = 64, 20, 360


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, WIDTH))
        return x + self.mlp(self.norm2(x))


class VisionTransformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(1, WIDTH, kernel_size=2 * PATCH, stride=PATCH, padding=PATCH // 2)  # overlapping
        self.positions = nn.Parameter(0.02 * torch.randn((SIDE // PATCH) ** 2, WIDTH))
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, CLASSES)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = self.patches(images).flatten(2).transpose(1, 2) + self.positions
        return self.head(self.norm(self.blocks(x)).mean(1))


def train(device: str) -> None:
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16
    labels = torch.tensor(digits.target)
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(1))
    images, labels = images[order], labels[order]
    test_images, test_labels = images[:TEST_IMAGES].to(device), labels[:TEST_IMAGES].to(device)
    train_images, train_labels = images[TEST_IMAGES:].to(device), labels[TEST_IMAGES:].to(device)

    model = VisionTransformer().to(device)
    batches = len(train_images) // BATCH
    run = Run(total=EPOCHS * batches)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=2e-3, total_steps=run.total)
    for _ in range(EPOCHS):
        order = torch.randperm(len(train_images))[: batches * BATCH].to(device)
        for chosen in order.view(batches, BATCH):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(train_images[chosen]), train_labels[chosen], label_smoothing=0.1)
            loss.backward()
            optimizer.step()
            schedule.step()
            run.step(loss.item())

    with torch.no_grad():
        right = (model(test_images).argmax(-1) == test_labels).sum().item()
    accuracy = right / TEST_IMAGES
    run.finish(device, score=accuracy, text=f"{100 * accuracy:.1f} % of {TEST_IMAGES} test images")


if __name__ == "__main__":
    run_as_process(train)
