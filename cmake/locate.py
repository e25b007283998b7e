"""Prints for CMake, importing none: torch's directory, its libstdc++ ABI, the PJRT header's directory, the plugin."""

import importlib.util
import pathlib
import re
import sys


def package_dir(name: str, distribution: str) -> pathlib.Path:
    """The directory of an installed package; exits with one sentence where there is none."""
    try:
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError:
        spec = None
    if spec is None or not spec.submodule_search_locations:
        sys.exit(f"the build needs {distribution}: pip install -r requirements/build.txt")
    return pathlib.Path(next(iter(spec.submodule_search_locations)))


torch = package_dir("torch", "torch")
config = (torch / "share/cmake/Torch/TorchConfig.cmake").read_text()
abi = re.search(r"_GLIBCXX_USE_CXX11_ABI=(\d)", config)
plugin = package_dir("xla_plugins.xla_cpu_pjrt", "xla-cpu-pjrt")
parts = (torch, abi.group(1) if abi else "1", plugin / "include", plugin / "xla_cpu_pjrt.so")
print(";".join(str(part) for part in parts))
