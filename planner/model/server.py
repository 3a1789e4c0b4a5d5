"""What a control plane and a broker go by: whom they believe about machines, who of the people may do what.  Values only; `planner.spec.server` reads them.

Holds no secret: addresses, names and public keys.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Final

#: where the platforms publish the keys by which they sign (Google: Compute Engine, verifying the identity of instances · Microsoft: identity platform, signing
#: key rollover; both read 2026-11).  Nebius documents none for its service accounts' tokens: it has to be set
GOOGLE_ISSUER: Final = "https://accounts.google.com"
GOOGLE_KEYS: Final = "https://www.googleapis.com/oauth2/v3/certs"
MICROSOFT_KEYS: Final = "https://login.microsoftonline.com/{tenant}/discovery/v2.0/keys"


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenIssuer:
    """Whose signed tokens are believed: `issuer` as in the token's `iss`, its keys at `keys_url`, for `audience`."""

    issuer: str
    keys_url: str
    audience: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityTrust:
    """Which platforms' words about a machine are believed.  A scheme that is not set up here is refused.

    audience          this service's URL as nodes reach it: what a proof must be made for
    aws_certificates  (region or `*`, PEM certificate): AWS publishes one per region for identity documents
    aws_sts           hosts to which a signed GetCallerIdentity may be sent on: `sts.us-east-1.amazonaws.com`; globs
    gcp, azure, nebius  issuers of tokens
    one_time          tokens made by an operator for nodes set up by hand
    ca_file           extra certificate authority for fetching keys
    """

    audience: str
    aws_certificates: tuple[tuple[str, str], ...] = ()
    aws_sts: tuple[str, ...] = ()
    gcp: tuple[TokenIssuer, ...] = ()
    azure: tuple[TokenIssuer, ...] = ()
    nebius: tuple[TokenIssuer, ...] = ()
    one_time: bool = True
    ca_file: str | None = None


class Role(StrEnum):
    """What people may do; each may also do what stands above it.

    viewer    jobs, steps, costs, placements
    auditor   and every credential issue and event
    operator  and ask a job to checkpoint or stop, read its logs, make one-time tokens
    """

    VIEWER = "viewer"
    AUDITOR = "auditor"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleBinding:
    """Whoever's token has `value` in `claim` has the role for jobs that match one of the globs."""

    claim: str
    value: str
    role: Role
    jobs: tuple[str, ...] = ("*",)


@dataclass(frozen=True, slots=True, kw_only=True)
class PeopleTrust:
    """By whom people are known (OIDC).  None of it: only on loopback, and everybody there is an operator."""

    issuer: str
    client_id: str
    audience: str
    bindings: tuple[RoleBinding, ...]
    scopes: tuple[str, ...] = ("openid", "email", "groups")


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Somebody who asks.  `held`: the roles, each with its globs over jobs."""

    name: str
    held: tuple[tuple[Role, tuple[str, ...]], ...] = ()

    def may(self, role: Role, job: str) -> bool:
        """Holds the role, or operator, which includes it, for that job; any role includes viewer."""
        enough = {Role.VIEWER: set(Role), Role.AUDITOR: {Role.AUDITOR, Role.OPERATOR}, Role.OPERATOR: {Role.OPERATOR}}
        return any(r in enough[role] and any(fnmatchcase(job, g) for g in globs) for r, globs in self.held)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownPrincipal:
    """What the operator says of a job's node identity where its name does not tell: by job and target."""

    job: str
    target: str
    principal: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """server.yaml, read.

    url           as nodes and people reach it
    listen        HOST:PORT; off loopback only with `tls`
    tls           (certificate file, key file)
    broker_url    told to nodes when they join; None where nothing is minted
    rates         (route group, requests per second and caller)
    principals    whose nodes run as whom, where a name does not tell
    """

    url: str
    listen: tuple[str, int]
    identity: IdentityTrust
    tls: tuple[str, str] | None = None
    people: PeopleTrust | None = None
    broker_url: str | None = None
    rates: tuple[tuple[str, float], ...] = field(default=(("join", 1.0), ("node", 20.0), ("people", 20.0)))
    principals: tuple[KnownPrincipal, ...] = ()
