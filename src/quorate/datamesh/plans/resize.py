"""Resize (facts/datamesh 3.13): the published size grows once every lower volume holds it; it never shrinks (S22)."""

from __future__ import annotations

from quorate.api.replicated_volume import Datamesh, TransitionGroup, TransitionType
from quorate.api.value import replace
from quorate.datamesh import confirm
from quorate.datamesh.context import Context
from quorate.datamesh.dsl import Kind, Plan, Slot, Step
from quorate.datamesh.guards import resize


def _grow(context: Context) -> Datamesh:
    datamesh = context.mesh.datamesh
    size = context.transition.size if context.transition is not None else None
    return replace(datamesh, size=size) if size is not None and size > datamesh.size else datamesh


RESIZE = Plan(
    type=TransitionType.RESIZE_VOLUME,
    plan_id="resize/v1",
    group=TransitionGroup.RESIZE,
    slot=Slot.VOLUME,
    display="Resizing volume",
    guards=(resize.some_disk_ready, resize.nothing_synchronises, resize.lower_volumes_fit),
    steps=(Step("resize", Kind.OTHER, _grow, confirm.by_all),),
)

PLANS = (RESIZE,)
