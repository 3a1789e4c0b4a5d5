"""Pack this program into one file: `python3 -m modules.agent.pack FILE` prints its SHA-256.  The same sources make the same bytes, anywhere.

Stored, not deflated: compressors differ between versions, and the whole is small.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import zipfile
from pathlib import Path

_START = b"import sys\n\nfrom agent.__main__ import main\n\nsys.exit(main())\n"
_SHEBANG = b"#!/usr/bin/env python3\n"
_BEGINNING = (1980, 1, 1, 0, 0, 0)


def pack(target: str) -> str:
    """Write the archive; its SHA-256."""
    files = {"__main__.py": _START}
    here = Path(__file__)
    for source in sorted(here.parent.glob("*.py")):
        if source.name != here.name:
            files[f"agent/{source.name}"] = source.read_bytes()
    with Path(target).open("wb") as opened:
        opened.write(_SHEBANG)
        with zipfile.ZipFile(opened, "w", zipfile.ZIP_STORED) as archive:
            for name, content in files.items():
                entry = zipfile.ZipInfo(name, _BEGINNING)
                entry.create_system = 3
                entry.external_attr = 0o100644 << 16
                archive.writestr(entry, content)
    return hashlib.sha256(Path(target).read_bytes()).hexdigest()


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
