"""etcd through its JSON gateway: what `etcdctl` would do."""

from __future__ import annotations

import base64
import json
import urllib.request
from typing import cast

from tests.kube.servers import ControlPlane

Json = dict[str, object]


def compact(plane: ControlPlane) -> int:
    """Forget all history up to now; the answer is the revision."""
    header = cast("Json", _call(plane, "range", {"key": _encoded(b"a"), "count_only": True})["header"])
    revision = int(str(header["revision"]))
    _call(plane, "compaction", {"revision": str(revision), "physical": True})
    return revision


def read(plane: ControlPlane, prefix: str) -> dict[str, bytes]:
    """Everything below a prefix, by key."""
    answer = _call(plane, "range", {"key": _encoded(prefix.encode()), "range_end": _after(prefix)})
    pairs = cast("list[dict[str, str]]", answer.get("kvs", []))
    return {base64.b64decode(pair["key"]).decode(): base64.b64decode(pair["value"]) for pair in pairs}


def put(plane: ControlPlane, pairs: list[tuple[str, bytes]]) -> None:
    """Write several keys in one transaction."""
    puts = [{"requestPut": {"key": _encoded(key.encode()), "value": _encoded(value)}} for key, value in pairs]
    _call(plane, "txn", {"success": puts})


def delete(plane: ControlPlane, prefix: str) -> None:
    """Delete everything below a prefix."""
    _call(plane, "deleterange", {"key": _encoded(prefix.encode()), "range_end": _after(prefix)})


def _encoded(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _after(prefix: str) -> str:
    """The end of the range that a prefix spans."""
    return _encoded(prefix[:-1].encode() + bytes([ord(prefix[-1]) + 1]))


def _call(plane: ControlPlane, verb: str, body: Json) -> Json:
    request = urllib.request.Request(
        f"http://127.0.0.1:{plane.etcd_port}/v3/kv/{verb}",
        data=json.dumps(body).encode(),
        headers={"content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        decoded: Json = json.loads(answer.read())
        return decoded
