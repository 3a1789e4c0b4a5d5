"""Rows of AWS' price list and of Service Quotas, as the APIs write them."""

from __future__ import annotations

from typing import Any


def product(instance_type: str, region: str, usd: str, **changed: str) -> dict[str, Any]:
    """A line of the price list, as the API writes it."""
    attributes = {
        "instanceType": instance_type,
        "regionCode": region,
        "operatingSystem": "Linux",
        "tenancy": "Shared",
        "preInstalledSw": "NA",
        "capacitystatus": "Used",
        "marketoption": "OnDemand",
        "servicecode": "AmazonEC2",
        "usagetype": f"BoxUsage:{instance_type}",
        **changed,
    }
    dimension = {"unit": "Hrs", "pricePerUnit": {"USD": usd}, "beginRange": "0", "endRange": "Inf"}
    term = {"priceDimensions": {"SKU.JRTC.6YS6": dimension}, "effectiveDate": "2026-11-01T00:00:00Z", "sku": "SKU"}
    return {
        "serviceCode": "AmazonEC2",
        "product": {"productFamily": "Compute Instance", "attributes": attributes, "sku": "SKU"},
        "terms": {"OnDemand": {"SKU.JRTC": term}},
    }


def quota(code: str, name: str, value: float) -> dict[str, Any]:
    return {"ServiceCode": "ec2", "QuotaCode": code, "QuotaName": name, "Value": value, "Unit": "None"}
