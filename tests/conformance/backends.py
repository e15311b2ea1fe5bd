"""Fresh sessions on either back end."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import cast

from quorate.api.crd import all_crds
from quorate.local.jsonvalue import JsonObject, encode
from tests.conformance.session import Embedded, Real, Session
from tests.kube.servers import ControlPlane
from tests.local.builders import WIDGETS, crd

BACKENDS = ("embedded", "kube")
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SERVED_SECONDS = 120
"""Until a new definition is served; usually it takes one."""
TOYS = (crd(), crd("Gadget", status=False))


class Backends:
    """Makes sessions on a back end by name."""

    def __init__(self, plane: Callable[[], ControlPlane]) -> None:
        self._plane = plane
        self._real: Real | None = None

    @contextmanager
    def session(self, name: str) -> Generator[Session]:
        """A session that starts and ends with an empty server."""
        if name == "embedded":
            yield Session(Embedded(cast("tuple[JsonObject, ...]", (*TOYS, *all_crds()))))
            return
        real = self._real = self._real or self._connect()
        try:
            yield Session(real)
        finally:
            real.clear()

    def _connect(self) -> Real:
        plane = self._plane()
        real = Real(plane.port, plane.authority.path, plane.admin.certificate, plane.admin.key)
        for definition in TOYS:
            made = real.send("POST", DEFINITIONS, {}, {"content-type": "application/json"}, encode(definition))
            assert made.status == 201, made.body
        real._made.clear()
        deadline = time.monotonic() + SERVED_SECONDS
        while time.monotonic() < deadline:
            served = [
                real.send("GET", path, {}, {}, b"").status for path in (WIDGETS, WIDGETS.replace("widget", "gadget"))
            ]
            if served == [200, 200]:
                return real
            time.sleep(0.05)
        raise AssertionError("the definitions are not served")

    def close(self) -> None:
        """Close the connections."""
        if self._real is not None:
            self._real.close()
