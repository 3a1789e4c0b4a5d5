"""One manifest over the parts of several nodes.  The same parts always give the same bytes, so that a second attempt is no second checkpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .errors import Invalid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .manifest import File, Manifest


def merged(first: Manifest, parts: Sequence[Manifest], key: bytes) -> Manifest:
    """Signed, without a rank.  `parts` in order of rank.  Raises Invalid, naming the rank whose part does not fit."""
    files: dict[str, File] = {}
    for rank, part in enumerate(parts):
        place = (part.project, part.job, part.run, part.generation, part.step, part.uri, part.nodes)
        if (
            place != (first.project, first.job, first.run, first.generation, first.step, first.uri, len(parts))
            or part.rank != rank
        ):
            raise Invalid(f"the part of rank {rank} is of another checkpoint")
        if not part.holds(key):
            raise Invalid(f"the part of rank {rank} is not by this generation's key")
        for file in part.files:
            if files.setdefault(file.path, file) != file:
                raise Invalid(f"two nodes have another {file.path} each: names of files must differ from node to node")
    return first._replace(
        rank=None,
        created_at=max(part.created_at for part in parts),
        files=tuple(files[path] for path in sorted(files)),
    ).signed(key)
