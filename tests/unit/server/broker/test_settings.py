"""broker.yaml: what is safe is read, what is not is told at its line."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.model.errors import InputError
from planner.model.project import ControlPlane
from planner.model.server import GOOGLE_ISSUER, KnownPrincipal
from planner.server.broker_settings import BrokerSettings, parse_broker
from tests.unit.server.broker.bed import PROJECT, SUBSCRIPTION

URL = "https://broker.example.com"
GOOD = f"""url: {URL}
listen: 0.0.0.0:443
tls: {{certificate: broker.pem, key: keys/broker.key}}
identity:
  aws: {{sts: [sts.us-east-1.amazonaws.com]}}
  gcp: {{}}
  azure: {{tenant: {SUBSCRIPTION}, audience: "api://skyplan-broker"}}
  ca_file: ca.pem
principals:
  - {{job: train, target: neb, principal: serviceaccount-e00x}}
hierarchical_accounts: [acmeckpt]
"""


def read(text: str, project=PROJECT) -> BrokerSettings:
    return parse_broker(text, "/etc/skyplan/broker.yaml", project)


def wrong(text: str, project=PROJECT) -> list[tuple[str, int, str]]:
    with pytest.raises(InputError) as caught:
        read(text, project)
    return [(d.code, d.location.line, d.summary) for d in caught.value.diagnostics if d.location]


def test_all_of_it():
    found = read(GOOD)
    assert (found.url, found.listen) == (URL, ("0.0.0.0", 443))
    assert found.tls == ("/etc/skyplan/broker.pem", "/etc/skyplan/keys/broker.key")
    assert found.principals == (KnownPrincipal(job="train", target="neb", principal="serviceaccount-e00x"),)
    assert found.hierarchical == ("acmeckpt",)
    trust = found.identity
    assert (trust.audience, trust.one_time, trust.ca_file) == (URL, False, "/etc/skyplan/ca.pem")
    assert trust.aws_sts == ("sts.us-east-1.amazonaws.com",)
    assert [(t.issuer, t.audience) for t in trust.gcp] == [(GOOGLE_ISSUER, URL)]
    assert {t.audience for t in trust.azure} == {"api://skyplan-broker"}


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("tls: {certificate: broker.pem, key: keys/broker.key}\n", "", 2, "TLS only"),
        ("key: keys/broker.key", "", 3, "key"),
        (f"url: {URL}", "url: http://broker.example.com", 1, "https"),
        (f"url: {URL}", "url: https://plane.example.com", 1, "control plane"),
        (f"url: {URL}", "url: https://other.example.com", 1, "skyplan.yaml sends nodes"),
        ("listen: 0.0.0.0:443", "listen: 0.0.0.0:99999", 2, "listen"),
        ("  gcp: {}\n", "  gcp: {audience: https://plane.example.com}\n", 5, "control plane"),
        ("  ca_file: ca.pem\n", "  audience: https://plane.example.com\n", 1, "control plane"),
        (
            "aws: {sts: [sts.us-east-1.amazonaws.com]}",
            "aws: {certificates: {us-east-1: aws.pem}}",
            5,
            "identity document",
        ),
        ("principal: serviceaccount-e00x", "principle: x", 10, "principal"),
        ("principals:", "principles:", 9, "principles"),
        ("[acmeckpt]", "[acme-ckpt]", 11, "storage account"),
    ],
)
def test_what_is_not_safe_is_told_at_its_line(old, new, line, words):
    assert old in GOOD
    found = wrong(GOOD.replace(old, new))
    assert any(at == line and words in text for _, at, text in found), found


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "a",
        "url: [",
        f"{GOOD}---\n{GOOD}",
        f"url: {URL}\nlisten: 127.0.0.1:0\nidentity: {{}}\n",
        f"url: {URL}\nlisten: 127.0.0.1:0\n",
    ],
)
def test_what_is_no_settings(text):
    assert wrong(text)


def test_without_a_control_plane_there_is_nothing_to_keep_apart_from():
    assert (
        read(GOOD.replace(URL, "https://x.example.com"), replace(PROJECT, control_plane=None)).url
        == "https://x.example.com"
    )
    control = ControlPlane(url="https://plane.example.com", broker=None)
    assert read(GOOD, replace(PROJECT, control_plane=control)).url == URL
