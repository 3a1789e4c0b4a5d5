"""`agent run --local`: a job on this machine as it would run on a node, without control plane, root or cloud.

Decides names and folders only: everything below one folder of the user's, checkpoints in `store/`, one generation a run.  A run whose agent was killed is gone on with:
its generation has not ended.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from . import files, settings
from .errors import USAGE, AgentError
from .fields import JOB
from .settings import Settings


def local(folder: str, job: str | None, *, keep: int | None = None) -> Settings:
    """Settings for the next run, or for the one that goes on.  Raises AgentError."""
    name = job or _name(Path.cwd().name)
    if not JOB.fullmatch(name):
        raise AgentError(USAGE, f"`{name}` is no job's name: a-z, 0-9 and - in between")
    root = Path(folder).expanduser().resolve() / name
    if "\n" in str(root):
        raise AgentError(USAGE, "the folder's name has a line break")
    files.folder(str(root.parent))
    files.folder(str(root))
    generation = _generation(root)
    checkpoint: dict[str, Any] = {"uri": (root / "store").as_uri() + "/", "folder": str(root / "checkpoints")}
    if keep is not None:
        checkpoint["keep"] = keep
    document = {
        "project": "local",
        "job": name,
        "generation": generation,
        "state_folder": str(root / "state"),
        "run_folder": str(root / "run"),
        "checkpoint": checkpoint,
        "terminal": True,
    }
    found = settings.parse(document, {})
    files.write(root / "generation", f"{generation}\n")
    return found


def _generation(root: Path) -> int:
    try:
        last = int((root / "generation").read_text("ascii"))
    except (OSError, ValueError):
        return 1
    ended = root / "state" / f"{root.name}-g{last}-r00" / "ended"
    return last + 1 if os.path.lexists(ended) else last


def _name(text: str) -> str:
    """A job's name made of a folder's."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:63].strip("-") or "job"
