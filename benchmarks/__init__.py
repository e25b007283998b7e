"""`make bench`: ratios against PyTorch on the CPU and JAX, written to docs/benchmarks.md."""
