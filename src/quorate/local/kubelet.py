"""What a kubelet and a DaemonSet would do for a simulated node: its Node object and its agent Pod.

Guarantees: the Node carries zone, addresses and the Ready condition, the Pod of the agent its Ready condition, both
following the machine: a node that is down becomes `Ready=Unknown` after the time a cluster needs to notice, as the node
controller does, and its Pod not ready; an agent that is down makes the Pod not ready at once. Writes happen only when
something changes. This is the only part beside the simulator that knows the API.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from quorate.api import conditions
from quorate.api.labels import APP_AGENT, LABEL_APP, LABEL_ZONE
from quorate.api.meta import ObjectMeta
from quorate.api.node import Node, NodeAddress, NodeStatus
from quorate.api.node import ReadyCondition as NodeReady
from quorate.api.pod import Container, Pod, PodSpec, PodStatus
from quorate.api.pod import ReadyCondition as PodReady
from quorate.api.value import FrozenMap, replace
from quorate.api.wire import merge_patch
from quorate.machinery import errors
from quorate.machinery.client import Client
from quorate.machinery.clock import Clock

CONTAINERS = (Container(name="agent", image="quorate"),)
HEARTBEAT = 1.0
"""Seconds between two looks at the machine."""
CHECK = 60.0
"""Seconds between two comparisons with the API although nothing changed here: somebody may have deleted the objects."""
NOTICE = 40.0
"""Seconds without a heartbeat until the cluster calls a node's state unknown."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A node as the cluster knows it."""

    name: str
    addresses: Mapping[str, str] = field(default_factory=dict[str, str])
    """By type: `InternalIP`, and one per further system network."""
    zone: str = ""
    labels: Mapping[str, str] = field(default_factory=dict[str, str])


class Kubelet:
    """Keeps the objects of one machine; `running` and `agent_ready` look at the machine and at its agent."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        machine: Machine,
        *,
        namespace: str,
        running: Callable[[], bool],
        agent_ready: Callable[[], bool],
    ) -> None:
        self._client = client
        self._clock = clock
        self._machine = machine
        self._namespace = namespace
        self._running = running
        self._agent_ready = agent_ready
        self._last_seen = clock.monotonic()
        self._next_check = 0.0
        self._reported: tuple[bool, bool, bool] | None = None

    @property
    def pod_name(self) -> str:
        return f"agent-{self._machine.name}"

    async def run(self) -> None:
        """Keep the objects until cancelled."""
        while True:
            state = self._look()
            if state != self._reported or self._clock.monotonic() >= self._next_check:
                with contextlib.suppress(errors.ApiError):
                    await self.sync()
                    self._reported = state
                    self._next_check = self._clock.monotonic() + CHECK
            await self._clock.sleep(HEARTBEAT)

    def _silence(self) -> float:
        """Seconds since the machine was last seen running; exactly zero while it runs."""
        now = self._clock.monotonic()
        if self._running():
            self._last_seen = now
        return now - self._last_seen

    def _look(self) -> tuple[bool, bool, bool]:
        """What the objects depend on: running, noticed as silent, agent ready."""
        silent = self._silence()
        return silent == 0.0, silent >= NOTICE, self._agent_ready()

    async def sync(self) -> None:
        """Writes what differs."""
        silent = self._silence()
        node = await self._node()
        await self._write_status(node, replace(node, status=self._node_status(node, silent)))
        pod = await self._pod()
        await self._write_status(pod, replace(pod, status=self._pod_status(pod, silent)))

    async def _node(self) -> Node:
        try:
            found = await self._client.get(Node, self._machine.name)
        except errors.NotFound:
            return await self._client.create(Node(metadata=ObjectMeta(name=self._machine.name, labels=self._labels())))
        labels = found.metadata.labels.with_entries(self._labels())
        if labels is found.metadata.labels:
            return found
        wanted = replace(found, metadata=replace(found.metadata, labels=labels))
        return await self._client.patch(found, merge_patch(found, wanted))

    def _labels(self) -> FrozenMap:
        zone = {LABEL_ZONE: self._machine.zone} if self._machine.zone else {}
        return FrozenMap({"kubernetes.io/hostname": self._machine.name, **self._machine.labels, **zone})

    def _node_status(self, node: Node, silent: float) -> NodeStatus:
        """Ready while it runs; unknown once its silence was noticed; in between nobody knows yet."""
        addresses = tuple(NodeAddress(type=kind, address=ip) for kind, ip in sorted(self._machine.addresses.items()))
        status = replace(node.status, addresses=addresses)
        if silent == 0.0:
            value, reason, text = conditions.TRUE, "KubeletReady", "the node runs"
        elif silent >= NOTICE:
            value, reason, text = conditions.UNKNOWN, "NodeStatusUnknown", "the kubelet stopped posting its status"
        else:
            return status
        return replace(status, conditions=self._set(node.status.conditions, NodeReady.TYPE, value, reason, text))

    async def _pod(self) -> Pod:
        try:
            return await self._client.get(Pod, self.pod_name, self._namespace)
        except errors.NotFound:
            labels = FrozenMap({LABEL_APP: APP_AGENT})
            meta = ObjectMeta(name=self.pod_name, namespace=self._namespace, labels=labels)
            return await self._client.create(
                Pod(metadata=meta, spec=PodSpec(node_name=self._machine.name, containers=CONTAINERS))
            )

    def _pod_status(self, pod: Pod, silent: float) -> PodStatus:
        if 0.0 < silent < NOTICE:
            return pod.status
        ready = silent == 0.0 and self._agent_ready()
        value, reason = (conditions.TRUE, "AgentReady") if ready else (conditions.FALSE, "AgentNotReady")
        updated = self._set(pod.status.conditions, PodReady.TYPE, value, reason, "")
        return replace(pod.status, conditions=updated, phase="Running")

    def _set(
        self, known: tuple[conditions.Condition, ...], kind: str, value: str, reason: str, text: str
    ) -> tuple[conditions.Condition, ...]:
        return conditions.set_(
            known, kind, status=value, reason=reason, message=text, generation=0, now=self._clock.now()
        )

    async def _write_status(self, before: Node | Pod, after: Node | Pod) -> None:
        patch = merge_patch(before, after)
        if patch:
            await self._client.patch(before, patch, subresource="status")
