"""AWS's two proofs: the identity document, and the signed question to STS.  The document is signed by a key of the test, the question judged by botocore's code."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modules.agent.proofs import aws
from planner.model.errors import InputError, Unavailable
from planner.model.runtime import NodeIdentity, Refusal, Refused
from planner.model.server import IdentityTrust
from planner.server.identity import Answer, Asked, verifiers
from tests.emulators.issuers import DocumentSigner, Sts

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
BROKER = "https://broker.acme.example:8444"


def refused(judge, value: Any, now: datetime = NOW) -> str:
    with pytest.raises(Refused) as caught:
        judge.verify(value, now)
    assert caught.value.word is Refusal.IDENTITY
    for secret in ("Signature=", "token-0", "secret-0"):
        assert secret not in caught.value.reason
    return caught.value.reason


# the document


SIGNER = DocumentSigner()


def documents(*more: tuple[str, str]):
    return verifiers(IdentityTrust(audience=BROKER, aws_certificates=((SIGNER.region, SIGNER.certificate), *more)))[
        "aws-iid"
    ]


def proof(**change: Any) -> dict[str, Any]:
    text = SIGNER.document()
    if change:
        text = json.dumps({k: v for k, v in {**json.loads(text), **change}.items() if v != "gone"})
    return {"document": text, "signature": SIGNER.signature(text)}


def test_a_document_names_account_region_and_instance():
    assert documents().verify(proof(), NOW) == NodeIdentity(
        scheme="aws-iid", cloud="aws", account="111122223333", instance_id="i-0123456789abcdef0", where="us-east-1"
    )


@pytest.mark.parametrize(
    "change",
    [
        {"accountId": "11112222333"},
        {"accountId": 111122223333},
        {"accountId": "gone"},
        {"instanceId": "i-0123456789abcdef0/../x"},
        {"instanceId": "gone"},
        {"region": "gone"},
        {"region": "eu-west-1"},
        {"region": "us-east-1\n"},
        {"pendingTime": "gone"},
        {"pendingTime": "yesterday"},
        {"pendingTime": "2026-11-30T12:02:00Z"},
    ],
)
def test_a_signed_document_that_does_not_fit_is_refused(change):
    refused(documents(), proof(**change))


def test_a_changed_document_or_signature_does_not_hold():
    good = proof()
    other = good["document"].replace("i-0123456789abcdef0", "i-0123456789abcdef1")
    assert "not signed" in refused(documents(), {**good, "document": other})
    assert "not signed" in refused(documents(), {**good, "document": good["document"] + " "})
    assert "not signed" in refused(documents(), {**good, "signature": "AAAA"})
    assert "base64" in refused(documents(), {**good, "signature": "***"})
    assert "not signed" in refused(documents(), {**good, "signature": ""})


def test_a_key_that_stands_twice_is_refused():
    text = '{"instanceId": "i-0123456789abcdef0", "instanceId": "i-0123456789abcdef1"}'
    assert "JSON" in refused(documents(), {"document": text, "signature": SIGNER.signature(text)})


@pytest.mark.parametrize(
    "value",
    [
        None,
        "x",
        [],
        {},
        {"document": "x"},
        {"document": 5, "signature": "x"},
        {"document": "x", "signature": "x", "more": 1},
        {"document": "x" * 9000, "signature": "AA=="},
        {"document": "{}", "signature": "A" * 3000},
        {"document": "[" * 8000, "signature": "AA=="},
        {"document": '{"a": "\ud800"}', "signature": "AA=="},
        {"document": "5", "signature": "AA=="},
    ],
)
def test_what_is_no_document_is_refused(value):
    refused(documents(), value)


def test_a_region_is_signed_by_its_own_certificate_only():
    west = DocumentSigner("us-west-2")
    text = west.document()
    mine = {"document": text, "signature": west.signature(text)}
    assert "no certificate" in refused(documents(), mine)
    assert documents(("us-west-2", west.certificate)).verify(mine, NOW).where == "us-west-2"
    assert documents(("*", west.certificate)).verify(mine, NOW).where == "us-west-2"
    # `*` stands in for no region that has its own: the thief of one region's key is none of another
    theirs = DocumentSigner("us-west-2")
    theirs.region = "us-east-1"
    text = theirs.document()
    refused(documents(("*", west.certificate)), {"document": text, "signature": theirs.signature(text)})


def test_a_certificate_that_has_ended_signs_nothing():
    assert "holds now" in refused(documents(), proof(), NOW + timedelta(days=4000))


def test_a_certificate_that_is_none_is_told_at_the_start():
    with pytest.raises(InputError) as caught:
        documents(("*", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"))
    assert caught.value.diagnostics[0].code == "SKY-RUN-520"


# the signed question


class Wire:
    """STS behind the fetch: sees what is really sent on."""

    def __init__(self) -> None:
        self.sts = Sts()
        self.sent: list[Asked] = []
        self.answer: Answer | None = None

    def __call__(self, asked: Asked) -> Answer:
        self.sent.append(asked)
        if self.answer is not None:
            return self.answer
        status, body = self.sts.answer(asked.url, dict(asked.headers), asked.body, NOW)
        return Answer(status=status, body=body)


@pytest.fixture
def wire() -> Wire:
    return Wire()


@pytest.fixture
def judge(wire):
    return verifiers(
        IdentityTrust(audience=BROKER, aws_sts=("sts.us-east-1.amazonaws.com", "sts.eu-*.amazonaws.com")), fetch=wire
    )["aws-sts"]


def question(
    wire: Wire, *, region: str = "us-east-1", audience: str = BROKER, at: datetime = NOW, **change: Any
) -> dict[str, Any]:
    made = aws.signed(wire.sts.give(), region, audience, at.timestamp())
    return {**made, **change}


def headers(made: dict[str, Any], **change: str | None) -> dict[str, Any]:
    named = {name.replace("_", "-"): value for name, value in change.items()}
    return {**made, "headers": {k: v for k, v in {**made["headers"], **named}.items() if v is not None}}


def test_sts_names_account_role_and_instance(wire, judge):
    assert judge.verify(question(wire), NOW) == NodeIdentity(
        scheme="aws-sts",
        cloud="aws",
        account="111122223333",
        instance_id="i-0123456789abcdef0",
        principal="arn:aws:iam::111122223333:role/job-train",
        expires_at="2026-11-30T12:05:00.000000Z",
    )
    assert [(a.url, a.method, a.body) for a in wire.sent] == [
        ("https://sts.us-east-1.amazonaws.com/", "POST", aws.BODY.encode())
    ]


def test_another_region_that_is_allowed(wire, judge):
    assert judge.verify(question(wire, region="eu-west-1"), NOW).account == "111122223333"


@pytest.mark.parametrize(
    "url",
    [
        "https://sts.us-west-2.amazonaws.com/",
        "http://sts.us-east-1.amazonaws.com/",
        "https://sts.us-east-1.amazonaws.com/?Action=AssumeRole",
        "https://sts.us-east-1.amazonaws.com/x",
        "https://sts.us-east-1.amazonaws.com:8443/",
        "https://evil@sts.us-east-1.amazonaws.com/",
        "https://sts.us-east-1.amazonaws.com@evil.example/",
        "https://sts.us-east-1.amazonaws.com.evil.example/",
        "https://evil.example/sts.us-east-1.amazonaws.com",
        "https://sts.eu-x.evil.example#.amazonaws.com/",
        "https://sts.eu-a.b.amazonaws.com/",
        "https://169.254.169.254/latest/",
        "https://STS.us-east-1.amazonaws.com/",
        "https://sts.us-east-1.amazonaws.com/\r\nX: y",
        "https://iam.amazonaws.com/",
        "",
        None,
        5,
    ],
)
def test_nothing_is_sent_anywhere_else(wire, judge, url):
    refused(judge, question(wire, url=url))
    assert wire.sent == []


@pytest.mark.parametrize(
    "change",
    [
        {"method": "GET"},
        {"body": "Action=GetSessionToken&Version=2011-06-15"},
        {"body": ""},
        {"body": aws.BODY + "&x=y"},
        {"headers": None},
        {"headers": {}},
        {"headers": []},
        {"more": 1},
    ],
)
def test_nothing_else_is_sent(wire, judge, change):
    refused(judge, question(wire, **change))
    assert wire.sent == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"x_skyplan_audience": "https://other.example"}, "another service"),
        ({"x_skyplan_audience": None}, "another service"),
        ({"X_Skyplan_Audience": BROKER}, "twice"),
        ({"host": "evil.example"}, "Host"),
        ({"x_amz_date": None}, "X-Amz-Date"),
        ({"x_amz_date": "20261129T120000Z"}, "day"),
        ({"x_amz_date": "yesterday"}, ""),
        ({"transfer_encoding": "chunked"}, "does not need"),
        ({"x_forwarded_for": "1.2.3.4"}, "does not need"),
        ({"user_agent": "a\r\nX-Evil: 1"}, "malformed"),
        ({"user_agent": "x" * 5000}, "malformed"),
        ({"authorization": None}, "no signature"),
        ({"authorization": "Basic eDp5"}, "no signature"),
        (
            {
                "authorization": "AWS4-HMAC-SHA256 Credential=AKIAAAAAAAAAAAAAAAAA/20261130/us-east-1/s3/aws4_request, SignedHeaders=host, Signature="
                + "0" * 64
            },
            "no signature",
        ),
    ],
)
def test_headers_that_do_not_fit_are_refused_before_anything_is_sent(wire, judge, change, words):
    assert words in refused(judge, headers(question(wire), **change))
    assert wire.sent == []


@pytest.mark.parametrize("unsigned", ["host", "x-amz-date", "x-skyplan-audience", "x-amz-security-token"])
def test_what_matters_must_be_among_the_signed(wire, judge, unsigned):
    made = question(wire)
    text = made["headers"]["authorization"].replace(f";{unsigned}", "").replace(f"{unsigned};", "")
    assert unsigned in refused(judge, headers(made, authorization=text))
    assert wire.sent == []


def test_a_question_for_another_service_is_not_taken_by_renaming_it(wire, judge):
    """A proof that was made for the control plane, caught there, and shown to the broker with another audience."""
    made = headers(question(wire, audience="https://plane.acme.example"), x_skyplan_audience=BROKER)
    assert "403" in refused(judge, made)


def test_only_while_fresh(wire, judge):
    made = question(wire)
    assert judge.verify(made, NOW + timedelta(minutes=5)).account
    assert "300 s" in refused(judge, made, NOW + timedelta(minutes=5, seconds=1))
    assert "300 s" in refused(judge, made, NOW - timedelta(minutes=5, seconds=1))


def test_a_wrong_signature_is_refused_by_sts(wire, judge):
    made = question(wire)
    text = made["headers"]["authorization"]
    refused(judge, headers(made, authorization=text[:-1] + ("0" if text[-1] != "0" else "1")))
    refused(judge, headers(made, x_amz_security_token="token-9"))


@pytest.mark.parametrize(
    "arn",
    [
        "arn:aws:iam::111122223333:user/alice",
        "arn:aws:iam::111122223333:root",
        "arn:aws:sts::111122223333:assumed-role/job-train/somebody",
        "arn:aws:sts::111122223333:assumed-role/job-train/i-0123456789abcdef0/x",
        "arn:aws:sts::111122223333:federated-user/i-0123456789abcdef0",
        "",
    ],
)
def test_whoever_is_no_instance_is_refused(wire, judge, arn):
    wire.answer = Answer(status=200, body=f"<R><Arn>{arn}</Arn></R>".encode())
    assert "instance role" in refused(judge, question(wire))


@pytest.mark.parametrize(
    "body",
    [b"", b"{}", b"<R/>", b"<R><Arn>a</Arn><Arn>b</Arn></R>", b'<!DOCTYPE x [<!ENTITY a "b">]><R><Arn>&a;</Arn></R>'],
)
def test_an_answer_that_names_nobody_is_refused(wire, judge, body):
    wire.answer = Answer(status=200, body=body)
    refused(judge, question(wire))


@pytest.mark.parametrize("status", [500, 503, 429])
def test_sts_away_is_not_the_nodes_fault(wire, judge, status):
    wire.answer = Answer(status=status, body=b"")
    with pytest.raises(Unavailable):
        judge.verify(question(wire), NOW)


@pytest.mark.parametrize("status", [301, 302, 400, 403])
def test_any_other_status_is_a_refusal(wire, judge, status):
    wire.answer = Answer(
        status=status, body=b"<R><Arn>arn:aws:sts::111122223333:assumed-role/x/i-0123456789abcdef0</Arn></R>"
    )
    refused(judge, question(wire))


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=20),
        lambda inner: st.dictionaries(st.sampled_from(["method", "url", "headers", "body", "host"]), inner, max_size=5),
        max_leaves=8,
    )
)
@settings(max_examples=80, deadline=None)
def test_nothing_makes_it_fall_over(value):
    wire = Wire()
    judge = verifiers(IdentityTrust(audience=BROKER, aws_sts=("*",)), fetch=wire)["aws-sts"]
    with pytest.raises(Refused):
        judge.verify(value, NOW)
    assert wire.sent == []
