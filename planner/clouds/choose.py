"""The adapter for a cloud."""

from __future__ import annotations

from planner.clouds.port import ResourceLister, Where
from planner.model.diagnostic import Diagnostic
from planner.model.errors import InputError


class RealClouds:
    """Listers by their SDKs, made once per place."""

    def __init__(self) -> None:
        self._listers: dict[Where, ResourceLister] = {}

    def lister(self, where: Where) -> ResourceLister:
        """See `Clouds`."""
        if where not in self._listers:
            if where.cloud != "aws":
                summary = f"machines on {where.cloud} cannot be listed yet"
                raise InputError([Diagnostic(code="SKY-APPLY-315", summary=summary)])
            from planner.clouds.aws import AwsLister  # noqa: PLC0415 - boto3

            self._listers[where] = AwsLister(where)
        return self._listers[where]
