"""Several Primaries: enable and disable (seed 004, part 5; facts/datamesh 3.11)."""

from __future__ import annotations

from quorate.api.replicated_volume import TransitionGroup, TransitionType
from quorate.datamesh import confirm, steps
from quorate.datamesh.dsl import Kind, Plan, Slot, Step


def _toggle(transition_type: str, plan_id: str, display: str, name: str, enabled: bool) -> Plan:
    return Plan(
        type=transition_type,
        plan_id=plan_id,
        group=TransitionGroup.MULTIATTACH,
        slot=Slot.VOLUME,
        display=display,
        guards=(),
        steps=(Step(name, Kind.OTHER, steps.set_multiattach(enabled), confirm.by_multiattach),),
    )


ENABLE = _toggle(
    TransitionType.ENABLE_MULTIATTACH,
    "enable-multiattach/v1",
    "Enabling multiattach",
    "Enable multiattach",
    True,
)
DISABLE = _toggle(
    TransitionType.DISABLE_MULTIATTACH,
    "disable-multiattach/v1",
    "Disabling multiattach",
    "Disable multiattach",
    False,
)

PLANS = (ENABLE, DISABLE)
