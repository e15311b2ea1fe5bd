"""`quorate volume`: thin helpers that write the same objects kubectl would."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import click

from quorate.api import conditions, labels, names
from quorate.api.meta import Object, ObjectMeta
from quorate.api.quantity import Quantity
from quorate.api.replicated_storage_class import ReplicatedStorageClass
from quorate.api.replicated_volume import (
    TOPOLOGIES,
    VOLUME_ACCESSES,
    MembershipLayoutConvergedCondition,
    ReplicatedVolume,
    ReplicatedVolumeSpec,
    VolumeConfiguration,
)
from quorate.api.replicated_volume_attachment import (
    ReadyCondition,
    ReplicatedVolumeAttachment,
    ReplicatedVolumeAttachmentSpec,
)
from quorate.api.value import replace
from quorate.api.wire import merge_patch
from quorate.cli.common import Refused, cluster_options, connected, output_options, run
from quorate.cli.output import emit
from quorate.cli.parameters import DURATION, SIZE, check_levels
from quorate.cli.waiting import wait_for
from quorate.datamesh.layout import MAX_LEVEL, layout_of
from quorate.explain.attachments import explain_attachment
from quorate.explain.causes import Explanation
from quorate.explain.survival import is_formed
from quorate.explain.view import ClusterView
from quorate.machinery import errors

if TYPE_CHECKING:
    from quorate.machinery.client import Client

K = TypeVar("K", bound=Object)
F = TypeVar("F", bound=Callable[..., object])
ATTEMPTS = 5
LEVEL = click.IntRange(0, MAX_LEVEL)


def action_options(function: F) -> F:
    """Adds --wait, --timeout and --dry-run."""
    for option in (
        click.option("--dry-run", is_flag=True, help="Let the API check it, change nothing."),
        click.option("--timeout", type=DURATION, default="10m", show_default=True, help="How long --wait waits."),
        click.option("--wait", is_flag=True, help="Wait until it is done; says what it waits for."),
    ):
        function = option(function)
    return function


class Action:
    """What the options of an action say, and what all actions have in common."""

    def __init__(self, kubeconfig: str, context: str, output: str, wait: bool, timeout: float, dry_run: bool) -> None:
        self._cluster = (kubeconfig, context)
        self._output = output
        self.waits = wait and not dry_run
        self.timeout = timeout
        self.dry_run = dry_run

    def run(self, work: Callable[[Client, Action], Awaitable[tuple[Object | None, str]]]) -> None:
        """Do the work, then print the object (or nothing) and the sentence."""

        async def main() -> tuple[Object | None, str]:
            async with connected(*self._cluster) as client:
                return await work(client, self)

        found, sentence = run(main)
        text = f"{sentence} (dry run)" if self.dry_run else sentence
        emit(self._output, found, lambda: [text])


@click.group(
    "volume",
    epilog="""\b
Examples:
  quorate volume create data --class fast --size 10Gi --wait
  quorate volume attach data --node node-2 --wait
  quorate volume set-layout data --ftt 2 --gmdr 1 --manual --wait
  quorate volume detach data && quorate volume delete data""",
)
def command() -> None:
    """Create, attach, detach, resize, change or delete a volume.

    Each command writes the same objects kubectl would, once; controllers do the rest.
    """


@command.command("create", epilog="Example: quorate volume create data --class fast --size 10Gi --wait")
@click.argument("name")
@click.option("--size", type=SIZE, required=True, help="Usable size, for example 10Gi.")
@click.option(
    "--class", "class_name", default="", metavar="NAME", help="ReplicatedStorageClass that decides the layout."
)
@click.option(
    "--pool", default="", metavar="NAME", help="Instead of a class: a pool, with --ftt and --gmdr (Manual mode)."
)
@click.option("--ftt", type=LEVEL, help="Manual mode: nodes that may fail without stopping I/O.")
@click.option("--gmdr", type=LEVEL, help="Manual mode: further copies that every write has.")
@click.option("--topology", type=click.Choice(TOPOLOGIES), default="Ignored", show_default=True, help="Manual mode.")
@click.option(
    "--access", type=click.Choice(VOLUME_ACCESSES), default="PreferablyLocal", show_default=True, help="Manual mode."
)
@click.option("--max-attachments", type=click.IntRange(1, 32), default=1, show_default=True)
@cluster_options
@output_options
@action_options
def create(
    name: str,
    size: Quantity,
    class_name: str,
    pool: str,
    ftt: int | None,
    gmdr: int | None,
    topology: str,
    access: str,
    max_attachments: int,
    kubeconfig: str,
    context: str,
    output: str,
    wait: bool,
    timeout: float,
    dry_run: bool,
) -> None:
    """Create a volume NAME of a class, or with a layout of its own in a pool."""
    manual = _manual_configuration(class_name, pool, ftt, gmdr, topology, access)
    spec = ReplicatedVolumeSpec(
        size=size,
        configuration_mode="Manual" if manual is not None else "Auto",
        replicated_storage_class_name=class_name,
        manual_configuration=manual,
        max_attachments=max_attachments,
    )

    async def work(client: Client, action: Action) -> tuple[Object | None, str]:
        volume = ReplicatedVolume(metadata=ObjectMeta(name=name), spec=spec)
        if class_name:
            await _known_class(client, class_name)
        made = await client.create(volume, dry_run=action.dry_run)
        if action.waits:
            view = await wait_for(client, name, lambda view: _settled(view, name), f"volume {name}", action.timeout)
            return view.volume(name), f"volume {name} is ready"
        return made, f"volume {name} created"

    Action(kubeconfig, context, output, wait, timeout, dry_run).run(work)


def _manual_configuration(
    class_name: str, pool: str, ftt: int | None, gmdr: int | None, topology: str, access: str
) -> VolumeConfiguration | None:
    if bool(class_name) == bool(pool):
        raise click.UsageError("give either --class NAME, or --pool NAME with --ftt and --gmdr")
    if class_name:
        if ftt is not None or gmdr is not None:
            raise click.UsageError("--ftt and --gmdr belong to --pool; with --class the class decides them")
        return None
    if ftt is None or gmdr is None:
        raise click.UsageError("--pool needs --ftt and --gmdr")
    check_levels(ftt, gmdr)
    return VolumeConfiguration(
        replicated_storage_pool_name=pool,
        topology=topology,
        failures_to_tolerate=ftt,
        guaranteed_minimum_data_redundancy=gmdr,
        volume_access=access,
    )


async def _known_class(client: Client, name: str) -> None:
    """A volume of an unknown class would wait for ever; the person is told now."""
    try:
        await client.get(ReplicatedStorageClass, name)
    except errors.NotFound:
        known = ", ".join(item.metadata.name for item in (await client.list(ReplicatedStorageClass)).items)
        raise Refused(f"--class {name}: there is no such class; known: {known or 'none'}") from None


@command.command("attach", epilog="Example: quorate volume attach data --node node-2 --wait")
@click.argument("name")
@click.option("--node", required=True, help="Node that shall have the device.")
@cluster_options
@output_options
@action_options
def attach(
    name: str, node: str, kubeconfig: str, context: str, output: str, wait: bool, timeout: float, dry_run: bool
) -> None:
    """Make volume NAME a block device on a node."""
    own_name = attachment_name(name, node)

    async def work(client: Client, action: Action) -> tuple[Object | None, str]:
        await _get_volume(client, name)
        spec = ReplicatedVolumeAttachmentSpec(replicated_volume_name=name, node_name=node)
        wish = ReplicatedVolumeAttachment(metadata=ObjectMeta(name=own_name), spec=spec)
        try:
            made = await client.create(wish, dry_run=action.dry_run)
        except errors.AlreadyExists:
            made = await client.get(ReplicatedVolumeAttachment, own_name)
            if made.metadata.deleting:
                raise Refused(f"{name} is just being detached from {node}; try again when {own_name} is gone") from None
        if not action.waits:
            return made, f"attachment {own_name} created"

        def explained(view: ClusterView) -> Explanation | None:
            found = view.attachment(own_name)
            return explain_attachment(view, found) if found is not None else None

        what = f"{name} on {node}"
        view = await wait_for(client, name, lambda view: _attached(view, own_name), what, action.timeout, explained)
        found = view.attachment(own_name)
        return found, f"{name} is attached on {node} as {found.status.device_path if found else ''}"

    Action(kubeconfig, context, output, wait, timeout, dry_run).run(work)


def attachment_name(volume: str, node: str) -> str:
    """Name of the attachment that this command makes: readable, and at most 253 characters."""
    full = f"{volume}-on-{node}"
    if len(full) <= names.NAME_LIMIT:
        return full
    digest = hashlib.sha1(full.encode(), usedforsecurity=False).hexdigest()[:8]
    return f"{full[: names.NAME_LIMIT - 9].rstrip('-.')}-{digest}"


def _attached(view: ClusterView, name: str) -> bool:
    found = view.attachment(name)
    return found is not None and conditions.is_true(found.status.conditions, ReadyCondition.TYPE)


@command.command("detach", epilog="Example: quorate volume detach data --node node-2 --wait")
@click.argument("name")
@click.option("--node", default="", help="Only from this node; default: from all.")
@cluster_options
@output_options
@action_options
def detach(
    name: str, node: str, kubeconfig: str, context: str, output: str, wait: bool, timeout: float, dry_run: bool
) -> None:
    """Take volume NAME away from a node, or from all."""

    async def work(client: Client, action: Action) -> tuple[Object | None, str]:
        listing = await client.list(ReplicatedVolumeAttachment, field_selector=f"spec.replicatedVolumeName={name}")
        wishes = tuple(item for item in listing.items if not node or item.spec.node_name == node)
        where = f" on {node}" if node else ""
        if not wishes:
            raise Refused(f"{name} has no attachment{where}; `kubectl get rva` lists all")
        driver = tuple(item for item in wishes if labels.FINALIZER_CSI in item.metadata.finalizers)
        if driver:
            raise Refused(
                f"attachment {driver[0].metadata.name} belongs to the CSI driver: stop the pod that uses the volume on "
                f"{driver[0].spec.node_name} instead"
            )
        for wish in wishes:
            await client.delete(wish, uid=wish.metadata.uid, dry_run=action.dry_run)
        if action.waits:
            gone = {wish.metadata.name for wish in wishes}

            def reached(view: ClusterView) -> bool:
                return not any(item.metadata.name in gone for item in view.attachments)

            def explained(view: ClusterView) -> Explanation | None:
                left = next((item for item in view.attachments if item.metadata.name in gone), None)
                return explain_attachment(view, left) if left is not None else None

            await wait_for(client, name, reached, f"{name} to be detached", action.timeout, explained)
            return None, f"{name} is detached from {', '.join(item.spec.node_name for item in wishes)}"
        return None, f"{name} is being detached from {', '.join(item.spec.node_name for item in wishes)}"

    Action(kubeconfig, context, output, wait, timeout, dry_run).run(work)


@command.command("resize", epilog="Example: quorate volume resize data 20Gi --wait")
@click.argument("name")
@click.argument("size", type=SIZE)
@cluster_options
@output_options
@action_options
def resize(
    name: str, size: Quantity, kubeconfig: str, context: str, output: str, wait: bool, timeout: float, dry_run: bool
) -> None:
    """Grow volume NAME to SIZE; volumes never shrink."""

    def change(volume: ReplicatedVolume) -> ReplicatedVolume:
        present = max(volume.spec.size.value, volume.status.datamesh.size.value)
        if size.value < present:
            raise Refused(f"SIZE {size}: {name} has {Quantity.of(present)}, and volumes never shrink")
        return replace(volume, spec=replace(volume.spec, size=size))

    async def work(client: Client, action: Action) -> tuple[Object | None, str]:
        changed = await _edit(client, name, change, action.dry_run)
        if not action.waits:
            return changed, f"volume {name} grows to {size}"

        def reached(view: ClusterView) -> bool:
            found = view.volume(name)
            return found is not None and found.status.size is not None and found.status.size.value >= size.value

        view = await wait_for(client, name, reached, f"{name} to grow to {size}", action.timeout)
        return view.volume(name), f"volume {name} has {size}"

    Action(kubeconfig, context, output, wait, timeout, dry_run).run(work)


@command.command(
    "set-layout",
    epilog="""\b
Examples:
  quorate plan volume data --ftt 2 --gmdr 1          first see the steps
  quorate volume set-layout data --ftt 2 --gmdr 1 --manual --wait""",
)
@click.argument("name")
@click.option("--ftt", type=LEVEL, required=True, help="Nodes that may fail without stopping I/O.")
@click.option("--gmdr", type=LEVEL, required=True, help="Further copies that every write has.")
@click.option("--manual", is_flag=True, help="Take the volume out of its class: from now on it has its own layout.")
@cluster_options
@output_options
@action_options
def set_layout(
    name: str,
    ftt: int,
    gmdr: int,
    manual: bool,
    kubeconfig: str,
    context: str,
    output: str,
    wait: bool,
    timeout: float,
    dry_run: bool,
) -> None:
    """Change how many copies volume NAME has, while it is used.

    A volume of a class follows the class; --manual takes it out of the class first.
    """
    check_levels(ftt, gmdr)

    def change(volume: ReplicatedVolume) -> ReplicatedVolume:
        return with_layout(volume, ftt, gmdr, manual=manual)

    async def work(client: Client, action: Action) -> tuple[Object | None, str]:
        changed = await _edit(client, name, change, action.dry_run)
        layout = layout_of(ftt, gmdr)
        if not action.waits:
            return changed, f"volume {name} becomes {layout} (FTT {ftt}, GMDR {gmdr})"

        def reached(view: ClusterView) -> bool:
            return _has_layout(view, name, ftt, gmdr)

        view = await wait_for(client, name, reached, f"{name} to become {layout}", action.timeout)
        return view.volume(name), f"volume {name} is {layout} (FTT {ftt}, GMDR {gmdr})"

    Action(kubeconfig, context, output, wait, timeout, dry_run).run(work)


def with_layout(volume: ReplicatedVolume, ftt: int, gmdr: int, *, manual: bool) -> ReplicatedVolume:
    """The volume with another layout; a volume of a class only with `manual`."""
    name, spec = volume.metadata.name, volume.spec
    base = spec.manual_configuration if spec.configuration_mode == "Manual" else volume.status.configuration
    if spec.configuration_mode == "Auto" and not manual:
        cls = spec.replicated_storage_class_name
        raise Refused(
            f"{name} follows class {cls}: change the class for all its volumes (kubectl edit rsc {cls}), "
            "or add --manual to give this one volume a layout of its own"
        )
    if base is None:
        raise Refused(f"{name} has no configuration yet; `quorate explain volume {name}` says why")
    changed = replace(base, failures_to_tolerate=ftt, guaranteed_minimum_data_redundancy=gmdr)
    return replace(
        volume,
        spec=replace(spec, configuration_mode="Manual", replicated_storage_class_name="", manual_configuration=changed),
    )


@command.command("delete", epilog="Example: quorate volume delete data --wait")
@click.argument("name")
@cluster_options
@output_options
@action_options
def delete(name: str, kubeconfig: str, context: str, output: str, wait: bool, timeout: float, dry_run: bool) -> None:
    """Delete volume NAME and its data; it waits until nobody has it attached."""

    async def work(client: Client, action: Action) -> tuple[Object | None, str]:
        volume = await _get_volume(client, name)
        await client.delete(volume, uid=volume.metadata.uid, dry_run=action.dry_run)
        if action.waits:
            await wait_for(client, name, lambda view: view.volume(name) is None, f"{name} to be gone", action.timeout)
            return None, f"volume {name} is gone"
        return None, f"volume {name} is being deleted"

    Action(kubeconfig, context, output, wait, timeout, dry_run).run(work)


async def _get_volume(client: Client, name: str) -> ReplicatedVolume:
    try:
        return await client.get(ReplicatedVolume, name)
    except errors.NotFound:
        raise Refused(f"there is no volume {name}; `quorate status` lists all") from None


async def _edit(
    client: Client, name: str, change: Callable[[ReplicatedVolume], ReplicatedVolume], dry_run: bool
) -> ReplicatedVolume:
    """Change the spec as kubectl edit would; somebody else's edit in between is read and the change made again."""
    for _ in range(ATTEMPTS):
        before = await _get_volume(client, name)
        patch = merge_patch(before, change(before))
        if not patch:
            return before
        patch["metadata"] = {"resourceVersion": before.metadata.resource_version}
        try:
            return await client.patch(before, patch, dry_run=dry_run)
        except errors.Conflict:
            continue
    raise Refused(f"volume {name} is changed by somebody else all the time; try again")


def _settled(view: ClusterView, name: str) -> bool:
    """Formed, members as configured, nothing under way."""
    volume = view.volume(name)
    if volume is None or not is_formed(volume) or volume.status.datamesh_transitions:
        return False
    generation = volume.metadata.generation
    return conditions.is_true(volume.status.conditions, MembershipLayoutConvergedCondition.TYPE, generation)


def _has_layout(view: ClusterView, name: str, ftt: int, gmdr: int) -> bool:
    volume = view.volume(name)
    if volume is None or not _settled(view, name):
        return False
    effective = volume.status.effective_layout
    return (effective.failures_to_tolerate, effective.guaranteed_minimum_data_redundancy) == (ftt, gmdr)
