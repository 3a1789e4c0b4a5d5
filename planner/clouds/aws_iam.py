"""AWS's rights as they are: roles and policies of a project, federation, bucket policies, what machines may ask the metadata service for.

Reads and never writes.  boto3 is imported when a reader is made, never before; pages, retries of throttled calls and the mapping of errors are here.
What the account should look like, and what differs, is the caller's business.  Instances' user data is not read, which takes a right of its own
(ec2:DescribeInstanceAttribute): whether a machine runs containers is said of launch templates only.  Run against moto, never against a live account.
"""

# pyright: basic

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from planner.clouds.asked import of_aws
from planner.clouds.port import Where
from planner.iam.read.aws_documents import from_json
from planner.iam.read.packed import runs_containers
from planner.iam.read.whose import FOUNDATION_PATH, NODE_PATH, control_identity, is_node, job_of
from planner.model.diagnostic import Diagnostic
from planner.model.errors import MissingPart
from planner.model.grants import Identity
from planner.model.offer import Cloud
from planner.model.policy import Audited, AwsPolicy, Machine, PolicyKind, Provider, Subject

T = TypeVar("T")

EXISTING = ["pending", "running", "stopping", "stopped"]
#: gone between being listed and being read
_GONE = frozenset({"NoSuchEntity", "NoSuchEntityException", "NoSuchBucketPolicy", "NoSuchBucket"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """An instance profile, with the ARNs of the roles that machines get by it."""

    arn: str
    roles: tuple[str, ...]


class AwsIam:
    """One account, seen from one region, as one role.  `unread`: what was found and could not be understood."""

    def __init__(self, where: Where) -> None:
        self._make = of_aws("the client", lambda: _maker(where))
        self._made: dict[str, Any] = {}
        self.unread: list[str] = []

    def _client(self, name: str) -> Any:
        """Made when it is first asked: EC2's alone takes most of a second."""
        if name not in self._made:
            self._made[name] = of_aws("the client", lambda: self._make(name))
        return self._made[name]

    def audited(self, *, project: str, buckets: Sequence[str] = ()) -> Audited:
        """All of it.  Raises CloudError."""
        return Audited(
            subjects=self.subjects(project=project),
            machines=self.machines(project=project),
            stores=self.stores(buckets),
            providers=self.providers(),
            unread=tuple(self.unread),
        )

    def subjects(self, *, project: str) -> tuple[Subject, ...]:
        """Roles under skyplan's two paths of the project, and managed policies there that no such role carries; by name.  Raises CloudError."""
        roles = [
            found
            for path in _paths(project)
            for role in self._pages("list_roles", "Roles", PathPrefix=path)
            if (found := self._role(role["RoleName"])) is not None
        ]
        carried = {policy.name for subject in roles for policy in subject.policies}
        loose = [
            subject
            for path in _paths(project)
            for listed in self._pages("list_policies", "Policies", Scope="Local", PathPrefix=path)
            if listed["Arn"] not in carried and (subject := self._loose(listed)) is not None
        ]
        return tuple(sorted((*roles, *loose), key=lambda subject: (subject.name, subject.origin)))

    def profiles(self, *, project: str) -> tuple[Profile, ...]:
        """Instance profiles of the project's nodes.  Raises CloudError."""
        found = self._pages("list_instance_profiles", "InstanceProfiles", PathPrefix=f"{NODE_PATH}{project}/")
        made = (Profile(arn=p["Arn"], roles=tuple(sorted(r["Arn"] for r in p["Roles"]))) for p in found)
        return tuple(sorted(made, key=lambda profile: profile.arn))

    def providers(self) -> tuple[Provider, ...]:
        """Whose tokens the account believes; which of them, each role's trust says.  Raises CloudError."""
        listed = self._ask("ListOpenIDConnectProviders", self._client("iam").list_open_id_connect_providers)
        out: list[Provider] = []
        for one in listed["OpenIDConnectProviderList"] if listed else ():
            arn = one["Arn"]
            found = self._ask(
                "GetOpenIDConnectProvider",
                self._client("iam").get_open_id_connect_provider,
                OpenIDConnectProviderArn=arn,
            )
            if found is not None:
                audiences = tuple(sorted(found.get("ClientIDList", [])))
                issuer = f"https://{found['Url'].removeprefix('https://')}"
                out.append(Provider(cloud=Cloud.AWS, origin=arn, issuer=issuer, audiences=audiences, condition=""))
        return tuple(sorted(out, key=lambda provider: provider.origin))

    def stores(self, buckets: Sequence[str]) -> tuple[tuple[str, AwsPolicy], ...]:
        """Policies of these buckets themselves, where they have one.  Raises CloudError."""
        out: list[tuple[str, AwsPolicy]] = []
        for bucket in sorted(set(buckets)):
            found = self._ask("GetBucketPolicy", self._client("s3").get_bucket_policy, Bucket=bucket)
            arn = f"arn:aws:s3:::{bucket}"
            policy = self._policy(found["Policy"], PolicyKind.RESOURCE, arn) if found else None
            if policy is not None:
                out.append((arn, policy))
        return tuple(out)

    def machines(self, *, project: str) -> tuple[Machine, ...]:
        """Launch templates, as a launch without a version would use them, and machines that exist, by the project's tag.  Raises CloudError."""
        tag = [{"Name": "tag:skyplan:project", "Values": [project]}]
        templates = self._pages("describe_launch_templates", "LaunchTemplates", service="ec2", Filters=tag)
        state = [{"Name": "instance-state-name", "Values": EXISTING}]
        reservations = self._pages("describe_instances", "Reservations", service="ec2", Filters=[*tag, *state])
        found = [
            *(self._template(one) for one in templates),
            *(_instance(one) for reservation in reservations for one in reservation["Instances"]),
        ]
        return tuple(sorted(found, key=lambda machine: machine.origin))

    def _role(self, name: str) -> Subject | None:
        answer = self._ask("GetRole", self._client("iam").get_role, RoleName=name)
        if answer is None:
            return None
        role = answer["Role"]
        tags = _tags(role.get("Tags", []))
        identity = control_identity(name, path=role["Path"])
        if identity is None and is_node(path=role["Path"], tags=tags, stack=""):
            identity = Identity.NODE_DATA
        return Subject(
            cloud=Cloud.AWS,
            name=name,
            origin=role["Arn"],
            identity=identity,
            job=job_of(tags=tags) if identity is Identity.NODE_DATA else "",
            policies=tuple(self._policies(name, role)),
        )

    def _policies(self, name: str, role: dict[str, Any]) -> Iterator[AwsPolicy]:
        found = [self._policy(role["AssumeRolePolicyDocument"], PolicyKind.TRUST, "trust")]
        for inline in self._pages("list_role_policies", "PolicyNames", RoleName=name):
            held = self._ask("GetRolePolicy", self._client("iam").get_role_policy, RoleName=name, PolicyName=inline)
            found.append(self._policy(held["PolicyDocument"], PolicyKind.IDENTITY, inline) if held else None)
        attached = self._pages("list_attached_role_policies", "AttachedPolicies", RoleName=name)
        found += [self._managed(one["PolicyArn"], PolicyKind.IDENTITY) for one in attached]
        boundary = role.get("PermissionsBoundary", {}).get("PermissionsBoundaryArn")
        if boundary:
            found.append(self._managed(boundary, PolicyKind.BOUNDARY))
        yield from filter(None, found)

    def _managed(self, arn: str, kind: PolicyKind) -> AwsPolicy | None:
        """Its default version: that is the one in force."""
        held = self._ask("GetPolicy", self._client("iam").get_policy, PolicyArn=arn)
        if held is None:
            return None
        version = held["Policy"]["DefaultVersionId"]
        answer = self._ask("GetPolicyVersion", self._client("iam").get_policy_version, PolicyArn=arn, VersionId=version)
        return self._policy(answer["PolicyVersion"]["Document"], kind, arn) if answer else None

    def _loose(self, listed: dict[str, Any]) -> Subject | None:
        """A policy that no role of the project carries: a boundary for roles to come, or one left behind."""
        bounds = listed["PolicyName"].endswith("-boundary") and listed["Path"].startswith(FOUNDATION_PATH)
        policy = self._managed(listed["Arn"], PolicyKind.BOUNDARY if bounds else PolicyKind.IDENTITY)
        if policy is None:
            return None
        return Subject(cloud=Cloud.AWS, name=listed["PolicyName"], origin=listed["Arn"], policies=(policy,))

    def _policy(self, document: object, kind: PolicyKind, name: str) -> AwsPolicy | None:
        try:
            version, statements = from_json(document, kind=kind, name=name)
        except ValueError as error:
            self.unread.append(str(error))
            return None
        return AwsPolicy(kind=kind, name=name, statements=statements, version=version)

    def _template(self, listed: dict[str, Any]) -> Machine:
        name = listed["LaunchTemplateId"]
        versions = self._pages(
            "describe_launch_template_versions",
            "LaunchTemplateVersions",
            service="ec2",
            LaunchTemplateId=name,
            Versions=["$Default"],
        )
        held: dict[str, Any] = versions[0]["LaunchTemplateData"] if versions else {}
        options = held.get("MetadataOptions", {})
        market = held.get("InstanceMarketOptions", {}).get("MarketType")
        return Machine(
            cloud=Cloud.AWS,
            origin=f"{name} {listed['LaunchTemplateName']}",
            job=job_of(tags=_tags(listed.get("Tags", []))),
            hop_limit=options.get("HttpPutResponseHopLimit"),
            tokens_required=_required(options),
            containers=runs_containers(held.get("UserData", "")),
            has_identity=bool(held.get("IamInstanceProfile")),
            spot=market == "spot" if market else None,
        )

    def _pages(self, operation: str, key: str, *, service: str = "iam", **given: Any) -> list[Any]:
        """All items of all pages; [] where what is asked about is gone."""

        def ask() -> list[Any]:
            pages = self._client(service).get_paginator(operation).paginate(**given)
            return [item for page in pages for item in page[key]]

        return self._ask(_told(operation), ask) or []

    def _ask(self, operation: str, ask: Callable[..., Any], **given: Any) -> Any:
        """The answer; None where what is asked about is gone.  Raises CloudError only."""
        from botocore.exceptions import ClientError  # noqa: PLC0415 - optional

        def unless_gone() -> Any:
            try:
                return ask(**given)
            except ClientError as error:
                if error.response.get("Error", {}).get("Code") in _GONE:
                    return None
                raise

        return of_aws(operation, unless_gone)


def _paths(project: str) -> tuple[str, str]:
    return (f"{FOUNDATION_PATH}{project}/", f"{NODE_PATH}{project}/")


def _told(operation: str) -> str:
    """`ListRoles` of `list_roles`."""
    return "".join(word.capitalize() for word in operation.split("_"))


def _tags(given: list[dict[str, str]]) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in given}


def _required(options: dict[str, Any]) -> bool | None:
    return options["HttpTokens"] == "required" if options.get("HttpTokens") else None


def _instance(found: dict[str, Any]) -> Machine:
    options = found.get("MetadataOptions", {})
    return Machine(
        cloud=Cloud.AWS,
        origin=found["InstanceId"],
        job=job_of(tags=_tags(found.get("Tags", []))),
        hop_limit=options.get("HttpPutResponseHopLimit"),
        tokens_required=_required(options),
        has_identity=bool(found.get("IamInstanceProfile")),
        spot=found.get("InstanceLifecycle") == "spot",
    )


def _maker(where: Where) -> Callable[[str], Any]:
    """Makes clients by the name of their service, as the role."""
    try:
        import boto3.session  # noqa: PLC0415 - half a second, and optional
        from botocore.config import Config  # noqa: PLC0415
    except ImportError as error:
        summary = (
            "looking at AWS needs boto3; install the extra `aws` from your checkout of skyplan: pip install '.[aws]'"
        )
        raise MissingPart([Diagnostic(code="SKY-APPLY-316", summary=summary)]) from error
    config = Config(retries={"mode": "standard", "max_attempts": 5}, connect_timeout=10, read_timeout=60)
    session = boto3.session.Session(region_name=where.region)
    given: dict[str, Any] = {"config": config}
    if where.role is not None:
        answer = session.client("sts", config=config).assume_role(RoleArn=where.role, RoleSessionName="skyplan")
        given |= {
            "aws_access_key_id": answer["Credentials"]["AccessKeyId"],
            "aws_secret_access_key": answer["Credentials"]["SecretAccessKey"],
            "aws_session_token": answer["Credentials"]["SessionToken"],
        }
    return lambda name: session.client(name, **given)
