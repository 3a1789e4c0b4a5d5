"""A job's environment, as the agent makes it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

SOURCE = Path(__file__).parents[3] / "modules" / "job" / "skyplan_job.py"
KEY = bytes(range(32))


@pytest.fixture
def job() -> ModuleType:
    """The file, read anew: it remembers what it told and answered."""
    spec = importlib.util.spec_from_file_location("skyplan_job", SOURCE)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["skyplan_job"] = module  # `from __future__ annotations` and NamedTuple look it up
    spec.loader.exec_module(module)
    return module


def environment(folder: Path) -> dict[str, str]:
    """What docs/job-protocol.md says a job finds."""
    (folder / "key").write_text(KEY.hex() + "\n")
    (folder / "checkpoints").mkdir(exist_ok=True)
    return {
        "SKYPLAN_PROJECT_NAME": "acme",
        "SKYPLAN_JOB": "train",
        "SKYPLAN_RUN": "train-g3",
        "SKYPLAN_GENERATION": "3",
        "SKYPLAN_RANK": "0",
        "SKYPLAN_NODES": "1",
        "SKYPLAN_PROGRESS": str(folder / "progress"),
        "SKYPLAN_CONTROL": str(folder / "control.json"),
        "SKYPLAN_CHECKPOINTS": str(folder / "checkpoints"),
        "SKYPLAN_CHECKPOINT_URI": "s3://acme-ckpt/train/g3/",
        "SKYPLAN_CHECKPOINT_KEY_FILE": str(folder / "key"),
    }


@pytest.fixture
def seat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder; the environment is set."""
    for name, value in environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    for name in ("LOCAL_RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path
