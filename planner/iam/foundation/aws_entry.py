"""How CI's protected branch comes into an AWS account: one role that may become three of the control identities and do nothing else.

A CI token becomes one role, and a session cannot change its own; an apply needs the deployer's stacks and the orchestrator's in one process, and the provider
takes on the role that each stack names.  So the token opens this role, and the roles trust it instead of the token.  The broker is not behind it: no step of
skyplan becomes the broker from CI.  AWS holds sessions that one role begins as another to one hour; the provider begins new ones while the first lives.

Decides nothing about whose tokens these are.  Never run against a live account.
"""

from __future__ import annotations

from typing import Final

from planner.iam.foundation import aws_names
from planner.iam.foundation.aws_ground import statement
from planner.model.control import ControlScope
from planner.model.grants import Identity
from planner.model.stack import CiEntry, PolicyDocument

OPENS: Final = (Identity.PLANNER, Identity.DEPLOYER, Identity.ORCHESTRATOR)


def entry(scope: ControlScope, subjects: tuple[str, ...]) -> CiEntry:
    """Raises ValueError for a subject that is a pattern: then other branches would come in too."""
    if not subjects or any(sign in subject for subject in subjects for sign in "*?"):
        raise ValueError(f"{', '.join(subjects) or 'nobody'}: whole subjects only")
    name = aws_names.entry_name(scope)
    opened = [aws_names.role(scope, identity) for identity in OPENS]
    become = statement("BecomeProjectIdentities", ("sts:AssumeRole",), opened, {})
    return CiEntry(
        name=name,
        arn=aws_names.entry_role(scope),
        opens=OPENS,
        policies=(PolicyDocument(name=name, document={"Version": "2012-10-17", "Statement": [become]}),),
        subjects=subjects,
    )
