"""What the stories of whole systems share."""

from __future__ import annotations

from quorate.api import conditions
from quorate.api.quantity import Quantity
from quorate.api.replicated_storage_class import ReplicatedStorageClass
from quorate.api.replicated_volume import DatameshMember, ReplicatedVolume
from quorate.api.replicated_volume_attachment import ReplicatedVolumeAttachment
from quorate.api.value import replace
from quorate.verification.system.data import check_contents
from quorate.verification.system.system import System
from quorate.verification.system.writer import Writer, acknowledging

LAYOUTS = ((0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (2, 1), (2, 2))


def layout_id(layout: tuple[int, int]) -> str:
    """Name of a layout in test ids."""
    ftt, gmdr = layout
    diskful = ftt + gmdr + 1
    return f"{diskful}D+1TB" if diskful % 2 == 0 and ftt == diskful // 2 else f"{diskful}D"


async def members(system: System, volume: str = "vol") -> tuple[DatameshMember, ...]:
    """Members of a volume."""
    return (await system.get(ReplicatedVolume, volume)).status.datamesh.members


async def diskful_nodes(system: System, volume: str = "vol") -> list[str]:
    """Nodes that hold a copy."""
    return [member.node_name for member in await members(system, volume) if member.type == "Diskful"]


async def node_without_copy(system: System, volume: str = "vol") -> str | None:
    """A node that has no member at all, if there is one."""
    used = {member.node_name for member in await members(system, volume)}
    return next((name for name in system.cluster.nodes if name not in used), None)


async def start_writer(system: System, node: str, volume: str = "vol") -> Writer:
    """Begin to write on an attached node."""
    replica = next(member.name for member in await members(system, volume) if member.node_name == node)
    writer = Writer(system, volume, node, replica)
    writer.start()
    await acknowledging(writer)
    return writer


async def set_size(system: System, size: str, volume: str = "vol") -> None:
    """Ask for a size and wait until it is there."""
    wanted = Quantity.parse(size)
    await system.edit(ReplicatedVolume, volume, lambda v: replace(v, spec=replace(v.spec, size=wanted)))

    async def grown() -> bool:
        return (await system.get(ReplicatedVolume, volume)).status.size == wanted

    await system.until(grown, 120, f"{volume} has {size}")


async def set_promise(system: System, ftt: int, gmdr: int, class_name: str = "fast") -> None:
    """Edit FTT and GMDR of a class."""

    def edited(found: ReplicatedStorageClass) -> ReplicatedStorageClass:
        spec = replace(found.spec, failures_to_tolerate=ftt, guaranteed_minimum_data_redundancy=gmdr)
        return replace(found, spec=spec)

    await system.edit(ReplicatedStorageClass, class_name, edited)


async def reached(system: System, ftt: int, gmdr: int, seconds: float = 900, volume: str = "vol") -> None:
    """Wait until a volume runs a promise and has converged to it."""

    async def there() -> bool:
        found = await system.get(ReplicatedVolume, volume)
        config = found.status.configuration
        promise = (config.failures_to_tolerate, config.guaranteed_minimum_data_redundancy) if config else None
        committed = (
            found.status.effective_layout.failures_to_tolerate,
            found.status.effective_layout.guaranteed_minimum_data_redundancy,
        )
        return promise == committed == (ftt, gmdr) and await system.is_converged(volume)

    await system.until(there, seconds, f"{volume} keeps FTT={ftt}, GMDR={gmdr}")


async def condition_of(system: System, attachment: str, type_: str) -> tuple[str, str, str]:
    """Status, reason and message of an attachment's condition."""
    found = await system.get(ReplicatedVolumeAttachment, attachment)
    value = conditions.get(found.status.conditions, type_)
    return (value.status, value.reason, value.message) if value is not None else ("", "", "")


async def healthy_again(system: System, seconds: float = 600, volume: str = "vol") -> None:
    """Wait until every copy is UpToDate, then compare the contents below everything."""
    await system.until(lambda: system.is_converged(volume), seconds, f"{volume} is healthy again")
    await check_contents(system, volume)


async def end_of_story(system: System, volume: str = "vol") -> None:
    """After each story: contents equal what was acknowledged, silence, deletion leaves nothing behind."""
    await system.clock.sleep(60)
    await check_contents(system, volume)
    await system.quiet()
    await system.delete(ReplicatedVolume, volume)
    await system.gone(ReplicatedVolume, volume)
    await system.clock.sleep(60)
    await system.check_no_orphans()
    await system.quiet()
