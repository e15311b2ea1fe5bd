"""Builders of the agent's tests: DRBDResources, and a cluster of simulated hosts to bring them about on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from quorate.agent.broker import Broker
from quorate.agent.converge import Converger, Outcome
from quorate.agent.host import CommandResult
from quorate.agent.intended import IntendedDisk, Settings, compute_intended, kernel_name, new_device_uuid
from quorate.agent.patience import Patience
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

    host: WatchedHost
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
    host = WatchedHost(cluster, name)
    broker = Broker(host, clock, log)
    return Machine(host, broker, Converger(broker, Patience(clock), settings or Settings(), log), "/dev/vg/lv")


class WatchedHost:
    """A simulated host that keeps the command lines and refuses forbidden ones: a test of the agent's order.

    Looks into the simulated kernel before every command, so the rules are checked against the truth and not against
    what the agent believes.
    """

    def __init__(self, cluster: Cluster, name: str) -> None:
        self._cluster = cluster
        self._host = cluster.host(name)
        self.name = name
        self.log: list[tuple[str, ...]] = []
        self._probed: set[str] = set()
        self._said: set[tuple[str, str]] = set()

    async def run(self, argv: Sequence[str], *, timeout: float, stdin: str = "") -> CommandResult:  # noqa: ASYNC109
        self._check(tuple(argv))
        self.log.append(tuple(argv))
        result = await self._host.run(argv, timeout=timeout, stdin=stdin)
        self._note(tuple(argv), result)
        return result

    def lines(self, argv: Sequence[str]) -> AsyncIterator[str]:
        return self._host.lines(argv)

    def read_text(self, path: str) -> str | None:
        return self._host.read_text(path)

    def write_text(self, path: str, text: str) -> bool:
        return self._host.write_text(path, text)

    def read_link(self, path: str) -> str | None:
        return self._host.read_link(path)

    def make_link(self, path: str, target: str) -> None:
        self._host.make_link(path, target)

    def remove(self, path: str) -> None:
        self._host.remove(path)

    def list_dir(self, path: str) -> tuple[str, ...]:
        return self._host.list_dir(path)

    def changes(self) -> list[tuple[str, ...]]:
        """The commands that change something."""
        reading = {"status", "show", "dump-md", "read-dev-uuid"}
        return [argv for argv in self.log if not reading & set(argv)]

    def _check(self, argv: tuple[str, ...]) -> None:
        verb = argv[1] if argv[0] == "drbdsetup" else next((word for word in argv if word.endswith("-md")), "")
        kernel = self._cluster.node(self.name).kernel
        if verb == "primary":
            assert "--force" not in argv, "a promotion is never forced"
        if verb == "attach":
            volume = kernel.minors[int(argv[2])]
            assert volume.backing is None, "attach of an attached minor can crash the node"
            assert argv[3] in self._probed, "the disk was not looked at right before"
            self._probed.clear()
        if verb == "create-md":
            assert "--force" not in argv, "metadata is never overwritten"
        if verb == "down":
            resource = kernel.resources.get(argv[2])
            opened = resource is not None and any(volume.openers for volume in resource.volumes.values())
            assert not opened, "down with an opener dismantles half a resource"
        if verb == "connect":
            assert ("peer-device-options", argv[3]) in self._said or ("new-peer", argv[3]) not in self._said, (
                "peer options stand before the first connection"
            )

    def _note(self, argv: tuple[str, ...], result: CommandResult) -> None:
        if "dump-md" in argv and result.exit_code == 0:
            self._probed.add(argv[3])
        if argv[:2] == ("drbdsetup", "down"):
            self._said.clear()
        if argv[0] == "drbdsetup" and argv[1] in ("new-peer", "peer-device-options") and result.exit_code == 0:
            self._said.add((argv[1], argv[3]))
