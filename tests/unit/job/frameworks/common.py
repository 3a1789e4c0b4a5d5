"""What the training programs share.  They are started by test_frameworks.py with a Python that has torch; they know of skyplan only what skyplan_job tells them."""

from __future__ import annotations

import json
import os
import time
import warnings
from pathlib import Path
from typing import Any

warnings.simplefilter("ignore")

STEPS = int(os.environ.get("TEST_STEPS", "24"))


def seeded() -> Any:
    """torch, on one thread and reproducible."""
    import torch

    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(7)
    return torch


def batch(torch: Any, step: int) -> tuple[Any, Any]:
    """The data of one step, the same in every run."""
    made = torch.Generator().manual_seed(1000 + step)
    x = torch.randn(16, 8, generator=made)
    return x, (x.sum(dim=1, keepdim=True) * 0.5).sin()


def net(torch: Any) -> Any:
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Dropout(0.1), torch.nn.Tanh(), torch.nn.Linear(16, 1))


def tell_loss(step: int, loss: float) -> None:
    """One line in one write: the test reads the curve, also of a process that was killed.  At TEST_HOLD the program waits for what is asked of it then."""
    with Path(os.environ["TEST_CURVE"]).open("a") as opened:
        opened.write(json.dumps([step, loss]) + "\n")
    end = time.monotonic() + 120
    while str(step) == os.environ.get("TEST_HOLD") and not Path(os.environ["SKYPLAN_CONTROL"]).exists():
        assert time.monotonic() < end
        time.sleep(0.01)
