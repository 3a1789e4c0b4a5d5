"""Readers: what a file says, and every problem of it with its line."""

from __future__ import annotations

import csv
import json
from datetime import UTC, datetime

import numpy as np
import pytest

from planner.replay.points import region_of
from planner.replay.prices import zone_id_region
from planner.replay.reading import Text, read
from tests.unit.replay.markets import trace

POINTS = """# {"gap_s": 300, "ticks": 4, "start": "2023-01-01T00:00:00Z", "instance": "g5.xlarge"}
zone,region,t_s,available,spot_usd_h,on_demand_usd_h
us-east-1a,us-east-1,0,1,0.5,1.0
us-east-1a,us-east-1,600,0,0.6,1.0
us-east-1b,us-east-1,300,1,0.4,
"""
SPOTLAKE = """Time,InstanceType,Region,AZ,SPS,IF,OndemandPrice,SpotPrice,Savings
2025-09-01 00:00:00,g5.xlarge,us-east-1,use1-az6,3,2.5,1.0,0.4,60
2025-09-01 00:10:00,g5.xlarge,us-east-1,use1-az6,1,2.5,1.0,0.4,60
2025-09-01 00:20:00,g5.xlarge,us-east-1,use1-az6,3,2.5,1.0,-1,60
2025-10-01 00:00:00,p5.48xlarge,us-east-1,use1-az6,1,2.5,55.0,20.0,60
"""
ARCHIVE = """use1-az4\tg5.xlarge\tLinux/UNIX\t0.4100\t2023-01-01T00:00:00Z
use1-az4\tg5.xlarge\tWindows\t0.9100\t2023-01-01T00:00:00Z
apne1-az1\tg5.xlarge\tLinux/UNIX\t0.5100\t2023-01-01T00:20:00Z
"""


def one(text: str, **how: str):
    traces, problems = read([Text("f", "f", text)], **how)
    assert problems == []
    (found,) = traces
    return found


def told(text: str, **how: str) -> list[str]:
    traces, problems = read([Text("f", "f", text)], **how)
    assert traces == ()
    return [f"{p.code} {p.location}" for p in problems]


def test_change_points_hold_until_the_next() -> None:
    found = one(POINTS)
    assert found.zones == ("us-east-1a", "us-east-1b")
    assert found.available.T.tolist() == [[True, True, False, False], [False, True, True, True]]
    assert found.spot_usd_h[:, 0].tolist() == [0.5, 0.5, 0.6, 0.6]
    assert np.isnan(found.spot_usd_h[0, 1])
    assert found.on_demand_usd_h[:, 1].tolist() == [1.0] * 4  # from its neighbour
    assert found.start is not None
    assert found.gap_s == 300


def test_columns_are_found_by_name_and_may_lack() -> None:
    found = one("t_s,zone,spot_usd_h\n0,us-east-1a,0.5\n1200,us-east-1a,0.7\n")
    assert (found.gap_s, found.ticks, found.regions) == (600, 3, ("us-east-1",))
    assert found.available.all()
    assert np.isnan(found.on_demand_usd_h).all()


def test_what_is_lost_within_a_tick_is_not_there_in_it() -> None:
    found = one('# {"gap_s": 600, "ticks": 3}\nzone,t_s,available,spot_usd_h\na-1,0,1,1\na-1,700,0,1\na-1,900,1,1\n')
    assert found.available[:, 0].tolist() == [True, False, True]


def test_every_problem_is_told_with_its_line() -> None:
    wrong = POINTS + "us-east-1a,us-east-1,x,1,0.5,1\n,us-east-1,900,1,-2,1\nus-east-1a,us-east-1\n"
    assert told(wrong) == ["SKY-MOVE-430 f:6", "SKY-MOVE-430 f:7", "SKY-MOVE-430 f:7", "SKY-MOVE-430 f:8"]
    assert told("# {nope\nzone,t_s,available\na-1,0,1\n") == ["SKY-MOVE-430 f:1"]
    assert told("what is this\n") == ["SKY-MOVE-430 f:1"]
    assert told("") == ["SKY-MOVE-430 f:1"]
    assert told(POINTS, form="spotlake") == ["SKY-MOVE-430 f:1"]


@pytest.mark.parametrize("heading", ['{"gap_s": -1}', '{"gap_s": "x"}', "[1]", '{"start": "never"}', '{"ticks": 1.5}'])
def test_a_heading_that_says_nonsense_is_a_problem(heading: str) -> None:
    assert told(f"# {heading}\nzone,t_s,available\na-1,0,1\n") == ["SKY-MOVE-430 f:1"]


def test_spotlake_by_instance_type_with_its_score_where_its_scale_is_known() -> None:
    traces, problems = read([Text("f", "f", SPOTLAKE)])
    assert not problems
    small, large = traces
    assert (small.instance, small.available[:, 0].tolist()) == ("g5.xlarge", [True, False, False])
    assert (large.instance, large.available[:, 0].tolist()) == ("p5.48xlarge", [True])
    assert large.on_demand_usd_h[0, 0] == 55.0


def test_the_archive_knows_zone_ids_and_leaves_windows_out() -> None:
    found = one(ARCHIVE)
    assert found.regions == ("ap-northeast-1", "us-east-1")
    assert found.spot_usd_h[:, 1].tolist() == [0.41] * 3
    assert told(ARCHIVE + "use1-az4\tg5.xlarge\tLinux/UNIX\tcheap\t2023-01-01T00:00:00Z\n") == ["SKY-MOVE-430 f:4"]


def test_regions_of_zone_names() -> None:
    assert [zone_id_region(z) for z in ("use1-az4", "apse2-az1", "euc1-az3", "usw2-lax1-az1", "x")] == [
        "us-east-1",
        "ap-southeast-2",
        "eu-central-1",
        "us-west-2",
        "",
    ]
    assert [region_of(z) for z in ("us-east-1a", "us-central1-a", "eastus-1", "eu-north1")] == [
        "us-east-1",
        "us-central1",
        "eastus",
        "eu-north1",
    ]


JSON = '{"metadata": {"gap_seconds": 600, "spot_usd_h": 1, "on_demand_usd_h": 3}, "data": [1, 0, 1]}'


def test_polarity_is_declared_and_never_guessed() -> None:
    assert told(JSON) == ["SKY-MOVE-431 f:1"]
    assert one(JSON, polarity="available").available[:, 0].tolist() == [True, False, True]
    assert one(JSON, polarity="preempted").available[:, 0].tolist() == [False, True, False]
    declared = JSON.replace('"data"', '"polarity": "preempted", "data"')
    assert one(declared).available[:, 0].tolist() == [False, True, False]
    assert told(declared, polarity="available") == ["SKY-MOVE-431 f:1"]


def test_counts_of_nodes_are_available_and_never_preempted() -> None:
    counts = JSON.replace("[1, 0, 1]", "[0, 3, 16]")
    assert one(counts, polarity="available").available[:, 0].tolist() == [False, True, True]
    assert len(told(counts, polarity="preempted")) == 2


def test_files_of_one_zone_each_make_a_market() -> None:
    other = JSON.replace("[1, 0, 1]", "[0, 0, 1, 1]")
    traces, problems = read([Text("a", "us-east-1a", JSON), Text("b", "us-west-2a", other)], polarity="available")
    assert not problems
    assert traces[0].zones == ("us-east-1a", "us-west-2a")
    assert traces[0].ticks == 3
    _, problems = read([Text("a", "us-east-1a", JSON), Text("b", "us-east-1a", other)], polarity="available")
    assert [p.code for p in problems] == ["SKY-MOVE-430"]


def test_coarser_ticks_are_available_only_throughout() -> None:
    fine = trace({"us-east-1a": "11.11111"}, gap_s=200)
    assert fine.at_ticks_of(600).available[:, 0].tolist() == [False, True]
    slow = trace({"us-east-1a": "1.1"}, gap_s=1800)
    assert slow.at_ticks_of(600).available[:, 0].tolist() == [True] * 3 + [False] * 3 + [True] * 3


COLUMNS = "zone,region,t_s,available,spot_usd_h,on_demand_usd_h"
NINES = "9" * 5000


@pytest.mark.parametrize(
    "text",
    [
        f"# {'[' * 100_000}\n{COLUMNS}\na,r,0,1,1,2\n",
        f'# {{"gap_s": {NINES}}}\n{COLUMNS}\na,r,0,1,1,2\n',
        f'# {{"gap_s": 1{"0" * 400}}}\n{COLUMNS}\na,r,0,1,1,2\n',
        f'# {{"gap_s": 600, "ticks": 1000000000000}}\n{COLUMNS}\na,r,0,1,1,2\n',
        f'# {{"gap_s": 600, "start": "9999-12-31T23:59:59"}}\n{COLUMNS}\na,r,0,1,1,2\n',
        f'# {{"gap_s": 600, "start": "0001-01-01"}}\n{COLUMNS}\na,r,0,1,1,2\n',
        f"{COLUMNS}\na,r,0,1,1,2\na,r,1e18,1,1,2\n",
        f"{COLUMNS}\na,r,0,1,1,2\na,r,1e300,1,1,2\n",
        f"{COLUMNS}\n{'a' * (csv.field_size_limit() + 1)},r,0,1,1,2\n",
        f"{COLUMNS}\na,r,0,1,1e300,2\n",
        "[" * 100_000,
        f'{{"data": [{NINES}], "gap_seconds": 600, "polarity": "available"}}',
        f'{{"data": [1], "gap_seconds": 1{"0" * 400}, "polarity": "available"}}',
        SPOTLAKE.replace("2025-09-01 00:00:00", "99999999999"),
        SPOTLAKE.replace("2025-09-01 00:00:00", "0001-01-01"),
        json.dumps({"data": {str(z): [1] * 2001 for z in range(10_000)}, "gap_s": 60, "polarity": "available"}),
    ],
    ids=lambda text: text[:40],
)
def test_no_text_is_a_traceback_or_takes_the_memory(text: str) -> None:
    assert set(told(text)) <= {"SKY-MOVE-430 f:1", "SKY-MOVE-430 f:2"}


def test_nothing_is_free() -> None:
    found = one(f"{COLUMNS}\na,r,0,1,0,2\na,r,600,1,1,0\nb,r,0,0,0,2\nb,r,600,1,1,2\n")
    assert found.usable.T.tolist() == [[False, True], [False, True]]
    assert found.on_demand_usd_h.tolist() == [[2.0, 2.0], [2.0, 2.0]]


def test_times_since_1970_begin_with_the_first() -> None:
    found = one(f"{COLUMNS}\na,r,1700000000,1,1,2\na,r,1700000600,0,1,2\n")
    assert (found.available[:, 0].tolist(), found.start) == ([True, False], datetime.fromtimestamp(1_700_000_000, UTC))


def test_a_start_is_utc_where_it_does_not_say() -> None:
    assert one(POINTS.replace("00:00Z", "00:00")).start == datetime(2023, 1, 1, tzinfo=UTC)


def test_a_byte_order_mark_is_no_part_of_json() -> None:
    assert one('\ufeff{"data": [1, 0], "gap_s": 600}', polarity="available").available[:, 0].tolist() == [True, False]
