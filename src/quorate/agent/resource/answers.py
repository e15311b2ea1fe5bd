"""The host's side of a decision: performs what `decide` asks for and answers with plain values."""

from __future__ import annotations

from typing import assert_never

from quorate.agent import commands
from quorate.agent.addresses import Place, Ports, PortsExhausted, with_port
from quorate.agent.broker import Broker, CommandUnavailable
from quorate.agent.converge import Converger, Outcome
from quorate.agent.intended import PREFIX, Intended, link_path
from quorate.agent.observe import ObservationFailed, observe_resource
from quorate.agent.plan import Problem
from quorate.agent.resource.requests import (
    AgentRequest,
    AllocatePorts,
    ClearOrphan,
    Converge,
    Look,
    PortsAnswer,
    Rename,
)
from quorate.api.common import Address, DrbdRole
from quorate.api.drbd_resource import ConfiguredCondition as Reason
from quorate.api.drbd_resource import DRBDResource
from quorate.machinery import errors
from quorate.machinery.client import Client
from quorate.machinery.effects import Answer, Request


class ResourceAnswers:
    """Answers the requests of the DRBDResource controller."""

    def __init__(self, broker: Broker, converger: Converger, ports: Ports) -> None:
        self._broker = broker
        self._converger = converger
        self._ports = ports
        self.client: Client | None = None
        """Set before the first request: the live read that precedes the end of an orphan."""

    async def answer(self, request: Request) -> Answer:
        if not isinstance(request, Converge | Look | Rename | ClearOrphan | AllocatePorts):
            raise TypeError(f"unknown request {request!r}")
        return await self._answer(request)

    async def _answer(self, request: AgentRequest) -> Outcome | Problem | PortsAnswer | None:
        match request:
            case Converge():
                return await self._converger.converge(request.intended)
            case Look():
                return await self._converger.observe(request.name)
            case Rename():
                return await self._rename(request)
            case ClearOrphan():
                return await self._clear_orphan(request.object_name)
            case AllocatePorts():
                return self._allocate(request)
            case _:
                assert_never(request)

    def _allocate(self, request: AllocatePorts) -> PortsAnswer:
        for ip, port in request.refused:
            self._ports.refuse(ip, port)
        found: list[Address] = []
        problem: Problem | None = None
        for place in request.places:
            try:
                found.append(self._port(request, place))
            except PortsExhausted as error:
                problem = Problem(Reason.FAILED, str(error))
        return PortsAnswer(tuple(found), problem)

    def _port(self, request: AllocatePorts, place: Place) -> Address:
        taken = frozenset(port for ip, port in (*request.taken, *request.refused) if ip == place.ipv4)
        return with_port(place, self._ports.allocate(request.resource, request.kernel_name, place.ipv4, taken))

    async def _rename(self, request: Rename) -> Problem | None:
        """Facts/agent 1.11; judged by which names exist afterwards."""
        try:
            result = await self._broker.run(request.new, commands.rename(request.old, request.new).argv)
        except CommandUnavailable as error:
            return Problem(Reason.RENAME_FAILED, str(error))
        code = commands.kernel_code(result)
        if result.exit_code == 0 or code == commands.RES_NOT_KNOWN:
            # Renamed now or earlier, or neither exists after a reboot: the normal flow goes on under the standard name.
            return None
        if code == commands.ALREADY_EXISTS:
            return Problem(Reason.RENAME_FAILED, f"{request.old} and {request.new} both exist on the node")
        return Problem(Reason.RENAME_FAILED, commands.error_text(result))

    async def _clear_orphan(self, name: str) -> Problem | None:
        """A resource under our prefix without an object: its object was force-deleted. Never while it is in use, and
        only after a live read says that there really is no such object."""
        kernel_name = PREFIX + name
        try:
            actual = await observe_resource(self._broker, kernel_name)
        except (ObservationFailed, CommandUnavailable) as error:
            return Problem(Reason.STATE_QUERY_FAILED, str(error))
        if actual is None:
            self._broker.forget(kernel_name)
            return None
        if await self._exists(name):
            return None
        if actual.role == DrbdRole.PRIMARY or actual.open:
            return Problem(Reason.DOWN_FAILED, f"{kernel_name} has no object and is in use: left alone")
        intended = Intended(kernel_name, actual.node_id, link_path(name), up=False)
        outcome = await self._converger.converge(intended)
        return outcome.problems[0] if outcome.problems else None

    async def _exists(self, name: str) -> bool:
        if self.client is None:
            return True
        try:
            await self.client.get(DRBDResource, name)
        except errors.NotFound:
            return False
        return True
