"""Tiny models of the transformers library with random weights, compared between the CPU and the device."""
