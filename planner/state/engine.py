"""Opening the record's database: SQLite in a file by default, PostgreSQL by URL; brought to the newest schema on the way.

Decides connection settings and when to migrate.  Alembic is imported only where the schema is not the newest (its import alone is 0.2 s).
"""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.model.diagnostic import Diagnostic
from planner.model.errors import InputError, MissingPart

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

HEAD = "0004"
"""The newest migration; a test holds it to `migrations/versions`."""
BUSY_SECONDS = 30
CONNECT_SECONDS = 10
SILENT_SECONDS = 30
"""PostgreSQL on a host that is gone without a word: the kernel alone would wait a quarter of an hour for what was sent, and two hours where nothing was."""
CHECKPOINT_PAGES = 8192
"""32 MiB of log before SQLite writes it back: a report dirties about two pages, the same ones again and again, and by SQLite's own 1,000 pages each tenth batch
of a busy server wrote hundreds of them twice (64 nodes: a tenth of the CPU, 2026-11-30)."""
SERVERS_STATEMENTS = 512
"""Kept prepared by a server's connection to SQLite (`bulk.MOST_ROWS`)."""
#: key of PostgreSQL's advisory lock under which migrations run, so that two first starts do not both create tables
MIGRATION_LOCK = 0x5359504C


def sqlite_url(path: Path) -> str:
    """The URL of a SQLite record."""
    return f"sqlite:///{path}"


def open_engine(url: str, *, upgrade: bool = True, make: bool = True, connections: int = 0) -> Engine:
    """An engine on the newest schema.  `upgrade` False neither creates nor migrates: a record of another version is then refused.
    `make` False migrates one that is there and creates none.  `connections` of them are kept open, for a server; a command keeps none.

    Raises MissingPart without SQLAlchemy or the database's driver, InputError where the database cannot be used.
    """
    try:
        from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415 - slow; only with a record
    except ImportError as error:
        raise missing("SQLAlchemy", "record") from error
    engine = _engine(url, make=upgrade and make, connections=connections)
    try:
        with engine.connect() as connection:
            version = _version(connection)
        if version != HEAD:
            if version is None and not make:
                raise _nowhere(engine)
            if not upgrade:
                raise _refused(
                    f"the record has schema {version or 'none'}, this skyplan reads {HEAD}; `skyplan status` brings it up to date"
                )
            _migrate(engine)
    except SQLAlchemyError as error:
        engine.dispose()
        raise _refused(f"the record cannot be opened: {getattr(error, 'orig', None) or error}") from error
    except InputError:
        engine.dispose()
        raise
    return engine


def schema_of(url: str) -> str | None:
    """The schema of the record there, None where the database has none yet.  Makes and changes nothing in PostgreSQL.  Raises as `open_engine`."""
    try:
        from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415 - slow; only with a record
    except ImportError as error:
        raise missing("SQLAlchemy", "record") from error
    engine = _engine(url, make=False, connections=0)
    try:
        with engine.connect() as connection:
            return _version(connection)
    except SQLAlchemyError as error:
        raise _refused(f"the record cannot be opened: {getattr(error, 'orig', None) or error}") from error
    finally:
        engine.dispose()


def _engine(url: str, *, make: bool, connections: int) -> Engine:
    from sqlalchemy import create_engine, event  # noqa: PLC0415 - slow; only with a record
    from sqlalchemy.exc import ArgumentError  # noqa: PLC0415
    from sqlalchemy.pool import NullPool, QueuePool  # noqa: PLC0415

    if url.startswith(("postgres://", "postgresql://")):
        url = "postgresql+psycopg://" + url.split("://", 1)[1]
    # before it is used again, a kept connection is asked whether it still holds: a server of databases may have been started anew
    pool: dict[str, Any] = (
        {
            "poolclass": QueuePool,
            "pool_size": connections,
            "max_overflow": connections,
            "pool_pre_ping": not url.startswith("sqlite"),
        }
        if connections
        else {"poolclass": NullPool}
    )
    scheme = url.partition(":")[0].partition("+")[0]
    if "://" in url and scheme not in {"sqlite", "postgresql"}:
        raise _refused(
            f"SKYPLAN_DATABASE_URL begins with `{scheme}://`: a record lies in PostgreSQL (postgresql://user@host/name) or in SQLite (sqlite:///FILE)"
        )
    try:
        of_driver = _prepared() if connections and scheme == "sqlite" else _patience(url)
        engine = create_engine(url, **pool, **of_driver)
    except (ArgumentError, ValueError):  # whose words may be a part of a password
        raise _refused("SKYPLAN_DATABASE_URL is no database URL, such as postgresql://user@host/name") from None
    except ImportError as error:
        raise missing("psycopg", "postgres") from error
    if engine.dialect.name == "sqlite":
        path = Path(engine.url.database or "record.sqlite")
        if make:
            path.parent.mkdir(parents=True, exist_ok=True)
        elif not path.is_file():
            raise _nowhere(engine)
        event.listen(engine, "connect", _sqlite_connect)
        event.listen(engine, "begin", _sqlite_begin)
    return engine


def _prepared() -> dict[str, Any]:
    """How many statements a server's connection to SQLite keeps."""
    return {"connect_args": {"cached_statements": SERVERS_STATEMENTS}}


def _patience(url: str) -> dict[str, Any]:
    """How long PostgreSQL may be silent, where the URL does not say."""
    from sqlalchemy import make_url  # noqa: PLC0415 - slow; only with a record

    found = make_url(url)
    if found.drivername != "postgresql+psycopg":
        return {}
    ours = {
        "connect_timeout": CONNECT_SECONDS,
        "tcp_user_timeout": SILENT_SECONDS * 1000,
        "keepalives_idle": SILENT_SECONDS,
        "keepalives_interval": SILENT_SECONDS // 3,
        "keepalives_count": 3,
    }
    return {"connect_args": {name: value for name, value in ours.items() if name not in found.query}}


def _sqlite_connect(connection: Any, _record: Any) -> None:
    """Transactions are ours to begin (the driver's own start too late to be exclusive)."""
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}")
    _write_ahead(cursor)
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.close()


def _write_ahead(cursor: Any) -> None:
    """Turn the log on.  The first time needs the file alone, and SQLite does not wait for that by itself."""
    for tries in range(BUSY_SECONDS * 20, -1, -1):
        try:
            if cursor.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
                cursor.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            if not tries:
                raise
            time.sleep(0.05)
        else:
            return


def _sqlite_begin(connection: Connection) -> None:
    """A writer takes the write lock at once: what it reads then cannot change before it writes."""
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _version(connection: Connection) -> str | None:
    from sqlalchemy import inspect, text  # noqa: PLC0415 - slow; only with a record

    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


def _migrate(engine: Engine) -> None:
    try:
        from alembic import command  # noqa: PLC0415 - slow; only when the schema is old
        from alembic.config import Config  # noqa: PLC0415
    except ImportError as error:
        raise missing("alembic", "record") from error
    from sqlalchemy import text  # noqa: PLC0415

    with engine.connect().execution_options(writes=True) as connection, connection.begin():
        if engine.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": MIGRATION_LOCK})
        version = _version(connection)
        if version == HEAD:
            return  # another process was faster
        if version is not None and version > HEAD:
            raise _refused(f"the record has schema {version}, newer than this skyplan's {HEAD}; upgrade skyplan")
        config = Config()
        config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def missing(package: str, extra: str) -> MissingPart:
    """What to install."""
    summary = f"the record needs {package}; install the extra `{extra}` from your checkout of skyplan: pip install '.[{extra}]'"
    return MissingPart([Diagnostic(code="SKY-APPLY-316", summary=summary)])


def shown(url: str) -> str:
    """Which database, for people: a file's name, or a URL without its password."""
    from sqlalchemy import make_url  # noqa: PLC0415 - slow; only with a record
    from sqlalchemy.exc import ArgumentError  # noqa: PLC0415

    try:
        found = make_url(url)
    except (ArgumentError, ValueError):
        return "SKYPLAN_DATABASE_URL"
    if found.get_backend_name() == "sqlite":
        return found.database or ":memory:"
    where = f"{found.host or ''}{f':{found.port}' if found.port else ''}/{found.database or ''}"
    return f"postgresql://{f'{found.username}@' if found.username else ''}{where}"


def _nowhere(engine: Engine) -> InputError:
    where = shown(engine.url.render_as_string(hide_password=True))
    summary = f"there is no record yet in {where}; `skyplan apply` makes it"
    hint = "run it in the folder where the job was applied, or with the same SKYPLAN_DATABASE_URL"
    return InputError([Diagnostic(code="SKY-APPLY-319", summary=summary, hint=hint)])


def _refused(summary: str) -> InputError:
    return InputError([Diagnostic(code="SKY-APPLY-319", summary=summary)])
