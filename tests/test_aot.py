"""The forward programs of three models compile for TPUs that are not there; `make aot` does it for all models."""

import os
import pathlib
import subprocess

import pytest

pytest.importorskip("transformers")

from tests.aot import compiler
from tests.aot.collect import Program, programs_of
from torch_tpu._runtime import plugin_candidates

pytestmark = pytest.mark.skipif(compiler.libtpu() is None, reason="libtpu is not installed")

ROOT = pathlib.Path(__file__).resolve().parent.parent
BROKEN = "module @broken { func.func public @main() -> tensor<2xf32> { return } }"
FINE = """module @fine {
  func.func public @main(%arg0: tensor<2xf32>) -> tensor<2xf32> {
    %0 = stablehlo.negate %arg0 : tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}"""


@pytest.mark.parametrize("name", ["gpt2", "bert", "vit"])
def test_forward_programs_compile_for_tpus(name, tmp_path):
    programs = programs_of(name, "forward", tmp_path)
    assert len(programs) > 10
    for topology in compiler.TOPOLOGIES:
        refused = compiler.Compiler(topology).refusals(programs)
        assert {program.name: reason for program, reason in refused.items()} == {}


def test_a_refusal_has_a_reason_and_a_pass_is_remembered(tmp_path):
    broken, fine = Program("broken", BROKEN), Program("fine", FINE)
    first = compiler.Compiler("v5e:1x1", tmp_path / "passes")
    refused = first.refusals([broken, fine])
    assert list(refused) == [broken]
    assert refused[broken]
    again = compiler.Compiler("v5e:1x1", tmp_path / "passes")
    assert again.refusals([fine]) == {}
    assert again.compiled == 0


def test_a_program_that_ends_the_compiler_is_reported_and_the_rest_still_compiles(tmp_path, monkeypatch):
    tool = tmp_path / "tool"
    tool.write_text(
        "#!/bin/sh\nshift 2\nfor f; do printf 'START\\t%s\\n' $f; grep -q broken $f && kill -ABRT $$; "
        "printf '%s\\tOK\\t0\\n' $f; done\n"
    )
    tool.chmod(0o700)
    monkeypatch.setattr(compiler, "TOOL", tool)
    refused = compiler.Compiler("v5e:1x1", tmp_path / "passes").refusals(
        [Program("broken", BROKEN), Program("fine", FINE)]
    )
    assert [(program.name, "ended the process" in reason) for program, reason in refused.items()] == [("broken", True)]


@pytest.mark.skipif(any(pathlib.Path("/dev").glob("accel*")), reason="this host has TPUs")
def test_libtpu_beside_the_cpu_plugin_does_not_change_the_platform(output):
    code = "import torch; print(torch.tpu.platform(), torch.ones(2, device='tpu').sum().item())"
    assert output(code, TORCH_TPU_PJRT_PLUGIN=None, TPU_LIBRARY_PATH=None) == "cpu 2.0"


def test_the_pjrt_suite_passes_on_libtpu():
    suite = ROOT / "build" / "tests" / "cpp" / "pjrt_test"
    env = {**os.environ, "TEST_LIBTPU": str(compiler.libtpu()), "TEST_PJRT_PLUGIN": plugin_candidates()["cpu_path"]}
    done = subprocess.run([suite, "the_suite_passes_on_libtpu"], env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-3000:]
    assert done.stdout.rstrip().endswith("1 passed, 0 failed")
