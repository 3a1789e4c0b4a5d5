"""Stacks as folders of native HCL.  Writes what differs and no other file: a lock file, variables, a backend's settings beside them are the user's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from stacks.hcl import FILES, HEADER


def write(folders: Mapping[str, Mapping[str, str]], out_dir: Path, *, whole: bool) -> tuple[Path, ...]:
    """Folder name -> file -> text, below `out_dir`.  Returns the files, in order.

    Files of ours that have no text any more are removed in these folders; with `whole` in all others too, where `folders` is all there is.  What is
    ours is known by its first line.
    """
    wanted = {out_dir / folder / name: text for folder, files in folders.items() for name, text in files.items()}
    tops = [out_dir / folder for folder in folders]
    if whole and out_dir.is_dir():
        tops = [folder for folder in out_dir.iterdir() if folder.is_dir()]
    for top in tops:
        for path in [*top.glob("*.tf"), *top.glob("*/*.tf")]:
            if path not in wanted and path.name in FILES and _ours(path):
                path.unlink()
                _drop_empty(path.parent, out_dir)
    for path, text in wanted.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        data = text.encode()
        if not path.is_file() or path.read_bytes() != data:
            path.write_bytes(data)
    return tuple(sorted(wanted))


def _ours(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(HEADER.encode())) == HEADER.encode()


def _drop_empty(folder: Path, stop: Path) -> None:
    while folder != stop and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent
