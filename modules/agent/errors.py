"""How the agent fails: a sentence for people and an exit code for systemd.  One exception, no tree: nobody catches one kind and not another."""

from __future__ import annotations

USAGE = 64
"""The command line is wrong."""
UNAVAILABLE = 69
"""The rendezvous service or a peer cannot be reached."""
MISSING = 70
"""Not all nodes came; the message names the missing."""
SYSTEM = 71
"""This machine lacks a program, a right or a kernel part."""
TOO_LARGE = 76
"""The tunnel's MTU is more than the path carries; the message names the peer, the MTU and what fits."""
REFUSED = 77
"""The service refused this node: wrong proof, replay, another key, a clock too far off."""
CONFIG = 78
"""The configuration is wrong."""
PAST_END = 75
"""The hard end, or a request to stop, came before the job could begin."""
FENCED = 79
"""A newer generation has taken over, or the run was ended, before the job could begin."""


class AgentError(Exception):
    """Ends the program with `code`."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Away(Exception):
    """What was asked may work later: no connection, a service that starts, is overloaded, or does not know us yet."""

    def __init__(self, message: str, *, word: str = "", retry_after: float | None = None) -> None:
        super().__init__(message)
        self.word = word
        self.retry_after = retry_after


class Denied(Exception):
    """A service's refusal (docs/node-protocol.md).  `word` is what to act on, `code` and the message are for people."""

    def __init__(self, word: str, message: str, *, code: str = "") -> None:
        super().__init__(message)
        self.word = word
        self.code = code

    @property
    def final(self) -> bool:
        """The run is over for this node: stop the job, end the node."""
        return self.word in {"fenced", "ended", "project"}
