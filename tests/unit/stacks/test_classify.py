"""What a failed launch means, by the cloud's own code."""

from __future__ import annotations

import pytest

from planner.model.codes import CODES as KNOWN
from planner.model.diagnostic import Diagnostic, Severity
from stacks.classify import CODES, KINDS, classify
from stacks.failures import AWS


def error(text, severity=Severity.ERROR):
    return Diagnostic(code="SKY-APPLY-310", summary=text, severity=severity)


def launch(code, status=500):
    return error(
        f"creating EC2 Instance: operation error EC2: RunInstances, https response error StatusCode: {status}, "
        f"RequestID: 1, api error {code}: We currently do not have it"
    )


@pytest.mark.parametrize(("code", "kind"), sorted(AWS.items()))
def test_every_known_code_is_read_from_the_providers_words(code, kind):
    assert classify([launch(code)]) == (kind, code)


@pytest.mark.parametrize("code", ["InvalidParameterValue", "InternalError", "InvalidIPAddress.InUse"])
def test_any_other_code_is_unknown_and_named(code):
    assert classify([launch(code)]) == ("unknown", code)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Unsupported: this is prose", ("unknown", "")),
        ("Unsupported argument", ("unknown", "")),
        ("waiting for EC2 Instance: InsufficientInstanceCapacity: none", ("capacity", "InsufficientInstanceCapacity")),
        ("reading: AccessDenied: no", ("permission", "AccessDenied")),
        ("AccessDeniedByMe", ("unknown", "")),
        ("", ("unknown", "")),
    ],
)
def test_prose_is_believed_only_where_it_names_a_code(text, expected):
    assert classify([error(text)]) == expected


def test_a_permission_outweighs_a_quota_and_that_capacity():
    found = [launch("InsufficientInstanceCapacity"), launch("VcpuLimitExceeded"), launch("UnauthorizedOperation")]
    assert classify(found) == ("permission", "UnauthorizedOperation")
    assert classify(found[:2]) == ("quota", "VcpuLimitExceeded")
    assert classify([launch("InternalError"), found[0]]) == ("capacity", "InsufficientInstanceCapacity")


def test_warnings_count_for_nothing():
    assert classify([error("api error VcpuLimitExceeded: x", Severity.WARNING)]) == ("unknown", "")
    assert classify([]) == ("unknown", "")


def test_every_kind_has_a_code_in_the_table():
    assert set(KINDS.values()) < set(CODES)
    assert set(CODES.values()) <= set(KNOWN)
