"""A change that reaches many statements is one finding; what differs in anything is another."""

from __future__ import annotations

from dataclasses import replace

from planner.iam.audit.widening import widening
from planner.model.offer import Cloud
from planner.model.policy import Audited, AwsPolicy, PolicyKind, Statement, Subject, Test
from tests.unit.iam.audit.test_own_policies import aws_foundation, scope

ARN = "arn:aws:ec2:{region}:111122223333:{kind}/*"


def region(*names):
    return Test(operator="StringEquals", key="aws:RequestedRegion", values=names)


def statement(sid, action, test, kind="instance", place="us-east-1"):
    return Statement(sid=sid, actions=(action,), resources=(ARN.format(region=place, kind=kind),), tests=(test,))


def subject(*statements, bounds=()):
    policy = AwsPolicy(kind=PolicyKind.IDENTITY, name="own", statements=statements)
    caps = (AwsPolicy(kind=PolicyKind.BOUNDARY, name=name, statements=some) for name, some in bounds)
    one = Subject(cloud=Cloud.AWS, name="x", origin="x", policies=(policy, *caps))
    return Audited(subjects=(one,))


def pair(*regions, place="us-east-1"):
    test = region(*regions)
    return (
        statement("End", "ec2:TerminateInstances", test, place=place),
        statement("Stop", "ec2:StopInstances", test, place=place),
    )


def test_one_condition_that_grows_everywhere_is_one_finding():
    base, new = subject(*pair("us-east-1")), subject(*pair("us-east-1", "us-west-2"))
    (found,) = widening(base, new)
    assert found.message.startswith("one change makes 2 actions in 2 statements wider")
    assert "us-east-1 became" not in found.message
    assert "`StringEquals aws:RequestedRegion = us-east-1, us-west-2`" in found.message
    assert found.evidence.splitlines() == [
        f"own/End: ec2:TerminateInstances on {ARN.format(region='us-east-1', kind='instance')}",
        f"own/Stop: ec2:StopInstances on {ARN.format(region='us-east-1', kind='instance')}",
    ]
    assert found.action == "ec2:StopInstances, ec2:TerminateInstances"
    assert found.grant == "own"


def test_the_fingerprint_hangs_on_what_is_reached_and_not_on_order():
    base = subject(*pair("us-east-1"))
    new = pair("us-east-1", "us-west-2")
    (found,), (turned,) = widening(base, subject(*new)), widening(base, subject(*reversed(new)))
    assert found.fingerprint == turned.fingerprint
    third = statement("Start", "ec2:StartInstances", region("us-east-1"))
    (more,) = widening(
        subject(*pair("us-east-1"), third),
        subject(*new, replace(third, tests=new[0].tests)),
    )
    assert more.fingerprint != found.fingerprint  # one action more is to be looked at again


def test_another_value_is_another_finding():
    base = subject(*pair("us-east-1"))
    one, other = pair("us-east-1", "us-west-2")[0], pair("us-east-1", "eu-west-1")[1]
    found = widening(base, subject(one, other))
    assert [one.grant for one in found] == ["own/End", "own/Stop"]


def test_resources_that_differ_in_their_region_alone_are_together_and_a_new_one_is_apart():
    base = subject(*pair("us-east-1"))
    new = (*pair("us-east-1", place="*"), statement("Look", "ec2:GetConsoleOutput", region("us-east-1")))
    found = {one.grant: one.message for one in widening(base, subject(*new))}
    assert set(found) == {"own", "own/Look"}
    assert found["own"].endswith("the region us-east-1 became *")


def test_one_region_more_in_skyplan_yaml_is_a_few_lines():
    base, new = (
        Audited(subjects=aws_foundation(scope(Cloud.AWS, regions=regions)))
        for regions in (("us-east-1",), ("us-east-1", "us-west-2"))
    )
    found = widening(base, new)
    assert {one.identity for one in found} == {"planner", "deployer", "orchestrator"}
    assert len(found) <= 10
    lines = "\n".join(one.evidence + one.message for one in found)
    for action in ("ec2:RunInstances", "ec2:CreateVpc", "ec2:CreateTags", "ec2:TerminateInstances"):
        assert action in lines


def test_a_boundary_that_is_only_named_hides_nothing():
    everything = Statement(actions=("*",), resources=("*",))
    new = pair("us-east-1")
    for bounds in ([("b", ())], [("b", ()), ("c", (everything,))]):
        base = subject(bounds=bounds)
        assert len(widening(base, subject(*new, bounds=bounds))) == len(new)


def test_of_two_boundaries_of_which_one_is_not_read_the_other_is_compared():
    narrow = Statement(actions=("s3:GetObject",), resources=("*",))
    wide = Statement(actions=("s3:*",), resources=("*",))
    base = subject(bounds=[("c", (narrow,)), ("b", ())])
    (found,) = widening(base, subject(bounds=[("b", ()), ("c", (wide,))]))
    assert "lets more through" in found.message
