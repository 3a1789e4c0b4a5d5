"""The names a job file may use, as a value, so that `spec` need not know the catalog."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planner.model.market import Market


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """GPU models with their memory per GPU in GiB, spellings, regions by cloud, instance types."""

    gpus: dict[str, float]
    aliases: dict[str, tuple[str, ...]]
    regions: dict[str, tuple[str, ...]]
    instance_types: tuple[str, ...]


def words_of(market: Market) -> Words:
    """The words of a market."""
    regions: dict[str, list[str]] = {}
    for region in market.regions:
        regions.setdefault(region.cloud.value, []).append(region.name)
    return Words(
        gpus={t.gpu: t.gpu_memory_gib for t in market.types},
        aliases=dict(market.aliases),
        regions={cloud: tuple(names) for cloud, names in regions.items()},
        instance_types=tuple(t.name for t in market.types),
    )
