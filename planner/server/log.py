"""The log: one JSON object a line, on stderr.  Decides what may be in it: named, bounded fields, never a header, a query, a body or an error's own words.

An exception is told by its type and where it was raised: messages of databases and parsers quote what they were given.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TextIO

MAX_FIELD: Final = 200


class Log:
    """Writes to `stream`; None is stderr as it is at that moment."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream

    def line(self, event: str, **fields: str | float | None) -> None:
        """One line."""
        body: dict[str, str | float] = {
            "at": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "event": event,
        }
        for name, value in fields.items():
            if value is not None:
                body[name] = value[:MAX_FIELD] if isinstance(value, str) else value
        stream = self._stream or sys.stderr
        stream.write(json.dumps(body) + "\n")
        stream.flush()

    def error(self, error: BaseException, **fields: str | float | None) -> None:
        """An exception that nobody expected."""
        frames = traceback.extract_tb(error.__traceback__)
        where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
        ours = next((f"{Path(f.filename).name}:{f.lineno}" for f in reversed(frames) if "planner" in f.filename), "")
        self.line("error", error=type(error).__name__, where=where, ours=ours, **fields)


class Bridge(logging.Handler):
    """Lines of the HTTP library: their level and logger only where they carry an exception, else their fixed text without what was filled in."""

    def __init__(self, log: Log) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """One line."""
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            self._log.error(error, logger=record.name)
        else:
            self._log.line("http", level=record.levelname.lower(), logger=record.name, text=str(record.msg))
