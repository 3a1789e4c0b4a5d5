"""What Nebius says of this machine: the token of the service account that it was created with, which the platform keeps fresh in a file.

The file's place is seen in public repositories (notes/iam.md, 2026-11), documented nowhere that we read and never run live.  No audience can be asked for,
and the token says nothing of the machine: it proves the service account, which is the job's alone.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from .metadata import MAX_BYTES, NEBIUS_TOKEN_FILE, NoAnswer

FILE_VARIABLE = "SKYPLAN_NEBIUS_TOKEN_FILE"


def token() -> dict[str, Any]:
    """The `nebius-jwt` proof, read anew each time.  Raises NoAnswer."""
    path = os.environ.get(FILE_VARIABLE, NEBIUS_TOKEN_FILE)
    try:
        with Path(path).open("rb") as opened:
            text = opened.read(MAX_BYTES).decode("ascii").strip()
    except (OSError, UnicodeDecodeError):
        text = ""
    if not text:
        raise NoAnswer(path)
    return {"scheme": "nebius-jwt", "value": text}
