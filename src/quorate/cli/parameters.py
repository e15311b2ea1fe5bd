"""Types of command line values, with messages that name the fix."""

from __future__ import annotations

import click

from quorate.api import times
from quorate.api.quantity import Quantity
from quorate.datamesh.layout import MAX_LEVEL, is_valid


class SizeType(click.ParamType[Quantity]):
    """A size such as 10Gi."""

    name = "size"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Quantity:
        if isinstance(value, Quantity):
            return value
        try:
            found = Quantity.parse(str(value))
        except ValueError:
            self.fail(f"{value!r} is not a size; write for example 500Mi, 10Gi or 1Ti", param, ctx)
        if found.value <= 0:
            self.fail(f"{value!r} is not more than 0", param, ctx)
        return found


class DurationType(click.ParamType[float]):
    """A duration such as 90s or 10m."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        try:
            return times.parse_duration(str(value))
        except ValueError:
            self.fail(f"{value!r} is not a duration; write for example 30s, 5m or 1h", param, ctx)


SIZE = SizeType()
DURATION = DurationType()


def check_levels(ftt: int, gmdr: int) -> None:
    """Refuses a pair without a layout, naming the nearest that has one."""
    if is_valid(ftt, gmdr):
        return
    near = min(max(gmdr, ftt - 1, 0), ftt + 1, MAX_LEVEL)
    raise click.UsageError(
        f"--ftt {ftt} with --gmdr {gmdr} has no layout: both go from 0 to {MAX_LEVEL} and are at most 1 apart; "
        f"try --gmdr {near} (docs/layouts.md)"
    )
