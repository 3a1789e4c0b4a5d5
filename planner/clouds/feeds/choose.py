"""The feed for a cloud and account, made once.  Each adapter imports its SDK when its first feed is made."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from planner.clouds.feeds.port import Feed
from planner.clouds.port import Where
from planner.model.diagnostic import Diagnostic
from planner.model.errors import InputError

Account = tuple[str, str, str | None, str | None]


@dataclass(slots=True)
class RealFeeds:
    """See `Feeds`.  Safe to use from several threads; one feed is for one thread at a time."""

    _made: dict[Account, Feed] = field(default_factory=dict[Account, Feed])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def feed(self, where: Where) -> Feed:
        """See `Feeds`."""
        account = (where.cloud, where.target, where.account, where.role)
        with self._lock:
            found = self._made.get(account)
        if found is None:
            # made outside the lock: credentials that do not come must not keep the other clouds waiting
            made = _made(where)
            with self._lock:
                found = self._made.setdefault(account, made)
        return found

    def close(self) -> None:
        """Let the connections go of those that hold some."""
        with self._lock:
            for feed in self._made.values():
                if (closing := getattr(feed, "close", None)) is not None:
                    closing()
            self._made.clear()


def _made(where: Where) -> Feed:
    match where.cloud:
        case "aws":
            from planner.clouds.feeds.aws import AwsFeed  # noqa: PLC0415 - boto3

            return AwsFeed(where)
        case "gcp":
            from planner.clouds.feeds.gcp import GcpFeed  # noqa: PLC0415 - google-cloud-compute

            return GcpFeed(where)
        case "azure":
            from planner.clouds.feeds.azure import AzureFeed  # noqa: PLC0415 - azure-mgmt-compute

            return AzureFeed(where)
        case "nebius":
            from planner.clouds.feeds.nebius import NebiusFeed  # noqa: PLC0415 - grpc

            return NebiusFeed(where)
        case _:
            summary = f"no feed of prices is made for {where.cloud}"
            raise InputError([Diagnostic(code="SKY-APPLY-315", summary=summary)])
