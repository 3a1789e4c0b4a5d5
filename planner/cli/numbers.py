"""Numbers as options: a range that neither nan nor infinity is in.  click's own takes both, for neither is below the least nor above the most."""

from __future__ import annotations

import math
from typing import Any

import click


class Finite(click.FloatRange):
    """A number from `min` to `max`, which is never left open: what is done with an hour or a gigabyte has an end."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number.  Fails on what is none."""
        found = super().convert(value, param, ctx)
        if not math.isfinite(found):
            self.fail(f"{value} is no number that can be reckoned with.", param, ctx)
        return float(found)
