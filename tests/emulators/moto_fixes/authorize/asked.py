"""One authorization request, and what every one of them carries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Context = dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class Asked:
    """May the caller do `action` to `resource`?  `context`: condition keys with their values; `kind`: type of the resource, "" for `*`."""

    action: str
    resource: str
    context: Mapping[str, tuple[str, ...]]
    kind: str = ""


@dataclass(frozen=True)
class Caller:
    """Who calls, and where the call arrives.  `machine`: the instance whose credentials these are, by its ARN; "" for any other's."""

    arn: str
    account: str
    region: str
    partition: str = "aws"
    tags: tuple[tuple[str, str], ...] = ()
    machine: str = ""

    def around(self, owner: str | None = None) -> Context:
        """Keys that every request has.  `owner`: the account of the resource, where it is another."""
        return {
            "aws:RequestedRegion": (self.region,),
            "aws:PrincipalAccount": (self.account,),
            "aws:PrincipalArn": (self.arn,),
            "aws:ResourceAccount": (owner or self.account,),
            # a real endpoint is met by TLS; the emulator's is the loopback
            "aws:SecureTransport": ("true",),
            **({"ec2:SourceInstanceARN": (self.machine,)} if self.machine else {}),
            **{f"aws:PrincipalTag/{key}": (value,) for key, value in self.tags},
        }

    def arn_of(self, service: str, rest: str, *, region: bool = True, account: bool = True) -> str:
        place = self.region if region else ""
        return f"arn:{self.partition}:{service}:{place}:{self.account if account else ''}:{rest}"


def requested(tags: Iterable[Mapping[str, Any]]) -> Context:
    """Keys of the tags that a request gives, as [{Key, Value}]; a request without tags has none of them."""
    pairs = [(str(tag["Key"]), str(tag.get("Value") or "")) for tag in tags]
    if not pairs:
        return {}
    return {
        **{f"aws:RequestTag/{key}": (value,) for key, value in pairs},
        "aws:TagKeys": tuple(key for key, _ in pairs),
    }


def carried(service: str, tags: Mapping[str, str]) -> Context:
    """Keys of the tags that a resource has."""
    return {f"{prefix}:ResourceTag/{key}": (value,) for key, value in tags.items() for prefix in ("aws", service)}


def truth(value: Any) -> str:
    """As IAM writes a boolean."""
    return "true" if str(value).lower() == "true" else "false"
