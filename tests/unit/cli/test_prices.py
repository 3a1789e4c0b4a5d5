"""`skyplan prices`: a recorded history in, what it did as a table, a chart and a snapshot, and what is old out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from planner.cli.entry import call

HEAD = "observed_at,cloud,region,zone,instance_type,capacity,usd_per_hour,word,detail,source\n"
ROWS = "".join(
    f"2026-11-{day:02d}T00:00:00Z,aws,us-east-1,{zone},p5.48xlarge,spot,{20 + day % 4 + k},,,feed\n"
    for k, zone in enumerate(("use1-az4", "use1-az6"))
    for day in range(1, 29)
)
ASKED = ("H100:8", "--cloud", "aws", "--region", "us-east-1", "--capacity", "spot", "--until", "2026-11-29")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.chdir(tmp_path)

    def call_it(*arguments: str) -> tuple[int, str, str]:
        code = call(["prices", *arguments])
        return code, *capsys.readouterr()

    return call_it


@pytest.fixture
def filled(run, tmp_path: Path):
    (tmp_path / "recorded.csv").write_text(HEAD + ROWS)
    code, out, err = run("import", "recorded.csv")
    assert (code, err) == (0, "")
    assert "56 changes of 56 rows" in out
    return run


def test_an_import_twice_tells_nothing_new(filled) -> None:
    code, out, _ = filled("import", "recorded.csv", "--json")
    body = json.loads(out)
    assert (code, body["new"], body["unchanged"], body["rows"]) == (0, 0, 56, 56)


def test_bad_rows_are_told_with_their_lines(run, tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text(HEAD + ROWS.replace(",feed", "", 1) + "x,y\n")
    code, out, err = run("import", "bad.csv")
    assert (code, out) == (1, "")
    assert "bad.csv:2" in err
    assert "bad.csv:58" in err
    assert "SKY-CAT-118" in err
    code, out, _ = run("import", "bad.csv", "--json")
    assert (code, [d["code"] for d in json.loads(out)["diagnostics"]]) == (1, ["SKY-CAT-118"] * 2)


def test_a_history_is_a_table_and_json(filled) -> None:
    code, out, _ = filled("history", *ASKED)
    assert code == 0
    lines = out.splitlines()
    assert lines[0].split()[:4] == ["series", "last", "least", "median"]
    assert lines[1].split()[:5] == ["aws/us-east-1/use1-az4/p5.48xlarge/spot", "$20.00", "$20.00", "$21.00", "$23.00"]
    assert any("2 of 2 series, 2026-10-30 00:00 to 2026-11-29 00:00 UTC" in line for line in lines)
    code, out, _ = filled("history", *ASKED, "--json", "--since", "2026-11-10T12:00:00Z")
    (first, second) = json.loads(out)["series"]
    assert first["series"] == "aws/us-east-1/use1-az4/p5.48xlarge/spot"
    assert first["changes"][0] == {"at": "2026-11-10T12:00:00Z", "usd_per_hour": "22.000000"}
    assert len(first["changes"]) == len(second["changes"]) == 19


def test_a_chart_is_drawn_here_or_into_files(filled, tmp_path: Path) -> None:
    code, out, _ = filled("chart", *ASKED)
    assert code == 0
    assert "* aws/us-east-1/use1-az4/p5.48xlarge/spot" in out
    code, out, err = filled("chart", *ASKED, "--lines", "1", "--svg", "a.svg", "--png", "a.png", "--theme", "dark")
    assert (code, out) == (0, "")
    assert "1 more series" in err
    assert len(ET.parse(tmp_path / "a.svg").getroot().findall("{http://www.w3.org/2000/svg}polyline")) == 1
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_nothing_to_show_exits_1(filled) -> None:
    code, out, _ = filled("history", "H100:8", "--until", "2020-01-01")
    assert code == 1
    assert "more offers have no price in that time" in out
    assert filled("chart", "H100:8", "--until", "2020-01-01")[0] == 1


@pytest.mark.parametrize(
    "asked",
    [
        ("history",),
        ("history", "H100:8", "--since", "2026-12-01", "--until", "2026-11-01"),
        ("history", "H100:8", "--since", "then"),
        ("compact", "--keep-days", "3", "--keep-changes-at", "soon"),
        ("compact",),
        ("compact", "--keep-days", "nan"),
        ("compact", "--keep-days", "1e12"),
        ("import",),
        ("import", "skyplan.csv", "--source", "a\udcff"),
        ("import", "skyplan.csv", "--source", ""),
        ("gone",),
    ],
)
def test_what_cannot_be_asked_is_told(run, asked: tuple[str, ...]) -> None:
    code, _, err = run(*asked)
    assert code == 1
    assert err


@pytest.mark.parametrize("asked", [("history", "H100:8"), ("snapshot", "m.json"), ("compact", "--keep-days", "1")])
def test_without_a_record_nothing_is_made(run, tmp_path: Path, asked: tuple[str, ...]) -> None:
    code, _, err = run(*asked)
    assert (code, "SKY-APPLY-319" in err) == (1, True)
    assert list(tmp_path.iterdir()) == []


def test_a_snapshot_is_planned_on(filled, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = filled("snapshot", "market.json", "--as-of", "2026-11-20", "--json")
    assert (code, json.loads(out)["file"]) == (0, "market.json")
    (tmp_path / "skyplan.yaml").write_text("project: acme\nmarket: {source: market.json}\n")
    assert call(["offers", *ASKED[:-2], "--json"]) == 0
    offers = json.loads(capsys.readouterr().out)
    assert offers["as_of"] == "2026-11-20T00:00:00Z"
    assert [o["usd_per_hour"] for o in offers["offers"] if "az4" in o["offer_id"]] == ["20.0000"]
    assert filled("snapshot", "empty.json", "--as-of", "2020-01-01")[0] == 1
    assert not (tmp_path / "empty.json").exists()


def test_a_refresh_that_nobody_answered_ends_in_an_error(run, monkeypatch: pytest.MonkeyPatch) -> None:
    from planner.app import refresh
    from planner.model.diagnostic import Diagnostic, Severity

    silent = Diagnostic(code="SKY-CAT-115", summary="aws: no credentials", severity=Severity.WARNING)
    none = refresh.Refresh(answers=(), warnings=(silent,))
    monkeypatch.setattr(refresh, "refresh", lambda *_args, **_more: none)
    code, out, err = run("refresh", "--dry-run")
    assert (code, out) == (1, "no region was answered\n")
    assert "warning: aws: no credentials" in err
    assert "error: no cloud answered" in err.splitlines()[-1]


def test_old_changes_go_and_the_newest_stay(filled) -> None:
    told = {"format_version": "1.0", "removed": 54, "prices": 56, "capacity": 0, "dry_run": True}
    for _ in range(2):  # nothing went the first time
        code, out, _ = filled("compact", "--keep-days", "0", "--dry-run", "--json")
        assert (code, json.loads(out)) == (0, told)
    code, out, _ = filled("compact", "--keep-days", "0", "--json")
    assert (code, json.loads(out)) == (0, {**told, "prices": 2, "dry_run": False})
    code, out, _ = filled("compact", "--keep-days", "0.5", "--keep-changes-at", "1h")
    assert "removed: 0 rows; 2 prices" in out


def test_help_imports_nothing_that_is_slow(tmp_path: Path) -> None:
    code = (
        "import sys; from planner.cli.entry import call; call(['prices', '--help']); "
        "sys.stderr.write(' '.join(n for n in ('numpy', 'sqlalchemy', 'plotext', 'boto3', 'yaml') if n in sys.modules))"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    commands = [line.split()[0] for line in done.stdout.split("Commands:")[1].splitlines() if line.strip()]
    assert [c for c in commands if c in {"refresh", "import", "history", "chart", "snapshot", "compact"}] != []
    assert "refresh" in commands
