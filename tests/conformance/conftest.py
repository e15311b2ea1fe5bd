"""The back ends: the embedded server always; a real kube-apiserver with QUORATE_CONFORMANCE=kube (`make test-kube`)."""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest

from tests.conformance.backends import BACKENDS, Backends
from tests.kube.conftest import plane as plane

KUBE = os.environ.get("QUORATE_CONFORMANCE", "") == "kube"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrise by back end."""
    if "backend_name" in metafunc.fixturenames:
        metafunc.parametrize("backend_name", BACKENDS if KUBE else BACKENDS[:1], scope="session")


@pytest.fixture(scope="session")
def backends(request: pytest.FixtureRequest) -> Generator[Backends]:
    """Makes sessions; the real server is started only when it is asked for."""
    made = Backends(lambda: request.getfixturevalue("plane"))
    yield made
    made.close()
