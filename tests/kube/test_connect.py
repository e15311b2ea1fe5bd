"""`quorate.kube` against a real API server: every way to prove who one is, refusals, watches that go on."""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from contextlib import aclosing
from pathlib import Path

import pytest

from quorate.api import times
from quorate.api.lvm_volume_group import Local, LVMVolumeGroup, LVMVolumeGroupSpec
from quorate.api.meta import ObjectMeta
from quorate.api.namespace import Namespace
from quorate.api.secret import Secret
from quorate.kube import credentials
from quorate.kube.connect import connected, transport_of
from quorate.kube.credentials import TokenFile
from quorate.kube.kubeconfig import ServerConfig, load, service_account
from quorate.kube.transport import KubeTransport
from quorate.local.shape import NAMESPACE
from quorate.machinery import errors
from quorate.machinery.client import Bookmark, Changed, Client
from quorate.machinery.clock import SystemClock
from tests.kube import etcd
from tests.kube.accounts import CONTROLLER, JSON, Admin
from tests.kube.certificates import Authority
from tests.kube.proxy import proxy
from tests.kube.servers import ADMIN_TOKEN, ControlPlane

PLUGIN = """
import json, sys
state = {state!r}
runs = int(open(state).read()) + 1
open(state, "w").write(str(runs))
print(json.dumps({{
    "apiVersion": "client.authentication.k8s.io/v1",
    "kind": "ExecCredential",
    "status": {{"token": open({tokens!r}).read().split()[min(runs, 2) - 1], "expirationTimestamp": {expires!r}}},
}}))
"""


async def whoami(config: ServerConfig) -> str:
    """The user that the API server sees."""
    transport = transport_of(config)
    try:
        return await ask_whoami(transport)
    finally:
        await transport.close()


async def ask_whoami(transport: KubeTransport) -> str:
    """The same through a transport that lives longer."""
    body = json.dumps({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}).encode()
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    answer = await transport.request("POST", path, query={}, headers=JSON, body=body)
    if answer.status != 201:
        raise errors.from_status(answer.status, answer.body)
    return str(json.loads(answer.body)["status"]["userInfo"]["username"])


async def test_a_client_certificate(plane: ControlPlane) -> None:
    assert await whoami(load(str(plane.kubeconfig()))) == "admin"


async def test_inline_certificates_as_kubeadm_writes_them(plane: ControlPlane, tmp_path: Path) -> None:
    def inline(path: Path) -> str:
        return base64.b64encode(path.read_bytes()).decode()

    user = f"client-certificate-data: {inline(plane.admin.certificate)}\n    client-key-data: {inline(plane.admin.key)}"
    config = plane.kubeconfig(user, "inline.kubeconfig")
    text = config.read_text().replace(
        f"certificate-authority: {plane.authority.path}", f"certificate-authority-data: {inline(plane.authority.path)}"
    )
    alone = tmp_path / "config"
    alone.write_text(text)
    assert await whoami(load(str(alone))) == "admin"


async def test_a_token(plane: ControlPlane) -> None:
    assert await whoami(load(str(plane.kubeconfig(f"token: {ADMIN_TOKEN}", "token.kubeconfig")))) == "token-admin"


async def test_a_token_file_that_rotates(plane: ControlPlane, tmp_path: Path) -> None:
    """The new token is used once the old one was refused, without waiting for the next look at the file."""
    file = tmp_path / "token"
    file.write_text(ADMIN_TOKEN)
    config = load(str(plane.kubeconfig(f"tokenFile: {file}", "file.kubeconfig")))
    transport = transport_of(config)
    admin = Admin(plane)
    try:
        assert await ask_whoami(transport) == "token-admin"
        file.write_text(await admin.token(CONTROLLER))
        assert await ask_whoami(transport) == "token-admin", "a valid token is used for a while"
        file.write_text("revoked")
        credentials_of(transport).refresh()
        with pytest.raises(errors.ApiError, match="401"):
            await ask_whoami(transport)
        file.write_text(await admin.token(CONTROLLER))
        assert await ask_whoami(transport) == f"system:serviceaccount:{NAMESPACE}:{CONTROLLER}"
    finally:
        await transport.close()
        await admin.close()


def credentials_of(transport: KubeTransport) -> TokenFile:
    """The source behind a transport."""
    assert isinstance(transport._credentials, TokenFile)
    return transport._credentials


@pytest.mark.parametrize(
    ("lasting", "runs"), [(3600.0, 1), (credentials.EXPIRY_MARGIN - 5, 2)], ids=["long", "expired"]
)
async def test_an_exec_plugin_is_run_again_when_its_credentials_expire(
    plane: ControlPlane, tmp_path: Path, lasting: float, runs: int
) -> None:
    admin = Admin(plane)
    (tmp_path / "tokens").write_text(f"{ADMIN_TOKEN} {await admin.token(CONTROLLER)}")
    await admin.close()
    state = tmp_path / "runs"
    state.write_text("0")
    plugin = tmp_path / "plugin.py"
    expires = times.format(SystemClock().now() + lasting)
    plugin.write_text(PLUGIN.format(state=str(state), tokens=str(tmp_path / "tokens"), expires=expires))
    user = (
        f"exec:\n      apiVersion: client.authentication.k8s.io/v1\n      command: {sys.executable}\n"
        f"      args: [{plugin}]\n      interactiveMode: Never"
    )
    transport = transport_of(load(str(plane.kubeconfig(user, "exec.kubeconfig"))))
    try:
        assert await ask_whoami(transport) == "token-admin"
        second = await ask_whoami(transport)
    finally:
        await transport.close()
    assert int(state.read_text()) == runs
    assert second == ("token-admin" if runs == 1 else f"system:serviceaccount:{NAMESPACE}:{CONTROLLER}")


async def test_the_service_account_of_a_pod(plane: ControlPlane, tmp_path: Path) -> None:
    """The files that the kubelet mounts, and a rotation of the token."""
    admin = Admin(plane)
    try:
        (tmp_path / "token").write_text(await admin.token(CONTROLLER, seconds=600))
        (tmp_path / "ca.crt").write_bytes(plane.authority.path.read_bytes())
        (tmp_path / "namespace").write_text(NAMESPACE)
        environment = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(plane.port)}
        config = service_account(environment, tmp_path)
        assert config.namespace == NAMESPACE
        transport = transport_of(config)
        try:
            assert await ask_whoami(transport) == f"system:serviceaccount:{NAMESPACE}:{CONTROLLER}"
            (tmp_path / "token").write_text("garbage")
            credentials_of(transport).refresh()
            with pytest.raises(errors.ApiError):
                await ask_whoami(transport)
            (tmp_path / "token").write_text(await admin.token(CONTROLLER, seconds=600))
            assert await ask_whoami(transport) == f"system:serviceaccount:{NAMESPACE}:{CONTROLLER}"
        finally:
            await transport.close()
    finally:
        await admin.close()


async def test_proxy_variables_and_what_they_leave_out(plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    """TLS goes through the tunnel to the server itself: its certificate is verified and ours is presented."""
    for name in ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    config = load(str(plane.kubeconfig()))
    async with proxy() as through:
        monkeypatch.setenv("HTTPS_PROXY", through.url)
        assert await whoami(config) == "admin"
        assert through.tunnels == [f"127.0.0.1:{plane.port}"]
        async with connected(config) as client:
            version = (await client.list(Namespace)).resource_version
            async with aclosing(client.watch(Namespace, resource_version=version)) as events:
                await client.create(Namespace(metadata=ObjectMeta(name="through-a-proxy")))
                assert isinstance(await asyncio.wait_for(anext(events), 60), Changed)
        used = len(through.tunnels)
        assert used > 1
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        assert await whoami(config) == "admin"
        assert len(through.tunnels) == used


async def test_another_authority_is_refused(plane: ControlPlane, tmp_path: Path) -> None:
    other = Authority(tmp_path)
    config = plane.kubeconfig(f"token: {ADMIN_TOKEN}", "other.kubeconfig")
    wrong = tmp_path / "config"
    wrong.write_text(config.read_text().replace(str(plane.authority.path), str(other.path)))
    with pytest.raises(errors.Unavailable, match="certificate verify failed"):
        await whoami(load(str(wrong)))


async def test_a_refusal_is_typed_and_says_who_and_what(plane: ControlPlane) -> None:
    admin = Admin(plane)
    token = await admin.token(CONTROLLER)
    await admin.close()
    async with connected(load(str(plane.kubeconfig(f"token: {token}", "refused.kubeconfig")))) as client:
        with pytest.raises(errors.Forbidden, match="cannot list resource") as refused:
            await client.list(Secret, namespace=NAMESPACE)
        assert refused.value.code == 403
        with pytest.raises(errors.Forbidden):
            async with aclosing(client.watch(Secret, resource_version="", namespace=NAMESPACE)) as events:
                await anext(events)


async def test_a_watch_resumes_where_it_was_and_hears_bookmarks(plane: ControlPlane) -> None:
    async with connected(load(str(plane.kubeconfig()))) as client:
        start = (await client.list(Namespace)).resource_version
        await client.create(Namespace(metadata=ObjectMeta(name="first")))
        async with aclosing(client.watch(Namespace, resource_version=start)) as events:
            seen = await asyncio.wait_for(anext(events), 60)
        assert isinstance(seen, Changed)
        assert (seen.type, seen.obj.metadata.name) == ("ADDED", "first")
        await client.create(Namespace(metadata=ObjectMeta(name="second")))
        version = seen.obj.metadata.resource_version
        names: list[str] = []
        async with aclosing(client.watch(Namespace, resource_version=version, lasting=10)) as events:
            async for event in events:
                match event:
                    case Changed():
                        names.append(event.obj.metadata.name)
                    case Bookmark(resource_version=later):
                        version = later
                    case _:
                        raise AssertionError(event)
        assert names == ["second"]
        # The server sends bookmarks when it likes; one that comes never goes back.
        assert int(version) >= int(seen.obj.metadata.resource_version)


async def test_a_compacted_past_is_expired_and_a_restart_only_delays_reads(plane: ControlPlane) -> None:
    async with connected(load(str(plane.kubeconfig()))) as client:
        groups = [await client.create(group(f"group-{number}")) for number in range(3)]
        first = await page(client, "")
        await client.delete(groups[2])
        etcd.compact(plane)
        await asyncio.to_thread(plane.stop, "kube-apiserver")
        with pytest.raises(errors.Unavailable):
            await client.list(LVMVolumeGroup)
        await asyncio.to_thread(plane.start_api_server)
        status, body = await raw_page(client, first)
        assert isinstance(errors.from_status(status, body), errors.Expired)
        whole = await client.list(LVMVolumeGroup, page_size=1)
        assert [found.metadata.name for found in whole.items] == ["group-0", "group-1"]
        for found in whole.items:
            await client.delete(found)
        with pytest.raises(errors.Expired):
            async with aclosing(client.watch(LVMVolumeGroup, resource_version="1")) as events:
                await asyncio.wait_for(anext(events), 60)


def group(name: str) -> LVMVolumeGroup:
    """A volume group."""
    spec = LVMVolumeGroupSpec(actual_vg_name_on_the_node=name, type="Local", local=Local(node_name="n"))
    return LVMVolumeGroup(metadata=ObjectMeta(name=name), spec=spec)


async def raw_page(client: Client, token: str) -> tuple[int, bytes]:
    """One page of volume groups."""
    query = {"limit": "1", **({"continue": token} if token else {})}
    path = "/apis/storage.deckhouse.io/v1alpha1/lvmvolumegroups"
    answer = await client._transport.request("GET", path, query=query, headers=JSON, body=b"")
    return answer.status, answer.body


async def page(client: Client, token: str) -> str:
    """The token of the page after this one."""
    status, body = await raw_page(client, token)
    assert status == 200, body
    return str(json.loads(body)["metadata"]["continue"])
