"""Guards of network changes (G37, G38). G4 and G39 have no source of data: which networks a node has shows when it listens."""

from __future__ import annotations

from quorate.datamesh import ids
from quorate.datamesh.confirm import established_on
from quorate.datamesh.context import Context
from quorate.datamesh.dsl import Block, guard


@guard("G37")
def addresses_in_sync(context: Context) -> Block | None:
    """Every member that reports addresses reports exactly the datamesh's networks."""
    networks = context.mesh.datamesh.system_network_names
    for replica_id in ids.iterate(context.mesh.all):
        rvr = context.world.replicas[replica_id].rvr
        if rvr is None or not rvr.status.addresses:
            continue
        reported = tuple(address.system_network_name for address in rvr.status.addresses)
        missing = [name for name in networks if name not in reported]
        extra = [name for name in reported if name not in networks]
        if missing or extra:
            return Block(
                f"addresses of #{replica_id} are out of sync with the system networks "
                f"(missing: {', '.join(missing) or 'none'}; extra: {', '.join(extra) or 'none'})"
            )
    return None


@guard("G38")
def remaining_network_connected(context: Context) -> Block | None:
    """A network goes only if one that stays connects all members (S44)."""
    transition = context.transition
    if context.world.pool is None:
        return Block("waiting for ReplicatedStoragePool to be available")
    if transition is None:
        return None
    before = transition.from_system_network_names or ()
    remaining = [name for name in transition.to_system_network_names or () if name in before]
    if not remaining:
        return Block("no common system network remains")
    if any(_connects_all(context, name) for name in remaining):
        return None
    return Block(f"no remaining system network connects all members ({', '.join(remaining)})")


def _connects_all(context: Context, network: str) -> bool:
    return all(
        established_on(context, replica_id, peer, network, 0)
        for replica_id in ids.iterate(context.mesh.all)
        for peer in ids.iterate(context.expected_peers(replica_id))
    )
