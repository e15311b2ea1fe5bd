"""Configuration: source, content comparison, generations, validation, rollout and its budget (reconcileRVConfiguration)."""

from __future__ import annotations

import pytest

from quorate.api import conditions
from quorate.api.meta import ObjectMeta
from quorate.api.replicated_storage_class import ConfigurationRolloutStrategy, MaxParallel, ReplicatedStorageClass
from quorate.api.replicated_volume import ReplicatedVolume, VolumeConfiguration
from quorate.api.value import replace
from tests.controllers import builders as common
from tests.controllers.volume import builders
from tests.controllers.volume.builders import World

C11 = builders.configuration(1, 1)
C00 = builders.configuration(0, 0)


def ready(world: World) -> tuple[str, str]:
    found = world.condition("ConfigurationReady")
    return found.status, found.reason


def test_auto_takes_the_configuration_of_the_class() -> None:
    world = World(builders.volume(), builders.storage_class(C11, generation=7), builders.POOL)
    world.step()
    status = world.volume.status
    assert status.configuration == C11
    assert (status.configuration_generation, status.configuration_observed_generation) == (7, 7)
    assert ready(world) == ("True", "Ready")


def test_manual_takes_the_configuration_of_the_spec_and_tracks_no_generation() -> None:
    world = World(builders.volume(manual=C11), builders.POOL)
    world.step()
    status = world.volume.status
    assert status.configuration == C11
    assert status.configuration_generation == status.configuration_observed_generation == 0
    assert ready(world) == ("True", "Ready")


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("no class", None),
        ("class without configuration", builders.storage_class(None)),
        (
            "configuration of an older generation",
            replace(
                builders.storage_class(C11),
                metadata=ObjectMeta(name="fast", uid="u", generation=2, resource_version="1"),
            ),
        ),
    ],
)
def test_auto_waits_for_the_class(name: str, found: ReplicatedStorageClass | None) -> None:
    world = World(builders.volume(), builders.POOL)
    if found is not None:
        world.put(found)
    world.step()
    assert ready(world) == ("False", "WaitingForStorageClass"), name
    assert world.volume.status.configuration is None
    assert world.replicas == ()


def test_missing_pool_is_an_invalid_configuration_that_names_it() -> None:
    world = World(builders.volume(), builders.storage_class(C11))
    world.step()
    assert ready(world) == ("False", "InvalidConfiguration")
    assert "ReplicatedStoragePool pool does not exist" in world.condition("ConfigurationReady").message


ZONES = [
    ((0, 1), 2, True),
    ((0, 1), 3, False),
    ((1, 0), 3, True),
    ((1, 0), 2, False),
    ((1, 1), 3, True),
    ((1, 2), 4, True),
    ((1, 2), 3, False),
    ((2, 1), 3, True),
    ((2, 1), 4, True),
    ((2, 1), 5, True),
    ((2, 2), 5, True),
    ((2, 2), 2, False),
]


@pytest.mark.parametrize(("promise", "zones", "valid"), ZONES)
def test_transzonal_zone_counts(promise: tuple[int, int], zones: int, valid: bool) -> None:
    config = builders.configuration(*promise, topology="TransZonal")
    pool = common.pool(*(common.eligible(n) for n in builders.NODES), zones=tuple(f"z{i}" for i in range(zones)))
    world = World(builders.volume(), builders.storage_class(config), pool)
    world.step()
    assert ready(world) == (("True", "Ready") if valid else ("False", "InvalidConfiguration"))


def formed() -> World:
    world = World(builders.volume(), builders.storage_class(C11), builders.POOL)
    world.form()
    return world


def changed_class(strategy: ConfigurationRolloutStrategy | None = None) -> ReplicatedStorageClass:
    found = builders.storage_class(builders.configuration(1, 0), generation=2)
    return replace(found, spec=replace(found.spec, configuration_rollout_strategy=strategy))


def test_configuration_is_frozen_while_forming() -> None:
    world = World(builders.volume(), builders.storage_class(C11), builders.POOL)
    world.step()
    world.put(changed_class())
    world.step()
    assert world.volume.status.configuration == C11


def test_equal_content_only_restamps_the_generations() -> None:
    world = formed()
    world.put(builders.storage_class(C11, generation=9))
    world.step()
    status = world.volume.status
    assert (status.configuration, status.configuration_generation) == (C11, 9)


def test_newer_configuration_is_taken_in_normal_operation() -> None:
    world = formed()
    world.put(changed_class())
    world.step()
    status = world.volume.status
    assert status.configuration == builders.configuration(1, 0)
    assert status.configuration_generation == 2


def test_new_volumes_only_keeps_what_volumes_have() -> None:
    world = formed()
    world.put(changed_class(ConfigurationRolloutStrategy(type="NewVolumesOnly")))
    world.step()
    status = world.volume.status
    assert (status.configuration, status.configuration_generation) == (C11, 1)
    assert status.configuration_observed_generation == 2
    assert ready(world) == ("False", "NewerConfigurationHeld")


def sibling(name: str, config: VolumeConfiguration, *, converged: bool, generation: int = 2) -> ReplicatedVolume:
    base = formed().volume
    value = conditions.TRUE if converged else conditions.FALSE
    found = conditions.set_(
        base.status.conditions,
        "MembershipLayoutConverged",
        status=value,
        reason="Converged" if converged else "Converging",
        message="",
        generation=1,
        now=builders.NOW,
    )
    status = replace(base.status, configuration=config, configuration_generation=generation, conditions=found)
    return replace(base, metadata=replace(base.metadata, name=name, uid=f"uid-{name}"), status=status)


def rolling(parallel: int) -> ReplicatedStorageClass:
    strategy = ConfigurationRolloutStrategy(type="RollingUpdate", rolling_update=MaxParallel(max_parallel=parallel))
    return changed_class(strategy)


NEW = builders.configuration(1, 0)


@pytest.mark.parametrize(
    ("name", "siblings", "admitted"),
    [
        ("alone", (), True),
        ("an earlier name waits, too", (("aaa", C11, False),), False),
        ("a later name waits, too", (("zzz", C11, False),), True),
        ("a slot is busy", (("zzz", NEW, False),), False),
        ("the busy one has converged", (("zzz", NEW, True),), True),
    ],
)
def test_rollout_budget_of_one(
    name: str, siblings: tuple[tuple[str, VolumeConfiguration, bool], ...], admitted: bool
) -> None:
    world = formed()
    world.put(rolling(1), *(sibling(n, config, converged=done) for n, config, done in siblings))
    decision = world.step()
    if admitted:
        assert world.volume.status.configuration == NEW, name
    else:
        assert ready(world) == ("False", "ConfigurationRolloutInProgress"), name
        assert world.volume.status.configuration == C11
        assert world.volume.status.configuration_observed_generation == 2
        assert decision.wake_after == 5.0


def test_switching_between_auto_and_manual_is_by_content() -> None:
    world = formed()
    volume = world.volume
    spec = replace(volume.spec, configuration_mode="Manual", manual_configuration=C11, replicated_storage_class_name="")
    world.put(replace(volume, spec=spec, metadata=replace(volume.metadata, generation=2)))
    world.step()
    assert world.volume.status.configuration == C11
    assert world.volume.status.configuration_generation == 0
    assert world.condition("ConfigurationReady").observed_generation == 2
    assert C00 != C11
