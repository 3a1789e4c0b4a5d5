"""Azure by Resource Manager's REST API with azure-identity, which is imported when a lister is made, never before.

Pages, waiting for operations and the mapping of errors are here; which machines are wanted is the caller's business.
Single machines only, in a scale set's flexible mode too: the instances of a uniform scale set are not in this list.
Never run against live Azure: held to the documented API (2026-11) by a server of our own.
"""

# pyright: basic

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from planner.clouds import errors_map
from planner.clouds.port import Instance, Where
from planner.clouds.rest import NOT_FOUND, Answer, Patience, Refusal, Rest, retrying
from planner.model.errors import CloudError
from planner.model.labels import TAG_PREFIX

BASE = "https://management.azure.com"
SCOPE = "https://management.azure.com/.default"
COMPUTE = {"api-version": "2024-07-01"}
DISKS = {"api-version": "2024-03-02"}
NETWORK = {"api-version": "2024-05-01"}
RETRIES = 4
POLL_SECONDS = 10.0
RENEWED_SECONDS = 300
"""A token is renewed when it has no more than this to live."""
POWER = {
    "starting": "pending",
    "creating": "pending",
    "running": "running",
    "stopping": "stopping",
    "deallocating": "stopping",
    "stopped": "stopped",
    "deallocated": "stopped",
}
ACCEPTED = 202
MACHINES = "providers/Microsoft.Compute/virtualMachines"
CARDS = "providers/Microsoft.Network/networkInterfaces"


class AzureLister:
    """One region of one subscription, or of one resource group in it.  `session` and `base` are for tests."""

    def __init__(
        self, where: Where, *, session: Any = None, base: str = BASE, patience: Patience | None = None
    ) -> None:
        session = session or _session(where)
        subscription = subscription_of(where)
        self._where = where
        self._subscription = subscription
        group = f"/resourceGroups/{where.resource_group}" if where.resource_group else ""
        self._scope = f"/subscriptions/{subscription}{group}"
        self._rest = Rest("Azure", session, base)
        self._patience = patience or Patience()

    def instances(self, *, project: str, job: str | None, generation: int | None = None) -> tuple[Instance, ...]:
        """See `ResourceLister`.  Azure cannot be asked by several tags, so all machines and interfaces of the scope are read; a group that is gone holds none.

        An interface is a resource of its own: a launch that died may have made it without a machine, and an evicted machine leaves it behind.
        """
        wanted = {"skyplan:project": project} | ({"skyplan:job": job} if job is not None else {})
        if generation is not None:
            wanted["skyplan:generation"] = str(generation)
        # the machines last: an interface that gets its machine while we look must not be taken for a leftover
        cards = {str(card["id"]).lower(): card for card in self._pages(CARDS, NETWORK)}
        machines = list(self._pages(MACHINES, COMPUTE))
        joined = {str(card["id"]).lower() for machine in machines for card in _cards(machine)}
        found = [
            self._leftover(card)
            for name, card in cards.items()
            if name not in joined
            and not card.get("properties", {}).get("virtualMachine")
            and self._is_here(card)
            and wanted.items() <= _tags(card).items()
            and "skyplan:generation" in _tags(card)
        ]
        addresses = {name: _address(card) for name, card in cards.items()}
        for machine in machines:
            if self._is_here(machine) and wanted.items() <= _tags(machine).items():
                seen = self._instance(machine, addresses)
                found += [] if seen is None else [seen]
        return tuple(sorted(found, key=lambda i: (i.rank, i.launched_at, i.id)))

    def terminate(self, ids: Sequence[str]) -> None:
        """See `ResourceLister`: deletes the machine (one that is only stopped is paid for) and its OS disk, which Azure would keep; or an interface.

        The interface of a machine is no machine's then, and in the next list.
        One refusal keeps no other alive.
        """
        problems: list[CloudError] = []
        begun: list[tuple[str, list[str], Answer]] = []
        for one in ids:
            try:
                if f"/{CARDS}/" in one:
                    begun.append((one, [], self._delete(one, NETWORK)))
                else:
                    begun.append((one, self._os_disk(one), self._delete(one, COMPUTE)))
            except CloudError as error:
                problems.append(error)
        for one, disks, answer in begun:
            try:
                self._wait(one, answer)
                for disk in disks:
                    self._wait(disk, self._delete(disk, DISKS))
            except CloudError as error:
                problems.append(error)
        if problems:
            raise problems[0]

    def _is_here(self, machine: dict[str, Any]) -> bool:
        region = str(machine.get("location", "")).replace(" ", "").lower()
        return region == self._where.region and machine.get("properties", {}).get("provisioningState") != "Deleting"

    def _instance(self, found: dict[str, Any], addresses: Mapping[str, str]) -> Instance | None:
        """None where it went while we looked."""
        properties = found.get("properties", {})
        machine_id = self._terraform_id(found, MACHINES)
        seen = self._get(f"{machine_id}/instanceView", COMPUTE)
        if seen is None:
            return None
        cards = _cards(found) or [{}]
        zones = found.get("zones") or []
        return Instance(
            id=machine_id,
            state=_state(seen),
            zone=f"{self._where.region}-{zones[0]}" if zones else "",
            instance_type=properties.get("hardwareProfile", {}).get("vmSize", ""),
            capacity="spot" if properties.get("priority") in {"Spot", "Low"} else "on_demand",
            address=addresses.get(str(cards[0].get("id", "")).lower(), ""),
            launched_at=properties.get("timeCreated", ""),
            tags={key: value for key, value in _tags(found).items() if key.startswith(TAG_PREFIX)},
        )

    def _leftover(self, found: dict[str, Any]) -> Instance:
        return Instance(
            id=self._terraform_id(found, CARDS),
            state="leftover",
            zone="",
            instance_type="",
            capacity="",
            address=_address(found),
            launched_at="",
            tags={key: value for key, value in _tags(found).items() if key.startswith(TAG_PREFIX)},
        )

    def _terraform_id(self, found: dict[str, Any], kind: str) -> str:
        """As the provider writes it: lists of Azure's may have the group's name in capitals.  Of a group that skyplan made the name has none."""
        group = str(found["id"]).split("/")[4].lower()
        if group == self._where.resource_group.lower():
            group = self._where.resource_group
        return f"/subscriptions/{self._subscription}/resourceGroups/{group}/{kind}/{found['name']}"

    def _pages(self, kind: str, params: Mapping[str, str]) -> Iterator[dict[str, Any]]:
        page = self._get(f"{self._scope}/{kind}", params)
        while page is not None:
            yield from page.get("value", [])
            page = self._get(page["nextLink"], None) if page.get("nextLink") else None

    def _get(self, url: str, params: Mapping[str, str] | None) -> dict[str, Any] | None:
        """None where there is no such thing."""
        operation = url.partition("?")[0].rpartition("/")[2]
        try:
            return self._rest.ask(operation, "GET", url, params).body
        except Refusal as refusal:
            if refusal.status == NOT_FOUND:
                return None
            raise self._rest.told(operation, refusal) from refusal

    def _os_disk(self, machine_id: str) -> list[str]:
        machine = self._get(machine_id, COMPUTE) or {}
        disk = machine.get("properties", {}).get("storageProfile", {}).get("osDisk", {})
        return [disk["managedDisk"]["id"]] if disk.get("managedDisk", {}).get("id") else []

    def _delete(self, one: str, params: Mapping[str, str]) -> Answer:
        try:
            return self._rest.ask("delete", "DELETE", one, params)
        except Refusal as refusal:
            if refusal.status == NOT_FOUND:
                return Answer(status=NOT_FOUND, body={}, headers={})
            raise self._rest.told("delete", refusal) from refusal

    def _wait(self, one: str, answer: Answer) -> None:
        """Until the operation is over: `Azure-AsyncOperation` has a status, `Location` only an end."""
        watched = answer.headers.get("Azure-AsyncOperation")
        url = watched or answer.headers.get("Location")
        if answer.status != ACCEPTED or not url:
            return
        for _ in self._patience.turns(every=POLL_SECONDS):
            try:
                seen = self._rest.ask("delete", "GET", url)
            except Refusal as refusal:
                if refusal.status == NOT_FOUND:
                    return
                raise self._rest.told("delete", refusal) from refusal
            status = seen.body.get("status", "")
            if status in {"Failed", "Canceled"}:
                error = seen.body.get("error", {})
                words = f"{error.get('code', status)}: {error.get('message', '')}"
                raise errors_map.unexpected("Azure", "delete", words)
            if status == "Succeeded" or (not watched and seen.status != ACCEPTED):
                return
        raise errors_map.unreachable("delete", f"{one} is not gone yet", "Azure")


class _Bearer:
    """The token on every request.  azure-identity keeps some tokens and not others (the CLI's), so it is kept here."""

    def __init__(self, credential: Any) -> None:
        self._credential = credential
        self._token: Any = None

    def __call__(self, request: Any) -> Any:
        from azure.core.exceptions import AzureError, ClientAuthenticationError  # noqa: PLC0415 - optional

        if self._token is None or self._token.expires_on - time.time() < RENEWED_SECONDS:
            try:
                self._token = self._credential.get_token(SCOPE)
            except ClientAuthenticationError as error:
                raise errors_map.no_credentials(str(error), "Azure") from error
            except AzureError as error:
                raise errors_map.unreachable("credentials", str(error), "Azure") from error
        request.headers["Authorization"] = f"Bearer {self._token.token}"
        return request


def session_of(credential: Any, retries: int = RETRIES) -> Any:
    """A session that is who the credential is."""
    import requests  # noqa: PLC0415 - optional

    session = retrying(requests.Session(), retries)
    session.auth = _Bearer(credential)
    return session


def subscription_of(where: Where) -> str:
    """Which one is meant.  Raises PermissionDenied where nothing says so."""
    found = where.account or os.environ.get("ARM_SUBSCRIPTION_ID") or os.environ.get("AZURE_SUBSCRIPTION_ID")
    if not found:
        hint = "set `subscription` of the target in skyplan.yaml, or ARM_SUBSCRIPTION_ID"
        raise errors_map.no_account("Azure", "subscription", hint)
    return found


def credential_of(where: Where) -> Any:
    """Who asks: the caller, or the managed identity of `where.role`.  Needs azure-identity."""
    from azure.identity import DefaultAzureCredential  # noqa: PLC0415 - optional

    if where.role is None:
        return DefaultAzureCredential()
    from planner.clouds.azure_ci import ci_credential  # noqa: PLC0415 - azure-identity

    found = ci_credential(where.role, os.environ)
    role = {"managed_identity_client_id": where.role, "workload_identity_client_id": where.role}
    return found or DefaultAzureCredential(**role)


def _session(where: Where) -> Any:
    try:
        import azure.identity  # noqa: F401, PLC0415 - optional
        import requests  # noqa: F401, PLC0415
    except ImportError as error:
        raise errors_map.missing("Azure", "azure-identity and requests", "azure") from error
    return session_of(credential_of(where))


def _tags(found: dict[str, Any]) -> dict[str, str]:
    """Azure's tag names have no case."""
    return {str(key).lower(): str(value) for key, value in (found.get("tags") or {}).items()}


def _cards(machine: dict[str, Any]) -> list[dict[str, Any]]:
    """The interfaces of a machine, the primary one first, as ids."""
    return machine.get("properties", {}).get("networkProfile", {}).get("networkInterfaces") or []


def _address(card: dict[str, Any]) -> str:
    configurations = card.get("properties", {}).get("ipConfigurations") or [{}]
    return configurations[0].get("properties", {}).get("privateIPAddress", "")


def _state(seen: dict[str, Any]) -> str:
    """By the power state; a machine without one is being made."""
    codes = [str(status.get("code", "")) for status in seen.get("statuses", [])]
    power = [code.removeprefix("PowerState/") for code in codes if code.startswith("PowerState/")]
    return POWER.get(power[0], "pending") if power else "pending"
