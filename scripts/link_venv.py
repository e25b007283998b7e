"""Makes this tree importable in the running virtual environment, with the entry points of pyproject.toml.

An editable install in two files: a .pth with the tree's path and a .dist-info with the metadata. Takes milliseconds, so
that every `make build` may run it; `pip uninstall torchtpu` removes it.
"""

import os
import pathlib
import sys
import sysconfig
import tomllib

root = pathlib.Path(__file__).resolve().parent.parent
project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
site = pathlib.Path(sysconfig.get_path("purelib"))
info = site / f"{project['name']}-{project['version']}.dist-info"

groups = {"console_scripts": project.get("scripts", {}), **project.get("entry-points", {})}
entry_points = "".join(
    f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in points.items())
    for group, points in groups.items()
    if points
)
requires = "".join(f"Requires-Dist: {line}\n" for line in project["dependencies"])
files = {
    site / f"{project['name']}.pth": f"{root}\n",
    info / "METADATA": f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n{requires}",
    info / "entry_points.txt": entry_points,
    info / "INSTALLER": "make\n",
}
for name, target in project.get("scripts", {}).items():
    module, function = target.split(":")
    script = pathlib.Path(sysconfig.get_path("scripts")) / name
    files[script] = f"#!{sys.executable}\nimport sys\n\nfrom {module} import {function}\n\nsys.exit({function}())\n"
info.mkdir(exist_ok=True)
files[info / "RECORD"] = "".join(f"{os.path.relpath(path, site)},,\n" for path in (*files, info / "RECORD"))
for path, text in files.items():
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
    if text.startswith("#!"):
        path.chmod(0o755)
