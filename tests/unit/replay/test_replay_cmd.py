"""`skyplan replay`: the table, the document, the plots, and what is said of traces that cannot be read."""

from __future__ import annotations

import gzip
import json
import sys
import types
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from planner.cli import replay_cmd
from planner.cli.entry import call
from planner.replay import reading, registry

HEADING = '# {"gap_s": 600, "ticks": 400, "start": "2024-05-01T00:00:00Z", "instance": "g6.xlarge", "source": "made"}\n'
COLUMNS = "zone,region,t_s,available,spot_usd_h,on_demand_usd_h\n"
ROWS = "".join(
    f"{zone},{zone[:-1]},{hour * 3600},{int((hour // 7 + k) % 3 > 0)},{0.3 + 0.02 * ((hour + k) % 5):.2f},0.8\n"
    for k, zone in enumerate(("us-east-1a", "us-east-1b", "us-west-2a"))
    for hour in range(66)
)
SHORT = ("--work-hours", "8", "--deadline-hours", "12", "--window-every", "6")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "made.csv").write_text(HEADING + COLUMNS + ROWS)

    def call_it(*arguments: str) -> tuple[int, str, str]:
        code = call(["replay", *arguments])
        return code, *capsys.readouterr()

    return call_it


def test_names_that_help_lists_are_those_there_are() -> None:
    assert replay_cmd.POLICIES == registry.NAMES
    assert replay_cmd.FORMATS == reading.FORMATS


def test_the_table_has_every_policy_and_the_optimum(run) -> None:
    code, out, err = run("made.csv", *SHORT)
    assert (code, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines()[2:] if line] == ["optimum", *registry.NAMES]
    assert "g6.xlarge in 3 zones of 2 regions" in out
    assert "\033" not in out


def test_the_document_is_versioned_and_says_the_same_twice(run) -> None:
    arguments = ("made.csv", *SHORT, "--json", "--policy", "skyplan", "--checkpoint-gb", "5,500")
    code, out, _ = run(*arguments)
    body = json.loads(out)
    assert (code, body["format_version"], body["kind"]) == (0, "1.0", "replay")
    assert [c["job"]["checkpoint_gb"] for c in body["cells"]] == [5, 500]
    cell = body["cells"][0]
    assert [p["policy"] for p in cell["policies"]] == ["failover", "skyplan"]
    assert cell["windows"] == [0, 6, 12, 18, 24, 30, 36, 42, 48, 54]
    for policy in cell["policies"]:
        assert policy["late"] == 0
        assert all(cost >= least - 1e-3 for cost, least in zip(policy["cost_usd"], cell["optimum_usd"], strict=True))
    assert run(*arguments)[1] == out


def test_plots_are_svg_files_that_parse(run, tmp_path: Path) -> None:
    code, _, err = run("made.csv", *SHORT, "--plots", "drawn", "--policy", "skyplan")
    files = sorted((tmp_path / "drawn").iterdir())
    assert code == 0
    assert [f.name for f in files] == [f"made-50gb-{what}.svg" for what in ("cost", "slack", "timeline")]
    assert all(ET.fromstring(f.read_text()).tag.endswith("svg") for f in files)
    assert err.count("wrote") == 3


def test_one_zone_without_any_on_demand_price_says_that_there_is_no_net(run, tmp_path: Path) -> None:
    lines = [",".join(r.split(",")[:5]) for r in ROWS.splitlines() if r.startswith("us-east-1a")]
    (tmp_path / "bare.csv").write_text("zone,region,t_s,available,spot_usd_h\n" + "\n".join(lines) + "\n")
    code, out, err = run("bare.csv", *SHORT, "--json")
    assert code == 0
    assert "no safety net" in err
    assert json.loads(out)["cells"][0]["impossible_windows"] > 0
    code, out, err = run("bare.csv", *SHORT, "--json", "--on-demand-usd", "0.9")
    assert (code, err) == (0, "")
    assert json.loads(out)["cells"][0]["impossible_windows"] == 0


def test_the_catalog_has_the_price_that_a_trace_lacks(run, tmp_path: Path) -> None:
    heading = HEADING.replace("g6.xlarge", "p5.48xlarge")
    (tmp_path / "p5.csv").write_text(heading + COLUMNS + ROWS.replace(",0.8\n", ",\n"))
    code, _, err = run("p5.csv", *SHORT, "--policy", "failover")
    assert code == 0
    assert "the catalog's lowest for p5.48xlarge" in err


def test_packed_files_are_unpacked(run, tmp_path: Path) -> None:
    with gzip.open(tmp_path / "packed.csv.gz", "wt") as file:
        file.write(HEADING + COLUMNS + ROWS)
    plain, packed = (run(name, *SHORT, "--json")[1] for name in ("made.csv", "packed.csv.gz"))
    assert json.loads(plain)["cells"][0]["policies"] == json.loads(packed)["cells"][0]["policies"]


def test_zstd_needs_its_package_and_says_so(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.tsv.zst").write_bytes(b"\x28\xb5\x2f\xfd....")
    monkeypatch.setitem(sys.modules, "zstandard", None)
    code, out, err = run("a.tsv.zst")
    assert (code, out) == (1, "")
    assert "install `zstandard`" in err
    text = b"use1-az4\tg6.xlarge\tLinux/UNIX\t0.41\t2023-01-01T00:00:00Z\n"
    text += b"use1-az4\tg6.xlarge\tLinux/UNIX\t0.42\t2023-01-03T00:00:00Z\n"
    reader = types.SimpleNamespace(read=lambda _most: text)
    unpacker = types.SimpleNamespace(stream_reader=lambda raw, read_across_frames: reader)
    fake = types.SimpleNamespace(ZstdDecompressor=lambda: unpacker, ZstdError=ValueError)
    monkeypatch.setitem(sys.modules, "zstandard", fake)
    assert run("a.tsv.zst", *SHORT, "--on-demand-usd", "0.8", "--policy", "failover")[0] == 0


def test_every_problem_of_every_file_is_told_at_once(run, tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text(HEADING + COLUMNS + "a-1,a,x,1,1,2\na-1,a,0,1,-1,2\n")
    (tmp_path / "zone.json").write_text('{"gap_s": 600, "data": [1, 0]}')
    code, out, err = run("bad.csv", "zone.json", "nowhere.csv")
    assert (code, out) == (1, "")
    for needle in (
        "bad.csv:3",
        "bad.csv:4",
        "zone.json:1",
        "SKY-MOVE-431",
        "--polarity",
        "nowhere.csv",
        "SKY-MOVE-430",
    ):
        assert needle in err
    code, out, _ = run("bad.csv", "zone.json", "nowhere.csv", "--json")
    assert code == 1
    assert [d["code"][-3:] for d in json.loads(out)["diagnostics"]] == ["430", "430", "430", "431"]


@pytest.mark.parametrize(
    ("arguments", "needle"),
    [
        (("made.csv", "--deadline-hours", "100"), "a window needs 100 h"),
        (("made.csv", "--zones", "mars-*"), "no zone is mars-*"),
        (("made.csv", "--instance", "p9*"), "no instance type is p9*"),
        (("made.csv", "--work-hours", "40"), "nothing finishes"),
        (("made.csv", "--checkpoint-gb", "big"), "numbers separated by commas"),
        (("made.csv", "--checkpoint-gb", "nan"), "zero or more"),
        (("made.csv", "--policy", "magic"), "magic"),
    ],
)
def test_what_cannot_be_is_named(run, arguments: tuple[str, ...], needle: str) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (1, "")
    assert needle in err


def test_availability_alone_needs_prices(run, tmp_path: Path) -> None:
    (tmp_path / "us-east-1a.json").write_text(json.dumps({"gap_s": 600, "data": [1, 1, 0] * 60}))
    declared = ("us-east-1a.json", "--polarity", "available", *SHORT)
    code, _, err = run(*declared)
    assert code == 1
    assert "--spot-usd" in err
    assert run(*declared, "--spot-usd", "1", "--on-demand-usd", "3")[0] == 0
    assert "at or above" not in run(*declared, "--spot-usd", "5", "--on-demand-usd", "3")[2]


def test_the_example_is_the_trace_that_tests_replay() -> None:
    name = "aws_v100_9zone_2023-02.csv.gz"
    root = Path(__file__).parents[3]
    assert (root / "examples/traces" / name).read_bytes() == (root / "tests/traces" / name).read_bytes()


@pytest.mark.parametrize(
    "option", ["--work-hours", "--deadline-hours", "--cold-minutes", "--tick-minutes", "--spot-usd"]
)
@pytest.mark.parametrize("value", ["nan", "inf"])
def test_what_is_no_number_is_refused(run, option: str, value: str) -> None:
    code, out, err = run("made.csv", option, value)
    assert (code, out) == (1, "")
    assert option in err


@pytest.mark.parametrize("terms", [("--cold-minutes", "1e12"), ("--checkpoint-gb", "1e300")])
def test_a_start_that_never_ends_takes_no_memory(run, terms: tuple[str, str]) -> None:
    code, out, err = run("made.csv", "--policy", "failover", *SHORT, *terms, "--json")
    assert "Traceback" not in err
    if terms[0] == "--cold-minutes":
        assert code == 1
        assert "nothing can finish in any window" in err
    else:
        assert (code, json.loads(out)["cells"][0]["policies"][0]["late"]) == (0, 0)


def test_a_gzip_that_is_broken_within_is_told(run, tmp_path: Path) -> None:
    raw = bytearray(gzip.compress((HEADING + COLUMNS + ROWS).encode()))
    raw[20] ^= 0xFF
    (tmp_path / "broken.csv.gz").write_bytes(raw)
    code, out, err = run("broken.csv.gz")
    assert (code, out) == (1, "")
    assert "broken.csv.gz: cannot be read" in err


def test_a_gzip_that_unpacks_without_end_is_told(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planner.app.replay.MOST_BYTES", 1 << 20)
    (tmp_path / "bomb.csv.gz").write_bytes(gzip.compress(b"a" * (2 << 20)))
    code, _, err = run("bomb.csv.gz")
    assert (code, "holds more than 1 MiB" in err) == (1, True)
