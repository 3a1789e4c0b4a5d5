"""Rights as clouds hold them, in one readable form: what the evaluators judge, the audit reads and a widening compares.

One `Subject` is whoever holds rights; each cloud has its own shape of a right, because they differ in meaning and not in spelling only.  Values that
Terraform knows only after an apply stand as `${…}` references: exact, though unknown, and never a wildcard.  Holds no judgement.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from planner.model.diagnostic import Location
from planner.model.grants import Identity
from planner.model.offer import Cloud


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Test:
    """One condition of an AWS statement: `StringLikeIfExists`, `ForAllValues:StringEquals` …, a key, the values of which any will do."""

    __test__ = False  # no test of pytest's

    operator: str
    key: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One statement of an AWS policy; `actions` or `not_actions`, `resources` or `not_resources` (both () in a trust policy)."""

    effect: str = "Allow"
    sid: str = ""
    actions: tuple[str, ...] = ()
    not_actions: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    not_resources: tuple[str, ...] = ()
    principals: tuple[tuple[str, str], ...] = ()  # (type, name): ("Service", "ec2.amazonaws.com"), ("AWS", "*")
    not_principals: tuple[tuple[str, str], ...] = ()
    tests: tuple[Test, ...] = ()
    location: Location | None = None


class PolicyKind(StrEnum):
    """What a policy does: gives rights, bounds them, or says who may come in."""

    IDENTITY = "identity"
    BOUNDARY = "boundary"
    SESSION = "session"
    TRUST = "trust"
    RESOURCE = "resource"


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsPolicy:
    """`name` as its owner knows it (`node-data`), or the ARN of a managed one; `version` "" where the document has none."""

    kind: PolicyKind
    name: str
    statements: tuple[Statement, ...]
    version: str = "2012-10-17"
    location: Location | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleBinding:
    """GCP: `member` has `role` on `on`, where the CEL `condition` holds ("" = always).

    permissions  of a custom role; () of a predefined one (`planner.iam.data` knows some)
    on           full resource name: `projects/P`, `projects/_/buckets/B`, `projects/_/buckets/B/managedFolders/F/`, `projects/P/serviceAccounts/E` …
    """

    member: str
    role: str
    on: str
    permissions: tuple[str, ...] = ()
    condition: str = ""
    location: Location | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleAssignment:
    """Azure: a role at a scope.  The four lists of a role that is defined beside; all () for a built-in one."""

    role: str
    scope: str
    actions: tuple[str, ...] = ()
    not_actions: tuple[str, ...] = ()
    data_actions: tuple[str, ...] = ()
    not_data_actions: tuple[str, ...] = ()
    condition: str = ""
    location: Location | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Permit:
    """Nebius: a group has `role` on `on` (tenant, project or one resource); `paths` of a bucket policy's rule, () = all of it."""

    role: str
    on: str
    paths: tuple[str, ...] = ()
    anonymous: bool = False
    location: Location | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """Who holds rights.

    name      as the cloud or the stack knows it: `skyplan-acme-acc-train--aws-prod-us-east-1`
    origin    where it was found: `acc-train--aws-prod-us-east-1 aws_iam_role.node`, an ARN, a plan file; stable, without line numbers
    identity  which of skyplan's it is; None for a stranger's.  Of a node's role, whose data and checkpoint rights are policies of one role, NODE_DATA
    job       whose nodes
    keys      long-lived keys that it holds, described
    """

    cloud: Cloud
    name: str
    origin: str
    identity: Identity | None = None
    job: str = ""
    policies: tuple[AwsPolicy, ...] = ()
    bindings: tuple[RoleBinding, ...] = ()
    assignments: tuple[RoleAssignment, ...] = ()
    permits: tuple[Permit, ...] = ()
    keys: tuple[str, ...] = ()
    location: Location | None = None

    def of_kind(self, kind: PolicyKind) -> tuple[AwsPolicy, ...]:
        """Its AWS policies of that kind."""
        return tuple(policy for policy in self.policies if policy.kind is kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A machine, or a template of one, as far as rights are concerned.  None = not said.

    hop_limit       AWS: of the metadata service
    tokens_required AWS: IMDSv2 only
    containers      it runs containers
    has_identity    a profile, service account or managed identity is attached
    spot            asked for as spot; None in a template, where the launch says it
    """

    cloud: Cloud
    origin: str
    job: str = ""
    hop_limit: int | None = None
    tokens_required: bool | None = None
    containers: bool = False
    has_identity: bool | None = None
    spot: bool | None = None
    location: Location | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """Federation: whose tokens an account believes.  `condition` "" = any token of that issuer.

    opens  origin of the one identity that such a token becomes, where the cloud says it here
    """

    cloud: Cloud
    origin: str
    issuer: str
    audiences: tuple[str, ...]
    condition: str
    opens: str = ""
    location: Location | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeasePath:
    """How a job's nodes get one credential: for how long, and whether it is renewed without a restart.  None = not known.

    kind        `platform`, `federation`, `assume-role`, `chained-role`, `gcp-token`, `azure-sas`, `nebius-key`, `static-file`, `azcli` …
    run_hours   how long the job may run
    """

    cloud: Cloud
    origin: str
    job: str
    kind: str
    lifetime_seconds: int | None
    renewed: bool
    run_hours: float | None
    location: Location | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Leak:
    """Something that looks like a secret, where none may be.  `shown` is cut so that a report tells nobody the secret."""

    kind: str
    origin: str
    shown: str
    location: Location | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Audited:
    """All that an audit looks at; () where a source says nothing of it.

    needs     by control identity and cloud: the cloud's own names of what the planned operations call, each with the operation that needs it
    allowed   data that each job's spec names: (job, URI with prefix, write)
    unread    what holds rights and could not be read, with the reason: an audit that is silent about it would lie
    """

    subjects: tuple[Subject, ...] = ()
    machines: tuple[Machine, ...] = ()
    stores: tuple[tuple[str, AwsPolicy], ...] = ()  # (bucket or key ARN, its own policy)
    public: tuple[RoleBinding, ...] = ()  # GCP members of stores that are no subject of ours
    providers: tuple[Provider, ...] = ()
    leases: tuple[LeasePath, ...] = ()
    leaks: tuple[Leak, ...] = ()
    needs: dict[tuple[Identity, Cloud], dict[str, str]] = field(
        default_factory=dict[tuple[Identity, Cloud], dict[str, str]]
    )
    allowed: tuple[tuple[str, str, bool], ...] = ()
    unread: tuple[str, ...] = ()
