"""A placement diff in a terminal, in a pull request, as JSON and as a page: held to golden files, and to what no reader may be shown (R25)."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import jsonschema
import pytest

from planner.model.change import Action, Bound, PlacementDiff, ResourceChange, TerraformChanges
from planner.model.diagnostic import Diagnostic, Severity
from planner.model.digest import pretty
from planner.render import diff_html, diff_json, diff_markdown, diff_text
from planner.render.diff_words import mask
from planner.render.text import Paint
from planner.spec import schema_diff
from tests.unit.app.diffing import WIDER, at, cases, made, plan

GOLDEN = Path(__file__).parents[2] / "golden" / "diff"
CASES = cases()
PLAIN = Paint(on=False)
EVIL = "</details> <script>x</script> @everyone [x](javascript:y) | `z` https://evil.example #1 ``` ~~~ <!-- -->"
#: as a GitHub token is built, and no token
TOKEN = "ghp_" + "a1B2" * 9


def texts(name: str) -> dict[str, str]:
    diff = CASES[name]
    out = {
        f"{name}.md": diff_markdown.document(diff, tag="acme/prod"),
        f"{name}.txt": "\n".join(diff_text.diff_lines(diff, PLAIN)) + "\n",
    }
    if len(diff.changes) < 10:
        out[f"{name}.json"] = pretty(diff_json.document(diff)).decode()
    if name == "region":
        out[f"{name}.html"] = diff_html.document(diff)
    return out


@pytest.mark.parametrize("name", CASES)
def test_it_reads_as_it_did(name: str, pytestconfig: pytest.Config) -> None:
    for file, text in texts(name).items():
        if pytestconfig.getoption("--update-golden"):
            (GOLDEN / file).write_text(text, encoding="utf-8")
        assert (GOLDEN / file).read_text(encoding="utf-8") == text, f"{file}; --update-golden rewrites it"


@pytest.mark.parametrize("name", CASES)
def test_the_schema_admits_every_kind_and_nothing_that_lacks_a_field(name: str) -> None:
    schema = schema_diff.diff_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    check = jsonschema.Draft202012Validator(schema)
    document = json.loads(json.dumps(diff_json.document(CASES[name])))
    assert [e.message for e in check.iter_errors(document)] == []
    for field in document:
        assert list(check.iter_errors({k: v for k, v in document.items() if k != field})), field
    assert list(check.iter_errors(document | {"more": 1})) == []  # what a later 1.x adds


def test_nothing_changed_is_one_line_below_the_tag() -> None:
    lines = diff_markdown.document(CASES["none"], tag="prod").splitlines()
    assert len(lines) == 2
    assert len(diff_markdown.document(CASES["none"]).splitlines()) == 1


def test_a_change_of_outputs_alone_is_shown() -> None:
    assert CASES["output-only"].changed
    for text in texts("output-only").values():
        assert "node_ip" in text.replace("\\", "")


def test_rights_come_first_and_deletions_before_any_job() -> None:
    diff = replace(CASES["region"], widenings=(WIDER,), terraform=CASES["deletion"].terraform)
    for text in (
        diff_markdown.document(diff),
        diff_html.document(diff),
        "\n".join(diff_text.diff_lines(diff, PLAIN)),
    ):
        text = text.replace("\\", "")  # noqa: PLW2901 - as it is read
        places = [text.index(word) for word in ("Read1", "aws_iam_role.old", "us-west-2-az1")]
        assert places == sorted(places)


def test_an_unknown_price_is_neither_nothing_nor_a_saving() -> None:
    (change,) = CASES["unknown-price"].changes
    assert change.total.difference.bound is Bound.UNKNOWN
    document = diff_json.document(CASES["unknown-price"])
    assert document["total_usd"]["difference"] == {"usd": None, "bound": "unknown"}
    assert document["total_usd"]["after"]["at_least"] is True
    (egress,) = [t for t in document["changes"][0]["terms_usd"] if t["name"] == "data_egress"]
    assert egress["after"] is None
    text = diff_markdown.document(CASES["unknown-price"])
    assert "to finish unknown" in text
    assert "at least $40.00" in text
    assert text.count("-$60") == 1  # of the term that is known
    assert "at least -" not in text


def test_a_job_without_a_place_is_no_saving() -> None:
    (change,) = CASES["infeasible"].changes
    assert change.total.difference.bound is Bound.UNKNOWN
    assert change.hourly.difference.bound is Bound.UNKNOWN
    assert "1 without a place" in diff_markdown.document(CASES["infeasible"])


def test_a_migration_diff_shows_its_steps_and_how_long_the_job_stops() -> None:
    for text in texts("migration").values():
        assert "usw2-az1" in text
        assert "launch the new nodes" in text
        assert "6.5" in text


def test_the_tag_is_matched_whole() -> None:
    for tag in ("prod", "non-prod", "acme/prod.eu_1"):
        body = diff_markdown.document(CASES["region"], tag=tag)
        assert diff_markdown.read_tag(body) == (tag, "2026-11-30T12:00:00Z")
    assert diff_markdown.read_tag("see " + diff_markdown.tag_line("prod", "")) is None
    assert diff_markdown.read_tag("nothing") is None


@pytest.mark.parametrize("tag", ["", "a b", 'x" valid-at="', "a--b", "-->", "x" * 101, "a\nb"])
def test_a_tag_that_could_not_be_read_back_is_refused(tag: str) -> None:
    with pytest.raises(ValueError, match="tag"):
        diff_markdown.tag_line(tag, "")


def _poisoned(text: str) -> PlacementDiff:
    diff = replace(CASES["region"], base=text, widenings=(replace(WIDER, message=text, identity=text, origin=text),))
    (change,) = diff.changes
    terraform = TerraformChanges(
        file=text,
        resources=(ResourceChange(address=text, action="delete", because=text, paths=(text,)),),
        outputs=((text, "update"),),
        drifted=(text,),
    )
    told = Diagnostic(code="SKY-APPLY-302", summary=text, severity=Severity.WARNING)
    altered = tuple(replace(a, before=text) for a in change.altered)
    poisoned = replace(change, job=text, reason=text, caveats_added=(text,), altered=altered)
    return replace(diff, changes=(poisoned,), terraform=(terraform,), warnings=(told,))


def test_a_strangers_words_open_nothing_in_markdown() -> None:
    text = diff_markdown.document(_poisoned(EVIL), tag="prod")
    for mark in ("<script>", "@everyone", "[x](javascript", "https://evil", "| `z`", " #1", "```", "~~~"):
        assert mark not in text, mark
    assert text.count("<!--") == 1
    assert text.count("<details>") == text.count("</details>") == 2
    assert re.findall(r"<(?!/?details>|/?summary>|!-- skyplan-diff )", text) == []
    cells = {line.count(" | ") for line in text.splitlines() if line.startswith("| high")}
    assert cells == {4}


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        self.seen.append(tag)
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_a_strangers_words_open_nothing_in_html() -> None:
    page = diff_html.document(_poisoned(EVIL + " \" onload='x'"))
    tags = _Tags()
    tags.feed(page)
    assert tags.open == []
    assert not {"script", "a", "img", "link", "iframe"} & set(tags.seen)
    assert "http://" not in page.replace("https://evil.example", "")
    assert "default-src 'none'" in page


@pytest.mark.parametrize(
    ("secret", "left"),
    [
        (TOKEN, "[secret]"),
        ("arn:aws:iam::123456789012:role/x", "arn:aws:iam::[account]:role/x"),
        ("/subscriptions/0b1f6471-1bf0-4dda-aec3-111122223333/x", "/subscriptions/[id]/x"),
        ("projects/acme-prod-1/zones/z", "projects/[project]/zones/z"),
        ("sa@acme-prod-1.iam.gserviceaccount.com", "sa@[project].iam.gserviceaccount.com"),
        ("project-e00abcdefgh", "[id]"),
        ("DB_PASSWORD=hunter2Xq9zR", "DB_PASSWORD=[secret]"),
        ("p0123456789 sha256:" + "0123456789ab" * 5 + "cdef", None),
        ("postgres://u:s3cretpw@db/x", "postgres://u:[secret]@db/x"),
    ],
)
def test_secrets_and_accounts_are_cut_out_of_every_output(secret: str, left: str | None) -> None:
    assert mask(secret) == (left or secret)
    if left is None:
        return
    diff = _poisoned(f"x {secret} y")
    core = secret.rpartition("=")[2] if "=" in secret else secret
    for text in (
        diff_markdown.document(diff),
        diff_html.document(diff),
        pretty(diff_json.document(diff)).decode(),
        "\n".join(diff_text.diff_lines(diff, PLAIN)),
    ):
        assert core not in text
        assert core not in text.replace("\\", "").replace("&#8203;", "")


def _many(count: int) -> PlacementDiff:
    names = [f"job-{n:04}" for n in range(count)]
    there = at("us-west-2", usd="8.0000", placed="p2222222222")
    diff = made([plan(at(), name=n) for n in names], [plan(there, at(), name=n) for n in names])
    gone = tuple(ResourceChange(address=f"aws_instance.n{n:04}", action="delete") for n in range(count))
    return replace(
        diff,
        widenings=tuple(replace(WIDER, resource=f"arn:aws:s3:::b{n}/*") for n in range(count)),
        terraform=(TerraformChanges(file="tfplan.json", resources=gone),),
        warnings=tuple(
            Diagnostic(code="SKY-APPLY-302", summary=f"plan {n} is old", severity=Severity.WARNING)
            for n in range(count)
        ),
    )


def test_a_comment_is_never_too_long_and_keeps_its_totals() -> None:
    text = diff_markdown.document(_many(700), tag="prod")
    assert len(text.encode()) <= 60_000
    assert text.count("<details>") == text.count("</details>")
    assert "Cut here" in text
    assert "| to finish | $70,000.00 | $56,000.00 | -$14,000.00 |" in text
    assert "Grants widen (700)" in text
    assert "deletes or replaces (700)" in text
    assert r"aws\_instance.n0000" in text
    assert re.search(r"and \d+ more", text)
    assert "```" not in text


def test_a_step_summary_has_more_room_and_stays_within_it() -> None:
    text = diff_markdown.document(_many(700), longest=diff_markdown.LONGEST_SUMMARY)
    assert 60_000 < len(text.encode()) <= diff_markdown.LONGEST_SUMMARY
    assert text.count("<details>") == text.count("</details>")


@pytest.mark.parametrize("name", CASES)
def test_the_same_diff_gives_the_same_bytes(name: str) -> None:
    again = cases()[name]
    assert diff_markdown.document(again, tag="acme/prod") == texts(name)[f"{name}.md"]


def test_every_action_has_its_own_sign() -> None:
    shown = {name: diff_text.diff_lines(CASES[name], PLAIN) for name in ("create", "retire", "region", "nodes")}
    signs = {
        name: next(line[0] for line in lines if line and line[0] in "+-~>") for name, lines in shown.items() if lines
    }
    assert signs == {"create": "+", "retire": "-", "region": ">", "nodes": "~"}
    assert len(set(CASES["none"].of(Action.KEEP))) == 1
