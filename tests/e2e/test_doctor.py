"""R22, R23: `skyplan doctor` against the emulated AWS: what it says, and that no call of it could have changed anything."""

import json
import os
import threading
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from planner.app import doctor, doctor_checks
from planner.clouds.checkup.aws import AwsCheckup
from planner.clouds.feeds.choose import RealFeeds
from planner.clouds.port import Where
from planner.model.errors import PermissionDenied
from tests.emulators.aws import ACCOUNT, REGION
from tests.emulators.aws_lists import quota

G6E = "g6e.xlarge"
JOB = """
name: train
resources: {accelerators: "L40S:1", capacity: [on_demand]}
work: {hours: 2, on: "L40S:1"}
run: python train.py
constraints: {regions: [us-east-1], stop_after: 8h}
"""
PROJECT = """
project: acme
targets: [{name: prod, cloud: aws, account: "%s", regions: [us-east-1]}]
backend: {s3: {bucket: acme-tfstate, region: us-east-1}}
"""
#: what doctor may call, and nothing else
READING = {
    "GetCallerIdentity",
    "DescribeAvailabilityZones",
    "DescribeSpotPriceHistory",
    "DescribeInstanceTypeOfferings",
    "GET /acme-tfstate",
    "GetProducts",
    "ListServiceQuotas",
}


class Checkups:
    """As real, with a clock of the test's."""

    def __init__(self, ahead=0.0):
        self.ahead = ahead

    def checkup(self, where):
        assert where.cloud == "aws"
        return AwsCheckup(where, now=lambda: datetime.now(UTC) + timedelta(seconds=self.ahead))


@pytest.fixture
def repo(tmp_path, monkeypatch, aws, aws_environment):
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "train.yaml").write_text(JOB)
    (tmp_path / "skyplan.yaml").write_text(PROJECT % ACCOUNT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SKYPLAN_DATABASE_URL", raising=False)
    aws.bucket("acme-tfstate")
    aws.sell(
        spot={REGION: {"us-east-1a": {G6E: [["2026-11-01T00:00:00Z", "0.7"]]}}},
        quotas={REGION: [quota("L-DB2E81BA", "Running On-Demand G and VT instances", 8.0)]},
    )
    return tmp_path


def rows(ahead=0.0):
    ports = doctor_checks.Ports(checkups=Checkups(ahead), feeds=RealFeeds(), environment=dict(os.environ))
    asked = doctor_checks.Asked(now=datetime.now(UTC))
    found = doctor.examine(doctor_checks.checks(asked, ports), seconds=120)
    return {row.check: row for row in found}


def test_everything_is_as_it_should_be(aws, repo):
    before = {p.relative_to(repo).as_posix() for p in repo.rglob("*")}
    found = rows()
    said = {name: found[name].state for name in found if "aws:" in name or name == "backend"}
    assert said == {
        "backend": "ok",
        "credentials aws:prod": "ok",
        "rights aws:prod": "ok",
        "clock aws:prod": "ok",
        "quotas aws:prod": "ok",
    }, found
    assert "skyplan/acme/ can be listed" in found["backend"].fact
    assert {p.relative_to(repo).as_posix() for p in repo.rglob("*")} == before


def test_nothing_that_it_calls_changes_anything(aws, repo):
    aws.proxy.clear()
    rows()
    called = {(call.method, call.action) for call in aws.proxy.calls()}
    assert called
    assert {action for _, action in called} <= READING, called
    assert {action for method, action in called if action.startswith("GET /")} == {"GET /acme-tfstate"}
    assert all("DryRun" not in call.params for call in aws.proxy.calls())


@pytest.mark.parametrize(("ahead", "state"), [(30, "ok"), (120, "warn"), (-120, "warn"), (400, "fail"), (-400, "fail")])
def test_a_clock_that_is_wrong(aws, repo, ahead, state):
    row = rows(ahead)["clock aws:prod"]
    assert row.state == state
    if state != "ok":
        assert row.code == "SKY-APPLY-348"
        assert ("ahead of" if ahead > 0 else "behind") in row.fact


class Refusing(BaseHTTPRequestHandler):
    """STS to a caller whose clock is wrong: the refusal says the time, as every answer does."""

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        words = b"<ErrorResponse><Error><Code>SignatureDoesNotMatch</Code><Message>Signature expired</Message></Error></ErrorResponse>"
        self.send_response(403)
        self.send_header("Content-Length", str(len(words)))
        self.end_headers()
        self.wfile.write(words)

    def log_message(self, *_):
        pass


def test_a_clock_that_aws_refuses_is_named_with_the_credentials(aws, repo, monkeypatch):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", f"http://127.0.0.1:{server.server_port}")
    try:
        found = rows(ahead=900)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert found["clock aws:prod"].state == "fail"
    assert found["credentials aws:prod"].state == "fail"
    assert "Signature expired" in found["credentials aws:prod"].fact
    assert found["credentials aws:prod"].mend == found["clock aws:prod"].mend


def test_credentials_that_have_ended(aws, repo):
    aws.proxy.fail("GetCallerIdentity", "ExpiredToken", times=None)
    row = rows()["credentials aws:prod"]
    assert (row.state, row.code) == ("fail", "SKY-APPLY-317")
    assert "ExpiredToken" in row.fact
    assert row.mend.startswith("aws sso login")


def test_no_credentials_at_all(aws, repo, monkeypatch):
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    found = rows()
    assert found["credentials aws:prod"].state == found["backend"].state == "fail"
    assert found["quotas aws:prod"].state == "fail"
    assert found["jobs"].state == "ok", "one does not hide another"


def test_another_accounts_credentials(aws, repo):
    (repo / "skyplan.yaml").write_text(PROJECT % "999999999999")
    row = rows()["credentials aws:prod"]
    assert (row.state, row.code) == ("fail", "SKY-APPLY-347")
    assert ACCOUNT in row.fact
    assert "999999999999" in row.fact


def test_rights_that_are_missing_are_named(aws, repo):
    aws.proxy.fail("DescribeSpotPriceHistory", "UnauthorizedOperation")
    row = rows()["rights aws:prod"]
    assert (row.state, row.code) == ("warn", "SKY-APPLY-317")
    assert "DescribeSpotPriceHistory" in row.fact
    assert row.mend.startswith("skyplan foundation --cloud aws")


def test_a_bucket_that_is_not_there(aws, repo):
    (repo / "skyplan.yaml").write_text((PROJECT % ACCOUNT).replace("acme-tfstate", "acme-nothing"))
    row = rows()["backend"]
    assert row.state == "fail"
    assert "NoSuchBucket" in row.fact


def test_a_quota_that_is_too_small_says_what_to_ask_for(aws, repo):
    aws.sell(quotas={REGION: [quota("L-DB2E81BA", "Running On-Demand G and VT instances", 0.0)]})
    row = rows()["quotas aws:prod"]
    assert (row.state, row.code) == ("fail", "SKY-APPLY-309")
    assert "`L-DB2E81BA` is 0 vcpus; train needs 4 for 1 x g6e.xlarge on-demand" in row.fact
    assert "--quota-code L-DB2E81BA --desired-value 4 --region us-east-1" in row.mend


def test_the_command_line_says_it_all(aws, repo, capsys):
    from planner.cli.doctor_cmd import command

    code = command.main(["--json", "--cloud", "aws"], standalone_mode=False)
    said = json.loads(capsys.readouterr().out)
    by_name = {c["check"]: c["state"] for c in said["checks"]}
    assert by_name["credentials aws:prod"] == "ok"
    assert code == (1 if said["state"] == "fail" else 0)
    assert sum(said["counts"].values()) == len(said["checks"])


def test_no_error_of_an_sdk_escapes(aws, repo, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    one = AwsCheckup(Where(cloud="aws", target="prod", region=REGION))
    try:
        assert one.caller().error is not None
        assert all(right.error is not None for right in one.rights(REGION, G6E))
    finally:
        one.close()
    monkeypatch.setenv("AWS_PROFILE", "no-such-profile")
    with pytest.raises(PermissionDenied):
        AwsCheckup(Where(cloud="aws", target="prod", region=REGION))
