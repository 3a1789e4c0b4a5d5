"""To which addresses a token may be sent: an API's own over TLS, or this machine's; and whether two are of one server."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from planner.forges.telling import failed

_LOOPBACK = re.compile(r"localhost|127(?:\.\d{1,3}){3}|::1", re.IGNORECASE)


def is_near(url: str) -> bool:
    """Whether it is of this machine."""
    return bool(_LOOPBACK.fullmatch(urlsplit(url).hostname or ""))


def refuse_address(url: str) -> None:
    """Raises ForgeError (SKY-APPLY-336) on an address that no token may be sent to."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        parts, host = urlsplit(""), None
    bare = not (parts.username or parts.password or parts.query or parts.fragment)
    near = bool(host and is_near(url))
    if not host or not bare or not (parts.scheme == "https" or (parts.scheme == "http" and near)):
        shown = f"{parts.scheme}://{host}" if host else "what was given"
        raise failed("SKY-APPLY-336", f"{shown} is no address of an API that a token may be sent to")


def origin(url: str) -> tuple[str, str, int]:
    """Scheme, host and port; empty of what is no address or names a user."""
    try:
        parts = urlsplit(url)
        port = parts.port or {"https": 443, "http": 80}.get(parts.scheme, 0)
    except ValueError:
        return ("", "", 0)
    return (parts.scheme, "" if parts.username is not None else (parts.hostname or "").lower(), port)
