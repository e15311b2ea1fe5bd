"""The shipped service accounts on a real API server: installed as shipped, used through tokens as in a pod."""

from __future__ import annotations

import subprocess
from pathlib import Path

import msgspec

from quorate.api.labels import APP_AGENT, LABEL_APP
from quorate.api.meta import ObjectMeta
from quorate.api.node import Node
from quorate.api.pod import Container, Pod, PodSpec
from quorate.api.value import FrozenMap
from quorate.api.wire import to_builtins
from quorate.kube.connect import transport_of
from quorate.kube.credentials import Proof, bearer
from quorate.kube.kubeconfig import load
from quorate.kube.transport import KubeTransport
from quorate.local.shape import NAMESPACE
from quorate.machinery import errors
from quorate.machinery.client import MERGE_PATCH
from quorate.machinery.transport import Response
from tests.kube.servers import ControlPlane

RBAC = Path(__file__).resolve().parents[2] / "deploy" / "rbac"
CONTROLLER, AGENT, EXTENDER = "quorate-controller", "quorate-agent", "quorate-extender"
JSON = {"content-type": "application/json", "accept": "application/json"}


def user(account: str) -> str:
    """The account's name in the audit log."""
    return f"{NAMESPACE}:{account}"


def agent_pod(node: str) -> str:
    """Name of the agent's pod on a node, as `quorate.local.kubelet` has it."""
    return f"agent-{node}"


def install(plane: ControlPlane) -> None:
    """Apply the shipped manifests as a person would; a warning of the server is a failure."""
    kubectl = [str(plane.programs / "kubectl"), "--kubeconfig", str(plane.kubeconfig())]
    subprocess.run([*kubectl, "create", "namespace", NAMESPACE], capture_output=True, check=True)
    done = subprocess.run([*kubectl, "apply", "-f", str(RBAC)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr, done.stderr


class _Token(msgspec.Struct):
    token: str


class _TokenAnswer(msgspec.Struct):
    status: _Token


class Admin:
    """Plain requests with all rights."""

    def __init__(self, plane: ControlPlane) -> None:
        self.transport: KubeTransport = transport_of(load(str(plane.kubeconfig())), user_agent="test-admin")

    async def send(self, method: str, path: str, body: object = None, **query: str) -> Response:
        """One request with a JSON body."""
        data = msgspec.json.encode(body) if body is not None else b""
        return await self.transport.request(method, path, query=query, headers=JSON, body=data)

    async def demand(self, method: str, path: str, body: object = None, **query: str) -> bytes:
        """One request that must succeed."""
        answer = await self.send(method, path, body, **query)
        if answer.status >= 300:
            raise errors.from_status(answer.status, answer.body)
        return answer.body

    async def merge(self, path: str, patch: object) -> None:
        """A merge patch; an object that is gone is fine."""
        headers = {**JSON, "content-type": MERGE_PATCH}
        body = msgspec.json.encode(patch)
        answer = await self.transport.request("PATCH", path, query={}, headers=headers, body=body)
        if answer.status not in (200, 404):
            raise errors.from_status(answer.status, answer.body)

    async def token(self, account: str, *, pod: str = "", namespace: str = NAMESPACE, seconds: int = 3600) -> str:
        """A token of a service account, bound to a pod if named."""
        bound = {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": pod}} if pod else {}
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": seconds, **bound},
        }
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        return msgspec.json.decode(await self.demand("POST", path, body), type=_TokenAnswer).status.token

    async def prepare_agent_pod(self, node: str) -> None:
        """What a kubelet and a DaemonSet would make: the node, and the agent's pod under its account."""
        meta = ObjectMeta(name=agent_pod(node), namespace=NAMESPACE, labels=FrozenMap({LABEL_APP: APP_AGENT}))
        pod = to_builtins(
            Pod(metadata=meta, spec=PodSpec(node_name=node, containers=(Container(name="agent", image="quorate"),)))
        )
        spec = msgspec.convert(pod["spec"], dict[str, object])
        await self._make("/api/v1/nodes", to_builtins(Node(metadata=ObjectMeta(name=node))))
        await self._make(f"/api/v1/namespaces/{NAMESPACE}/pods", {**pod, "spec": {**spec, "serviceAccountName": AGENT}})

    async def _make(self, path: str, body: object) -> None:
        answer = await self.send("POST", path, body)
        if answer.status not in (201, 409):
            raise errors.from_status(answer.status, answer.body)

    async def close(self) -> None:
        await self.transport.close()


class AgentIdentity:
    """The token that the kubelet would mount into the agent's pod of one node; asked for when first needed."""

    def __init__(self, admin: Admin, node: str) -> None:
        self._admin = admin
        self._node = node
        self._proof: Proof | None = None

    async def proof(self) -> Proof:
        if self._proof is None:
            self._proof = Proof(bearer(await self._admin.token(AGENT, pod=agent_pod(self._node))))
        return self._proof

    def refresh(self) -> None:
        self._proof = None
