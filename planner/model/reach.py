"""How the nodes of a placement get credentials for each store: decided while planning, shown in the plan, set up on the node."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Reach(StrEnum):
    """How a node gets credentials for a store."""

    PLATFORM = "platform"  # the node's own identity, in the same cloud
    FEDERATION = "federation"  # the node's identity token, exchanged in the other cloud
    BROKER = "broker"  # minted by skyplan's broker


@dataclass(frozen=True, slots=True, kw_only=True)
class DataPath:
    """How the nodes of a placement reach one store.

    uri      prefix, `gs://bucket/prefix/`
    write    checkpoints and results go there
    detail   one sentence: which identity, which role, what is still missing
    settings what the node needs for federation, no secret: names from skyplan.yaml (`aws_role_arn`, `gcp_provider` …); of what the broker mints:
             `identity_target`, `identity_account`: which target holds the identity that it becomes (`planner.model.control_names.data_identity`)
    """

    uri: str
    write: bool
    reach: Reach
    detail: str
    settings: tuple[tuple[str, str], ...] = ()

    @property
    def minted(self) -> bool:
        """The broker mints credentials for it."""
        return self.reach is Reach.BROKER and bool(self.settings)

    @property
    def out_of_reach(self) -> bool:
        """There are no credentials for it, unless the job brings its own."""
        return self.reach is Reach.BROKER and not self.settings

    def document(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "uri": self.uri,
            "write": self.write,
            "reach": self.reach.value,
            "detail": self.detail,
            "settings": dict(self.settings),
        }


def path_from(document: dict[str, Any]) -> DataPath:
    """The inverse of `DataPath.document`.  Raises KeyError or ValueError on what is not one."""
    return DataPath(
        uri=document["uri"],
        write=document["write"],
        reach=Reach(document["reach"]),
        detail=document["detail"],
        settings=tuple(document["settings"].items()),
    )
