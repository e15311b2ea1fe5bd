"""etcd through its JSON gateway: what `etcdctl compact` would do."""

from __future__ import annotations

import base64
import json
import urllib.request

from tests.kube.servers import ControlPlane


def compact(plane: ControlPlane) -> int:
    """Forget all history up to now; the answer is the revision."""
    key = base64.b64encode(b"a").decode()
    header = _call(plane, "range", {"key": key, "count_only": True})["header"]
    assert isinstance(header, dict)
    revision = int(str(header["revision"]))
    _call(plane, "compaction", {"revision": str(revision), "physical": True})
    return revision


def _call(plane: ControlPlane, verb: str, body: dict[str, object]) -> dict[str, object]:
    request = urllib.request.Request(
        f"http://127.0.0.1:{plane.etcd_port}/v3/kv/{verb}",
        data=json.dumps(body).encode(),
        headers={"content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        decoded: dict[str, object] = json.loads(answer.read())
        return decoded
