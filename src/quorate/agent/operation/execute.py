"""Running an operation on the host: guards from the observed state, the command, the judgement by state again."""

from __future__ import annotations

from quorate.agent import commands
from quorate.agent.actual import ActualPeer, ActualResource, ActualVolume
from quorate.agent.broker import Broker, CommandUnavailable
from quorate.agent.intended import PREFIX
from quorate.agent.observe import ObservationFailed, observe_resource
from quorate.agent.operation.decide import Ended, Execute, FindTarget, Inspect
from quorate.api.common import DiskState, DrbdRole
from quorate.api.drbd_resource import DRBDResource
from quorate.api.drbd_resource_operation import Phase
from quorate.machinery import errors
from quorate.machinery.client import Client
from quorate.machinery.effects import Answer, Request

VERIFYING = ("VerifyS", "VerifyT")
NOTHING_TO_COMPARE = "no connected peer with a disk to compare with"
TARGETS = ("StartingSyncT", "WFBitMapT", "SyncTarget", "PausedSyncT")


class Refused(Exception):
    """The operation is not safe now."""


class OperationAnswers:
    """Answers the requests of the operation controller."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._verified: dict[str, set[int]] = {}
        """Peers a running Verify has been started with, by uid of the operation."""
        self.client: Client | None = None

    async def answer(self, request: Request) -> Answer:
        if isinstance(request, FindTarget):
            return await self._find(request.resource)
        if isinstance(request, Inspect):
            return await self._inspect(request.execute)
        if isinstance(request, Execute):
            return await self._execute(request)
        raise TypeError(f"unknown request {request!r}")

    async def _find(self, name: str) -> DRBDResource | None:
        if self.client is None:
            return None
        try:
            return await self.client.get(DRBDResource, name)
        except errors.NotFound:
            return None

    async def _inspect(self, request: Execute) -> str:
        """Why the operation is not safe now; empty when it is."""
        try:
            actual, volume = await self._look(PREFIX + request.resource)
            guard(request.type, actual, volume)
        except (Refused, ObservationFailed, CommandUnavailable) as error:
            return str(error)
        return ""

    async def _execute(self, request: Execute) -> Ended:
        name = PREFIX + request.resource
        try:
            actual, volume = await self._look(name)
            match request.type:
                case "CreateNewUUID":
                    return await self._create_new_uuid(request, name, volume)
                case "Invalidate":
                    return await self._invalidate(request, name, actual, volume)
                case "Verify":
                    return await self._verify(request, name, actual)
                case "ForcePrimary":
                    return await self._force_primary(request, name, actual)
                case _:
                    return Ended(Phase.FAILED, f"{request.type} is not supported by this agent")
        except (Refused, ObservationFailed, CommandUnavailable) as error:
            return Ended(Phase.FAILED, str(error))

    async def _look(self, name: str) -> tuple[ActualResource, ActualVolume]:
        actual = await observe_resource(self._broker, name)
        if actual is None or actual.volume is None:
            raise Refused(f"{name} is not running on this node")
        return actual, actual.volume

    async def _run(self, name: str, argv: tuple[str, ...]) -> None:
        result = await self._broker.run(name, argv)
        if result.exit_code != 0:
            raise Refused(commands.error_text(result))

    async def _create_new_uuid(self, request: Execute, name: str, volume: ActualVolume) -> Ended:
        if volume.disk_state == DiskState.UP_TO_DATE:
            # The guards found a fresh disk before this was started: the command has run.
            return Ended(Phase.SUCCEEDED)
        argv = commands.new_current_uuid(
            volume.minor, clear_bitmap=request.clear_bitmap, force_resync=request.force_resync
        )
        await self._run(name, argv)
        _, after = await self._look(name)
        if (request.clear_bitmap or request.force_resync) and after.disk_state != DiskState.UP_TO_DATE:
            raise Refused(f"the command had no effect: the disk is {after.disk_state}")
        return Ended(Phase.SUCCEEDED)

    async def _invalidate(self, request: Execute, name: str, actual: ActualResource, volume: ActualVolume) -> Ended:
        syncing = any(peer.replication_state in TARGETS for peer in actual.peers)
        if syncing and volume.disk_state == DiskState.INCONSISTENT:
            return Ended(Phase.SUCCEEDED, "the disk is being synchronised")
        guard(request.type, actual, volume)
        await self._run(name, commands.invalidate(volume.minor))
        return Ended(Phase.SUCCEEDED)

    async def _verify(self, request: Execute, name: str, actual: ActualResource) -> Ended:
        """Against every connected diskful peer, one after the other; differences stay marked out of sync (U22)."""
        if any(peer.replication_state in VERIFYING for peer in actual.peers):
            return Ended(Phase.RUNNING)
        done = self._verified.setdefault(request.uid, set())
        for peer in comparable(actual):
            if peer.node_id not in done:
                done.add(peer.node_id)
                await self._run(name, commands.verify(name, peer.node_id))
                return Ended(Phase.RUNNING)
        if not done:
            raise Refused(NOTHING_TO_COMPARE)
        del self._verified[request.uid]
        different = {peer.name: peer.out_of_sync for peer in actual.peers if peer.node_id in done and peer.out_of_sync}
        if not different:
            return Ended(Phase.SUCCEEDED, f"{len(done)} peers compared, no difference")
        found = ", ".join(f"{each}: {size} bytes" for each, size in sorted(different.items()))
        return Ended(Phase.SUCCEEDED, f"out of sync: {found}")

    async def _force_primary(self, request: Execute, name: str, actual: ActualResource) -> Ended:
        if actual.role != DrbdRole.PRIMARY:
            if actual.quorum_option == "majority":
                # `majority` would let an isolated node win against the rest (S18); a number does not.
                await self._run(name, commands.resource_options(name, [("quorum", str(max(request.quorum, 1)))]).argv)
            await self._run(name, commands.force_primary(name))
        after, _ = await self._look(name)
        if after.role != DrbdRole.PRIMARY:
            raise Refused("the command had no effect: the role is still Secondary")
        return Ended(Phase.SUCCEEDED, "the local copy was declared current by an operator")


def comparable(actual: ActualResource) -> list[ActualPeer]:
    """Peers a verification can compare with."""
    return [p for p in actual.peers if p.connected and p.bitmap and p.replication_state == "Established"]


def guard(kind: str, actual: ActualResource, volume: ActualVolume) -> None:
    """Whether an operation is safe in this state; `Refused` says why not."""
    current = [peer.name for peer in actual.peers if peer.connected and peer.disk_state == DiskState.UP_TO_DATE]
    match kind:
        case "CreateNewUUID":
            # On a disk with data it would declare absent copies equal that are not.
            if volume.disk_state != DiskState.INCONSISTENT:
                raise Refused(f"the disk is {volume.disk_state}; a new generation is for fresh disks only")
            if current:
                raise Refused(f"{', '.join(current)} has UpToDate data already")
        case "Invalidate":
            if not current:
                raise Refused("no connected peer has UpToDate data: what is thrown away must exist elsewhere")
        case "Verify":
            if not comparable(actual):
                raise Refused(NOTHING_TO_COMPARE)
        case "ForcePrimary":
            if volume.disk_state == DiskState.UP_TO_DATE:
                raise Refused("the own disk is UpToDate: an ordinary promotion is the way")
            if not volume.attached:
                raise Refused("there is no local disk to declare current")
            if current:
                raise Refused(f"{', '.join(current)} has UpToDate data and is connected")
        case _:
            raise Refused(f"{kind} is not supported by this agent")
