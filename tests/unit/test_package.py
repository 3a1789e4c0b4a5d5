"""What is installed: every data file that the code reads is listed as package data."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_data_file_is_packaged() -> None:
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    packaged = {
        p for package, globs in listed.items() for glob in globs for p in (ROOT / package.replace(".", "/")).glob(glob)
    }
    present = {
        p
        for root in ("planner", "stacks", "modules", "catalog")
        for p in (ROOT / root).rglob("*")
        if p.is_file()
        and "__pycache__" not in p.parts
        # a folder without `__init__.py` is no package: what lies in it is data, code too, but for what maintainers run in a checkout
        and (p.suffix != ".py" or not (p.parent / "__init__.py").exists())
        and p.name != "update.py"
    }
    assert present - packaged == set()
