"""How stores and checkpoints fail.  Every message is for people and holds no credential; whoever catches one knows by its kind what may help."""

from __future__ import annotations


class StoreError(Exception):
    """A store did not do what was asked, and asking again at once is no use.  Root of what stores raise."""


class Absent(StoreError):
    """Nothing of that name is in the store."""


class Exists(StoreError):
    """Something of that name is in the store already; it was not touched."""


class CredentialRefused(StoreError):
    """The store refused the credential, and a fresh one too."""


class Invalid(Exception):
    """What was looked at is no checkpoint of this job.  `reason` is told to the record."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
