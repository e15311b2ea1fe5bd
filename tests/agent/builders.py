"""Builders of the agent's tests: DRBDResources, and a cluster of simulated hosts to bring them about on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quorate.agent.broker import Broker
from quorate.agent.connects import Connects
from quorate.agent.converge import Converger, Outcome
from quorate.agent.host import Host
from quorate.agent.intended import IntendedDisk, Settings, compute_intended, kernel_name, new_device_uuid
from quorate.api.common import Address, Endpoint
from quorate.api.drbd_resource import DRBDResource, DRBDResourceSpec, Peer, PeerPath
from quorate.api.meta import ObjectMeta
from quorate.api.quantity import Quantity
from quorate.api.value import SharedSecret
from quorate.machinery.clock import LoopClock
from quorate.machinery.logs import Logger
from quorate.simulator.cluster import Cluster

MIB = 1024 * 1024
NODES = ("n0", "n1", "n2", "n3")
PORT = 7000


def silent(clock: LoopClock) -> Logger:
    return Logger(lambda entry: None, clock)


def address(node_id: int, port: int = PORT) -> Endpoint:
    return Endpoint(ipv4=f"10.0.0.{node_id + 1}", port=port)


def addresses(node_id: int) -> tuple[Address, ...]:
    return (Address(system_network_name="Internal", address=address(node_id)),)


def peer(node_id: int, *, diskful: bool = True, remote_read: bool = True, tie_breaker: bool = True) -> Peer:
    return Peer(
        name=f"rv-{node_id}",
        node_id=node_id,
        type="Diskful" if diskful else "Diskless",
        allow_remote_read=remote_read,
        tie_breaker=tie_breaker,
        shared_secret=SharedSecret("secret"),
        shared_secret_alg="SHA256",
        paths=(PeerPath(system_network_name="Internal", address=address(node_id)),),
    )


def drbdr(
    node_id: int,
    *,
    peers: Sequence[Peer] = (),
    diskful: bool = True,
    quorum: int = 32,
    redundancy: int = 32,
    primary: bool = False,
    state: str = "Up",
    size: int = 16 * MIB,
    two_primaries: bool = False,
) -> DRBDResource:
    return DRBDResource(
        metadata=ObjectMeta(name=f"rv-{node_id}", uid=f"uid-{node_id}", generation=1),
        spec=DRBDResourceSpec(
            node_name=NODES[node_id],
            node_id=node_id,
            system_networks=("Internal",),
            state="Down" if state == "Down" else "Up",
            quorum=quorum,
            quorum_minimum_redundancy=redundancy,
            size=Quantity.of(size) if diskful else None,
            role="Primary" if primary else "Secondary",
            allow_two_primaries=two_primaries,
            type="Diskful" if diskful else "Diskless",
            lvm_logical_volume_name=f"llv-{node_id}" if diskful else "",
            peers=tuple(peers),
        ),
    )


@dataclass
class Machine:
    """One simulated node with the parts of the agent that work without the API."""

    host: Host
    broker: Broker
    converger: Converger
    device: str

    async def converge(self, resource: DRBDResource, settings: Settings | None = None) -> Outcome:
        node_id = resource.spec.node_id
        diskful = resource.spec.type == "Diskful"
        disk = IntendedDisk(self.device, resource.status.device_uuid, new_device_uuid(resource)) if diskful else None
        intended = compute_intended(
            resource,
            name=kernel_name(resource),
            up=resource.spec.state == "Up",
            addresses=addresses(node_id),
            disk=disk,
            keep_disk=False,
            settings=settings or Settings(),
        )
        return await self.converger.converge(intended)


def machine(cluster: Cluster, name: str, *, size: int = 20 * MIB, settings: Settings | None = None) -> Machine:
    """A machine with a volume group and one logical volume."""
    node = cluster.node(name)
    node.lvm.add_group("vg", 400 * MIB)
    node.lvm.execute(["lvcreate", "-ay", "-n", "vg/lv", "-L", f"{size // 1024}k", "-y"])
    clock = LoopClock()
    log = silent(clock)
    host = cluster.host(name)
    broker = Broker(host, clock, log)
    return Machine(host, broker, Converger(broker, Connects(clock), settings or Settings(), log), "/dev/vg/lv")
