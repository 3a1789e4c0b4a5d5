"""The catalog's check as a report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from catalog import check
from catalog.load import load_facts, load_market

if TYPE_CHECKING:
    from planner.model.diagnostic import Diagnostic


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Findings in file order, and how many there are by code."""

    findings: tuple[Diagnostic, ...]
    counts: dict[str, int]
    offers: int
    types: int
    regions: int
    as_of: str


def checked(folder: Path | None) -> Report:
    """Check the packaged catalog or the one in `folder`.  Raises InputError where a file is broken."""
    market = load_market(folder)
    facts, _, _ = load_facts(folder)
    found = check.findings(facts, check.marks(facts))
    return Report(
        findings=found,
        counts=check.counts(found),
        offers=len(market),
        types=len(market.types),
        regions=len(market.regions),
        as_of=market.as_of,
    )
