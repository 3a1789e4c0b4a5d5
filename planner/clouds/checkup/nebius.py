"""Nebius' checkup by its SDK: who am I, the project, quota allowances and advice with one row each.  It keeps no states: its store is S3's, under `s3`.

gRPC says no time of day, so no clock is compared.  Never run against live Nebius: held to the SDK's own descriptors by a gRPC server of our own.
"""

# pyright: basic

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from planner.clouds import errors_map
from planner.clouds.asked import of_nebius
from planner.clouds.checkup.port import ANSWER_SECONDS, Caller, Right, Seen, tried
from planner.clouds.nebius import sdk_opener
from planner.clouds.port import Where
from planner.model.errors import CloudError
from planner.model.project import Backend

LIMITS: dict[str, Any] = {"retries": 1, "timeout": float(ANSWER_SECONDS)}  # one attempt in all


class NebiusCheckup:
    """One project.  `open_sdk` is for tests; each question opens the SDK and closes it, for it holds a thread while it is open."""

    def __init__(self, where: Where, *, open_sdk: Callable[[], Any] | None = None) -> None:
        self._open = open_sdk or sdk_opener(where)
        self._where = where

    def caller(self) -> Seen:
        """See `Checkup`."""
        try:
            return Seen(caller=self._asked("profile.get", self._caller))
        except CloudError as error:
            return Seen(error=error)

    def rights(self, region: str, instance_type: str) -> tuple[Right, ...]:
        """See `Checkup`."""
        del region, instance_type
        return (
            tried("quotaAllowances.list", lambda: self._asked("quotaAllowances.list", self._quotas)),
            tried("resourceAdvice.list", lambda: self._asked("resourceAdvice.list", self._advice)),
        )

    def backend(self, backend: Backend, prefix: str) -> None:
        """See `Checkup`."""
        del prefix
        raise errors_map.unexpected("Nebius", "backend", f"no states are kept there by `{backend.kind}`")

    def close(self) -> None:
        """See `Checkup`: nothing stays open."""

    def _asked(self, operation: str, ask: Callable[[Any], Any]) -> Any:
        sdk = of_nebius("credentials", self._open)
        try:
            return of_nebius(operation, lambda: ask(sdk))
        finally:
            sdk.sync_close()

    def _caller(self, sdk: Any) -> Caller:
        said = sdk.whoami(**LIMITS).wait()
        return Caller(who=_who(said), account=self._project(sdk).metadata.id)

    def _project(self, sdk: Any) -> Any:
        from nebius.api.nebius.iam.v2 import GetProjectRequest, ProjectServiceClient  # noqa: PLC0415 - slow

        parent = self._where.account or sdk.parent_id()
        if not parent:
            hint = "set `project` of the target in skyplan.yaml, or parent-id in the CLI's profile"
            raise errors_map.no_account("Nebius", "project", hint)
        return ProjectServiceClient(sdk).get(GetProjectRequest(id=parent), **LIMITS).wait()

    def _quotas(self, sdk: Any) -> None:
        from nebius.api.nebius.quotas.v1 import (  # noqa: PLC0415 - slow
            ListQuotaAllowancesRequest,
            QuotaAllowanceServiceClient,
        )

        tenant = self._project(sdk).metadata.parent_id
        QuotaAllowanceServiceClient(sdk).list(
            ListQuotaAllowancesRequest(parent_id=tenant, page_size=1), **LIMITS
        ).wait()

    def _advice(self, sdk: Any) -> None:
        from nebius.api.nebius.capacity.v1 import (  # noqa: PLC0415 - slow
            ListResourceAdviceRequest,
            ResourceAdviceServiceClient,
        )

        tenant = self._project(sdk).metadata.parent_id
        ResourceAdviceServiceClient(sdk).list(ListResourceAdviceRequest(parent_id=tenant, page_size=1), **LIMITS).wait()


def _who(said: Any) -> str:
    if said.service_account_profile is not None:
        return str(said.service_account_profile.info.metadata.id)
    if said.user_profile is not None:
        return str(said.user_profile.attributes.email if said.user_profile.attributes else said.user_profile.id)
    return "nobody: an anonymous profile"
