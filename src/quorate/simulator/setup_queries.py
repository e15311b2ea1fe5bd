"""The commands of `drbdsetup` that only look or wait: status, show, events2, short states, identifiers, waiting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from quorate.simulator import administration as admin
from quorate.simulator.errors import Refusal
from quorate.simulator.events import dump, stamp
from quorate.simulator.kernel import connection_of
from quorate.simulator.maintenance import identifiers
from quorate.simulator.model import Connection, PeerVolume, Resource
from quorate.simulator.options import OptionError
from quorate.simulator.result import OK, Result
from quorate.simulator.setup_arguments import Invocation
from quorate.simulator.states import Link, Replication
from quorate.simulator.status import Json, show_json, status_json
from quorate.simulator.text_output import show_text, status_text

if TYPE_CHECKING:
    from quorate.simulator.setup_tool import SetupTool

_NOTHING: Final = "# No currently configured DRBD found.\n"
TIMED_OUT: Final = Result(5)


def number(text: str) -> int:
    if not text.lstrip("-").isdigit():
        raise OptionError(f"'{text}' is not a number")
    return int(text)


def peer_of(tool: SetupTool, call: Invocation) -> PeerVolume:
    return admin.peer_volume_of(tool.resource(call), number(call.words[1]), number(call.words[2]))


def _selected(tool: SetupTool, call: Invocation) -> list[Resource] | None:
    """The resources asked for, None when a named one does not exist."""
    if not call.words or call.words[0] == "all":
        return [resource for _, resource in sorted(tool.kernel.resources.items())]
    found = tool.kernel.resources.get(call.words[0])
    return [found] if found is not None else None


def _laid_out(values: Sequence[Json], indent: int) -> str:
    return msgspec.json.format(msgspec.json.encode(values), indent=indent).decode() + "\n"


def status(tool: SetupTool, call: Invocation) -> Result:
    selected, as_json = _selected(tool, call), call.flag("json")
    if selected is None:
        return Result(10, "[\n]\n\n" if as_json else "", f"{call.words[0]}: No such resource\n")
    if as_json:
        return Result(0, _laid_out([status_json(resource) for resource in selected], indent=2))
    verbose, statistics = call.flag("verbose"), call.flag("statistics")
    texts = [status_text(resource, verbose=verbose, statistics=statistics) + "\n" for resource in selected]
    return Result(0, "".join(texts) or _NOTHING)


def show(tool: SetupTool, call: Invocation) -> Result:
    selected, absent = _selected(tool, call) or [], tool.kernel.module.absent
    if call.flag("json"):
        return Result(0, _laid_out([show_json(resource, absent) for resource in selected], indent=4))
    return Result(0, "".join(show_text(each, absent, defaults=call.flag("show-defaults")) + "\n" for each in selected))


def events2(tool: SetupTool, call: Invocation) -> Result:
    """The dump; without `--now` the stream is read through the host."""
    lines = dump(_selected(tool, call) or [], statistics=call.flag("statistics") or call.flag("full"))
    now = tool.kernel.clock.wall()
    return Result(0, "".join(f"{stamp(now, line) if call.flag('timestamps') else line}\n" for line in lines))


def role(tool: SetupTool, call: Invocation) -> Result:
    return Result(0, f"{tool.resource(call).role}\n")


def dstate(tool: SetupTool, call: Invocation) -> Result:
    volume = tool.kernel.minors.get(number(call.words[0]))
    if volume is None:
        return Result(10, "", f"{call.words[0]}: No such device\n")
    peers = reversed(volume.peers())  # as in every dump of the kernel: the newest connection first (S19 #78)
    return Result(0, "/".join([str(volume.disk), *(str(peer.disk) for peer in peers)]) + "\n")


def cstate(tool: SetupTool, call: Invocation) -> Result:
    connection = tool.resource(call).connections.get(number(call.words[1]))
    if connection is None:
        return Result(10, "", f"{call.words[0]}: No such connection\n")
    return Result(0, f"{connection.link}\n")


def get_gi(tool: SetupTool, call: Invocation) -> Result:
    try:
        peer = peer_of(tool, call)
    except Refusal:
        return Result(10, "", f"{call.words[0]}: No such peer device\n")
    return Result(0, identifiers(peer) + "\n")


# --- waiting -----------------------------------------------------------------------------------------------------


def _connections(tool: SetupTool, call: Invocation) -> list[Connection]:
    resource = tool.resource(call)
    if len(call.words) > 1:
        return [connection_of(resource, number(call.words[1]))]
    return list(resource.connections.values())


def _peers(tool: SetupTool, call: Invocation) -> list[PeerVolume]:
    if len(call.words) > 2:
        return [peer_of(tool, call)]
    return [peer for connection in _connections(tool, call) for peer in connection.peer_volumes.values()]


def _wait(tool: SetupTool, call: Invocation, done: Callable[[], bool]) -> Result:
    """Waits as long as it may; a connection that stands alone is not waited for (manual: `--wait-after-sb`)."""
    connections = _connections(tool, call)

    def ended() -> bool:
        return done() or (not call.flag("wait-after-sb") and any(c.link is Link.STAND_ALONE for c in connections))

    limit = call.options.get("wfc-timeout", 0)
    assert isinstance(limit, int)
    tool.wait(ended, limit)
    return OK if done() else TIMED_OUT


def wait_connect(tool: SetupTool, call: Invocation) -> Result:
    connections = _connections(tool, call)
    return _wait(tool, call, lambda: all(connection.link is Link.CONNECTED for connection in connections))


def wait_sync(tool: SetupTool, call: Invocation) -> Result:
    peers = _peers(tool, call)
    return _wait(tool, call, lambda: all(peer.replication is Replication.ESTABLISHED for peer in peers))
