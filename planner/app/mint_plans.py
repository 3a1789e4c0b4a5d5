"""The approved plans: files in a folder that only reviewers write, found by the digest that the record names and that the file's own content gives.

Decides that a plan is read from nowhere else: neither the record nor a node can hand one in.  A file whose digest does not match its content is no plan
(`planner.model.plan.from_document`) and is passed over, loudly; it must not stop the jobs of the others.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from planner.app.inputs import PLAN_SUFFIX, read_plan
from planner.model.errors import InputError
from planner.model.plan import PlacementPlan

MAX_PLANS: Final = 10_000


@dataclass(slots=True, kw_only=True)
class ApprovedPlans:
    """Plans in `folder` and its folders.  `tell` hears of files that are none.  Safe to use from several threads."""

    folder: Path
    tell: Callable[[str], None] = print
    _found: dict[str, PlacementPlan] = field(default_factory=dict[str, PlacementPlan])
    _files: dict[Path, tuple[int, int, str]] = field(default_factory=dict[Path, tuple[int, int, str]])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def plan(self, digest: str) -> PlacementPlan | None:
        """The approved plan of that digest; None where there is none, or no more: a file that is taken away is approved no longer."""
        with self._lock:
            self._read()
            return self._found.get(digest)

    def count(self) -> int:
        """How many there are now."""
        with self._lock:
            self._read()
            return len(self._found)

    def _read(self) -> None:
        """What is new or has changed, by time and size."""
        seen: dict[Path, tuple[int, int, str]] = {}
        for path in sorted(self.folder.rglob(f"*{PLAN_SUFFIX}"))[:MAX_PLANS]:
            try:
                stat = path.stat()
                before = self._files.get(path)
                if before is not None and before[:2] == (stat.st_mtime_ns, stat.st_size):
                    seen[path] = before
                    continue
                seen[path] = (stat.st_mtime_ns, stat.st_size, self._taken(path))
            except OSError:
                continue  # taken away meanwhile
        self._files = seen
        held = {digest for _, _, digest in seen.values()}
        for digest in [d for d in self._found if d not in held]:
            del self._found[digest]

    def _taken(self, path: Path) -> str:
        try:
            plan = read_plan(path)
        except InputError as error:
            self.tell(f"{path.name} is no plan and approves nothing: {error}")
            return ""
        digest = plan.digest
        self._found[digest] = plan
        return digest
