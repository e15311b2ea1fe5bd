"""What the node controller reads about one node."""

from __future__ import annotations

from dataclasses import dataclass

from quorate.api import indexes
from quorate.api.drbd_resource import DRBDResource
from quorate.api.node import Node
from quorate.api.replicated_storage_pool import ReplicatedStoragePool
from quorate.machinery.reader import Reader


@dataclass(frozen=True)
class Snapshot:
    """The node, and whether anything needs the agent there."""

    node: Node | None
    eligible: bool = False
    """Whether some pool lists the node as eligible."""
    hosts_resources: bool = False
    """Whether some DRBDResource lives on the node."""


def gather(reader: Reader, key: str) -> Snapshot:
    """One consistent snapshot for a node."""
    return Snapshot(
        node=reader.get(Node, key),
        eligible=bool(reader.by_index(ReplicatedStoragePool, indexes.RSP_BY_ELIGIBLE_NODE, key)),
        hosts_resources=bool(reader.by_index(DRBDResource, indexes.DRBDR_BY_NODE, key)),
    )
