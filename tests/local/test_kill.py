"""kill -9 at any moment loses no acknowledged write."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path

from quorate.local.jsonvalue import JsonObject, as_object, as_text, decode, dig, encode, objects
from tests.local.processes import Served, serving
from tests.local.test_http import VOLUME, VOLUMES

ROUNDS = 4
WRITERS = 4


@dataclass
class Ledger:
    """What was sent and what was acknowledged: name -> size, versions in order."""

    attempted: dict[str, str] = field(default_factory=dict[str, str])
    acknowledged: dict[str, str] = field(default_factory=dict[str, str])
    newest: int = 0
    changed: threading.Condition = field(default_factory=threading.Condition)

    def acknowledge(self, name: str, size: str, body: JsonObject) -> None:
        with self.changed:
            self.acknowledged[name] = size
            self.newest = max(self.newest, int(as_text(dig(body, "metadata", "resourceVersion"))))
            self.changed.notify_all()

    def wait_for(self, count: int) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.acknowledged) >= count, timeout=60)

    def check(self, listed: JsonObject) -> None:
        found = {
            as_text(dig(item, "metadata", "name")): as_text(dig(item, "spec", "size"))
            for item in objects(listed["items"])
        }
        for name, size in self.acknowledged.items():
            # A later write that was in flight may have taken effect without an answer.
            assert found.get(name) in (size, self.attempted[name]), f"{name} was acknowledged with {size}"
        assert int(as_text(dig(listed, "metadata", "resourceVersion"))) >= self.newest


def write(server: Served, prefix: str, ledger: Ledger) -> None:
    """Create volumes and change each once, until the server is gone."""
    connection = server.connection()
    token = server.token

    def send(method: str, path: str, body: JsonObject, media: str, name: str, size: str) -> None:
        ledger.attempted[name] = size
        connection.request(method, path, encode(body), {"Authorization": f"Bearer {token}", "Content-Type": media})
        response = connection.getresponse()
        told = as_object(decode(response.read()))
        assert response.status in (200, 201), told
        ledger.acknowledge(name, size, told)

    try:
        for number in range(10_000):
            name = f"{prefix}-{number}"
            send("POST", VOLUMES, {**VOLUME, "metadata": {"name": name}}, "application/json", name, "1Gi")
            patch: JsonObject = {"spec": {"size": "2Gi"}}
            send("PATCH", f"{VOLUMES}/{name}", patch, "application/merge-patch+json", name, "2Gi")
    except (OSError, HTTPException):
        return
    finally:
        connection.close()


def test_kill_nine_at_any_moment_loses_no_acknowledged_write(tmp_path: Path) -> None:
    ledger = Ledger()
    for round_number in range(ROUNDS):
        with serving(tmp_path / "data") as server:
            ledger.check(server.send("GET", VOLUMES)[1])
            before = len(ledger.acknowledged)
            prefixes = [f"r{round_number}-w{writer}" for writer in range(WRITERS)]
            threads = [threading.Thread(target=write, args=(server, prefix, ledger)) for prefix in prefixes]
            for thread in threads:
                thread.start()
            # Different moments of the group commit in every round.
            ledger.wait_for(before + 7 + 13 * round_number)
            server.kill()
            for thread in threads:
                thread.join(timeout=60)
    with serving(tmp_path / "data") as server:
        ledger.check(server.send("GET", VOLUMES)[1])
