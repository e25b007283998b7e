"""Five models of the zoo in tests/models, each in a process of its own; `make models` runs all of them."""

import pytest

pytest.importorskip("transformers")

from tests.models.__main__ import run_child


@pytest.mark.parametrize("name", ["gpt2", "llama", "bert", "vit", "t5"])
def test_model_agrees_with_the_cpu(name):
    result = run_child(name)
    assert result["failures"] == []
    assert result["messages"] == []
