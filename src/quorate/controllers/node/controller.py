"""Which events concern the node controller."""

from __future__ import annotations

from collections.abc import Iterable

from quorate.api.drbd_resource import DRBDResource
from quorate.api.labels import LABEL_NODE
from quorate.api.node import Node
from quorate.api.replicated_storage_pool import ReplicatedStoragePool
from quorate.controllers.node.decide import decide
from quorate.controllers.node.snapshot import Snapshot, gather
from quorate.machinery.controller import ControllerSpec, Watch
from quorate.machinery.reader import Reader

NAME = "node-controller"


def spec() -> ControllerSpec[Snapshot]:
    """The controller as data."""
    return ControllerSpec(
        name=NAME,
        watches=(
            Watch(Node, node_matters, node_keys),
            Watch(ReplicatedStoragePool, pool_matters, pool_keys),
            Watch(DRBDResource, resource_matters, resource_keys),
        ),
        gather=gather,
        decide=decide,
    )


def node_matters(old: Node | None, new: Node | None) -> bool:
    """Created, or the label changed; a deleted node needs no label."""
    if new is None:
        return False
    return old is None or old.metadata.labels.get(LABEL_NODE) != new.metadata.labels.get(LABEL_NODE)


def node_keys(old: Node | None, new: Node | None, reader: Reader) -> Iterable[str]:
    """The node itself."""
    del old, reader
    return (new.metadata.name,) if new is not None else ()


def _names(pool: ReplicatedStoragePool | None) -> tuple[str, ...]:
    return tuple(node.node_name for node in pool.status.eligible_nodes) if pool is not None else ()


def pool_matters(old: ReplicatedStoragePool | None, new: ReplicatedStoragePool | None) -> bool:
    """The names of the eligible nodes changed; their flags do not matter here."""
    return _names(old) != _names(new)


def pool_keys(old: ReplicatedStoragePool | None, new: ReplicatedStoragePool | None, reader: Reader) -> Iterable[str]:
    """Only the nodes that were added or removed."""
    del reader
    before, after = _names(old), _names(new)
    return sorted({*before, *after} - ({*before} & {*after}))


def resource_matters(old: DRBDResource | None, new: DRBDResource | None) -> bool:
    """Created or deleted; updates never move a resource."""
    return old is None or new is None


def resource_keys(old: DRBDResource | None, new: DRBDResource | None, reader: Reader) -> Iterable[str]:
    """The node of the resource."""
    del reader
    found = new if new is not None else old
    return (found.spec.node_name,) if found is not None else ()
