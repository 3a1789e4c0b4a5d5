"""The WireGuard key of this node.  Made here by `wg genkey`, straight into a file that only root reads.

The private half passes through no argument, no log, no pipe and no memory of this program.  Whoever knows the node by its public half (the rendezvous, an operator's
list) knows it until the file is gone: `/run` forgets it with the machine.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from . import files
from .commands import COMMAND_SECONDS, run
from .errors import SYSTEM, AgentError


def key_file(run_folder: str, interface: str) -> Path:
    """Where the private key is."""
    return Path(run_folder) / f"{interface}.key"


def public_key(run_folder: str, interface: str) -> str:
    """The public half of this node's key, which is made on the first call and kept."""
    files.folder(run_folder)
    path = key_file(run_folder, interface)
    if not os.path.lexists(path):
        _make(path)
    files.private(path)
    with path.open("rb") as opened:
        return run("wg", "pubkey", stdin=opened.fileno()).strip()


def _make(path: Path) -> None:
    new = path.with_name(f"{path.name}.{os.getpid()}")
    target = files.create(new)
    try:
        done = subprocess.run(
            ["wg", "genkey"],
            stdin=subprocess.DEVNULL,
            stdout=target,
            stderr=subprocess.PIPE,
            timeout=COMMAND_SECONDS,
            check=False,
        )
        if done.returncode:
            raise AgentError(SYSTEM, f"`wg genkey` failed: {done.stderr.decode(errors='replace').strip()}")
        os.fsync(target)
        new.rename(path)
    except FileNotFoundError as error:
        raise AgentError(SYSTEM, "`wg` is not installed (wireguard-tools)") from error
    finally:
        os.close(target)
        files.forget(new)
