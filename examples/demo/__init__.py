"""`make demo`: three jobs on real input, on `tpu` and on the CPU, compared."""
