"""PyTorch's own operator tests (OpInfo) on the device, with CPU eager PyTorch as the judge.

plan.py chooses operators and samples, checks.py holds one function for each kind of check, worker.py runs them in a
child process, status.toml lists what is excused and why, report.py writes docs/conformance.md.
"""
