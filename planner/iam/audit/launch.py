"""Rules 1xx: what bounds the launching, tagging and ending of machines.

AWS is judged by witness: a launch, a tag or an end that the project's own bounds should refuse.  Of skyplan's own identities only the project's tag
(`skyplan:project`) is a guard; of others any tag is, since their projects are told apart by tags of theirs.  Judges no data and no escalation.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from planner.iam.actions import access_level, expand
from planner.iam.audit.by_action import having
from planner.iam.audit.find import names_action, of_right, of_statement, statements, subjects
from planner.iam.audit.grouped import each
from planner.iam.audit.lines import guarded, instead, only, written
from planner.iam.audit.places import azure_level, gcp_guarded, gcp_permits, gcp_wide, permits
from planner.iam.audit.registry import Rule
from planner.iam.audit.tags import PROJECT, project_of, tags
from planner.iam.audit.witness import ACCOUNT, REGION, Opening, Question, opening
from planner.model.finding import Finding, Level
from planner.model.offer import Cloud
from planner.model.policy import Audited, RoleAssignment, RoleBinding, Statement, Subject, Test

RUN = "ec2:RunInstances"
LAUNCHES = (RUN, "ec2:CreateFleet")
ENDS = ("ec2:TerminateInstances", "ec2:StopInstances")
SPOT = "spot-instances-request"
CREATE_TAGS, DELETE_TAGS = "ec2:CreateTags", "ec2:DeleteTags"
#: what is told apart by tags: who may tag it may make it one's own
TAGGED = ("instance", "subnet", "security-group", "launch-template")
_MOST_NAMED = 40
_PINS = frozenset({"ec2:instanceprofile", "ec2:launchtemplate"})
_REGIONS = frozenset({"aws:requestedregion", "ec2:region"})
_GCP_ENDS = ("compute.instances.delete", "compute.instances.stop")
_AZURE_ENDS = tuple(
    f"Microsoft.Compute/virtualMachines/{step}" for step in ("delete", "deallocate/action", "powerOff/action")
)
_READS = ("describe", "get", "list")


def untagged(audited: Audited) -> Iterator[Finding]:
    """101."""
    for subject in having(audited, *LAUNCHES):
        guard = tags(subject, "aws:requesttag/")
        for found in each(subject, [Question(action=action, kind="instance", guard=guard) for action in LAUNCHES]):
            test = Test(operator="StringEquals", key=f"aws:RequestTag/{PROJECT}", values=(project_of(subject),))
            yield _about(subject, found, "a machine may be launched without the project's tag", test, "instance")


def others_ended(audited: Audited) -> Iterator[Finding]:
    """102."""
    for subject in having(audited, *ENDS):
        guard = tags(subject, "aws:resourcetag/", "ec2:resourcetag/", others=("ec2:instanceprofile",))
        for found in each(subject, [Question(action=action, kind="instance", guard=guard) for action in ENDS]):
            test = Test(operator="StringEquals", key=f"aws:ResourceTag/{PROJECT}", values=(project_of(subject),))
            yield _about(subject, found, "a machine that is not the project's may be ended", test, "instance")
    for subject in subjects(audited, Cloud.GCP):
        for binding in subject.bindings:
            able = [one for one in _GCP_ENDS if gcp_permits(binding, one)]
            if able and gcp_wide(binding.on) and not gcp_guarded(binding):
                yield _gcp_ended(subject, binding, able)
    for subject in subjects(audited, Cloud.AZURE):
        for assignment in subject.assignments:
            able = [one for one in _AZURE_ENDS if permits(assignment, one)]
            if able and azure_level(assignment.scope) in {"tenant", "management group", "subscription"}:
                yield _azure_ended(subject, assignment, able)


def _gcp_ended(subject: Subject, binding: RoleBinding, able: list[str]) -> Finding:
    prefix = f"skyplan-{project_of(subject)}-"
    condition = (
        'resource.type == "compute.googleapis.com/Instance" && '
        f'resource.name.extract("/instances/{{name}}").startsWith("{prefix}")'
    )
    return of_right(
        subject,
        binding,
        f"any instance on {binding.on} may be ended",
        action=", ".join(able),
        fix=f"give the role under this condition:\ncondition = {condition}",
    )


def _azure_ended(subject: Subject, assignment: RoleAssignment, able: list[str]) -> Finding:
    scope = assignment.scope.rstrip("/") if azure_level(assignment.scope) == "subscription" else "/subscriptions/ID"
    return of_right(
        subject,
        assignment,
        f"any machine in {assignment.scope or '/'} may be ended",
        action=", ".join(able),
        fix=f"assign the role on the resource group:\nscope = {scope}/resourceGroups/NAME",
    )


def retagged(audited: Audited) -> Iterator[Finding]:
    """103.  Creating and deleting tags apart: what guards the one does not exist for the other."""
    for subject in having(audited, CREATE_TAGS, DELETE_TAGS):
        own = Test(operator="StringEquals", key=f"aws:ResourceTag/{PROJECT}", values=(project_of(subject),))
        made = Test(operator="StringEquals", key="ec2:CreateAction", values=("RunInstances",))
        guard = tags(subject, "aws:resourcetag/", "ec2:resourcetag/", others=("ec2:createaction",))
        for action, test in ((CREATE_TAGS, made), (DELETE_TAGS, own)):
            for found in each(subject, [Question(action=action, kind=kind, guard=guard) for kind in TAGGED]):
                yield _about(subject, found, "tags of what exists may be changed: anything can be made one's own", test)


def any_type(audited: Audited) -> Iterator[Finding]:
    """104."""
    for subject in having(audited, RUN):
        asked = Question(
            action=RUN,
            kind="instance",
            guard=lambda key: key == "ec2:instancetype",
            present=("ec2:InstanceType",),
        )
        for found in each(subject, [asked]):
            test = Test(operator="StringLike", key="ec2:InstanceType", values=("TYPE.SIZE",))
            yield _about(subject, found, "any machine type may be launched", test, "instance")


def any_identity(audited: Audited) -> Iterator[Finding]:
    """105."""
    for subject in having(audited, RUN):
        asked = Question(action=RUN, kind="instance", guard=_PINS.__contains__)
        for found in each(subject, [asked]):
            test = Test(
                operator="ArnEquals",
                key="ec2:InstanceProfile",
                values=(f"arn:aws:iam::{_account(found[0])}:instance-profile/NAME",),
            )
            yield _about(subject, found, "a machine may be launched with any profile, or with none", test, "instance")


def any_region(audited: Audited) -> Iterator[Finding]:
    """106."""
    for subject in having(audited, RUN):
        asked = Question(
            action=RUN,
            kind="instance",
            guard=_REGIONS.__contains__,
            present=("aws:RequestedRegion", "ec2:Region"),
        )
        for found in each(subject, [asked]):
            # a resource that names its region bounds it
            if f":{REGION}:" in found[0].request.resource:
                test = Test(operator="StringEquals", key="aws:RequestedRegion", values=("REGION",))
                yield _about(subject, found, "a machine may be launched in any region", test, "instance")


def any_image(audited: Audited) -> Iterator[Finding]:
    """107."""
    for subject in having(audited, RUN):
        others = ("ec2:owner", "ec2:imageid", "ec2:launchtemplate")
        asked = Question(
            action=RUN,
            kind="image",
            guard=tags(subject, "aws:resourcetag/", "ec2:resourcetag/", others=others),
            present=("ec2:Owner",),
        )
        for found in each(subject, [asked]):
            test = Test(operator="StringEquals", key="ec2:Owner", values=("amazon", "${aws:PrincipalAccount}"))
            yield _about(subject, found, "a machine may be launched from anybody's image", test, "image")


def nebius_reach(audited: Audited) -> Iterator[Finding]:
    """108."""
    for subject in subjects(audited, Cloud.NEBIUS):
        for permit in subject.permits:
            if permit.role not in {"editor", "admin"}:
                continue
            tenant = permit.on.startswith("tenant")
            if tenant or _holds_data(audited, permit.on):
                where = "the whole tenant" if tenant else f"{permit.on}, where buckets are too"
                yield of_right(
                    subject,
                    permit,
                    f"`{permit.role}` on {where} also reaches data",
                    action=permit.role,
                    fix=f"permit = {{ role = {permit.role}, on = a project that holds no bucket }}",
                )


def _holds_data(audited: Audited, project: str) -> bool:
    """A right on data was given on that project, or on what lies in it."""
    data = {
        permit.on
        for subject in subjects(audited, Cloud.NEBIUS)
        for permit in subject.permits
        if permit.role.startswith("storage.")
    }
    return any(on == project or on.startswith(f"{project}/") for on in (*data, *(name for name, _ in audited.stores)))


def wildcard_reads(audited: Audited) -> Iterator[Finding]:
    """109."""
    for subject in subjects(audited, Cloud.AWS):
        needs = audited.needs.get((subject.identity, Cloud.AWS), {}) if subject.identity else {}
        for policy, statement in statements(subject):
            wild = [pattern for pattern in statement.actions if statement.effect == "Allow" and _reads(pattern)]
            if wild:
                named = [name for pattern in wild for name in _named(pattern, needs)]
                kept = [action for action in statement.actions if action not in wild]
                repaired = only(statement, [*kept, *dict.fromkeys(named)])
                yield of_statement(
                    subject,
                    (policy, statement),
                    f"{', '.join(wild)}: a wildcard where the list of actions is known",
                    action=", ".join(wild),
                    fix=f"write instead:\n{written(repaired)}",
                )
    for subject in subjects(audited, Cloud.AZURE):
        for assignment in subject.assignments:
            wild = [pattern for pattern in assignment.actions if pattern.endswith("/read") and "*" in pattern]
            if wild:
                yield of_right(
                    subject,
                    assignment,
                    f"{', '.join(wild)}: a wildcard where the list of actions is known",
                    action=", ".join(wild),
                    fix="actions = [\n" + "".join(f'  "{_azure_read(pattern)}",\n' for pattern in wild) + "]",
                )


def _azure_read(pattern: str) -> str:
    return pattern.replace("*", "virtualMachines" if pattern.startswith("Microsoft.Compute/") else "TYPE")


@lru_cache(maxsize=4096)
def _reads(pattern: str) -> bool:
    """A wildcard over actions that only read, and not over all of a service."""
    name = pattern.partition(":")[2].lower()
    if not name.startswith(_READS) or ("*" not in name and "?" not in name):
        return False
    levels = {access_level(action) for action in expand(pattern)}
    return bool(levels) and levels <= {"Read", "List"}


def _named(pattern: str, needs: dict[str, str]) -> list[str]:
    """What stands for the wildcard: what is needed, or all of it, or some of it and a word that there is more."""
    needed = sorted(action for action in needs if names_action(pattern, action))
    every = list(expand(pattern))
    return needed or (every if len(every) <= _MOST_NAMED else every[:_MOST_NAMED])


def spot_missing(audited: Audited) -> Iterator[Finding]:
    """110."""
    if not any(machine.spot and machine.cloud is Cloud.AWS for machine in audited.machines):
        return
    for subject in subjects(audited, Cloud.AWS):
        launch = opening(subject, Question(action=RUN, kind="instance", named=True))
        if launch is None:
            continue
        for action in (RUN, CREATE_TAGS):
            given = opening(subject, Question(action=action, kind="instance", named=True))
            if given and not opening(subject, Question(action=action, kind=SPOT, named=True)):
                arn = given.request.resource.rpartition(":")[0] + f":{SPOT}/*"
                yield _spot_finding(subject, given, action, arn.replace(REGION, "*").replace(ACCOUNT, "*"))


def _spot_finding(subject: Subject, given: Opening, action: str, arn: str) -> Finding:
    tests = given.held[1].tests if action == CREATE_TAGS else ()
    added = Statement(
        sid="LaunchSpot" if action == RUN else "TagSpot", actions=(action,), resources=(arn,), tests=tests
    )
    return of_statement(
        subject,
        given.held,
        f"spot is planned, but {action} is not allowed on {SPOT}/*: each spot launch will fail",
        action=action,
        resource=arn,
        fix=f"add:\n{written(added)}",
    )


def _about(subject: Subject, found: list[Opening], message: str, test: Test, kind: str = "") -> Finding:
    """A finding about openings by one statement; the fix adds the test to it, for its actions and that kind of resource."""
    statement = found[0].held[1]
    actions = list(dict.fromkeys(one.request.action for one in found))
    wild = bool(statement.not_resources) or "*" in statement.resources
    of_kind = () if not kind or not wild else (f"arn:aws:ec2:*:*:{kind}/*",)
    repaired = guarded(only(statement, actions, resources=of_kind), test)
    return of_statement(
        subject,
        found[0].held,
        message,
        action=", ".join(actions),
        resource=", ".join(statement.resources) or "*",
        fix=instead(statement, actions, repaired),
    )


def _account(found: Opening) -> str:
    """Account in the ARN of the opening's resource, or a word for it."""
    account = found.request.resource.split(":")[4]
    return "ACCOUNT" if account == ACCOUNT else account


_OWN = "Of skyplan's own identities only `skyplan:project` counts as a guard; of others any tag does."
_ONLY_AWS = "AWS only:"

RULES: tuple[Rule, ...] = (
    Rule(
        id="SKY-IAM-101",
        level=Level.HIGH,
        why="What is launched without the project's tag belongs to nobody: it is not found, not ended and not billed to anyone. Whoever holds this identity"
        f" can start miners that no later run of skyplan will stop. {_OWN}",
        fix="Require `aws:RequestTag/skyplan:project` on `instance/*`, where the key exists; not on subnets or images, where it does not.",
        maps=("CKV_AWS_111", "CKV_AWS_290"),
        check=untagged,
        clouds=f"{_ONLY_AWS} no other cloud can make a label a condition of creating. On Google names stand in for tags (102).",
    ),
    Rule(
        id="SKY-IAM-102",
        level=Level.CRITICAL,
        why="An identity that runs all day can end machines of every other team in the account. One leaked token stops production: list the instances, end"
        f" them. {_OWN} A condition on the machine's profile counts too, and so do machines named one by one.",
        fix="Bind ending to the project's tag (AWS), to names that begin with the project's (GCP) or to a resource group (Azure).",
        maps=("CKV_AWS_111",),
        check=others_ended,
        clouds="AWS: TerminateInstances and StopInstances without a condition on the resource's tag. Google: delete or stop on a project, folder or organisation"
        " without a condition on name or tag. Azure: delete, deallocate or powerOff at a subscription or above. Nebius has no finer role: see 108.",
    ),
    Rule(
        id="SKY-IAM-103",
        level=Level.HIGH,
        why="Whoever may tag what exists makes it pass every condition on tags. First tag somebody else's machine as the project's, then end it by the right to"
        f" end one's own. {_OWN} Asked of machines, subnets, security groups and launch templates.",
        fix="Require `ec2:CreateAction`, so that tags are put on only while something is made, or the project's tag on what is tagged.",
        check=retagged,
        clouds=f"{_ONLY_AWS} on the other clouds no right of ours hangs on a label.",
    ),
    Rule(
        id="SKY-IAM-104",
        level=Level.MEDIUM,
        why="The price of a machine spans four orders of magnitude. With a launch right that names no types, one stolen token or one typing error starts the"
        " dearest there is. Judged by whether an unknown type may be launched.",
        fix="List the types in `ec2:InstanceType`; patterns such as `g6e.*` are fine.",
        check=any_type,
        clouds=f"{_ONLY_AWS} on Google and Azure types are bounded by organisation policies, not by roles.",
    ),
    Rule(
        id="SKY-IAM-105",
        level=Level.HIGH,
        why="A launch decides which identity the machine gets. With any profile, the launcher starts a machine with a stronger one and reads its credentials"
        " there; with none, the job fails or brings keys of its own. A condition on the profile or on the launch template pins it.",
        fix="Require `ec2:InstanceProfile`, or `ec2:LaunchTemplate` with a template that the deployer wrote.",
        check=any_identity,
        clouds=f"{_ONLY_AWS} on Google and Azure the right to hand over an identity is one of its own: 213 and 214.",
    ),
    Rule(
        id="SKY-IAM-106",
        level=Level.MEDIUM,
        why="Regions that nobody uses are regions that nobody watches. Stolen launch rights are used there first, and data may not leave its region by law. A"
        " region in the resource's ARN bounds it as well as a condition.",
        fix="Require `aws:RequestedRegion`, or name the region in the ARN.",
        check=any_region,
        clouds=f"{_ONLY_AWS} on Google and Azure places are bounded by organisation policies (`gcp.resourceLocations`, Allowed locations).",
    ),
    Rule(
        id="SKY-IAM-107",
        level=Level.MEDIUM,
        why="Anybody can publish an image under a name that looks right. A launch by name then boots the attacker's system with the job's identity. A condition on"
        " the owner, on the image, on its tags or on the launch template bounds it.",
        fix="Require `ec2:Owner` on `image/*`: `amazon` and the own account.",
        maps=("TRV AWS-0344", "CKV_AWS_386"),
        check=any_image,
        clouds=f"{_ONLY_AWS} on Google use of an image is a right on its own project, on Azure of its gallery.",
    ),
    Rule(
        id="SKY-IAM-108",
        level=Level.MEDIUM,
        why="Nebius documents no role for machines alone: `editor` manages most of what there is and reads data in it. Whoever holds the launcher reads the buckets"
        " of the same project. Only projects keep the two apart, so the tenant is always too wide and a project is once rights on data lie in it too.",
        fix="Keep buckets in a project of their own, and give `editor` on the project of the machines.",
        check=nebius_reach,
        clouds="Nebius only: `editor` or `admin` on the tenant, or on a project in which a `storage.*` role is given or a bucket is audited.",
    ),
    Rule(
        id="SKY-IAM-109",
        level=Level.LOW,
        why="A wildcard grows with every action that the cloud adds. What `Describe*` or `Get*` reads next year nobody has reviewed, and an attacker reads it"
        " first. All-embracing wildcards (`ec2:*`) are other rules' matter.",
        fix="Name the actions; the finding lists those that planned operations need, where a plan says so.",
        check=wildcard_reads,
        clouds="AWS: a wildcard whose actions all read. Azure: `…/*/read`. Google's custom roles have no wildcards.",
    ),
    Rule(
        id="SKY-IAM-110",
        level=Level.HIGH,
        why="A spot launch makes a spot request and tags it: two resources more than an on-demand one. Without them each launch is refused, and whoever is called at"
        " night widens the policy to `*` (karpenter-provider-aws#5270, cdk-eks-karpenter#150).",
        fix="Add `spot-instances-request/*` to RunInstances, and to CreateTags where launches tag.",
        check=spot_missing,
        clouds="AWS only, and only where a spot machine is planned: on the other clouds spot is a property of the machine.",
    ),
)
