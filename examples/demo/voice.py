"""Synthesised voiced audio: phrases of vowel syllables with pauses between them. NumPy only."""

import numpy as np

RATE = 16_000  # samples a second
FORMANTS = np.array(  # hertz, of a e i o u: Peterson and Barney, 1952, means of male speakers
    [[730, 1090, 2440], [530, 1840, 2480], [270, 2290, 3010], [570, 840, 2410], [300, 870, 2240]]
)
BANDWIDTHS = np.array([80.0, 100.0, 140.0])  # hertz
HIGHEST_HARMONIC = 4_000.0  # hertz


def synthesise(seconds: float, seed: int = 0) -> np.ndarray:
    """`seconds` of audio at RATE: float32 in [-0.5, 0.5], shape [samples]."""
    random = np.random.default_rng(seed)
    audio = 1e-4 * random.standard_normal(int(seconds * RATE))
    at = 0
    while at < len(audio):
        for _ in range(random.integers(5, 10)):
            part = audio[at : at + int(RATE * random.uniform(0.14, 0.30))]
            part += syllable(len(part), random)
            at += len(part)
        at += int(RATE * random.uniform(0.4, 0.9))
    return (0.5 * audio / np.abs(audio).max()).astype(np.float32)


def syllable(samples: int, random: np.random.Generator) -> np.ndarray:
    """A glide between two vowels: harmonics of a glottal source that falls by 12 dB an octave (6 after radiation from
    the lips), each as loud as the formants' resonances make it."""
    ramp = np.linspace(0, 1, samples)
    pitch = random.uniform(100, 150) * (1 + random.uniform(-0.15, 0.1) * ramp)
    phase = 2 * np.pi * np.cumsum(pitch) / RATE
    first, last = FORMANTS[random.integers(len(FORMANTS), size=2)]
    formants = first[:, None] + (last - first)[:, None] * ramp
    audio = np.zeros(samples)
    for harmonic in range(1, int(HIGHEST_HARMONIC / 100)):
        ratio = harmonic * pitch / formants
        damping = harmonic * pitch * BANDWIDTHS[:, None] / formants**2
        gain = np.prod(1 / np.hypot(1 - ratio**2, damping), axis=0) / harmonic
        audio += gain * np.sin(harmonic * phase)
    return audio * np.sin(np.pi * ramp) ** 0.6
