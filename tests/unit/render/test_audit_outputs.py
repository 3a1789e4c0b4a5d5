"""Every output of an audit says the same, and no name of a stranger breaks out of it."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest
from jsonschema import Draft4Validator, Draft202012Validator

from planner.model.diagnostic import Location
from planner.model.finding import Level
from planner.render import audit_json, audit_junit, audit_markdown, audit_sarif, audit_words, comment
from planner.render.audit_text import audit_lines
from planner.render.text import Paint
from planner.spec import schema_audit
from tests.unit.render.audit_reports import CLEAN, FINDINGS, FULL, HOSTILE, finding

SCHEMA = json.loads((Path(__file__).parents[2] / "schemas" / "sarif-2.1.0.json").read_text())
REPORTS = pytest.mark.parametrize("report", [FULL, CLEAN, replace(FULL, fail_on=None), replace(CLEAN, sources=())])


@REPORTS
def test_sarif_is_valid_by_the_published_schema(report) -> None:
    Draft4Validator(SCHEMA).validate(json.loads(json.dumps(audit_sarif.document(report, version="0.1.0"))))


def test_the_schema_refuses_what_is_wrong() -> None:
    wrong = audit_sarif.document(FULL, version="0.1.0")
    wrong["runs"][0]["results"][0]["level"] = "fatal"
    assert list(Draft4Validator(SCHEMA).iter_errors(wrong))


def test_sarif_names_the_job_files_line_by_a_relative_path() -> None:
    results = audit_sarif.document(FULL, version="0.1.0")["runs"][0]["results"]
    places = [r["locations"][0]["physicalLocation"] for r in results]
    assert places[2] == {
        "artifactLocation": {"uri": "jobs/train.yaml"},
        "region": {"startLine": 7, "startColumn": 3},
    }
    assert places[3]["artifactLocation"]["uri"] == "plans/my%20job.plan.json"
    assert all(not p["artifactLocation"]["uri"].startswith("/") and p["region"]["startLine"] >= 1 for p in places)


def test_sarif_has_no_more_results_than_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_sarif, "MOST_RESULTS", 2)
    body = audit_sarif.document(FULL, version="0.1.0")
    Draft4Validator(SCHEMA).validate(json.loads(json.dumps(body)))
    run = body["runs"][0]
    assert len(run["results"]) == 2
    notes = run["invocations"][0]["toolConfigurationNotifications"]
    assert notes[-1]["message"]["text"].startswith(f"{len(FINDINGS) - 2} more findings")


def test_sarif_results_have_the_fingerprint_that_github_goes_by() -> None:
    results = audit_sarif.document(FULL, version="0.1.0")["runs"][0]["results"]
    marks = [r["partialFingerprints"]["primaryLocationLineHash"] for r in results]
    assert marks == [f.fingerprint for f in FULL.findings]


def test_sarif_rules_carry_level_severity_and_a_page() -> None:
    run = audit_sarif.document(FULL, version="0.1.0")["runs"][0]
    rules = {r["id"]: r for r in run["tool"]["driver"]["rules"]}
    assert rules["SKY-IAM-301"]["defaultConfiguration"] == {"level": "error"}
    assert rules["SKY-IAM-606"]["defaultConfiguration"] == {"level": "note"}
    assert rules["SKY-IAM-301"]["help"] == {
        "text": "Why: because\n\nMore: skyplan explain SKY-IAM-301",
        "markdown": "**Why:** because\n\nMore: `skyplan explain SKY-IAM-301`",
    }
    assert rules["SKY-IAM-216"]["help"]["markdown"].startswith("**Fix:** give what is needed")
    assert not any("helpUri" in rule for rule in rules.values()), "must be absolute: code scanning refuses the file"
    assert rules["SKY-IAM-301"]["properties"]["tags"][-1] == "CKV_AWS_1"
    order = [r["id"] for r in run["tool"]["driver"]["rules"]]
    assert all(order[r["ruleIndex"]] == r["ruleId"] for r in run["results"])


def test_a_page_is_linked_only_where_it_has_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "docs/rules" not in audit_markdown.document(FULL) + json.dumps(audit_sarif.document(FULL, version="1"))
    assert "- rule: `skyplan explain SKY-IAM-301`" in audit_markdown.document(FULL)
    monkeypatch.setattr(audit_words, "PAGES", "https://pages.example/")
    rules = audit_sarif.document(FULL, version="1")["runs"][0]["tool"]["driver"]["rules"]
    assert [rule["helpUri"] for rule in rules] == [f"https://pages.example/{rule['id']}.md" for rule in rules]
    assert "- rule: [SKY-IAM-301](https://pages.example/SKY-IAM-301.md)" in audit_markdown.document(FULL)


def test_a_comment_shows_why_something_is_accepted_and_until_when() -> None:
    words = "reviewed in ML-12 (until 2027-01-01)"
    found = replace(FINDINGS[0], accepted=words), replace(FINDINGS[2], accepted=words)
    text = audit_markdown.document(replace(FULL, findings=found))
    assert f"| accepted: {words} | aws orchestrator |" in text
    assert f"- accepted: {words}" in text


def test_the_table_shows_one_fix_once_and_folds_long_evidence() -> None:
    one = finding(fix="write instead:\n{A}", evidence="\n".join("abcde"))
    two = finding(rule="SKY-IAM-302", fix=one.fix, evidence="")
    text = "\n".join(audit_lines(replace(FULL, findings=(one, two)), Paint(on=False)))
    assert text.count("{A}") == 1
    assert "fix: the one of SKY-IAM-301 above, of ReadData, settles this too" in text
    assert "| c\n  | … and 2 lines more, in --json" in text
    assert "| d" not in text


def test_fingerprints_outlive_moved_lines_and_new_words_and_nothing_else() -> None:
    def prints(f):
        report = replace(FULL, findings=(f,))
        return audit_sarif.document(report, version="1")["runs"][0]["results"][0]["partialFingerprints"]

    same = prints(finding())
    assert prints(finding(location=Location("jobs/train.yaml", 99), message="other", fix="", level=Level.LOW)) == same
    assert prints(finding(resource="arn:aws:s3:::other/*")) != same
    assert prints(finding(grant="Other")) != same


def test_what_is_accepted_is_suppressed_in_sarif_with_its_reason() -> None:
    results = audit_sarif.document(FULL, version="1")["runs"][0]["results"]
    assert [r.get("suppressions", [{}])[0].get("justification") for r in results] == [None] * 4 + ["reviewed in ML-12"]


@REPORTS
def test_json_is_valid_by_the_schema_that_is_shipped(report) -> None:
    schema = schema_audit.audit_schema()
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(json.loads(json.dumps(audit_json.document(report))))


def test_the_shipped_schema_refuses_a_lost_field_and_a_strange_level() -> None:
    schema = Draft202012Validator(schema_audit.audit_schema())
    lost, strange = audit_json.document(FULL), audit_json.document(FULL)
    del lost["findings"][0]["fix"]
    strange["findings"][0]["level"] = "fatal"
    assert list(schema.iter_errors(lost))
    assert list(schema.iter_errors(strange))


def test_json_counts_open_findings_and_those_that_fail() -> None:
    summary = audit_json.document(FULL)["summary"]
    assert summary["open"] == {"critical": 1, "high": 2, "medium": 0, "low": 0, "info": 1}
    assert (summary["accepted"], summary["standing"], summary["failing"]) == (1, 2, 3)
    assert audit_json.document(replace(FULL, fail_on=None))["summary"]["failing"] == 0
    assert audit_json.document(replace(FULL, fail_on=Level.CRITICAL))["summary"]["failing"] == 1


def test_junit_has_one_case_per_rule_and_identity() -> None:
    root = ET.fromstring(audit_junit.document(FULL))
    cases = root.findall(".//testcase")
    # three identities (the hostile one is known by its finding alone) by four rules, and one expired suppression
    assert len(cases) == 3 * 4 + 1
    assert [root.get(k) for k in ("tests", "failures", "errors", "skipped")] == ["13", "3", "1", "0"]
    failed = {(c.get("classname"), str(c.get("name"))[:11]) for c in cases if c.find("failure") is not None}
    assert ("aws.node-data", "SKY-IAM-301") in failed
    assert ("aws.orchestrator", "SKY-IAM-605") in failed


def test_junit_skips_what_is_accepted_and_fails_only_where_the_report_does() -> None:
    root = ET.fromstring(audit_junit.document(replace(FULL, findings=(FINDINGS[3], FINDINGS[4]), diagnostics=())))
    assert [root.get(k) for k in ("failures", "errors", "skipped")] == ["0", "0", "1"]
    assert root.find(".//skipped").get("message") == "reviewed in ML-12"
    assert "jobs" not in (root.findtext(".//system-out") or "")


def test_markdown_shows_widenings_first_and_folds_the_rest() -> None:
    text = audit_markdown.document(FULL)
    assert text.index("### Granted beyond main") < text.index("<details>")
    assert text.index("aws:ResourceTag/skyplan:project was dropped") < text.index("SKY-IAM-301")
    assert "| + added | Allow ec2:StopInstances on \\* |" in text
    lines = text.splitlines()
    opened = sum(line.startswith("<details>") for line in lines)
    assert opened == lines.count("</details>") == len(FINDINGS)


def test_markdown_lets_no_name_open_a_tag_a_cell_or_a_mention() -> None:
    text = audit_markdown.document(FULL)
    outside = [line for line in text.splitlines() if not line.startswith("    ")]
    assert not any("<img" in line or " @org" in line or "\x1b" in line for line in outside)
    tables = [line for line in outside if line.startswith("|")]
    assert {line.replace("\\|", "").count("|") for line in tables} <= {3, 5}


def test_markdown_links_nothing_that_a_name_says() -> None:
    said = "see http://evil.example, WWW.evil.example, acme/infra#7 and @org"
    text = audit_markdown.document(replace(FULL, findings=(finding(origin=said, message=said),)))
    outside = "".join(line for line in text.splitlines() if not line.startswith("    "))
    assert outside.count("evil.example") > 2
    assert not re.search(r"http://|www\.|#7|@org", outside, re.IGNORECASE)


def test_a_long_comment_is_cut_between_blocks() -> None:
    many = tuple(finding(grant=f"Read{k}") for k in range(500))
    text = audit_markdown.document(replace(FULL, findings=many))
    assert len(text) <= comment.LONGEST
    assert text.count("<details>") == text.count("</details>")
    assert "may be no longer" in text


def test_the_table_says_level_and_reason_in_words_and_hides_terminal_codes() -> None:
    text = "\n".join(audit_lines(FULL, Paint(on=False)))
    assert "\x1b" not in text
    assert "\x00" not in text
    assert text.index("SKY-IAM-605") < text.index("SKY-IAM-216")
    assert "accepted: reviewed in ML-12" in text
    assert text.endswith("1 critical, 2 high, 1 info; 1 accepted; 2 stand in main too; 2 identities, 4 rules")
    assert HOSTILE not in text


def test_colour_repeats_the_words_and_adds_none() -> None:
    import re

    plain = audit_lines(FULL, Paint(on=False))
    coloured = [re.sub(r"\x1b\[\d+m", "", line) for line in audit_lines(FULL, Paint(on=True))]
    assert coloured == plain


def test_a_clean_report_says_so() -> None:
    assert audit_lines(CLEAN, Paint(on=False)) == ["no findings; 2 identities, 4 rules"]
    assert "Nothing that fails" in audit_markdown.document(CLEAN)
