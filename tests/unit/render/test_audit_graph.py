"""The graph and the explanation: whole, the same each time, and readable without colour or sight."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import combinations, pairwise

from planner.model.audit_report import Explanation, Right, Who
from planner.model.grants import Identity
from planner.model.offer import Cloud
from planner.model.policy import Audited, AwsPolicy, PolicyKind, RoleBinding, Statement, Subject
from planner.render.explain_identity import explanation_lines
from planner.render.graph_svg import graph
from planner.render.text import Paint
from tests.unit.render.audit_reports import HOSTILE

SVG = "{http://www.w3.org/2000/svg}"


def policy(*statements: Statement, kind: PolicyKind = PolicyKind.IDENTITY) -> AwsPolicy:
    return AwsPolicy(kind=kind, name="p", statements=statements)


NODE = Subject(
    cloud=Cloud.AWS,
    name="skyplan-acme-acc-train",
    origin="acc-train aws_iam_role.node",
    identity=Identity.NODE_DATA,
    job="train",
    policies=(
        policy(
            Statement(actions=("sts:AssumeRole",), principals=(("Service", "ec2.amazonaws.com"),)),
            kind=PolicyKind.TRUST,
        ),
        policy(Statement(actions=("s3:GetObject",), resources=("arn:aws:s3:::acme-corpus/llama/*",))),
    ),
)
LAUNCHER = Subject(
    cloud=Cloud.AWS,
    name="skyplan-acme-orchestrator",
    origin="fnd-aws-prod aws_iam_role.orchestrator",
    identity=Identity.ORCHESTRATOR,
    policies=(
        policy(
            Statement(
                actions=("iam:PassRole",),
                resources=("arn:aws:iam::111122223333:role/skyplan/acme/skyplan-acme-acc-train",),
            ),
            *(
                Statement(actions=("ec2:RunInstances",), resources=(f"arn:aws:ec2:*:111122223333:kind{k}/*",))
                for k in range(12)
            ),
        ),
    ),
)
READER = Subject(
    cloud=Cloud.GCP,
    name="sa@acme.iam.gserviceaccount.com",
    origin="acc gcp",
    bindings=(RoleBinding(member="m", role="roles/storage.objectViewer", on="projects/_/buckets/b"),),
)


def drawn(*subjects: Subject) -> ET.Element:
    return ET.fromstring(graph(Audited(subjects=subjects), title="Identities of acme"))


def test_who_may_become_whom_and_what_is_reached_are_all_there() -> None:
    root = drawn(NODE, LAUNCHER, READER)
    words = {text.text for text in root.iter(f"{SVG}text")}
    assert {"Service", "ec2.amazonaws.com", "aws node of train", "acme-corpus/llama/*", "PassRole"} <= words
    assert {"and 4 more", "projects/_/buckets/b"} <= words
    assert len(list(root.iter(f"{SVG}g"))) == 3 + 1 + (1 + 9 + 1)


def test_it_tells_the_same_to_who_cannot_see_it() -> None:
    root = drawn(NODE, LAUNCHER)
    assert (root.get("role"), root.get("aria-labelledby")) == ("img", "title desc")
    said = root.findtext(f"{SVG}desc") or ""
    assert said.startswith("2 identities, 1 that may assume them")
    assert "aws orchestrator skyplan-acme-orchestrator to aws node of train skyplan-acme-acc-train: PassRole." in said


def test_order_of_what_was_read_changes_nothing() -> None:
    one, other = Audited(subjects=(NODE, LAUNCHER, READER)), Audited(subjects=(READER, LAUNCHER, NODE))
    assert graph(one, title="t") == graph(other, title="t")


def test_boxes_of_a_column_do_not_touch() -> None:
    boxes = [
        (float(r.get("x", 0)), float(r.get("y", 0)), float(r.get("height", 0)))
        for r in drawn(NODE, LAUNCHER, READER).iter(f"{SVG}rect")
    ][1:]
    for x in {box[0] for box in boxes}:
        tops = sorted((y, h) for left, y, h in boxes if left == x)
        assert all(y + h < after for (y, h), (after, _) in pairwise(tops))


def test_two_accounts_stay_apart_a_boundary_is_nobody_and_what_may_become_another_is_drawn_once() -> None:
    entry = Subject(cloud=Cloud.AWS, name="acme-ci", origin="fnd-aws-prod aws_iam_role.ci", policies=NODE.policies[:1])
    trust = policy(
        Statement(actions=("sts:AssumeRole",), principals=(("AWS", "arn:aws:iam::111122223333:role/x/acme-ci"),)),
        kind=PolicyKind.TRUST,
    )
    opened = replace(LAUNCHER, policies=(trust,))
    lab = replace(LAUNCHER, origin="fnd-aws-lab aws_iam_role.orchestrator", policies=NODE.policies[:1])
    cap = Subject(
        cloud=Cloud.AWS,
        name="cap",
        origin="fnd-aws-prod aws_iam_policy.cap",
        policies=(policy(Statement(actions=("*",), resources=("*",)), kind=PolicyKind.BOUNDARY),),
    )
    said = drawn(entry, opened, lab, cap).findtext(f"{SVG}desc") or ""
    assert said.startswith("3 identities, 1 that may assume them, 0 things")
    assert "aws identity acme-ci to aws orchestrator, in fnd-aws-prod skyplan-acme-orchestrator: becomes." in said
    assert "Service ec2.amazonaws.com to aws orchestrator, in fnd-aws-lab skyplan-acme-orchestrator." in said


def test_a_token_of_elsewhere_stands_before_the_account_that_it_becomes() -> None:
    on = "projects/acme/serviceAccounts/sa@acme.iam.gserviceaccount.com"
    member = "principalSet://iam.googleapis.com/pool/x"
    pool = Subject(
        cloud=Cloud.GCP,
        name=member,
        origin="acc gcp",
        bindings=(RoleBinding(member=member, role="roles/iam.workloadIdentityUser", on=on),),
    )
    said = drawn(READER, pool).findtext(f"{SVG}desc") or ""
    assert said.startswith("1 identities, 1 that may assume them, 1 things")
    assert "principalSet //iam.googleapis.com/pool/x to gcp identity sa@acme.iam.gserviceaccount.com" in said


def test_words_of_edges_do_not_touch() -> None:
    lab = replace(LAUNCHER, name="other", origin="fnd-aws-prod aws_iam_role.other")
    words = [t for t in drawn(NODE, LAUNCHER, lab, READER).iter(f"{SVG}text") if t.get("font-size") == "10"]
    places: list[tuple[float, float, float]] = []
    for word in words:
        x, wide = float(word.get("x", 0)), 6.0 * len(word.text or "")
        left = x if word.get("text-anchor") == "start" else x - wide
        places.append((left, left + wide, float(word.get("y", 0))))
    assert len(places) > 15  # without moving, two of them share a place
    for (left, right, y), (other, its_right, below) in combinations(places, 2):
        assert left >= its_right or other >= right or abs(y - below) >= 11


def test_a_strangers_name_stays_text_and_nothing_is_an_empty_picture() -> None:
    root = drawn(replace(NODE, name=HOSTILE, job=HOSTILE))
    assert not list(root.iter("img"))
    assert list(drawn().iter(f"{SVG}title"))


def test_an_explanation_groups_by_statement_and_says_what_needs_each_action() -> None:
    def right(action: str, **changes: object) -> Right:
        base = Right(
            cloud="aws",
            subject="orchestrator-role",
            grant="p/Launch",
            action=action,
            resources=("instance/*",),
            bounds=("k StringEquals v",),
        )
        return replace(base, **changes)

    told = Explanation(
        identity="orchestrator",
        rights=(
            right("ec2:RunInstances", needed_by=tuple(f"create thing{k} (compute)" for k in range(6)), used=True),
            right("ec2:Stop", used=False),
            right(
                "s3:GetObject",
                grant="p/Read",
                reason="training data: s3://b/x/",
                resources=tuple(f"r{k}" for k in range(6)),
            ),
        ),
        who=(
            Who(
                cloud="aws",
                subject="orchestrator-role",
                trusted=("Service x",),
                limits=("never iam:* on *",),
            ),
        ),
    )
    text = "\n".join(explanation_lines(told, Paint(on=False)))
    assert text.count("p/Launch") == 1
    assert "may be assumed by Service x" in text
    assert "never iam:* on *" in text
    assert "ec2:RunInstances  [used]\n      for: create thing0 (compute)" in text
    assert "and 2 more" not in text
    assert "on r5" in text
    assert "ec2:Stop  [unused here]" in text
    assert "    s3:GetObject\n      training data: s3://b/x/" in text
    assert text.endswith("3 permissions of orchestrator")
