"""`skyplan prices refresh` on the emulated AWS: what the clouds say goes into the record, and only what changed."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from planner.app import wire
from planner.cli.prices_refresh import command
from planner.model.project import Project
from tests.emulators.aws_lists import product, quota

P5 = "p5.48xlarge"
ZONES = {"us-east-1a": "use1-az6", "us-east-1b": "use1-az1"}
SERIES = "aws/us-east-1/use1-az6/p5.48xlarge/spot"
AT = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=2)


def market(usd, at=AT):
    offered = [
        {"InstanceType": P5, "LocationType": "availability-zone-id", "Location": zone} for zone in ZONES.values()
    ]
    return {
        "spot": {"us-east-1": {name: {P5: [[at.isoformat(), usd]]} for name in ZONES}},
        "scores": {"us-east-1": {zone: {P5: 5} for zone in ZONES.values()}},
        "products": [product(P5, "us-east-1", "55.04")],
        "quotas": {"us-east-1": [quota("L-C4BD4855", "All P5 Spot Instance Requests", 192.0)]},
        "offerings": {"us-east-1": offered},
    }


@pytest.fixture
def here(tmp_path, monkeypatch, aws_environment):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refresh(capsys, *words):
    status = command.main([*words, "--cloud", "aws", "--region", "us-east-1", "--json"], standalone_mode=False)
    return status, json.loads(capsys.readouterr().out)


def spot_price():
    history = wire.history(Project())
    try:
        changes = history.changes([SERIES], AT - timedelta(days=1), datetime.now(UTC))
    finally:
        history.close()
    return changes


def test_a_price_is_kept_once_and_its_change_once_more(aws, here, capsys):
    aws.sell(**market("20.5"))
    status, told = refresh(capsys)
    assert status == 0
    assert told["warnings"] == []
    (total,) = told["totals"].values()
    by_kind = {a["what"]: a for a in told["answers"]}
    assert by_kind["prices"]["new"] == 4, "spot and on demand in two zones"
    assert by_kind["quotas"]["new"] == 1
    assert total["refused"] == total["incomplete"] == 0

    _, told = refresh(capsys)
    assert told["totals"]["aws"]["new"] == 0
    assert told["totals"]["aws"]["unchanged"] == total["new"]

    aws.sell(**market("19.5", AT + timedelta(hours=1)))
    _, told = refresh(capsys)
    assert told["totals"]["aws"]["new"] == 2, "spot in two zones"
    assert SERIES in spot_price()


def test_a_dry_run_keeps_nothing(aws, here, capsys):
    aws.sell(**market("20.5"))
    status, told = refresh(capsys, "--dry-run", "--what", "prices")
    assert (status, told["dry_run"]) == (0, True)
    assert told["totals"]["aws"] == {"read": 4, "new": 0, "unchanged": 0, "refused": 0, "incomplete": 0}
    assert not (here / ".skyplan").exists()


def test_where_nothing_could_be_refreshed_it_fails(aws, here, capsys, monkeypatch):
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    status, told = refresh(capsys, "--dry-run")
    assert status == 1
    assert [w["code"] for w in told["warnings"]] == ["SKY-APPLY-317"]


def test_people_are_told_by_region_and_in_all(aws, here, capsys):
    aws.sell(**market("20.5"))
    assert command.main(["--cloud", "aws", "--region", "us-east-1"], standalone_mode=False) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines] == [["aws", "us-east-1"], ["aws", "in"]]
    assert "new" in lines[0]
    assert "0 unchanged" in lines[0]


def test_words_that_are_none_are_refused(here):
    import click

    with pytest.raises(click.BadParameter, match="bananas"):
        command.main(["--what", "prices,bananas"], standalone_mode=False)
