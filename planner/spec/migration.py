"""`migration` of the project file: when jobs move for money, and what moves without being asked.

Decides the form only; what is left out is for `planner.migration.constants`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from planner.model.project import MigrationSettings
from planner.spec import units

if TYPE_CHECKING:
    from planner.spec.fields import Fields

APPLY: Final = ("never", "reviewed")


def migration_settings(f: Fields) -> MigrationSettings:
    """`migration: {threshold?, horizon?, cool_down?, apply?}`."""
    m = f.fields("migration")
    if m is None:
        return MigrationSettings()
    found = MigrationSettings(
        threshold_hours=m.read("threshold", units.hours),
        horizon_hours=m.read("horizon", units.hours),
        cool_down_hours=m.read("cool_down", units.hours),
        apply=m.choice("apply", APPLY) or "never",
    )
    m.finish()
    return found
