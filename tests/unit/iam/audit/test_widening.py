"""Rule 605: what a change grants beyond its base, in words; what shrinks is silent."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.iam.audit.widening import widening
from planner.model.finding import Level
from planner.model.grants import Identity
from planner.model.offer import Cloud
from planner.model.policy import (
    Audited,
    AwsPolicy,
    Permit,
    PolicyKind,
    Provider,
    RoleAssignment,
    RoleBinding,
    Statement,
    Subject,
    Test,
)

OWNER = Test(operator="StringEquals", key="aws:ResourceAccount", values=("111122223333",))
TYPES = Test(operator="StringLike", key="ec2:InstanceType", values=("p5.*",))
READ = Statement(sid="Read", actions=("s3:GetObject",), resources=("arn:aws:s3:::acme/a/*",), tests=(OWNER,))
RUN = Statement(
    sid="Run", actions=("ec2:RunInstances",), resources=("arn:aws:ec2:us-east-1:1:instance/*",), tests=(TYPES,)
)


def policy(*statements, kind=PolicyKind.IDENTITY, name="node-data"):
    return AwsPolicy(kind=kind, name=name, statements=statements)


def subject(*policies, **fields):
    base = {"cloud": Cloud.AWS, "name": "node", "origin": "acc-train", "identity": Identity.NODE_DATA, "job": "train"}
    return Subject(**{**base, **fields}, policies=policies)


def audited(*statements, **fields):
    return Audited(subjects=(subject(policy(*statements), **fields),))


def messages(base, new):
    return [found.message for found in widening(base, new)]


BASE = audited(READ, RUN)


def test_nothing_changed_is_no_widening():
    assert widening(BASE, BASE) == ()


@pytest.mark.parametrize(
    "new",
    [
        Audited(),
        audited(READ),
        audited(replace(READ, sid="Other"), RUN),
        audited(replace(READ, resources=("arn:aws:s3:::acme/a/b/*",))),
        audited(READ, replace(RUN, tests=(TYPES, OWNER))),
        audited(READ, replace(RUN, tests=(replace(TYPES, values=("p5.48xlarge",)),))),
        audited(READ, RUN, Statement(sid="No", effect="Deny", actions=("iam:*",), resources=("*",))),
        Audited(
            subjects=(subject(policy(READ, RUN), policy(READ, kind=PolicyKind.BOUNDARY, name="b")),),
        ),
    ],
)
def test_narrowing_is_silent(new):
    assert widening(BASE, new) == ()


def test_an_action_that_is_added_is_named_alone():
    (found,) = widening(BASE, audited(replace(READ, actions=("s3:GetObject", "s3:PutObject")), RUN))
    assert (found.rule, found.level) == ("SKY-IAM-605", Level.HIGH)
    assert (found.identity, found.origin, found.grant) == ("node-data", "acc-train", "node-data/Read")
    assert (found.action, found.resource) == ("s3:PutObject", "arn:aws:s3:::acme/a/*")
    assert found.message.startswith(
        "adds s3:PutObject on arn:aws:s3:::acme/a/*, where StringEquals aws:ResourceAccount"
    )
    assert '"Action":["s3:GetObject","s3:PutObject"]' in found.evidence
    assert '"Action": "s3:GetObject"' in found.fix


def test_a_wildcard_says_what_it_takes_in():
    (found,) = messages(BASE, audited(READ, RUN, Statement(sid="All", actions=("s3:Get*",), resources=("*",))))
    assert found.startswith("adds s3:Get* on * (")
    assert "such as s3:Get" in found


def test_a_wider_resource():
    (found,) = messages(BASE, audited(replace(READ, resources=("arn:aws:s3:::acme/*",)), RUN))
    assert found == "s3:GetObject now reaches arn:aws:s3:::acme/*; the base stops at arn:aws:s3:::acme/a/*"


def test_a_dropped_condition():
    (found,) = widening(BASE, audited(replace(READ, tests=()), RUN))
    assert "`StringEquals aws:ResourceAccount = 111122223333` was dropped" in found.message
    assert '"aws:ResourceAccount": "111122223333"' in found.fix


def test_a_loosened_condition():
    loose = replace(TYPES, values=("p5.*", "g6.*"))
    (found,) = messages(BASE, audited(READ, replace(RUN, tests=(loose,))))
    assert "became `StringLike ec2:InstanceType = p5.*, g6.*`" in found
    (found,) = messages(BASE, audited(READ, replace(RUN, tests=(replace(TYPES, operator="StringLikeIfExists"),))))
    assert "became `StringLikeIfExists" in found


def test_resource_and_condition_at_once():
    (found,) = messages(BASE, audited(READ, replace(RUN, resources=("*",), tests=())))
    assert "now reaches *" in found
    assert "was dropped" in found


def test_a_new_subject_is_new_grant_by_grant():
    found = messages(Audited(), BASE)
    assert len(found) == 2
    assert all(one.startswith("new identity node-data: adds ") for one in found)


def test_a_job_that_moves_is_the_same_subject():
    moved = audited(READ, RUN, name="node-west", origin="acc-west")
    assert widening(BASE, moved) == ()
    both = Audited(subjects=(*BASE.subjects, *moved.subjects))
    assert len(widening(BASE, both)) == 2
    assert len(widening(BASE, audited(READ, RUN, name="other", job="another"))) == 2


def test_a_deny_that_is_gone_or_narrower():
    deny = Statement(sid="NoSecret", effect="Deny", actions=("s3:*",), resources=("arn:aws:s3:::acme/a/secret/*",))
    (found,) = messages(audited(READ, deny), audited(READ))
    assert found.endswith("was held back by a Deny of the base (NoSecret) that is gone or narrower")
    assert messages(audited(READ, deny), audited(READ, replace(deny, tests=(OWNER,))))
    assert not messages(audited(READ, deny), audited(READ, replace(deny, resources=("*",))))
    elsewhere = replace(deny, resources=("arn:aws:s3:::other/*",))
    assert not messages(audited(READ, elsewhere), audited(READ))


def test_what_a_deny_takes_away_is_no_grant():
    all_of_s3 = Statement(sid="All", actions=("s3:PutObject",), resources=("*",))
    deny = Statement(sid="No", effect="Deny", actions=("s3:Put*",), resources=("*",))
    assert not messages(BASE, audited(READ, RUN, all_of_s3, deny))


def test_a_boundary_that_is_gone_or_wider():
    identity = policy(Statement(sid="All", actions=("*",), resources=("*",)))
    boundary = policy(READ, RUN, kind=PolicyKind.BOUNDARY, name="edge")
    base = Audited(subjects=(subject(identity, boundary),))
    (gone,) = messages(base, Audited(subjects=(subject(identity),)))
    assert gone == "the permissions boundary edge of the base is gone"
    wider = replace(boundary, statements=(READ, replace(RUN, actions=("ec2:RunInstances", "ec2:StopInstances"))))
    (found,) = messages(base, Audited(subjects=(subject(identity, wider),)))
    assert found.startswith("the permissions boundary lets more through: adds ec2:StopInstances")
    assert not messages(base, Audited(subjects=(subject(identity, replace(boundary, statements=(READ,))),)))
    assert not messages(Audited(subjects=(subject(identity),)), base)


def test_what_a_boundary_shuts_out_is_no_grant():
    boundary = policy(READ, kind=PolicyKind.BOUNDARY, name="edge")
    base = Audited(subjects=(subject(policy(READ), boundary),))
    more = Statement(sid="More", actions=("ec2:RunInstances",), resources=("*",))
    assert not messages(base, Audited(subjects=(subject(policy(READ, more), boundary),)))


def test_wider_trust():
    def trusting(*principals, tests=()):
        statement = Statement(sid="T", actions=("sts:AssumeRole",), principals=principals, tests=tests)
        return Audited(subjects=(subject(policy(statement, kind=PolicyKind.TRUST, name="trust")),))

    ec2, ci = ("Service", "ec2.amazonaws.com"), ("AWS", "arn:aws:iam::1:role/ci")
    (found,) = messages(trusting(ec2), trusting(ec2, ci))
    assert found == "AWS arn:aws:iam::1:role/ci may now call sts:AssumeRole; the base names Service ec2.amazonaws.com"
    tag = Test(operator="StringEquals", key="sts:ExternalId", values=("x",))
    (found,) = messages(trusting(ci, tests=(tag,)), trusting(ci))
    assert "`StringEquals sts:ExternalId = x` was dropped" in found
    assert not messages(trusting(ec2, ci), trusting(ci, tests=(tag,)))
    assert not messages(Audited(), trusting(ec2))
    assert messages(Audited(), trusting(ci))


def test_policy_of_a_store():
    plain = Test(operator="Bool", key="aws:SecureTransport", values=("false",))
    everybody = (("AWS", "*"),)
    deny = Statement(
        sid="Tls", effect="Deny", actions=("s3:*",), resources=("*",), principals=everybody, tests=(plain,)
    )
    allow = replace(READ, principals=(("AWS", "arn:aws:iam::1:role/a"),))

    def store(*statements):
        return Audited(stores=(("arn:aws:s3:::acme", policy(*statements, kind=PolicyKind.RESOURCE, name="bucket")),))

    (found,) = messages(store(allow, deny), store(deny, replace(allow, principals=everybody)))
    assert "AWS * may now call s3:GetObject" in found
    (found,) = messages(store(deny, allow), store(allow, replace(deny, actions=("s3:Get*",))))
    assert found == "the Deny Tls of arn:aws:s3:::acme is gone or narrower"
    assert len(messages(store(deny), Audited())) == 1
    assert len(messages(Audited(), store(allow))) == 1


BINDING = RoleBinding(
    member="serviceAccount:n@p", role="projects/p/roles/r", on="projects/p", permissions=("a.b.get",), condition="x"
)


def google(*bindings, **fields):
    return Audited(subjects=(subject(cloud=Cloud.GCP, bindings=bindings, **fields),))


@pytest.mark.parametrize(
    ("new", "words"),
    [
        (replace(BINDING, permissions=("a.b.get", "a.b.set")), "adds a.b.set on projects/p, where x"),
        (replace(BINDING, condition=""), "a weaker condition: `x` was dropped"),
        (replace(BINDING, condition="x || y"), "a weaker condition: `x` became `x || y`"),
        (replace(BINDING, on="organizations/1"), "now reaches organizations/1; the base stops at projects/p"),
        (replace(BINDING, role="roles/owner", permissions=()), "adds roles/owner on projects/p"),
    ],
)
def test_google(new, words):
    (found,) = messages(google(BINDING), google(new))
    assert words in found


def test_google_narrowing_and_a_renamed_account():
    assert not messages(google(BINDING), google(replace(BINDING, condition="x && y", on="projects/p/zones/z")))
    assert not messages(google(BINDING), google(replace(BINDING, member="serviceAccount:m@p"), name="m"))


def test_a_public_member():
    public = replace(BINDING, member="allUsers", condition="")
    (found,) = widening(Audited(), Audited(public=(public,)))
    assert (found.identity, found.resource) == ("allUsers", "projects/p")
    assert not widening(Audited(public=(public,)), Audited(public=(public,)))


ASSIGNMENT = RoleAssignment(
    role="skyplan",
    scope="/subscriptions/s/resourceGroups/g",
    actions=("M.Compute/virtualMachines/read",),
    condition="A",
)


@pytest.mark.parametrize(
    ("new", "words"),
    [
        (
            replace(ASSIGNMENT, actions=("M.Compute/virtualMachines/read", "M.Compute/virtualMachines/write")),
            "adds M.Compute/virtualMachines/write at",
        ),
        (replace(ASSIGNMENT, scope="/subscriptions/s"), "now reaches /subscriptions/s; the base stops at"),
        (replace(ASSIGNMENT, condition=""), "a weaker condition: `A` was dropped"),
        (replace(ASSIGNMENT, role="Owner", actions=()), "adds Owner at"),
    ],
)
def test_azure(new, words):
    base = Audited(subjects=(subject(cloud=Cloud.AZURE, assignments=(ASSIGNMENT,)),))
    (found,) = messages(base, Audited(subjects=(subject(cloud=Cloud.AZURE, assignments=(new,)),)))
    assert words in found


def test_predefined_roles_are_compared_by_what_they_hold():
    reader = RoleAssignment(role="Storage Blob Data Reader", scope="/subscriptions/s")
    by_id = replace(reader, role="/providers/x/roleDefinitions/2a2b9908-6ea1-4ae2-8e65-a410df84e7d1")
    writer = replace(reader, role="Storage Blob Data Contributor")

    def azure(one):
        return Audited(subjects=(subject(cloud=Cloud.AZURE, assignments=(one,)),))

    assert not messages(azure(writer), azure(reader))
    assert not messages(azure(by_id), azure(reader))
    (found,) = messages(azure(reader), azure(writer))
    assert "blobs/delete" in found or "more" in found
    viewer = replace(BINDING, role="roles/compute.viewer", permissions=())
    admin = replace(viewer, role="roles/compute.admin")
    assert not messages(google(admin), google(viewer))
    assert messages(google(viewer), google(admin))
    owner, editor = (replace(viewer, role=f"roles/{one}") for one in ("owner", "editor"))
    assert not messages(google(owner), google(editor))
    assert messages(google(editor), google(owner))


PERMIT = Permit(role="storage.object-viewer", on="bucket", paths=("data/*",))


@pytest.mark.parametrize(
    ("new", "words"),
    [
        (replace(PERMIT, paths=()), "now reaches all of it; the base stops at data/*"),
        (replace(PERMIT, role="storage.uploader"), "adds storage.uploader on bucket, paths data/*"),
        (replace(PERMIT, anonymous=True), "for everybody"),
    ],
)
def test_nebius(new, words):
    base = Audited(subjects=(subject(cloud=Cloud.NEBIUS, permits=(PERMIT,)),))
    (found,) = messages(base, Audited(subjects=(subject(cloud=Cloud.NEBIUS, permits=(new,)),)))
    assert words in found


def test_providers():
    provider = Provider(cloud=Cloud.GCP, origin="pool", issuer="https://i", audiences=("a",), condition="x")
    base = Audited(providers=(provider,))
    assert not widening(base, base)
    assert messages(Audited(), base) == ["tokens of https://i for a are now believed where x"]
    (found,) = messages(base, Audited(providers=(replace(provider, condition=""),)))
    assert "condition `none`; the base has a, condition `x`" in found


ANY_TEAM = Statement(actions=("s3:GetObject",), resources=("arn:aws:s3:::acme/${aws:PrincipalTag/team}/*",))
ADMINISTRATOR = "arn:aws:iam::aws:policy/AdministratorAccess"


def by_arn(name, kind=PolicyKind.IDENTITY):
    return AwsPolicy(kind=kind, name=name, statements=())


def test_a_policy_that_is_only_named_is_a_widening_where_the_base_does_not_name_it():
    base, new = subject(policy(READ)), subject(policy(READ), by_arn(ADMINISTRATOR))
    (found,) = widening(Audited(subjects=(base,)), Audited(subjects=(new,)))
    assert ADMINISTRATOR in found.message
    assert widening(Audited(subjects=(new,)), Audited(subjects=(new,))) == ()
    assert widening(Audited(subjects=(new,)), Audited(subjects=(base,))) == ()


def test_a_boundary_that_became_one_that_nobody_has_read_is_a_widening():
    named, other = (subject(policy(READ), by_arn(f"b{n}", PolicyKind.BOUNDARY)) for n in (1, 2))
    read = subject(policy(READ), policy(READ, kind=PolicyKind.BOUNDARY, name="b1"))
    for before, after in ((named, other), (read, other)):
        (message,) = messages(Audited(subjects=(before,)), Audited(subjects=(after,)))
        assert "b1 of the base became b2" in message
    assert messages(Audited(subjects=(read,)), Audited(subjects=(named,))) == []


@pytest.mark.parametrize("kind", ["aws_iam_role", "aws_iam_user"])
def test_a_second_one_of_the_same_name_is_another(kind):
    first = subject(policy(READ), origin="x.tf aws_iam_role.a", identity=None)
    second = subject(policy(READ), origin=f"x.tf {kind}.b", identity=None)
    assert messages(Audited(subjects=(first,)), Audited(subjects=(first, second)))[0].startswith("new identity node: ")
    moved = subject(policy(READ), origin="y.tf aws_iam_role.b", identity=None)
    assert messages(Audited(subjects=(first,)), Audited(subjects=(moved,))) == []


def test_what_is_given_to_one_made_elsewhere_is_that_ones_wherever_it_stands():
    first, second = (
        subject(policy(READ), origin=f"{stack} aws_iam_role_policy.pass", identity=None) for stack in ("acc-a", "acc-b")
    )
    assert messages(Audited(subjects=(first,)), Audited(subjects=(first, second))) == []


def test_variables_that_were_text_before_are_a_widening():
    old = AwsPolicy(kind=PolicyKind.IDENTITY, name="p", statements=(ANY_TEAM,), version="2008-10-17")
    base, new = Audited(subjects=(subject(old),)), audited(ANY_TEAM)
    assert messages(base, new)
    assert messages(base, base) == messages(new, new) == []


def test_one_pool_lets_in_nobody_for_another():
    def pools(**conditions):
        return Audited(
            providers=tuple(
                Provider(cloud=Cloud.GCP, origin=name, issuer="https://i", audiences=("a",), condition=condition)
                for name, condition in conditions.items()
            )
        )

    base = pools(few="assertion.repository == 'a/b'", admins="assertion.repository == 'a/c'")
    same = pools(few="assertion.repository == 'a/b'", admins="assertion.repository == 'a/b'")
    assert len(widening(base, same)) == 1
    renamed = pools(few="assertion.repository == 'a/b'", owners="assertion.repository == 'a/c'")
    assert widening(base, renamed) == ()


def test_a_deny_that_was_written_as_two_still_stands():
    whole = Statement(effect="Deny", actions=("s3:DeleteBucket", "s3:PutBucketPolicy"), resources=("*",))
    parts = [Statement(effect="Deny", actions=(action,), resources=("*",)) for action in whole.actions]
    every = Statement(actions=("s3:*",), resources=("*",))
    assert messages(audited(every, whole), audited(every, *parts)) == []
    assert messages(audited(every, whole), audited(every, parts[0]))


def test_a_key_that_does_not_end_is_a_widening():
    base, new = Audited(subjects=(subject(),)), Audited(subjects=(subject(keys=("access key k",)),))
    assert messages(base, new) == ["adds the long-lived access key k"]
    assert messages(new, new) == messages(new, base) == []


def test_the_base_is_told_of_the_same_bucket_where_it_has_it():
    other = replace(READ, sid="Checkpoint", resources=("arn:aws:s3:::ckpt/*",))
    (found,) = widening(audited(other, READ), audited(other, replace(READ, resources=("arn:aws:s3:::acme/*",))))
    assert "the base stops at arn:aws:s3:::acme/a/*" in found.message
    assert "ckpt" not in found.message + found.fix
    assert '"Resource": "arn:aws:s3:::acme/a/*"' in found.fix
    (new,) = widening(audited(other), audited(other, READ))
    assert "the base stops at arn:aws:s3:::ckpt/*" in new.message


def test_the_base_is_told_of_the_same_kind_in_another_region():
    def image(region):
        return Statement(sid="Image", actions=("ec2:RunInstances",), resources=(f"arn:aws:ec2:{region}::image/*",))

    (found,) = widening(audited(RUN, image("us-east-1")), audited(RUN, image("*")))
    assert "the base stops at arn:aws:ec2:us-east-1::image/*" in found.message
    assert "instance" not in found.message
