"""A Market of any size from the packaged types and regions, deterministic."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from catalog.load import load_market
from planner.model.market import Market


def market(offers: int) -> Market:
    """`offers` rows: every packaged type in every region of its cloud, over as many made-up zones as it takes, on demand and spot."""
    real = load_market()
    rng = np.random.default_rng(20261130)
    kinds = np.array([t.cloud.value for t in real.types])
    places = np.array([r.cloud.value for r in real.regions])
    pairs = np.argwhere(kinds[:, None] == places[None, :])
    per_zone = len(pairs) * 2
    zones = -(-offers // per_zone)
    type_ix = np.tile(np.repeat(pairs[:, 0], 2), zones)[:offers]
    region_ix = np.tile(np.repeat(pairs[:, 1], 2), zones)[:offers]
    zone_ix = np.repeat(np.arange(1, zones + 1), per_zone)[:offers]
    capacity = np.tile(np.array([0, 1]), len(pairs) * zones)[:offers]
    price = np.array([t.gpu_count for t in real.types])[type_ix] * rng.uniform(0.5, 12.0, offers)
    order = np.lexsort((capacity, type_ix, zone_ix, region_ix))
    return replace(
        real,
        zones=("", *(f"zone-{k:05d}" for k in range(zones))),
        type_ix=type_ix[order].astype(np.int32),
        region_ix=region_ix[order].astype(np.int32),
        zone_ix=zone_ix[order].astype(np.int32),
        capacity=capacity[order].astype(np.int8),
        price_micros=np.rint(price[order] * 1e6).astype(np.int64),
        price_day=np.full(offers, 20_000, dtype=np.int32),
        interruptions_per_hour=np.where(capacity[order] == 1, 0.02, 0.0),
        marks=np.zeros(offers, dtype=np.int32),
        source_ix=np.zeros(offers, dtype=np.int16),
    )
