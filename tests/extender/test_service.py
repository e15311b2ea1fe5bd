"""The extender as a process: fed by the API server, listening once it knows everything."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from random import Random

import aiohttp
import pytest
from click.testing import CliRunner

from quorate.api.crd import all_crds
from quorate.api.lvm_logical_volume import LVMLogicalVolume
from quorate.api.lvm_volume_group import LVMVolumeGroupStatus
from quorate.api.meta import ObjectMeta
from quorate.api.value import replace
from quorate.cli.extender import command
from quorate.extender.client import ExtenderUnavailable, HttpExtender
from quorate.extender.service import Endpoint, serve_extender
from quorate.local.api_server import ApiServer
from quorate.local.certificate import make_certificate
from quorate.local.ports import SeededIds
from quorate.machinery.client import Client
from quorate.machinery.clock import SystemClock
from quorate.machinery.logs import Logger, discard
from quorate.machinery.machinery_metrics import MachineryMetrics
from quorate.machinery.metrics import Registry
from tests.extender.builders import ask, group, keep, volume


async def until_fits(extender: HttpExtender, size: float) -> None:
    """Ask until a volume of that size fits; every question gives the watch its turn."""
    for _ in range(1000):
        if (await extender.filter_and_score(ask("probe", size))).lvgs:
            return
    raise AssertionError(f"{size} GiB never fit")


async def test_the_extender_follows_the_objects_of_the_cluster() -> None:
    clock = SystemClock()
    server = ApiServer(all_crds(), clock=clock, ids=SeededIds(1))
    client = Client(server.transport(), clock, MachineryMetrics(Registry()))
    made = await client.create(replace(group("vg"), metadata=ObjectMeta(name="vg"), status=LVMVolumeGroupStatus()))
    status = {
        "status": {"vgSize": "100Gi", "vgFree": "100Gi"},
        "metadata": {"resourceVersion": made.metadata.resource_version},
    }
    await client.patch(made, status, subresource="status")

    stop = asyncio.Event()
    port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(
        serve_extender(
            server.transport(),
            Endpoint(port=0),
            clock=clock,
            random=Random(1),
            log=Logger(discard, clock),
            stop=stop,
            listening=port.set_result,
        )
    )
    async with asyncio.timeout(10), HttpExtender(f"http://127.0.0.1:{await port}") as extender:
        assert [item.name for item in (await extender.filter_and_score(ask("lv", 60))).lvgs] == ["vg"]
        await extender.narrow(keep("lv"))
        assert (await extender.filter_and_score(ask("other", 60))).lvgs == ()
        await client.create(replace(volume("lv", 60), metadata=ObjectMeta(name="lv")))
        # The volume replaces its reservation: the room stays taken, and not twice.
        await until_fits(extender, 40)
        assert (await extender.filter_and_score(ask("other", 60))).lvgs == ()
        await client.delete(await client.get(LVMLogicalVolume, "lv"))
        await until_fits(extender, 100)
        with pytest.raises(ExtenderUnavailable):
            await extender.narrow(keep("lv"))
    stop.set()
    await serving


async def test_the_extender_says_when_it_is_ready_and_what_it_counts() -> None:
    clock = SystemClock()
    server = ApiServer(all_crds(), clock=clock, ids=SeededIds(1))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free = int(probe.getsockname()[1])
    stop = asyncio.Event()
    port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(
        serve_extender(
            server.transport(),
            Endpoint(port=0, health_host="127.0.0.1", health_port=free),
            clock=clock,
            random=Random(1),
            log=Logger(discard, clock),
            stop=stop,
            listening=port.set_result,
        )
    )
    async with asyncio.timeout(10), aiohttp.ClientSession(f"http://127.0.0.1:{free}") as session:
        await port
        async with session.get("/readyz") as answer:
            assert (answer.status, await answer.text()) == (200, "ok\n")
        async with session.get("/metrics") as answer:
            assert 'quorate_cache_objects{kind="LVMVolumeGroup"} 0' in await answer.text()
    stop.set()
    await serving


async def test_the_extender_speaks_tls_and_the_client_does_not_insist_on_the_name(tmp_path: Path) -> None:
    clock = SystemClock()
    server = ApiServer(all_crds(), clock=clock, ids=SeededIds(1))
    made = make_certificate(clock.now())
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    certificate.write_text(made.certificate)
    key.write_text(made.key)
    stop = asyncio.Event()
    port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(
        serve_extender(
            server.transport(),
            Endpoint(port=0, certificate=str(certificate), key=str(key)),
            clock=clock,
            random=Random(1),
            log=Logger(discard, clock),
            stop=stop,
            listening=port.set_result,
        )
    )
    async with asyncio.timeout(10):
        url = f"https://127.0.0.1:{await port}"
        async with HttpExtender(url) as extender:
            assert (await extender.filter_and_score(ask("a", 1))).lvgs == ()
        async with HttpExtender(url, verify_certificate=True) as strict:
            with pytest.raises(ExtenderUnavailable, match=r"[Cc]ertificate"):
                await strict.filter_and_score(ask("a", 1))
    stop.set()
    await serving


def test_without_a_cluster_the_command_says_what_it_looked_for(tmp_path: Path) -> None:
    result = CliRunner().invoke(command, ["--kubeconfig", str(tmp_path / "missing")])
    assert result.exit_code == 2
    assert "no such kubeconfig file" in result.stderr
