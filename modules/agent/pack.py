"""Pack this program into one file: `python3 -m modules.agent.pack FILE` prints its SHA-256.  The same sources make the same bytes, anywhere.

Compressed by a compressor of its own, for zlib's output differs between versions and distributions: plain LZ77 with deflate's fixed codes, which every zlib reads.
"""

from __future__ import annotations

import argparse
import hashlib
import struct
import sys
import zlib
from pathlib import Path

_START = b"import sys\n\nfrom agent.__main__ import main\n\nsys.exit(main())\n"
_SHEBANG = b"#!/usr/bin/env python3\n"
_FOR_JOBS = "skyplan_job.py"
"""Goes with the agent, which puts it on the job's path; the agent itself never imports it."""
_DATE = 1 << 5 | 1  # 1980-01-01, the format's beginning
_WINDOW, _SHORTEST, _LONGEST, _TRIES = 32768, 3, 258, 48
_END = 256


def pack(target: str) -> str:
    """Write the archive; its SHA-256."""
    files = {"__main__.py": _START}
    here = Path(__file__)
    agent, job = here.parent, here.parents[1] / "job" / _FOR_JOBS
    for source in sorted(agent.rglob("*.py")):
        if source.name != here.name:
            files["agent/" + source.relative_to(agent).as_posix()] = source.read_bytes()
    files["job/" + _FOR_JOBS] = job.read_bytes()
    raw = _SHEBANG + archive(files, len(_SHEBANG))
    Path(target).write_bytes(raw)
    return hashlib.sha256(raw).hexdigest()


def archive(files: dict[str, bytes], offset: int) -> bytes:
    """A zip file that begins at `offset` of another."""
    body, directory = bytearray(), bytearray()
    for name, content in files.items():
        packed, at = deflated(content), offset + len(body)
        about = struct.pack(
            "<HHHHHIIIHH", 20, 0, 8, 0, _DATE, zlib.crc32(content), len(packed), len(content), len(name), 0
        )
        body += b"PK\3\4" + about + name.encode() + packed
        mode = 0o100644 << 16
        directory += b"PK\1\2" + struct.pack("<H", 3 << 8 | 20) + about + struct.pack("<HHHII", 0, 0, 0, mode, at)
        directory += name.encode()
    count = len(files)
    end = struct.pack("<HHHHIIH", 0, 0, count, count, len(directory), offset + len(body), 0)
    return bytes(body + directory) + b"PK\5\6" + end


def deflated(content: bytes) -> bytes:
    """A raw deflate stream of one block with fixed codes (RFC 1951, 3.2.6)."""
    out = _Bits()
    out.add(0b011, 3)  # the last block, fixed codes
    seen: dict[bytes, list[int]] = {}
    at = 0
    while at < len(content):
        length, distance = _match(content, at, seen.get(content[at : at + _SHORTEST], []))
        if length:
            _copy(out, length, distance)
        else:
            length = 1
            out.code(*_symbol(content[at]))
        for place in range(at, at + length):
            seen.setdefault(content[place : place + _SHORTEST], []).append(place)
        at += length
    out.code(*_symbol(_END))
    return out.done()


def _match(content: bytes, at: int, places: list[int]) -> tuple[int, int]:
    """The longest earlier text that goes on here: (length, distance), (0, 0) where there is none."""
    best, distance = _SHORTEST - 1, 0
    most = min(_LONGEST, len(content) - at)
    for place in reversed(places[-_TRIES:]):
        if at - place > _WINDOW or most <= best:
            break
        if content[place : place + best + 1] != content[at : at + best + 1]:
            continue
        best += 1
        while best < most and content[place + best] == content[at + best]:
            best += 1
        distance = at - place
    return (best, distance) if distance else (0, 0)


def _copy(out: _Bits, length: int, distance: int) -> None:
    symbol = max(s for s, (base, _) in _LENGTHS.items() if base <= length)
    base, extra = _LENGTHS[symbol]
    out.code(*_symbol(symbol))
    out.add(length - base, extra)
    symbol = max(s for s, (base, _) in _DISTANCES.items() if base <= distance)
    base, extra = _DISTANCES[symbol]
    out.code(symbol, 5)
    out.add(distance - base, extra)


def _symbol(symbol: int) -> tuple[int, int]:
    """(code, bits) of a literal or a length."""
    for first, code, bits in ((280, 0b11000000, 8), (256, 0, 7), (144, 0b110010000, 9), (0, 0b00110000, 8)):
        if symbol >= first:
            return code + symbol - first, bits
    raise ValueError(symbol)


def _ranges(first: int, base: int, extras: list[int]) -> dict[int, tuple[int, int]]:
    """Symbol -> (smallest value, extra bits)."""
    found: dict[int, tuple[int, int]] = {}
    for extra in extras:
        found[first] = (base, extra)
        first, base = first + 1, base + (1 << extra)
    return found


_LENGTHS = {**_ranges(257, 3, [0] * 8 + [e for e in range(1, 6) for _ in range(4)]), 285: (_LONGEST, 0)}
_DISTANCES = _ranges(0, 1, [0] * 4 + [e for e in range(1, 14) for _ in range(2)])


class _Bits:
    """Bits into bytes, lowest first; codes are written from their highest."""

    def __init__(self) -> None:
        self._out = bytearray()
        self._held = self._count = 0

    def add(self, value: int, bits: int) -> None:
        self._held |= value << self._count
        self._count += bits
        while self._count >= 8:  # noqa: PLR2004 - a byte
            self._out.append(self._held & 255)
            self._held >>= 8
            self._count -= 8

    def code(self, value: int, bits: int) -> None:
        self.add(int(f"{value:0{bits}b}"[::-1], 2), bits)

    def done(self) -> bytes:
        self.add(0, -self._count % 8)
        return bytes(self._out)


def main() -> int:
    """Pack into the file that is named; 1 where it cannot be written."""
    parser = argparse.ArgumentParser(description="Pack the agent into one file and print its SHA-256.")
    parser.add_argument("file", metavar="FILE", help="such as agent.pyz")
    chosen = parser.parse_args()
    try:
        sys.stdout.write(pack(chosen.file) + "\n")
    except OSError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
