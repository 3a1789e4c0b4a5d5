"""Recorded histories as people have them: four forms, packed or not; every bad row is named at once, and then nothing is kept."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from catalog.load import load_market
from planner.app.prices import Imported, import_files
from planner.model.errors import InputError
from planner.model.readings import CapacityWord
from planner.state.engine import sqlite_url
from planner.state.history import History

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
OURS = """# a comment
observed_at,cloud,region,zone,instance_type,capacity,usd_per_hour,word,detail,source
2026-11-01T00:00:00Z,aws,us-east-1,use1-az1,p5.48xlarge,spot,20.5,,,feed
2026-11-02T00:00:00+02:00,aws,us-east-1,use1-az1,p5.48xlarge,spot,20.5,,,feed
2026-11-03,aws,us-east-1,use1-az1,p5.48xlarge,spot,21,,,feed

2026-11-04T00:00:00Z,aws,us-east-1,use1-az1,p5.48xlarge,spot,,none,ICE,launch
"""
P5 = "aws/us-east-1/use1-az1/p5.48xlarge/spot"


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    it = History.open(sqlite_url(tmp_path / "record.sqlite"), "default")
    yield it
    it.close()


def took(history: History, *paths: Path, source: str | None = None) -> Imported:
    return import_files(paths, history, load_market(), NOW, source=source)


def put(tmp_path: Path, text: str, name: str = "recorded.csv") -> Path:
    path = tmp_path / name
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    return path


def last(history: History, series: str) -> tuple[float, str]:
    found = history.as_of(NOW, [series])
    return int(found.micro_usd[0]) / 1e6, found.source[0]


@pytest.mark.parametrize("name", ["recorded.csv", "recorded.csv.gz"])
def test_our_own_form_has_prices_and_words(history: History, tmp_path: Path, name: str) -> None:
    path = put(tmp_path, OURS, name)
    done = took(history, path)
    assert (done.rows, done.new, done.unchanged) == (4, 3, 1)
    assert last(history, P5) == (21.0, "feed")
    assert history.capacity_as_of(NOW)[P5].word is CapacityWord.NONE
    # as if it had been known then
    assert int(history.as_of(datetime(2026, 11, 2, tzinfo=UTC)).micro_usd[0]) == 20_500_000
    again = took(history, path)
    assert (again.new, again.unchanged) == (0, 4)


def test_gcp_price_lists_are_regional_and_have_both_kinds(history: History, tmp_path: Path) -> None:
    text = (
        "snapshot_utc,machine_type,region,on_demand_usd_h,spot_usd_h\n"
        "2026-02-09T23:07,a3-highgpu-8g,us-central1,88.49,\n2026-03-09T23:07,a3-highgpu-8g,us-central1,88.49,30.1\n"
    )
    done = took(history, put(tmp_path, text, "gcp.csv"))
    assert (done.rows, done.new, done.unchanged) == (2, 2, 1)
    assert last(history, "gcp/us-central1/-/a3-highgpu-8g/on_demand") == (88.49, "gcp")
    assert last(history, "gcp/us-central1/-/a3-highgpu-8g/spot") == (30.1, "gcp")


def test_lists_of_several_clouds_leave_out_what_names_no_type(history: History, tmp_path: Path) -> None:
    text = (
        "cloud,instance_type,accelerator,count,region,zone,ts,price,spot\n"
        "gcp,,A100,1,asia-northeast1,asia-northeast1-a,20260402T1055,1.70586,1.2276\n"
        "azure,Standard_NC12s_v3,V100,2,brazilsouth,,20260402T1117,12.24,2.261952\n"
    )
    done = took(history, put(tmp_path, text), source="lists")
    assert (done.new, done.left_out) == (2, {"without an instance type": 1})
    assert last(history, "azure/brazilsouth/-/Standard_NC12s_v3/spot") == (2.261952, "lists")
    assert int(history.as_of(NOW).at[0]) == datetime(2026, 4, 2, 11, 17, tzinfo=UTC).timestamp() * 1e6


AWS_ROWS = [
    ("use1-az4", "p4d.24xlarge", "Linux/UNIX", "12.5", "2024-01-02T03:04:05+00:00"),
    ("use1-az4", "p4d.24xlarge", "Windows", "19.5", "2024-01-02T03:04:05+00:00"),
    ("eu-west-1c", "p3.2xlarge", "Linux/UNIX", "1.1", "2024-01-02T03:04:05.000Z"),
]


@pytest.mark.parametrize("order", [(0, 1, 2, 3, 4), (4, 0, 1, 2, 3), (3, 4, 2, 1, 0)])
@pytest.mark.parametrize("head", [None, "AvailabilityZone InstanceType ProductDescription SpotPrice Timestamp"])
@pytest.mark.parametrize("name", ["spot.csv", "spot.tsv", "spot.tsv.gz", "spot.tsv.zst"])
def test_aws_spot_prices_with_a_header_or_without(
    history: History, tmp_path: Path, order: tuple[int, ...], head: str | None, name: str
) -> None:
    comma = "," if ".csv" in name else "\t"
    rows = [tuple(head.split())] if head else []
    text = "".join(comma.join(row[k] for k in order) + "\n" for row in (*rows, *AWS_ROWS))
    if name.endswith(".zst"):
        if not shutil.which("zstd"):
            pytest.skip("the program zstd is not installed")
        path = put(tmp_path, text, "plain.tsv")
        subprocess.run(["zstd", "-q", str(path), "-o", str(tmp_path / name)], check=True)
        path = tmp_path / name
    else:
        path = put(tmp_path, text, name)
    done = took(history, path)
    assert (done.new, done.left_out) == (2, {"of another operating system": 1})
    assert last(history, "aws/us-east-1/use1-az4/p4d.24xlarge/spot") == (12.5, "spot")
    assert last(history, "aws/eu-west-1/eu-west-1c/p3.2xlarge/spot") == (1.1, "spot")


def test_every_bad_row_of_every_file_is_named_and_nothing_is_kept(history: History, tmp_path: Path) -> None:
    bad = (
        OURS
        + """2026-11-05T00:00:00Z,aws,us-east-1,use1-az1,p5.48xlarge,spot,0,,,feed
2026-11-05T00:00:00Z,aws,us-east-1,use1-az1,p5.48xlarge,spot,sNaN,,,feed
2026-11-05T00:00:00Z,mars,us-east-1,use1-az1,p5.48xlarge,spot,3,,,feed
2026-11-05T00:00:00Z,aws,us east,use1-az1,p5.48xlarge,spot,3,,,feed
2026-11-05T00:00:00Z,aws,us-east-1,use1-az1,p5.48xlarge,reserved,3,,,feed
yesterday,aws,us-east-1,use1-az1,p5.48xlarge,spot,3,,,feed
2026-11-05T00:00:00Z,aws,us-east-1,use1-az1,p5.48xlarge,spot,3,none,,feed
2026-11-05T00:00:00Z,aws,us-east-1,use1-az1,p5.48xlarge,spot,,sold out,,feed
2026-11-05T00:00:00Z,aws
2026-12-05T00:00:00Z,aws,us-east-1,use1-az1,p5.48xlarge,spot,3,,,feed
"""
    )
    first = put(tmp_path, bad, "bad.csv")
    other = put(tmp_path, "some,thing\n1,2\n", "other.csv")
    with pytest.raises(InputError) as error:
        took(history, first, other, tmp_path / "missing.csv")
    found = [(d.code, d.location.file, d.location.line) for d in error.value.diagnostics if d.location]
    lines = [("SKY-CAT-118", "bad.csv", line) for line in range(8, 17)]
    assert found == [
        *lines,
        ("SKY-CAT-117", "bad.csv", 17),
        ("SKY-CAT-118", "other.csv", 1),
        ("SKY-SPEC-101", "missing.csv", 0),
    ]
    missing = error.value.diagnostics[-1]
    assert (missing.summary, "CSV" in (missing.hint or "")) == ("No such file or directory", True)
    assert not history.stored().prices


def test_a_file_that_is_cut_off_or_not_text_is_refused(history: History, tmp_path: Path) -> None:
    whole = gzip.compress((OURS * 50).encode())
    (tmp_path / "cut.csv.gz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "binary.csv").write_bytes(OURS.encode() + b"\xff\xfe\n")
    (tmp_path / "plain.csv.gz").write_text(OURS)
    for name in ("cut.csv.gz", "binary.csv", "plain.csv.gz"):
        with pytest.raises(InputError) as error:
            took(history, tmp_path / name)
        assert [d.code for d in error.value.diagnostics] == ["SKY-SPEC-101"]
    assert took(history, put(tmp_path, "", "empty.csv")).rows == 0
    assert not history.stored().prices


def test_a_long_history_is_told_of_as_it_goes(
    history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("planner.app.prices.CHUNK", 100)
    monkeypatch.setattr("planner.app.prices.TOLD_EVERY", 10)
    at = datetime(2026, 1, 1, tzinfo=UTC)
    head = "observed_at,cloud,region,zone,instance_type,capacity,usd_per_hour\n"
    rows = [f"{(at + timedelta(hours=k)).isoformat()},azure,eastus,,Standard_ND,spot,{3 + k % 2}\n" for k in range(333)]
    told: list[str] = []
    done = import_files([put(tmp_path, head + "".join(rows))], history, load_market(), NOW, tell=told.append)
    assert (done.new, done.rows) == (333, 333)
    assert any(text.startswith("checking") for text in told)
    assert any(text.startswith("writing") for text in told)
    assert last(history, "azure/eastus/-/Standard_ND/spot")[1] == "recorded"


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (",,,feed", ",,,fe\0ed", "signs that are not written"),
        (",,,feed", ",,,\x1b[31mfeed", "signs that are not written"),
        ("none,ICE", "none,I\x07CE", "signs that are not written"),
        ("2026-11-03,", "1900-01-01,", "lies before 1970"),
        ("2026-11-03,", "0001-01-01T00:00:00+14:00,", "lies before 1970"),
    ],
)
def test_what_no_database_keeps_is_told_with_its_line(
    history: History, tmp_path: Path, old: str, new: str, told: str
) -> None:
    with pytest.raises(InputError) as caught:
        took(history, put(tmp_path, OURS.replace(old, new)))
    assert {d.code for d in caught.value.diagnostics} == {"SKY-CAT-118"}
    assert all(told in d.summary and d.location and d.location.line for d in caught.value.diagnostics)
    assert history.stored().prices == 0


def test_a_gzip_that_is_broken_within_is_told(history: History, tmp_path: Path) -> None:
    path = put(tmp_path, OURS * 50, "a.csv.gz")
    raw = bytearray(path.read_bytes())
    raw[20] ^= 0xFF
    path.write_bytes(raw)
    with pytest.raises(InputError) as caught:
        took(history, path)
    (told,) = caught.value.diagnostics
    assert (told.code, told.location and told.location.file[-8:]) == ("SKY-SPEC-101", "a.csv.gz")


def test_a_pipe_is_refused_for_it_gives_its_rows_once(history: History, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="no file that can be read again"):
        took(history, tmp_path / "pipe")


def test_a_file_that_grows_while_it_is_read_is_told(history: History, tmp_path: Path) -> None:
    """It is read twice: what was not checked is not taken for checked."""
    path = put(tmp_path, OURS)

    def grow(text: str) -> None:
        if text.startswith("checking"):
            with path.open("a") as more:
                more.write("2026-11-05,aws,us-east-1,use1-az1,p5.48xlarge,spot,22,,,feed\nx\n")

    file = path.read_text()
    with pytest.raises(InputError, match="import it again"):
        import_files([path, put(tmp_path, file, "b.csv")], history, load_market(), NOW, tell=_once(grow))


def _once(act: Callable[[str], None]) -> Callable[[str], None]:
    """`act`, but only after the first file was checked: at the first word about the second."""

    def tell(text: str) -> None:
        if text.startswith("checking b.csv") or "/b.csv" in text:
            act(text)

    return tell
