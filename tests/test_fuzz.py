"""Random chains of views and writes agree with the CPU exactly; `make fuzz` runs more seeds."""

import pytest

from tests.fuzz.runner import run_seed


@pytest.mark.parametrize("seed", range(60))
def test_seed(seed):
    run_seed(seed)
