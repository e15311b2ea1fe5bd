"""The whole machinery: pure controllers, caches, queues, executor and manager against the embedded API server."""

from __future__ import annotations

from quorate.api import conditions
from quorate.api.replicated_volume import ReplicatedVolume
from quorate.api.replicated_volume_replica import ReplicatedVolumeReplica
from tests.machinery.toy import FINALIZER, FORMED, new_volume, toy
from tests.machinery.world import World, running, virtually


async def formed(world: World, name: str) -> bool:
    volume = await world.client.get(ReplicatedVolume, name)
    return conditions.is_true(volume.status.conditions, FORMED)


def test_a_pure_function_runs_end_to_end() -> None:
    async def main(world: World) -> None:
        async with running(world.manager(toy())) as manager:
            await world.client.create(new_volume("v1"))
            await world.clock.sleep(5)
            assert await formed(world, "v1")
            volume = await world.client.get(ReplicatedVolume, "v1")
            assert volume.metadata.finalizers == (FINALIZER,)
            replicas = await world.client.list(ReplicatedVolumeReplica)
            assert [replica.metadata.name for replica in replicas.items] == ["v1-0", "v1-1"]
            await world.client.delete(volume)
            await world.clock.sleep(5)
            assert (await world.client.list(ReplicatedVolume)).items == ()
            assert (await world.client.list(ReplicatedVolumeReplica)).items == ()
            assert manager.metrics.reconcile_errors.total() == 0

    virtually(main)
