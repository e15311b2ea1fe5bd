"""Network changes (facts/datamesh 3.12): repair of addresses and change of the system networks.

From and to are captured at creation; a pool edited meanwhile is the business of the next transition.
"""

from __future__ import annotations

from quorate.api.replicated_volume import Datamesh, DatameshMember, TransitionGroup, TransitionType
from quorate.api.value import replace
from quorate.datamesh import confirm
from quorate.datamesh.context import Context
from quorate.datamesh.dsl import Guard, Kind, Plan, Slot, Step
from quorate.datamesh.guards import network
from quorate.datamesh.members import member_id
from quorate.datamesh.steps import addresses_on


def _reported(context: Context, member: DatameshMember, networks: tuple[str, ...]) -> DatameshMember:
    """The member with the addresses that its replica reports on these networks; unchanged when it reports none (S43)."""
    replica = context.world.replicas.get(member_id(member))
    if replica is None or replica.rvr is None:
        return member
    addresses = addresses_on(networks, replica.rvr.status.addresses)
    return replace(member, addresses=addresses) if addresses else member


def _with_members(datamesh: Datamesh, members: tuple[DatameshMember, ...]) -> Datamesh:
    return replace(datamesh, members=members) if members != datamesh.members else datamesh


def _repair(context: Context) -> Datamesh:
    datamesh = context.mesh.datamesh
    networks = datamesh.system_network_names
    return _with_members(datamesh, tuple(_reported(context, member, networks) for member in datamesh.members))


def _captured(context: Context) -> tuple[tuple[str, ...], tuple[str, ...]]:
    transition = context.transition
    assert transition is not None, "a step is applied for a transition"
    return transition.from_system_network_names or (), transition.to_system_network_names or ()


def _listen(context: Context) -> Datamesh:
    """Append the new networks; addresses follow once the agents listen."""
    datamesh = context.mesh.datamesh
    _, to = _captured(context)
    added = tuple(name for name in to if name not in datamesh.system_network_names)
    return replace(datamesh, system_network_names=(*datamesh.system_network_names, *added))


def _disconnect(context: Context) -> Datamesh:
    """Drop networks and addresses that are not wanted any more."""
    return _restricted(context.mesh.datamesh, _captured(context)[1])


def _restricted(datamesh: Datamesh, to: tuple[str, ...]) -> Datamesh:
    networks = tuple(name for name in datamesh.system_network_names if name in to)
    members = tuple(
        replace(member, addresses=tuple(a for a in member.addresses if a.system_network_name in to))
        for member in datamesh.members
    )
    return _with_members(replace(datamesh, system_network_names=networks), members)


def _listen_and_disconnect(context: Context) -> Datamesh:
    """Both at once: a network that stays carries the connections meanwhile (G38)."""
    return _restricted(_listen(context), _captured(context)[1])


def _plan(plan_id: str, display: str, guards: tuple[Guard, ...], *plan_steps: Step) -> Plan:
    return Plan(
        type=TransitionType.CHANGE_SYSTEM_NETWORKS,
        plan_id=plan_id,
        group=TransitionGroup.NETWORK,
        slot=Slot.VOLUME,
        display=display,
        guards=guards,
        steps=plan_steps,
    )


REPAIR = Plan(
    type=TransitionType.REPAIR_NETWORK_ADDRESSES,
    plan_id="repair/v1",
    group=TransitionGroup.NETWORK,
    slot=Slot.VOLUME,
    display="Repairing connectivity",
    guards=(network.addresses_in_sync,),
    steps=(Step("Repair", Kind.OTHER, _repair, confirm.by_connected),),
)

ADD = _plan(
    "add/v1",
    "Adding system networks",
    (),
    Step("Listen", Kind.OTHER, _listen, confirm.by_addresses),
    Step("Connect", Kind.OTHER, _repair, confirm.by_connected_on_added),
)
REMOVE = _plan(
    "remove/v1",
    "Removing system networks",
    (network.remaining_network_connected,),
    Step("Disconnect", Kind.OTHER, _disconnect, confirm.by_all),
)
UPDATE = _plan(
    "update/v1",
    "Updating system networks",
    (network.remaining_network_connected,),
    Step("Listen new & Disconnect old", Kind.OTHER, _listen_and_disconnect, confirm.by_addresses),
    Step("Connect", Kind.OTHER, _repair, confirm.by_connected_on_added),
)
MIGRATE = _plan(
    "migrate/v1",
    "Migrating system networks",
    (),
    Step("Listen new", Kind.OTHER, _listen, confirm.by_addresses),
    Step("Connect new", Kind.OTHER, _repair, confirm.by_connected_on_added),
    Step("Disconnect old", Kind.OTHER, _disconnect, confirm.by_all),
)

PLANS = (REPAIR, ADD, REMOVE, UPDATE, MIGRATE)
