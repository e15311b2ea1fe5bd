"""Node (built-in): the parts of a cluster node that the system reads or writes."""

from __future__ import annotations

import msgspec

from quorate.api.meta import Condition, Object
from quorate.api.value import EMPTY_MAP, FrozenMap, Value


class ReadyCondition:
    """Condition `Ready` of a node."""

    TYPE = "Ready"
    """Condition type."""


OUT_OF_SERVICE_TAINT = "node.kubernetes.io/out-of-service"
"""Taint by which somebody states that the node is really down (fencing evidence)."""


class Taint(Value):
    """A taint."""

    key: str
    effect: str = ""
    value: str = ""
    time_added: str = ""


class NodeSpec(Value):
    """Spec of a node."""

    unschedulable: bool = False
    """Cordoned."""
    taints: tuple[Taint, ...] = ()
    provider_id: str = msgspec.field(default="", name="providerID")


class NodeAddress(Value):
    """An address of a node; type `InternalIP`, `ExternalIP`, `Hostname` and so on."""

    type: str
    address: str


class NodeInfo(Value):
    """Versions a node reports."""

    kernel_version: str = ""
    os_image: str = ""
    kubelet_version: str = ""
    architecture: str = ""


class NodeStatus(Value):
    """Status of a node."""

    conditions: tuple[Condition, ...] = ()
    addresses: tuple[NodeAddress, ...] = ()
    node_info: NodeInfo | None = None
    capacity: FrozenMap = EMPTY_MAP


class Node(Object):
    """A cluster node."""

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
