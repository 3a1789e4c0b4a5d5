"""Whether the cloud is about to take this node away.

    watcher(cloud).poll() -> {"what": "spot" | "rebalance" | "maintenance", "deadline": UTC ISO text or None}, or None

The most urgent of what is announced, the same words at each question while it stands.  Raises NoAnswer where the metadata service gives none.
"""

from __future__ import annotations

from typing import Any, Protocol

from .aws import AwsWatcher
from .azure import AzureWatcher
from .gcp import GcpWatcher
from .nebius import NebiusWatcher


class Watcher(Protocol):
    """One cloud's."""

    def poll(self) -> dict[str, Any] | None:
        """The most urgent notice.  Raises NoAnswer."""
        ...


def watcher(cloud: str) -> Watcher:
    """Raises KeyError for no cloud of ours."""
    if cloud == "aws":
        return AwsWatcher()
    if cloud == "gcp":
        return GcpWatcher()
    if cloud == "azure":
        return AzureWatcher()
    if cloud == "nebius":
        return NebiusWatcher()
    raise KeyError(cloud)
