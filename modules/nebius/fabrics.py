"""Which InfiniBand fabric a GPU cluster of a platform is made on, by region.  Pure.

A fabric is a fact of the data centre; the API has no list of them.  Source: Nebius's page on GPU clusters, as repeated by dstack's price collector and
by the region defaults of Nebius's own solution library, read 2026-10.  Where H100 has several (eu-north1: fabric-2, -3, -4, -6) the one that
library uses stands here; capacity may differ between them, and a reservation is on one of them only.
Never run against live Nebius.
"""

from __future__ import annotations

AS_OF = "2026-10"

_FABRICS = {
    ("gpu-h100-sxm", "eu-north1"): "fabric-3",
    ("gpu-h200-sxm", "eu-north1"): "fabric-7",
    ("gpu-h200-sxm", "eu-north2"): "eu-north2-a",
    ("gpu-h200-sxm", "eu-west1"): "fabric-5",
    ("gpu-h200-sxm", "us-central1"): "us-central1-a",
    ("gpu-b200-sxm", "us-central1"): "us-central1-b",
    ("gpu-b200-sxm-a", "me-west1"): "me-west1-a",
    ("gpu-b300-sxm", "uk-south1"): "uk-south1-a",
}


def fabric_name(platform: str, region: str) -> str | None:
    """`fabric-7`; None where no fabric is known: then several nodes of the platform have no InfiniBand there."""
    return _FABRICS.get((platform, region))
