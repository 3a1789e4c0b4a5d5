"""GCP by Compute Engine's REST API (v1) with google-auth, which is imported when a lister is made, never before.

Pages, waiting for operations and the mapping of errors are here; which machines are wanted is the caller's business.
Never run against live Google Cloud: held to the documented API (2026-11) by a server of our own.
"""

# pyright: basic

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from planner.clouds import errors_map
from planner.clouds.port import Instance, Where
from planner.clouds.rest import NOT_FOUND, Patience, Refusal, Rest, retrying
from planner.model.errors import CloudError
from planner.model.labels import TAG_PREFIX, label_value, own_key, tags_of

T = TypeVar("T")

BASE = "https://compute.googleapis.com"
SCOPES = ("https://www.googleapis.com/auth/compute",)
#: taking on a service account is asked of another API
WIDE_SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)
RETRIES = 4
#: Google's TERMINATED is a machine that is switched off: it keeps its disks, its name and its place in the list
STATES = {
    "PENDING": "pending",
    "PROVISIONING": "pending",
    "STAGING": "pending",
    "RUNNING": "running",
    "REPAIRING": "running",
    "PENDING_STOP": "stopping",
    "STOPPING": "stopping",
    "SUSPENDING": "stopping",
    "DEPROVISIONING": "stopping",
    "SUSPENDED": "stopped",
    "TERMINATED": "stopped",
}
BUSY = frozenset({"resourceNotReady", "resourceInUseByAnotherResource"})
"""Another operation, such as an ending that began elsewhere, holds the machine."""
BUSY_SECONDS = 5.0
EMPTY = "NO_RESULTS_ON_PAGE"
"""The one warning that is none."""
_ID = re.compile(r"projects/([^/]+)/zones/([^/]+)/instances/([^/]+)")


class GcpLister:
    """One region of one project.  `session` and `base` are for tests."""

    def __init__(
        self, where: Where, *, session: Any = None, base: str = BASE, patience: Patience | None = None
    ) -> None:
        project = where.account
        if session is None:
            session, default = _session(where)
            project = project or default
        if not project:
            raise errors_map.no_account("GCP", "project", "set `project` of the target in skyplan.yaml")
        self._project = project
        self._region = where.region
        self._rest = Rest("GCP", session, base)
        self._patience = patience or Patience()

    def instances(self, *, project: str, job: str | None, generation: int | None = None) -> tuple[Instance, ...]:
        """See `ResourceLister`.  A zone that does not answer is an error: a machine not seen is a machine that runs on."""
        known = {"skyplan:project": project} | ({"skyplan:job": job} if job is not None else {})
        labels = {own_key(key.removeprefix(TAG_PREFIX)): label_value(value) for key, value in known.items()}
        if generation is not None:
            labels[own_key("generation")] = str(generation)
        wanted = " AND ".join(f'(labels.{key} = "{value}")' for key, value in labels.items())
        found = [
            _instance(self._project, zone, machine, known)
            for zone, machine in self._listed(wanted)
            if labels.items() <= machine.get("labels", {}).items()
        ]
        return tuple(sorted(found, key=lambda i: (i.rank, i.launched_at, i.id)))

    def terminate(self, ids: Sequence[str]) -> None:
        """See `ResourceLister`: deletes, which ends every cost but that of disks not deleted with the machine.  One refusal keeps no other alive."""
        problems: list[CloudError] = []
        begun: list[tuple[str, str]] = []
        for one in ids:
            try:
                begun += self._delete(one)
            except CloudError as error:
                problems.append(error)
        for zone, name in begun:
            try:
                self._wait(zone, name)
            except CloudError as error:
                problems.append(error)
        if problems:
            raise problems[0]

    def _listed(self, wanted: str) -> Iterator[tuple[str, dict[str, Any]]]:
        # one zone's outage anywhere must not hide all the others; whether it is one of ours is looked at below
        params = {"filter": wanted, "maxResults": "500", "returnPartialSuccess": "true"}
        while True:
            body = self._ask(
                "instances.aggregatedList", "GET", f"projects/{self._project}/aggregated/instances", params
            )
            self._whole(body)
            for scope, held in body.get("items", {}).items():
                zone = scope.removeprefix("zones/")
                if self._here(zone):
                    yield from ((zone, machine) for machine in held.get("instances", []))
            if not (token := body.get("nextPageToken")):
                return
            params = {**params, "pageToken": token}

    def _whole(self, body: dict[str, Any]) -> None:
        lost = [
            scope
            for scope, held in body.get("items", {}).items()
            if held.get("warning", {}).get("code", EMPTY) != EMPTY
        ]
        lost += body.get("unreachables", [])
        if here := sorted({zone for scope in lost if self._here(zone := scope.rpartition("/")[2])}):
            raise errors_map.unreachable("instances.aggregatedList", f"nothing is known of {', '.join(here)}", "GCP")

    def _here(self, zone: str) -> bool:
        return zone.rpartition("-")[0] == self._region

    def _delete(self, one: str) -> list[tuple[str, str]]:
        """The operation that deletes it: (zone, name); none where it is gone already."""
        parts = _ID.fullmatch(one)
        if parts is None:
            raise errors_map.unexpected("GCP", "instances.delete", f"{one} is no machine's id")
        for _ in self._patience.turns(every=BUSY_SECONDS):
            try:
                begun = self._ask("instances.delete", "DELETE", one)
            except Refusal as refusal:
                if refusal.status == NOT_FOUND:
                    return []
                if refusal.code not in BUSY:
                    raise self._rest.told("instances.delete", refusal) from refusal
            else:
                return [(parts[2], begun["name"])]
        raise errors_map.unreachable("instances.delete", f"{one} is held by another operation", "GCP")

    def _wait(self, zone: str, name: str) -> None:
        path = f"projects/{self._project}/zones/{zone}/operations/{name}/wait"
        for _ in self._patience.turns(every=1.0):
            try:
                seen = self._ask("instances.delete", "POST", path)
            except Refusal as refusal:
                raise self._rest.told("zoneOperations.wait", refusal) from refusal
            if seen.get("status") == "DONE":
                return _judge(seen)
        raise errors_map.unreachable("instances.delete", f"{name} is not done", "GCP")

    def _ask(self, operation: str, method: str, path: str, params: dict[str, str] | None = None) -> dict[str, Any]:
        """Raises CloudError, and Refusal for changes."""

        def ask() -> dict[str, Any]:
            return self._rest.ask(operation, method, f"/compute/v1/{path}", params).body

        try:
            return _signed(operation, ask)
        except Refusal as refusal:
            if method != "GET":
                raise
            raise self._rest.told(operation, refusal) from refusal


def _judge(done: dict[str, Any]) -> None:
    for error in done.get("error", {}).get("errors", []):
        if error.get("code") != "RESOURCE_NOT_FOUND":
            words = f"{error.get('code')}: {error.get('message', '')}"
            raise errors_map.unexpected("GCP", "instances.delete", words)


def _instance(project: str, zone: str, found: dict[str, Any], known: dict[str, str]) -> Instance:
    scheduling = found.get("scheduling", {})
    spot = scheduling.get("provisioningModel") == "SPOT" or scheduling.get("preemptible", False)
    cards = found.get("networkInterfaces") or [{}]
    return Instance(
        id=f"projects/{project}/zones/{zone}/instances/{found['name']}",
        state=STATES.get(found.get("status", ""), "pending"),
        zone=zone,
        instance_type=found.get("machineType", "").rpartition("/")[2],
        capacity="spot" if spot else "on_demand",
        address=cards[0].get("networkIP", ""),
        launched_at=found.get("creationTimestamp", ""),
        tags={**tags_of(found.get("labels", {})), **known},
    )


def _session(where: Where) -> tuple[Any, str | None]:
    """A session with the application default credentials, or as the service account `role`; and the project that they name."""
    try:
        from google.auth.transport.requests import AuthorizedSession  # noqa: PLC0415 - optional
    except ImportError as error:
        raise errors_map.missing("GCP", "google-auth and requests", "gcp") from error
    credentials, project = credentials_of(where)
    return retrying(AuthorizedSession(credentials), RETRIES), project


def credentials_of(where: Where, scopes: tuple[str, ...] = SCOPES) -> tuple[Any, str | None]:
    """The application default credentials, or the service account `role`; and the project that they name.  Raises CloudError."""
    try:
        import google.auth  # noqa: PLC0415 - optional
        from google.auth import impersonated_credentials  # noqa: PLC0415
    except ImportError as error:
        raise errors_map.missing("GCP", "google-auth and requests", "gcp") from error

    def given() -> tuple[Any, str | None]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about quota projects: a person's own credentials are fine here
            return google.auth.default(scopes=scopes if where.role is None else WIDE_SCOPES)

    credentials, project = _signed("credentials", given)
    if where.role is not None:
        credentials = impersonated_credentials.Credentials(
            source_credentials=credentials, target_principal=where.role, target_scopes=list(scopes)
        )
    return credentials, project


def _signed(operation: str, ask: Callable[[], T]) -> T:
    """The answer.  Raises CloudError for what google-auth says."""
    from google.auth import exceptions  # noqa: PLC0415 - optional

    try:
        return ask()
    except exceptions.TransportError as error:
        raise errors_map.unreachable(operation, str(error), "GCP") from error
    except exceptions.GoogleAuthError as error:
        raise errors_map.no_credentials(str(error), "GCP") from error
