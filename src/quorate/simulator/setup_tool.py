"""`drbdsetup` on one node: routes a parsed command line to the model and words the answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from quorate.simulator import administration as admin
from quorate.simulator import setup_queries as queries
from quorate.simulator.blocks import BlockDevice
from quorate.simulator.errors import Refusal, compute_result
from quorate.simulator.kernel import Kernel, connection_of
from quorate.simulator.maintenance import Maintenance
from quorate.simulator.model import Resource
from quorate.simulator.operations import Operations
from quorate.simulator.options import OptionError
from quorate.simulator.result import OK, Result
from quorate.simulator.setup_arguments import Invocation, parse
from quorate.simulator.setup_queries import number

Handler = Callable[["SetupTool", Invocation], Result | None]


@dataclass(slots=True)
class SetupTool:
    """Runs `drbdsetup` lines. `find` gives the block device of a path, None when there is no such file; `wait` lets time
    pass until a condition holds, for at most so many seconds (0: as long as it takes)."""

    kernel: Kernel
    operations: Operations
    maintenance: Maintenance
    find: Callable[[str], BlockDevice | None]
    wait: Callable[[Callable[[], bool], float], bool]

    def execute(self, argv: Sequence[str]) -> Result:
        try:
            call = parse(argv, self.kernel.module.absent)
            if call.words and call.words[0] == "" and call.command == "new-resource":
                return Result(1, "", "Resource name is empty.\n")
            handler = HANDLERS[call.command]  # every command of the grammar has one (a test holds that)
            if call.command in _READS_BITMAPS and self.kernel.freed:
                return Result(137, "", "")  # S15b: the kernel oopses and kills the caller
            return handler(self, call) or OK
        except OptionError as error:
            return Result(20, "", f"{error}\n")
        except Refusal as refusal:
            return compute_result(argv[1] if len(argv) > 1 and not argv[1].startswith("-") else _subject(argv), refusal)

    def resource(self, call: Invocation) -> Resource:
        return self.kernel.resource(call.words[0])


def _subject(argv: Sequence[str]) -> str:
    return next((word for word in argv[1:] if not word.startswith("-")), "")


def _new_resource(tool: SetupTool, call: Invocation) -> None:
    admin.new_resource(tool.kernel, call.words[0], number(call.words[1]), call.options)


def _resource_options(tool: SetupTool, call: Invocation) -> None:
    admin.resource_options(tool.kernel, tool.resource(call), call.options, reset=call.reset)


def _new_minor(tool: SetupTool, call: Invocation) -> Result | None:
    name, minor, volume = call.words
    resource = tool.kernel.resource(name)
    if number(minor) in tool.kernel.minors:
        note = f"new-minor {name} {minor} {volume}: sysfs node '/sys/devices/virtual/block/drbd{minor}'"
        answer = compute_result(name, Refusal(161))
        return Result(answer.exit_code, "", f"{note} (already? still?) exists\n{answer.stderr}")
    admin.new_minor(tool.kernel, resource, number(minor), number(volume), call.options)
    return None


def _attach(tool: SetupTool, call: Invocation) -> Result | None:
    minor, path = call.words[0], call.words[1]
    device = tool.find(path)
    if device is None:
        known = path in ("/dev/null", "/dev/zero")
        text = f"{path} is not a block device!" if known else f"Can not open device '{path}': No such file or directory"
        return Result(20, "", f"{text}\n")
    tool.operations.attach(tool.kernel, tool.kernel.volume(number(minor)), path, device, call.options)
    return None


def _detach(tool: SetupTool, call: Invocation) -> None:
    volume = tool.kernel.volume(number(call.words[0]))
    force, diskless = call.flag("force"), call.flag("diskless")
    tool.operations.detach(tool.kernel, volume, "detach", force=force, diskless=diskless)


def _disk_options(tool: SetupTool, call: Invocation) -> None:
    admin.disk_options(tool.kernel.volume(number(call.words[0])), call.options, reset=call.reset)


def _new_peer(tool: SetupTool, call: Invocation) -> None:
    admin.new_peer(tool.kernel, tool.resource(call), number(call.words[1]), call.options)


def _net_options(tool: SetupTool, call: Invocation) -> None:
    connection = connection_of(tool.resource(call), number(call.words[1]))
    admin.net_options(tool.kernel, connection, call.options, reset=call.reset)
    tool.operations.copy_settings(connection)


def _peer_device_options(tool: SetupTool, call: Invocation) -> None:
    peer = admin.peer_volume_of(tool.resource(call), number(call.words[1]), number(call.words[2]))
    admin.peer_device_options(peer, call.options, reset=call.reset)


def _new_path(tool: SetupTool, call: Invocation) -> None:
    local, remote = admin.parse_address(call.words[2]), admin.parse_address(call.words[3])
    admin.new_path(tool.kernel, connection_of(tool.resource(call), number(call.words[1])), local, remote)


def _del_path(tool: SetupTool, call: Invocation) -> None:
    local, remote = admin.parse_address(call.words[2]), admin.parse_address(call.words[3])
    admin.del_path(tool.kernel, connection_of(tool.resource(call), number(call.words[1])), local, remote)


def _connect(tool: SetupTool, call: Invocation) -> None:
    connection = connection_of(tool.resource(call), number(call.words[1]))
    tool.operations.connect(tool.kernel, connection, discard=call.flag("discard-my-data"))


def _disconnect(tool: SetupTool, call: Invocation) -> None:
    connection = connection_of(tool.resource(call), number(call.words[1]))
    tool.operations.disconnect(tool.kernel, connection, "disconnect", force=call.flag("force"))


def _del_peer(tool: SetupTool, call: Invocation) -> None:
    connection = connection_of(tool.resource(call), number(call.words[1]))
    tool.operations.del_peer(tool.kernel, connection, force=call.flag("force"))


def _forget_peer(tool: SetupTool, call: Invocation) -> None:
    admin.forget_peer(tool.resource(call), number(call.words[1]))


def _primary(tool: SetupTool, call: Invocation) -> None:
    force = call.flag("force") or call.flag("overwrite-data-of-peer")
    tool.operations.primary(tool.kernel, tool.resource(call), force=force)


def _secondary(tool: SetupTool, call: Invocation) -> None:
    tool.operations.secondary(tool.kernel, tool.resource(call), force=call.flag("force"))


def _down(tool: SetupTool, call: Invocation) -> None:
    name = call.words[0] if call.words else "all"
    names = sorted(tool.kernel.resources) if name == "all" else [name]
    for each in names:
        if each in tool.kernel.resources:  # an unknown resource is already down (S15)
            tool.operations.down(tool.kernel, tool.kernel.resources[each])


def _new_current_uuid(tool: SetupTool, call: Invocation) -> None:
    volume = tool.kernel.volume(number(call.words[0]))
    clear, resync = call.flag("clear-bitmap"), call.flag("force-resync")
    tool.operations.new_current_uuid(tool.kernel, volume, clear=clear, resync=resync)


def _del_minor(tool: SetupTool, call: Invocation) -> None:
    admin.del_minor(tool.kernel, tool.kernel.volume(number(call.words[0])))


def _del_resource(tool: SetupTool, call: Invocation) -> None:
    admin.del_resource(tool.kernel, tool.resource(call))


def _rename(tool: SetupTool, call: Invocation) -> None:
    admin.rename_resource(tool.kernel, tool.resource(call), call.words[1])


def _resize(tool: SetupTool, call: Invocation) -> None:
    volume = tool.kernel.volume(number(call.words[0]))
    sectors = call.options.get("size", 0)
    assert isinstance(sectors, int)
    space, clean = call.flag("assume-peer-has-space"), call.flag("assume-clean")
    tool.maintenance.resize(tool.kernel, volume, sectors=sectors, assume_space=space, assume_clean=clean)


def _suspend_io(tool: SetupTool, call: Invocation) -> None:
    tool.maintenance.suspend(tool.kernel, tool.kernel.volume(number(call.words[0])))


def _resume_io(tool: SetupTool, call: Invocation) -> None:
    tool.maintenance.resume(tool.kernel, tool.kernel.volume(number(call.words[0])))


def _pause_sync(tool: SetupTool, call: Invocation) -> None:
    tool.maintenance.pause(tool.kernel, queries.peer_of(tool, call), paused=True)


def _resume_sync(tool: SetupTool, call: Invocation) -> None:
    tool.maintenance.pause(tool.kernel, queries.peer_of(tool, call), paused=False)


def _invalidate(tool: SetupTool, call: Invocation) -> None:
    source = call.options.get("sync-from-peer-node-id", -1)
    assert isinstance(source, int)
    volume, whole = tool.kernel.volume(number(call.words[0])), call.options.get("reset-bitmap") is not False
    tool.maintenance.invalidate(tool.kernel, volume, source, whole=whole)


def _invalidate_remote(tool: SetupTool, call: Invocation) -> None:
    whole = call.options.get("reset-bitmap") is not False
    tool.maintenance.invalidate_remote(queries.peer_of(tool, call), whole=whole)


def _outdate(tool: SetupTool, call: Invocation) -> None:
    tool.maintenance.outdate(tool.kernel, tool.kernel.volume(number(call.words[0])))


def _verify(tool: SetupTool, call: Invocation) -> None:
    start, stop = call.options.get("start", 0), call.options.get("stop", 0)
    assert isinstance(start, int)
    assert isinstance(stop, int)
    tool.maintenance.verify(tool.kernel, queries.peer_of(tool, call), start_sector=start, stop_sector=stop)


def _check_resize(tool: SetupTool, call: Invocation) -> None:
    """Compares the remembered size of the lower device with its present one; nothing to be seen."""
    tool.kernel.volume(number(call.words[0]))


HANDLERS: dict[str, Handler] = {
    "new-resource": _new_resource,
    "resource-options": _resource_options,
    "new-minor": _new_minor,
    "attach": _attach,
    "detach": _detach,
    "disk-options": _disk_options,
    "new-peer": _new_peer,
    "net-options": _net_options,
    "peer-device-options": _peer_device_options,
    "new-path": _new_path,
    "del-path": _del_path,
    "connect": _connect,
    "disconnect": _disconnect,
    "del-peer": _del_peer,
    "forget-peer": _forget_peer,
    "primary": _primary,
    "secondary": _secondary,
    "down": _down,
    "new-current-uuid": _new_current_uuid,
    "del-minor": _del_minor,
    "del-resource": _del_resource,
    "rename-resource": _rename,
    "status": queries.status,
    "show": queries.show,
    "role": queries.role,
    "dstate": queries.dstate,
    "cstate": queries.cstate,
    "resize": _resize,
    "suspend-io": _suspend_io,
    "resume-io": _resume_io,
    "pause-sync": _pause_sync,
    "resume-sync": _resume_sync,
    "invalidate": _invalidate,
    "invalidate-remote": _invalidate_remote,
    "outdate": _outdate,
    "verify": _verify,
    "check-resize": _check_resize,
    "get-gi": queries.get_gi,
    "show-gi": queries.get_gi,
    "wait-connect-resource": queries.wait_connect,
    "wait-connect-connection": queries.wait_connect,
    "wait-connect-volume": queries.wait_connect,
    "wait-sync-resource": queries.wait_sync,
    "wait-sync-connection": queries.wait_sync,
    "wait-sync-volume": queries.wait_sync,
    "events2": queries.events2,
}

_READS_BITMAPS = frozenset({"status", "show", "new-peer", "events2"})
