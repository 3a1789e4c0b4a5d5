"""Which condition keys guard a right by tag, and whose project a subject is.  Says nothing about whether a guard holds."""

from __future__ import annotations

from collections.abc import Callable

from planner.iam.audit.find import statements
from planner.model.policy import Subject

PROJECT = "skyplan:project"
_TAGS = ("aws:requesttag/", "aws:resourcetag/", "ec2:resourcetag/", "aws:principaltag/")

#: tags of a resource, as the services' own keys say it
_RESOURCE_TAGS = ("aws:resourcetag/", "ec2:resourcetag/", "ecs:resourcetag/", "iam:resourcetag/", "ssm:resourcetag/")


def tagged(key: str) -> bool:
    """Any tag of the resource: whose, is the business of who wrote the policy."""
    return key.startswith(_RESOURCE_TAGS)


def tags(subject: Subject, *prefixes: str, others: tuple[str, ...] = ()) -> Callable[[str], bool]:
    """Whether a key (in lower case) is a tag with one of the prefixes, of skyplan's own identities the project's alone; or one of `others`."""
    own = {f"{prefix}{PROJECT}" for prefix in prefixes}

    def guards(key: str) -> bool:
        return key in others or (key in own if subject.identity else key.startswith(prefixes))

    return guards


def project_of(subject: Subject) -> str:
    """The project that its own conditions name, or a word to replace."""
    for _, statement in statements(subject):
        for test in statement.tests:
            if test.key.lower() in {f"{prefix}{PROJECT}" for prefix in _TAGS} and test.values:
                return test.values[0]
    return "PROJECT"
