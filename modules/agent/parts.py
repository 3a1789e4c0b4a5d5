"""What a run is made of besides the job: control plane, proofs, leases, notices.  Imports each part only where it is configured: an idle node pays for no other.

Decides which of them a configuration needs; what they do is theirs.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import CONFIG, AgentError, Away

if TYPE_CHECKING:
    from collections.abc import Callable

    from .checkpoints import Checkpoints
    from .client import Plane
    from .cred.endpoint import Endpoint
    from .cred.holder import Holder
    from .notices import Notices
    from .place import Place
    from .settings import Service, Settings
    from .spool import Spool

_OTHERS = 0o077
_LONGEST_TOKEN = 4096


def plane(settings: Settings, place: Place) -> Plane | None:
    """The control plane, where there is one."""
    if settings.control_plane is None:
        return None
    from .client import Plane as Client  # noqa: PLC0415 - see above
    from .link import Link  # noqa: PLC0415

    service = settings.control_plane
    return Client(
        Link(service),
        settings.seat,
        instance_id=settings.instance_id,
        key=place.key(),
        prove=_prover(settings, service),
        memory=place.base / "session" if settings.token_file else None,
    )


def _prover(settings: Settings, service: Service) -> Callable[[], dict[str, Any]]:
    def by_token() -> dict[str, Any]:
        path = settings.token_file or ""
        try:
            with Path(path).open("rb") as opened:
                shared = os.fstat(opened.fileno()).st_mode & _OTHERS
                token = opened.read(_LONGEST_TOKEN).decode("ascii").strip()
        except (OSError, ValueError) as error:
            raise AgentError(CONFIG, f"the one-time token cannot be read: {error}") from error
        if shared:
            raise AgentError(CONFIG, f"others may read the one-time token: chmod 600 {path}")
        return {"scheme": "one-time", "value": token}

    def by_cloud() -> dict[str, Any]:
        from . import proofs  # noqa: PLC0415

        try:
            return proofs.proof(settings.cloud, service.audience)
        except proofs.NoAnswer as error:
            raise Away(f"SKY-RUN-516: the cloud gives no proof of this machine: {error}") from error

    return by_token if settings.token_file else by_cloud


class Leases:
    """Credentials that the broker lends for the job's stores: held in memory, served on loopback."""

    def __init__(self, holder: Holder, endpoint: Endpoint, settings: Settings) -> None:
        self._holder, self._endpoint, self._settings = holder, endpoint, settings

    def start(self) -> None:
        """Begin minting and serving."""
        self._holder.start()
        self._endpoint.start()

    def ready(self, seconds: float) -> bool:
        """Whether every store has a credential, waiting so long for it."""
        return self._holder.ready(seconds)

    @property
    def holder(self) -> Holder:
        """For the agent's own uploads."""
        return self._holder

    def environment(self) -> dict[str, str | None]:
        """For the job."""
        own = [store.uri for store in self._settings.stores if store.reach != "broker"]
        project = self._settings.account if self._settings.cloud == "gcp" else ""
        return self._endpoint.environment(own=own, project=project)

    def stop(self) -> None:
        """End both, and forget all leases."""
        self._endpoint.stop()
        self._holder.stop()


def leases(
    settings: Settings,
    place: Place,
    spool: Spool,
    *,
    ask: Callable[[str, float], None],
    final: Callable[[str, str], None],
) -> Leases | None:
    """The broker's leases, where a store is reached by them."""
    lent = [store for store in settings.stores if store.reach == "broker"]
    if settings.broker is None or not lent:
        return None
    from .client import Broker  # noqa: PLC0415
    from .cred.endpoint import Endpoint as Serving  # noqa: PLC0415
    from .cred.grants import name, wanted  # noqa: PLC0415
    from .cred.holder import Holder as Holding  # noqa: PLC0415
    from .link import Link  # noqa: PLC0415

    broker = Broker(Link(settings.broker), settings.seat, key=place.key(), prove=_prover(settings, settings.broker))
    grants = wanted((store.uri, store.access) for store in lent)
    endpoints = {name(store.uri, store.access): store.endpoint for store in lent if store.endpoint}
    holder = Holding(
        broker,
        grants,
        tell=lambda body: spool.add("credential", body),
        ask_checkpoint=ask,
        final=lambda word: final(word, "the broker says so"),
    )
    return Leases(holder, Serving(holder, str(place.job / "credentials"), endpoints=endpoints), settings)


def checkpoints(
    settings: Settings,
    place: Place,
    spool: Spool,
    *,
    plane: Plane | None,
    leases: Leases | None,
    told: Callable[[str], None],
) -> Checkpoints | None:
    """The job's checkpoints, where it keeps any."""
    if settings.checkpoint is None:
        return None
    from .checkpoints import Checkpoints as Keeping  # noqa: PLC0415

    holder = leases.holder if leases is not None else None
    return Keeping(settings, settings.checkpoint, place, spool, plane=plane, holder=holder, told=told)


def notices(settings: Settings, found: Callable[[dict[str, Any]], None], told: Callable[[str], None]) -> Notices | None:
    """The cloud's announcements, on a cloud."""
    if not settings.cloud:
        return None
    from . import watch  # noqa: PLC0415
    from .notices import Notices as Watching  # noqa: PLC0415

    return Watching(watch.watcher(settings.cloud), found, told)
