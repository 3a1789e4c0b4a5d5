"""What is inside text that is packed: base64, gzip, and both, as user data is.  Opens, never judges; what is no text stays closed."""

from __future__ import annotations

import base64
import binascii
import re
import zlib

#: shorter text says nothing that was worth packing
_SHORTEST = 24
_BASE64 = re.compile(r"[A-Za-z0-9+/\s]+={0,2}\s*")
#: a document of 16 KiB packed is a few 100 KiB open; what opens into more is no user data (a bomb, rather)
_MOST_BYTES = 8 * 1024 * 1024
_GZIP = b"\x1f\x8b"
_RUNS_CONTAINERS = re.compile(r"""\b(?:docker|podman|nerdctl)[)"\\]*\s+run\b""")


def opened(text: str) -> str | None:
    """The text that is packed in this one; None where nothing is."""
    bare = text.strip()
    if len(bare) < _SHORTEST or not _BASE64.fullmatch(bare):
        return None
    try:
        data = base64.b64decode("".join(bare.split()), validate=True)
        if data.startswith(_GZIP):
            data = zlib.decompressobj(wbits=31).decompress(data, _MOST_BYTES)
        found = data.decode("utf-8")
    except (binascii.Error, zlib.error, UnicodeDecodeError, ValueError):
        return None
    return found if _is_text(found) else None


def _is_text(found: str) -> bool:
    return all(sign.isprintable() or sign in "\n\r\t" for sign in found)


def runs_containers(user_data: str) -> bool:
    """Whether what a machine boots starts containers, as far as its user data shows."""
    return bool(_RUNS_CONTAINERS.search(opened(user_data) or user_data))
