"""Entry point of `make bench`."""

from benchmarks.run import main

main()
