"""What skyplan.yaml says of the control identities: `foundation.ci` of the project, `foundation` of each target.

Decides whether names are well formed and narrow enough: no wildcard, no whole account.  Asks no cloud whether a principal is there.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from planner.model.grants import CONTROL_IDENTITIES
from planner.model.project import CiSettings, FoundationSettings
from planner.spec import units
from planner.spec.federation import UUID

if TYPE_CHECKING:
    from collections.abc import Callable

    from planner.spec.fields import Fields
    from planner.spec.yaml_lines import Node

CI_PROVIDERS: Final = ("github", "gitlab", "other")
IDENTITIES: Final = tuple(identity.value for identity in CONTROL_IDENTITIES)
_ISSUERS: Final = {"github": "https://token.actions.githubusercontent.com", "gitlab": "https://gitlab.com"}
_PRINCIPAL: Final = {
    "aws": (
        r"arn:aws[a-z-]*:iam::[0-9]{12}:(?:role|user)/[A-Za-z0-9_+=,.@/-]+",
        "the ARN of one role or user, such as arn:aws:iam::123456789012:role/ci",
    ),
    "gcp": (
        r"(?:user|group|serviceAccount):[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+|principal(?:Set)?://iam\.googleapis\.com/[A-Za-z0-9._/:-]+",
        "a member, such as group:platform@example.com",
    ),
    "azure": (UUID, "an object id (a UUID)"),
    "nebius": (r"[a-z]+-[a-z0-9]{1,60}", "an id, such as serviceaccount-e00example"),
}
_PROVIDER: Final = r"arn:aws[a-z-]*:iam::[0-9]{12}:oidc-provider/[A-Za-z0-9._/:-]+"
_ISSUER: Final = r"https://[A-Za-z0-9.-]+(?::[0-9]{1,5})?(?:/[A-Za-z0-9._~/-]*)?"
_REPOSITORY: Final = r"[A-Za-z0-9_.-]+(?:/[A-Za-z0-9_.-]+)+"
_BRANCH: Final = r"[A-Za-z0-9_.][A-Za-z0-9_./-]{0,199}"
_ACCOUNT: Final = "[0-9]{12}"
_WORD: Final = r"[A-Za-z0-9:/._@+=-]{1,300}"


def ci_settings(project: Fields) -> CiSettings | None:
    """`foundation.ci`; None where nothing, or nothing whole, is said."""
    foundation = project.fields("foundation")
    if foundation is None:
        return None
    ci = foundation.fields("ci")
    found = _ci(ci) if ci is not None else None
    foundation.finish()
    return found


def _ci(f: Fields) -> CiSettings | None:
    provider = f.choice("provider", CI_PROVIDERS, required=f"write one of {', '.join(CI_PROVIDERS)}")
    if provider is None:
        f.known = list(f.node.entries)  # what the other fields mean depends on it
        return None
    other = provider == "other"
    issuer = f.read(
        "issuer",
        _form(_ISSUER, "write its address, https://HOST"),
        required="say who signs the tokens" if other else "",
    )
    audience = f.read(
        "audience",
        _form(_WORD, "write one audience, without a wildcard"),
        required="say the `aud` that the CI asks for" if other else "",
    )
    texts = _subjects(f) if other else _place(f)
    f.finish()
    said_wrong = any(
        f.name(key) in f.report.places and value is None for key, value in (("issuer", issuer), ("audience", audience))
    )
    if said_wrong or not all(texts.values()) or (other and not (issuer and audience)):
        return None
    said = {name: text for name, text in texts.items() if text}
    return CiSettings(
        provider=provider, issuer=(issuer or _ISSUERS.get(provider, "")).rstrip("/"), audience=audience or "", **said
    )


def _place(f: Fields) -> dict[str, str | None]:
    return {
        "repository": f.read(
            "repository",
            _form(_REPOSITORY, "write OWNER/REPOSITORY, without a wildcard"),
            required="name the repository, such as acme/infra",
        ),
        "branch": f.read(
            "branch",
            _form(_BRANCH, "write one branch, without a wildcard"),
            required="name the protected branch, such as main",
        ),
    }


def _subjects(f: Fields) -> dict[str, str | None]:
    check = _form(_WORD, "write the whole `sub` claim, without a wildcard")
    found = {
        "pull_request_subject": f.read(
            "pull_request_subject", check, required="say the `sub` of a pull request's token"
        ),
        "branch_subject": f.read("branch_subject", check, required="say the `sub` of the protected branch's token"),
    }
    if found["branch_subject"] and found["branch_subject"] == found["pull_request_subject"]:
        at = f.report.places[f.name("branch_subject")]
        f.report.error(
            at, "SKY-SPEC-113", "pull requests and the protected branch have one subject", "they must differ"
        )
    return found


def account_settings(target: Fields, cloud: str) -> FoundationSettings | None:
    """`foundation` of a target."""
    f = target.fields("foundation")
    if f is None:
        return None
    named = f.fields("trusted")
    trusted: list[tuple[str, str]] = []
    if named is not None:
        form, example = _PRINCIPAL[cloud]
        for identity in IDENTITIES:
            trusted += [(identity, who) for who in named.words(identity, _principal(f, form, example))]
        named.finish()
    aws = cloud == "aws"
    hint = "write the ARN of an OIDC provider"
    found = FoundationSettings(
        trusted=tuple(trusted),
        ci_provider=(f.read("ci_provider", _form(_PROVIDER, hint)) if aws else None) or "",
        tag_keys=f.words("tag_keys", f.report.text) if aws else (),
        state_account=(f.read("state_account", _form(_ACCOUNT, "write its 12 digits, quoted")) if aws else None) or "",
    )
    f.finish()
    return found


def _principal(f: Fields, form: str, example: str) -> Callable[[str, Node], str | None]:
    """Reads one of a list."""
    check = _form(form, f"write {example}")

    def read(path: str, node: Node) -> str | None:
        scalar = f.report.scalar(path, node)
        if scalar is None:
            return None
        with f.report.reading(path, scalar):
            return check(scalar.text)
        return None

    return read


def _form(form: str, hint: str) -> Callable[[str], str]:
    """Reads one value of that form."""

    def read(text: str) -> str:
        if not re.fullmatch(form, text, re.ASCII):
            raise units.Malformed("is malformed or too wide", hint)
        return text

    return read
