"""Is every acknowledged write where it must be? Looks below everything, at the simulated disks."""

from __future__ import annotations

from quorate.api.replicated_volume import ReplicatedVolume
from quorate.simulator.states import Disk
from quorate.verification.system.system import System


async def check_contents(system: System, volume: str = "vol") -> int:
    """Every UpToDate disk on a node with quorum holds every acknowledged write; the answer is the number of blocks checked.

    A disk that was current when its node went down is still called UpToDate while the node is alone, but without quorum
    nobody can read or write it there.
    Each replica has a DRBD resource name of its own on its node, so what the writers of all nodes were acknowledged is
    merged first: the newest value of a block is the one with the highest number.
    """
    found = await system.get(ReplicatedVolume, volume)
    names = {member.name: member.node_name for member in found.status.datamesh.members}
    truth = acknowledged(system, volume)
    for name, node_name in names.items():
        node = system.cluster.simulator.nodes[node_name]
        resource = node.kernel.resources.get(system.resource_of(name)) if node.running else None
        if resource is None:
            continue
        for kernel_volume in resource.volumes.values():
            if kernel_volume.disk is not Disk.UP_TO_DATE or kernel_volume.backing is None or not kernel_volume.quorum:
                continue
            device = kernel_volume.backing.device
            wrong = [block for block, value in truth.items() if device.read(block) < value]
            assert not wrong, f"{name} on {node_name} is UpToDate but lacks acknowledged blocks {wrong[:5]}"
    return len(truth)


def acknowledged(system: System, volume: str) -> dict[int, int]:
    """The newest acknowledged value of each block, over all nodes that ever wrote."""
    prefix = system.resource_of(f"{volume}-")
    truth: dict[int, int] = {}
    for name, ledger in system.cluster.simulator.ledgers():
        suffix = name.removeprefix(prefix)
        if not name.startswith(prefix) or not suffix.isdigit():
            continue
        for (_, block), value in ledger.acknowledged.items():
            truth[block] = max(truth.get(block, 0), value)
    return truth
