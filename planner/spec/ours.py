"""Whether a text is surely a job file of ours, told at a glance: so that the readers of other tools' files are imported only where there is such a file.

Decides nothing in doubt: `planner.spec.foreign.whose` looks closer.
"""

from __future__ import annotations

import re
from typing import Final

_WORK: Final = re.compile(r"^work:", re.MULTILINE)
_SBATCH: Final = re.compile(r"^#SBATCH\s", re.MULTILINE)


def says_work(text: str) -> bool:
    """It has `work` as every job of ours is nearly always written."""
    return _WORK.search(text) is not None


def is_script(text: str) -> bool:
    """It has #SBATCH lines."""
    return _SBATCH.search(text) is not None


def surely_ours(text: str) -> bool:
    """A job file of ours, without doubt."""
    return says_work(text) and not is_script(text)
