"""Azure and Nebius sell by region: their files name no zones."""

from __future__ import annotations

import pytest

from planner.spec.project import parse_project
from tests.unit.spec.spec_words import WORDS

AZURE = """\
project: acme
targets:
  - name: az
    cloud: azure
    kms_key: /subscriptions/0/resourceGroups/x/providers/Microsoft.Compute/diskEncryptionSets/des
    networks: [{region: eastus, vpc_id: vnet, subnets: {"-": subnet-1}, cidrs: {"-": 10.9.0.0/20}}]
reserved:
  - {target: az, region: eastus, instance_type: Standard_ND96asr_v4, nodes: 2, id: crg, starts: 2026-11-01, expires: 2027-01-01}
"""


def parsed(text: str):
    return parse_project(text, "skyplan.yaml", WORDS)


def test_a_regions_own_subnet_key_and_reservation_are_read() -> None:
    project, problems = parsed(AZURE)
    assert not [d for d in problems if d.severity.value == "error" and "eastus" not in d.summary], problems
    (target,) = project.targets
    assert target.kms_key_arn is not None
    assert target.kms_key_arn.endswith("diskEncryptionSets/des")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('subnets: {"-": subnet-1}', "subnets: {eastus-1: subnet-1}"),
        ("region: eastus, instance_type", 'region: eastus, zone: "1", instance_type'),
        ("diskEncryptionSets/des", "keys/des"),
    ],
)
def test_zones_and_other_clouds_keys_are_refused(old: str, new: str) -> None:
    _, before = parsed(AZURE)
    _, problems = parsed(AZURE.replace(old, new))
    assert len(problems) > len(before)


def test_a_zone_is_still_asked_for_where_there_are_zones() -> None:
    text = AZURE.replace("cloud: azure", "cloud: gcp").replace("    kms_key", "    # kms_key")
    _, problems = parsed(text)
    assert any("zone" in d.summary and d.code == "SKY-SPEC-103" for d in problems)
