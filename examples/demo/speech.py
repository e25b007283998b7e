"""Streams 30 seconds of audio through silero-vad, a pretrained TorchScript network: is somebody speaking?

The network's recurrent state and its context stay on the device between chunks.
"""

import torch
from silero_vad import load_silero_vad  # sets PyTorch to one thread: this job has a process of its own

from examples.demo.job import Run, run_as_process
from examples.demo.voice import RATE, synthesise

SECONDS, CHUNK = 30, 512  # the network takes chunks of 512 samples at 16 kHz


@torch.no_grad()
def stream(device: str) -> None:
    model = load_silero_vad().to(device)
    audio = torch.from_numpy(synthesise(SECONDS)).to(device)
    chunks = len(audio) // CHUNK
    run = Run(total=chunks)
    for i in range(chunks):
        probability = model(audio[None, i * CHUNK : (i + 1) * CHUNK], RATE)
        run.step(probability.item())
    speaking = sum(value > 0.5 for value in run.values) / chunks
    run.finish(device, score=max(run.values), text=f"speech in {100 * speaking:.0f} % of {chunks} chunks")


if __name__ == "__main__":
    run_as_process(stream)
