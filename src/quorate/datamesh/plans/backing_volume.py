"""Change of the backing volume: the disk is given up, the member gets its new volume group, the new disk is synchronised.

The vote stays, so q and the voters do not change; what is lost meanwhile is one copy and with it one failure to tolerate.
Hence the guards that protect copies apply, those that count votes do not.
"""

from __future__ import annotations

from quorate.api.replicated_volume import TransitionGroup, TransitionType
from quorate.datamesh.dsl import Plan, Slot
from quorate.datamesh.guards import joining, leaving, zones
from quorate.datamesh.plans import macros

COPY_GUARDS = (
    leaving.attached_keeps_disk_when_local,
    leaving.enough_copies_remain,
    zones.keeps_zone_redundancy_when_leaving,
)

CHANGE_BACKING_VOLUME = Plan(
    type=TransitionType.CHANGE_REPLICA_TYPE,
    plan_id="change-backing-volume/v1",
    group=TransitionGroup.VOTING_MEMBERSHIP,
    slot=Slot.MEMBERSHIP,
    display="Changing backing volume",
    guards=(joining.volume_group_known, *COPY_GUARDS),
    steps=(macros.detach_disk(COPY_GUARDS), macros.change_volume(COPY_GUARDS), macros.ATTACH_DISK),
    done="Changed backing volume",
)

PLANS = (CHANGE_BACKING_VOLUME,)
