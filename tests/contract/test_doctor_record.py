"""R22: what `skyplan doctor` says of a record, the same on both databases, and that looking changes none."""

from __future__ import annotations

import pytest
from sqlalchemy import create_engine, text

from planner.app import doctor_record
from planner.state.engine import HEAD, schema_of

WORDS = {None: "skipped", "0001": "warn", HEAD: "ok", "9999": "fail"}


def driver(url: str) -> str:
    return url.replace("postgresql://", "postgresql+psycopg://")


@pytest.mark.parametrize("version", ["0001", HEAD, "9999"])
def test_a_record_of_every_version_is_judged_and_left(made: str, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    engine = create_engine(driver(made))
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = :v"), {"v": version})
    monkeypatch.setenv("SKYPLAN_DATABASE_URL", made)
    (row,) = doctor_record.record()
    assert row.state.value == WORDS[version], row
    with engine.connect() as connection:
        assert connection.execute(text("SELECT version_num FROM alembic_version")).scalar() == version
    engine.dispose()


def test_a_database_without_a_record_gets_none(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKYPLAN_DATABASE_URL", database)
    (row,) = doctor_record.record()
    assert row.state.value == "skipped", row
    if database.startswith("postgresql"):
        assert schema_of(database) is None
        assert schema_of(database) is None, "and none was made by looking"
