"""What the shipped accounts may not do: asked of the API server, and tried."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import msgspec
import pytest

from quorate.api.drbd_resource import DRBDResource, DRBDResourceSpec
from quorate.api.labels import ANNOTATION_DRBD_VERSION, ANNOTATION_FENCED
from quorate.api.meta import ObjectMeta
from quorate.api.node import Node
from quorate.api.wire import to_builtins
from quorate.kube.connect import connected
from quorate.kube.kubeconfig import load
from quorate.local.shape import NAMESPACE
from quorate.machinery import errors
from quorate.machinery.client import Client
from tests.kube.accounts import AGENT, CONTROLLER, EXTENDER, Admin, agent_pod
from tests.kube.servers import ControlPlane
from tests.kube.worlds import clear

OURS = "storage.deckhouse.io"
ACCOUNTS = (CONTROLLER, AGENT, EXTENDER)
Asked = tuple[str, str, str, str, str]
"""Verb, API group, resource, namespace, name."""

NOBODY: tuple[Asked, ...] = (
    *((verb, "", "secrets", where, "") for verb in ("get", "list", "watch", "create") for where in (NAMESPACE, "", "default")),
    *((verb, "", "configmaps", NAMESPACE, "") for verb in ("get", "list", "create", "patch")),
    *((verb, "", "pods", NAMESPACE, "") for verb in ("create", "delete", "patch")),
    *((verb, "", "pods", "kube-system", "") for verb in ("get", "list", "watch")),
    *((verb, "", "nodes", "", "") for verb in ("create", "delete", "update", "deletecollection")),
    ("patch", "", "nodes/status", "", ""),
    ("create", "", "pods/exec", NAMESPACE, ""),
    ("create", "", "serviceaccounts/token", NAMESPACE, CONTROLLER),
    ("get", "coordination.k8s.io", "leases", "kube-system", ""),
    ("create", "coordination.k8s.io", "leases", "kube-system", ""),
    ("get", "coordination.k8s.io", "leases", NAMESPACE, "somebody-elses"),
    ("create", "", "events", "kube-system", ""),
    ("create", "rbac.authorization.k8s.io", "clusterroles", "", ""),
    ("escalate", "rbac.authorization.k8s.io", "clusterroles", "", ""),
    ("impersonate", "", "users", "", ""),
    ("patch", "apiextensions.k8s.io", "customresourcedefinitions", "", ""),
    ("get", "", "persistentvolumes", "", ""),
    ("create", OURS, "replicatedvolumes", "", ""),
    ("delete", OURS, "replicatedvolumes", "", ""),
    ("create", OURS, "replicatedvolumeattachments", "", ""),
    ("delete", OURS, "replicatedstorageclasses", "", ""),
    ("patch", OURS, "lvmvolumegroups", "", ""),
    ("deletecollection", OURS, "replicatedvolumereplicas", "", ""),
    ("update", OURS, "drbdresources", "", ""),
)  # fmt: skip
"""What no component needs."""

ONE_OF_THEM: dict[str, tuple[Asked, ...]] = {
    CONTROLLER: (
        ("get", OURS, "lvmvolumegroups", "", ""),
        ("get", "", "pods", NAMESPACE, ""),
        ("patch", OURS, "drbdresources/status", "", ""),
        ("patch", OURS, "drbdresourceoperations/status", "", ""),
        ("patch", OURS, "lvmlogicalvolumes/status", "", ""),
        ("patch", OURS, "lvmvolumegroups/status", "", ""),
    ),
    AGENT: (
        ("patch", OURS, "replicatedvolumes", "", ""),
        ("patch", OURS, "replicatedvolumes/status", "", ""),
        ("list", OURS, "replicatedvolumereplicas", "", ""),
        ("create", OURS, "drbdresources", "", ""),
        ("delete", OURS, "drbdresources", "", ""),
        ("delete", OURS, "lvmlogicalvolumes", "", ""),
        ("list", "", "pods", NAMESPACE, ""),
        ("create", "storage.k8s.io", "storageclasses", "", ""),
        ("create", "coordination.k8s.io", "leases", NAMESPACE, ""),
    ),
    EXTENDER: (
        ("get", OURS, "lvmvolumegroups", "", ""),
        ("patch", OURS, "lvmlogicalvolumes", "", ""),
        ("list", OURS, "replicatedvolumes", "", ""),
        ("list", OURS, "drbdresources", "", ""),
        ("get", "", "nodes", "", ""),
        ("create", "", "events", "default", ""),
    ),
}
"""What another component needs, but not this one."""


class _Review(msgspec.Struct):
    allowed: bool


class _ReviewAnswer(msgspec.Struct):
    status: _Review


@asynccontextmanager
async def acting_as(plane: ControlPlane, account: str, *, pod: str = "") -> AsyncGenerator[Client]:
    """A client with a token of an account."""
    admin = Admin(plane)
    try:
        token = await admin.token(account, pod=pod)
        config = load(str(plane.kubeconfig(f"token: {token}", f"as-{account}.kubeconfig")))
        async with connected(config) as client:
            yield client
    finally:
        await admin.close()


async def may(client: Client, asked: Asked) -> bool:
    """A SelfSubjectAccessReview."""
    verb, group, resource, namespace, name = asked
    kind, _, subresource = resource.partition("/")
    attributes = {
        "verb": verb, "group": group, "resource": kind, "subresource": subresource, "namespace": namespace, "name": name
    }  # fmt: skip
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    answer = await client._transport.request(
        "POST",
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        query={},
        headers={"content-type": "application/json"},
        body=msgspec.json.encode(body),
    )
    assert answer.status == 201, answer.body
    return msgspec.json.decode(answer.body, type=_ReviewAnswer).status.allowed


@pytest.mark.parametrize("account", ACCOUNTS)
async def test_what_a_component_does_not_need_is_forbidden(plane: ControlPlane, account: str) -> None:
    async with acting_as(plane, account) as client:
        allowed = [asked for asked in (*NOBODY, *ONE_OF_THEM[account]) if await may(client, asked)]
    assert allowed == []


@pytest.mark.parametrize("account", ACCOUNTS)
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", f"/api/v1/namespaces/{NAMESPACE}/secrets"),
        ("GET", "/api/v1/secrets"),
        ("GET", "/api/v1/namespaces/kube-system/pods"),
        ("DELETE", "/api/v1/nodes/node-1"),
        ("DELETE", "/apis/storage.deckhouse.io/v1alpha1/replicatedvolumes"),
        ("DELETE", f"/api/v1/namespaces/{NAMESPACE}"),
    ],
)
async def test_trying_it_is_a_typed_refusal(plane: ControlPlane, account: str, method: str, path: str) -> None:
    async with acting_as(plane, account) as client:
        answer = await client._transport.request(method, path, query={}, headers={}, body=b"")
    error = errors.from_status(answer.status, answer.body)
    assert isinstance(error, errors.Forbidden)
    assert f"system:serviceaccount:{NAMESPACE}:{account}" in error.message


async def test_an_agent_writes_about_its_own_node_only(plane: ControlPlane) -> None:
    """RBAC cannot say that; the admission policy beside it does."""
    admin = Admin(plane)
    try:
        for node in ("here", "there"):
            await admin.prepare_agent_pod(node)
            spec = DRBDResourceSpec(node_name=node, node_id=0, system_networks=("Internal",), type="Diskless")
            made = DRBDResource(metadata=ObjectMeta(name=f"vol-{node}"), spec=spec)
            await admin.demand("POST", "/apis/storage.deckhouse.io/v1alpha1/drbdresources", to_builtins(made))
        async with acting_as(plane, AGENT, pod=agent_pod("here")) as client:
            here, there = await client.get(Node, "here"), await client.get(Node, "there")
            noted = {"metadata": {"annotations": {ANNOTATION_DRBD_VERSION: "9.3.2"}}}
            assert (await client.patch(here, noted)).metadata.annotations[ANNOTATION_DRBD_VERSION] == "9.3.2"
            for node, patch in (
                (there, noted),
                (here, {"metadata": {"annotations": {ANNOTATION_FENCED: "yes"}}}),
                (here, {"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}}),
                (here, {"spec": {"unschedulable": True}}),
                (here, {"spec": {"taints": [{"key": "k", "effect": "NoExecute"}]}}),
            ):
                with pytest.raises(errors.Forbidden):
                    await client.patch(node, patch)
            reported = {"status": {"activeConfiguration": {"state": "Down"}}}
            own, other = await client.get(DRBDResource, "vol-here"), await client.get(DRBDResource, "vol-there")
            await client.patch(own, reported, subresource="status")
            with pytest.raises(errors.Forbidden, match="the node it runs on"):
                await client.patch(other, reported, subresource="status")
        async with acting_as(plane, AGENT) as client:
            with pytest.raises(errors.Forbidden, match="runs on only"):
                await client.patch(here, {"metadata": {"annotations": {ANNOTATION_DRBD_VERSION: "9.9.9"}}})
    finally:
        await clear(admin)
        await admin.close()
