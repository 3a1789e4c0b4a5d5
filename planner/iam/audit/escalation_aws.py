"""Rules 201-207, 211 and 212: by which role, machine or service an identity of AWS becomes another.

Each is judged by witness: the request that starts the escalation is one that the whole set of policies allows, on a stranger's role, machine or policy.
Finds the first step, not what lies behind it.  Who writes policies or credentials is `writing_aws`'s, other clouds are `escalation_other`'s.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from planner.iam.audit.by_action import having
from planner.iam.audit.find import of_statement, subjects
from planner.iam.audit.grouped import dropped, given, together
from planner.iam.audit.lines import guarded, instead, only, written
from planner.iam.audit.patterns import includes
from planner.iam.audit.patterns import tokens as tokens_of
from planner.iam.audit.powers import CODE_RUNNERS, CONTROL, MACHINES, SERVICES, SPOT
from planner.iam.audit.registry import Rule
from planner.iam.audit.tags import PROJECT, project_of, tagged
from planner.iam.audit.witness import ANY, Opening, Question, opening, openings
from planner.model.finding import Finding, Level
from planner.model.offer import Cloud
from planner.model.policy import Audited, Statement, Subject, Test

PASS = "iam:PassRole"  # noqa: S105 -- an action
EC2 = "ec2.amazonaws.com"
_SERVICE_KEY = "iam:PassedToService"


def _any_role(service: str) -> Question:
    """Whether a role that nobody named may be handed to the service."""
    return Question(action=PASS, kind="role", guard=tagged, extra={_SERVICE_KEY: (service,)})


def any_role_to_machine(audited: Audited) -> Iterator[Finding]:
    """201."""
    yield from _handed(audited, EC2, MACHINES, "any role may be handed to a machine that one can start")


def any_role_to_spot(audited: Audited) -> Iterator[Finding]:
    """204."""
    yield from _handed(audited, EC2, SPOT, "any role may be handed to a spot request")


def any_role_to_service(audited: Audited) -> Iterator[Finding]:
    """211."""
    for service in SERVICES:
        asked = [(action, ANY) for action in service.actions]
        yield from _handed(
            audited, service.principal, asked, f"any role may be handed to {service.principal}, which runs code"
        )


def _handed(audited: Audited, service: str, makers: Sequence[tuple[str, str]], message: str) -> Iterator[Finding]:
    for subject in having(audited, *(action for action, _ in makers)):
        handed = opening(subject, _any_role(service))
        if handed is None:
            continue
        able = [opening(subject, Question(action=action, kind=kind, named=True)) for action, kind in makers]
        made = next((one for one in able if one), None)
        if made is not None:
            yield of_statement(
                subject,
                handed.held,
                f"{message} ({made.request.action})",
                # of 211 one statement may have many findings: each way is one, and a new one is new
                action=PASS if service == EC2 else f"{PASS}, {made.request.action}",
                resource=", ".join(handed.held[1].resources) or "*",
                fix=_pass_fix(handed.held[1], service),
                also=(made.held,),
            )


def _pass_fix(statement: Statement, service: str) -> str:
    test = Test(operator="StringEquals", key=_SERVICE_KEY, values=(service,))
    one = only(statement, [PASS], resources=["arn:aws:iam::ACCOUNT:role/NAME"], sid="PassOneRole")
    return instead(statement, [PASS], guarded(one, test))


def role_to_any_service(audited: Audited) -> Iterator[Finding]:
    """202."""
    key = _SERVICE_KEY.lower()
    asked = Question(
        action=PASS,
        kind="role",
        guard=lambda one: one == key,
        present=(_SERVICE_KEY,),
        named=True,
    )
    for subject in having(audited, PASS):
        for found in openings(subject, asked):
            statement = found.held[1]
            test = Test(operator="StringEquals", key=_SERVICE_KEY, values=(EC2,))
            yield of_statement(
                subject,
                found.held,
                "a role may be handed to any service",
                action=PASS,
                resource=", ".join(statement.resources) or "*",
                # on any role it would still be 201's
                fix=_pass_fix(statement, EC2)
                if any(one.held[1] is statement for one in openings(subject, _any_role(EC2)))
                else instead(statement, [PASS], guarded(only(statement, [PASS]), test)),
            )


def stronger_role(audited: Audited) -> Iterator[Finding]:
    """203."""
    everyone = list(subjects(audited, Cloud.AWS))
    by_name: dict[str, list[Subject]] = {}
    for subject in everyone:
        for word in {subject.name, *subject.origin.split()}:
            by_name.setdefault(word, []).append(subject)
    for subject in everyone:
        for found in openings(subject, Question(action=PASS, kind="role", named=True)):
            handed = [one for pattern in found.held[1].resources for one in _roles(pattern, by_name)]
            for other in {id(one): one for one in handed if one is not subject}.values():
                more = [action for action in CONTROL if _may(other, action) and not _may(subject, action)]
                if more:
                    yield _stronger(subject, found, other, more)


def _stronger(subject: Subject, found: Opening, other: Subject, more: list[str]) -> Finding:
    return of_statement(
        subject,
        found.held,
        f"{other.name} may be handed on, and may do what {subject.name} may not: {', '.join(more)}",
        action=PASS,
        resource=other.name,
        fix=f"hand on a role without {', '.join(more)}, or add:\n{written(_no_pass(found.held[1]))}",
    )


def _no_pass(statement: Statement) -> Statement:
    return Statement(effect="Deny", sid="DenyStrongerRole", actions=(PASS,), resources=statement.resources)


def _roles(pattern: str, by_name: dict[str, list[Subject]]) -> list[Subject]:
    """Whose ARN it is, or Terraform's reference to it.  A lone `*` names nobody: that is 201's matter."""
    if pattern.startswith("${"):
        return by_name.get(pattern[2:].rstrip("}").rpartition(".")[0], [])
    name = pattern.rpartition("/")[2]
    if name == "*" or "role/" not in pattern:
        return []
    if "*" not in name and "?" not in name:
        return by_name.get(name, [])
    form = tokens_of(name)
    return [one for word, named in by_name.items() if includes(form, tokens_of(word, wild=False)) for one in named]


def _may(subject: Subject, action: str) -> bool:
    return opening(subject, Question(action=action, kind=ANY, named=True)) is not None


def user_data_changed(audited: Audited) -> Iterator[Finding]:
    """205."""
    change = Question(
        action="ec2:ModifyInstanceAttribute",
        kind="instance",
        guard=lambda key: tagged(key) or key == "ec2:attribute",
        present=("ec2:Attribute",),
    )
    rest = [Question(action=f"ec2:{step}Instances", kind="instance", guard=tagged) for step in ("Stop", "Start")]
    yield from together(
        audited, [change, *rest], "a machine's user data may be changed and run", "ec2:ModifyInstanceAttribute"
    )


def template_rewritten(audited: Audited) -> Iterator[Finding]:
    """206."""
    actions = ("ec2:CreateLaunchTemplateVersion", "ec2:ModifyLaunchTemplate")
    asked = [Question(action=action, kind="launch-template", guard=tagged) for action in actions]
    yield from together(audited, asked, "a launch template may be rewritten and made the default", actions[1])


def role_swapped(audited: Audited) -> Iterator[Finding]:
    """207."""
    actions = ("ec2:AssociateIamInstanceProfile", "ec2:ReplaceIamInstanceProfileAssociation")
    asked = [
        Question(action=action, kind="instance", guard=lambda key: tagged(key) or key == "ec2:newinstanceprofile")
        for action in actions
    ]
    yield from given(audited, asked, "a running machine's role may be swapped", dropped)


def code_run(audited: Audited) -> Iterator[Finding]:
    """212."""
    for subject in having(audited, *(row[0][0] for row in CODE_RUNNERS)):
        for row in CODE_RUNNERS:
            found = [opening(subject, Question(action=action, kind=kind, guard=tagged)) for action, kind in row]
            held = [one for one in found if one is not None]
            if len(held) == len(row):
                test = Test(operator="StringEquals", key=f"aws:ResourceTag/{PROJECT}", values=(project_of(subject),))
                actions = [one.request.action for one in held]
                statement = held[0].held[1]
                yield of_statement(
                    subject,
                    held[0].held,
                    f"code may be run where a role is: {', '.join(actions)}",
                    action=", ".join(actions),
                    resource=", ".join(statement.resources) or "*",
                    fix=instead(statement, actions, guarded(only(statement, actions), test)),
                    also=tuple(one.held for one in held),
                )


_NAMED = "A role named by its exact ARN is no finding: 202 looks at where it may go, 203 at what it may do."

RULES: tuple[Rule, ...] = (
    Rule(
        id="SKY-IAM-201",
        level=Level.CRITICAL,
        why="Who may start a machine and hand it any role has every role that EC2 may take. Start a machine with the administrator's role, read its credentials"
        f" from the metadata service: two calls. {_NAMED} A tag that the role must carry counts as naming it.",
        fix="Name the one role in `iam:PassRole`, and require `iam:PassedToService`.",
        maps=(
            "cloudsplaining CreateEC2WithExistingIP",
            "CKV_AWS_110",
            "CKV_AWS_286",
            "parliament PRIVILEGE_ESCALATION",
            "TRV AWS-0342",
            "PRW iam_policy_allows_privilege_escalation",
            "pathfinding ec2-001",
        ),
        check=any_role_to_machine,
    ),
    Rule(
        id="SKY-IAM-202",
        level=Level.HIGH,
        why="A right to hand on a role says which role, not to whom. Without `iam:PassedToService` the node's role can also be given to a function or a notebook that"
        " the attacker writes, and outlives the machine there.",
        fix="Require `iam:PassedToService` with the one service.",
        maps=("TRV AWS-0342",),
        check=role_to_any_service,
    ),
    Rule(
        id="SKY-IAM-203",
        level=Level.CRITICAL,
        why="Whoever may hand on a role may use it: a machine that they start has its credentials. If that role may launch, tag, write policies or assume others"
        " where the one who hands it on may not, the launch is an escalation. Only rights over the account are compared: that a node reads data which its launcher may not is"
        " what skyplan is for.",
        fix="Hand on a role without these rights.",
        check=stronger_role,
        clouds="AWS only, and only where both identities are audited together, as in a plan or a live account.",
    ),
    Rule(
        id="SKY-IAM-204",
        level=Level.CRITICAL,
        why="A spot request starts a machine as RunInstances does, by another action that many policies forget. Request one with the administrator's profile and"
        f" read its credentials there. {_NAMED}",
        fix="Name the one role in `iam:PassRole`; launch spot by RunInstances and drop RequestSpotInstances.",
        maps=("cloudsplaining PassExistingRoleToNewEC2SpotInstance", "pathfinding ec2-003"),
        check=any_role_to_spot,
    ),
    Rule(
        id="SKY-IAM-205",
        level=Level.CRITICAL,
        why="User data runs as root at boot, under the machine's role. Stop a stronger machine, write user data, start it: it hands out its credentials. Judged together;"
        " a tag that any of the three requires, or `ec2:Attribute` without user data, guards.",
        fix="Drop ModifyInstanceAttribute, or bind it with `ec2:Attribute`.",
        maps=("cloudsplaining ModifyEC2InstanceUserDataThenRestart", "pathfinding ec2-002"),
        check=user_data_changed,
    ),
    Rule(
        id="SKY-IAM-206",
        level=Level.CRITICAL,
        why="A launch template says which role and which user data the next machine gets. Write a version, make it the default, and wait until a scaling group"
        " starts one. A tag that either action requires guards.",
        fix="Drop one of the two, or require the project's tag.",
        maps=("cloudsplaining ModifyExistingEC2LaunchTemplate", "pathfinding ec2-004"),
        check=template_rewritten,
    ),
    Rule(
        id="SKY-IAM-207",
        level=Level.HIGH,
        why="A running machine takes another role without a restart. Whoever is on it swaps a weak role for a strong one and reads the new credentials. It also takes"
        " PassRole, which is often one policy away, so the finding stands without; a tag or `ec2:NewInstanceProfile` guards.",
        fix="Drop the association actions: skyplan gives a machine its role when it starts.",
        check=role_swapped,
    ),
    Rule(
        id="SKY-IAM-211",
        level=Level.HIGH,
        why="Many services run code under a role that they are handed. Make a function, a job or a notebook with the administrator's role, and have it send the"
        f" credentials out. Judged for each service that takes the role, so `iam:PassedToService` bounds it. {_NAMED}",
        fix="Name the one role and the one service in `iam:PassRole`, or drop the service's create action.",
        maps=(
            "cloudsplaining PassExistingRoleTo…",
            "pathfinding lambda-001",
            "pathfinding glue-001",
            "pathfinding ecs-001",
        ),
        check=any_role_to_service,
    ),
    Rule(
        id="SKY-IAM-212",
        level=Level.HIGH,
        why="Who runs code where a role already is has that role. Open a session on the strongest machine, or change the function that runs as administrator, and read"
        " the credentials. A tag of any project guards, and so do resources named one by one.",
        fix="Drop it, or require a tag of the resource.",
        maps=(
            "cloudsplaining EC2InstanceConnectSendSSHPublicKey",
            "cloudsplaining ECSExecuteCommandOnRunningTask",
            "pathfinding ec2instanceconnect-003",
            "pathfinding ecs-006",
        ),
        check=code_run,
        clouds="AWS only: machines, and what else runs under a role (functions, tasks, notebooks, stacks). Azure's runCommand is 214's, Google's metadata 213's.",
    ),
)
