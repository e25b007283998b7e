"""Pages written from the code are up to date, and what pages name exists."""

import pathlib
import re
import subprocess
import sys

import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]


def test_the_operator_page_is_what_the_table_says():
    done = subprocess.run(
        [sys.executable, "scripts/operator_page.py", "--check"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_names_of_torch_tpu_on_the_pages_exist():
    missing = []
    for page in PAGES:
        for dotted in re.findall(r"torch\.tpu((?:\.[A-Za-z_]\w*)+)", page.read_text()):
            found = torch.tpu
            for name in dotted.strip(".").split("."):
                found = getattr(found, name, None)
            if found is None:
                missing.append(f"{page.name}: torch.tpu{dotted}")
    assert not missing


def test_environment_variables_of_the_code_are_on_their_page():
    sources = [*(ROOT / "csrc").rglob("*.cc"), *(ROOT / "torch_tpu").rglob("*.py")]
    read = {name for path in sources for name in re.findall(r'"(TORCH_TPU_[A-Z_]+)"', path.read_text())}
    page = (ROOT / "docs" / "environment.md").read_text()
    assert {name for name in read if f"`{name}`" not in page} == set()


def test_links_between_pages_lead_somewhere():
    broken = []
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
            if "://" not in target and not (page.parent / target).exists():
                broken.append(f"{page.name}: {target}")
    assert not broken
