"""AWS's words to a spot machine: `spot/instance-action` two minutes before it is taken, `rebalance` some time before, with no promise (EC2 guide, 2026-11).

AWS recommends to ask every five seconds.  A hibernating machine gets no two minutes; skyplan asks for none.  Never run on a live machine.
"""

from __future__ import annotations

import json
from typing import Any

from ..proofs import metadata  # noqa: TID252 - packed, there is no `modules` above
from ..proofs.metadata import NoAnswer  # noqa: TID252
from .times import from_iso

SESSION_SECONDS = 600
_NONE, _ENDED = 404, 401
_SPOT = "meta-data/spot/instance-action"
_REBALANCE = "meta-data/events/recommendations/rebalance"


class AwsWatcher:
    """Asks by a session that is renewed when the service says that it has ended."""

    def __init__(self) -> None:
        self._session = ""

    def poll(self) -> dict[str, Any] | None:
        """See the package."""
        action = self._asked(_SPOT)
        if action is not None:
            return {"what": "spot", "deadline": from_iso(str(action.get("time")))}
        if self._asked(_REBALANCE) is not None:
            return {"what": "rebalance", "deadline": None}
        return None

    def _asked(self, path: str) -> dict[str, Any] | None:
        """What stands there; None where nothing does."""
        for last in (False, True):
            self._session = self._session or metadata.aws_session(SESSION_SECONDS)
            try:
                found: dict[str, Any] = json.loads(metadata.aws(path, self._session))
            except NoAnswer as error:
                if error.status == _ENDED and not last:
                    self._session = ""
                    continue
                if error.status == _NONE:
                    return None
                raise
            except ValueError:
                return {}  # announced in words that are new to us: announced all the same
            return found if isinstance(found, dict) else {}  # pyright: ignore[reportUnnecessaryIsInstance]
        return None
