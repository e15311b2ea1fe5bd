"""Credentials: precedence, rotation of token files, exec plugins with expiry and errors."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from quorate.api import times
from quorate.api.value import SharedSecret
from quorate.kube.credentials import credentials_of
from quorate.kube.kubeconfig import ConfigError, Exec, ExecVariable, ServerConfig
from quorate.machinery import errors

V1 = "client.authentication.k8s.io/v1"


class Hands:
    """A clock moved by the test."""

    def __init__(self) -> None:
        self.time = 1_800_000_000.0

    def __call__(self) -> float:
        return self.time


async def header(config: ServerConfig, hands: Hands) -> str:
    proof = await credentials_of(config, now=hands, monotonic=hands).proof()
    return proof.authorization.reveal() if proof.authorization is not None else ""


@pytest.mark.parametrize(
    ("name", "config", "expected"),
    [
        ("nothing", ServerConfig(server="http://s"), ""),
        ("token", ServerConfig(server="http://s", token=SharedSecret("t")), "Bearer t"),
        ("password", ServerConfig(server="http://s", username="u", password=SharedSecret("p")), "Basic dTpw"),
        (
            "token before password",
            ServerConfig(server="http://s", token=SharedSecret("t"), username="u", password=SharedSecret("p")),
            "Bearer t",
        ),
    ],
)
async def test_fixed_credentials(name: str, config: ServerConfig, expected: str) -> None:
    assert await header(config, Hands()) == expected, name


async def test_token_file_is_read_again_as_it_rotates(tmp_path: Path) -> None:
    path, hands = tmp_path / "token", Hands()
    path.write_text("first\n")
    source = credentials_of(ServerConfig(server="http://s", token_file=str(path)), now=hands, monotonic=hands)

    async def shown() -> str:
        proof = await source.proof()
        assert proof.authorization is not None
        return proof.authorization.reveal()

    assert await shown() == "Bearer first"
    path.write_text("second\n")
    assert await shown() == "Bearer first"
    hands.time += 61
    assert await shown() == "Bearer second"
    path.write_text("third")
    source.refresh()
    assert await shown() == "Bearer third"
    path.write_text("")
    source.refresh()
    assert await shown() == "Bearer third", "somebody is writing the file"
    path.unlink()
    assert await shown() == "Bearer third"
    path.write_text("fourth")
    assert await shown() == "Bearer fourth"


async def test_a_token_file_that_never_had_a_token_is_a_wrong_configuration(tmp_path: Path) -> None:
    path = tmp_path / "token"
    config = ServerConfig(server="http://s", token_file=str(path))
    with pytest.raises(ConfigError, match="cannot be read"):
        await header(config, Hands())
    path.write_text("\n")
    with pytest.raises(ConfigError, match="empty"):
        await header(config, Hands())


def plugin(tmp_path: Path, body: str, **fields: object) -> ServerConfig:
    """A kubeconfig user whose plugin is a Python program that counts its runs in `runs`."""
    script = tmp_path / "plugin.py"
    script.write_text(
        "import json, os, pathlib, sys\n"
        f"runs = pathlib.Path({str(tmp_path / 'runs')!r})\n"
        "count = int(runs.read_text()) + 1 if runs.exists() else 1\n"
        "runs.write_text(str(count))\n"
        f"{body}\n"
    )
    values: dict[str, object] = {"command": sys.executable, "args": [str(script)], "api_version": V1, **fields}
    return ServerConfig(server="https://s", exec=Exec(**values))  # pyright: ignore[reportArgumentType]


def answer(expires: float, version: str = V1) -> str:
    status = f'{{"token": f"run-{{count}}", "expirationTimestamp": "{times.format(expires)}"}}'
    return f'print(json.dumps({{"apiVersion": "{version}", "kind": "ExecCredential", "status": {status}}}))'


@pytest.mark.parametrize("version", [V1, "client.authentication.k8s.io/v1beta1"])
async def test_exec_answer_is_used_until_shortly_before_it_expires(tmp_path: Path, version: str) -> None:
    hands = Hands()
    config = plugin(tmp_path, answer(hands.time + 300, version), api_version=version)
    source = credentials_of(config, now=hands, monotonic=hands)
    tokens: list[str] = []
    for advance in (0, 200, 100):
        hands.time += advance
        proof = await source.proof()
        assert proof.authorization is not None
        tokens.append(proof.authorization.reveal())
    assert tokens == ["Bearer run-1", "Bearer run-1", "Bearer run-2"]


async def test_refused_exec_credentials_are_asked_for_again(tmp_path: Path) -> None:
    hands = Hands()
    source = credentials_of(plugin(tmp_path, answer(hands.time + 9999)), now=hands, monotonic=hands)
    await source.proof()
    source.refresh()
    proof = await source.proof()
    assert proof.authorization is not None
    assert proof.authorization.reveal() == "Bearer run-2"


async def test_a_plugin_that_stops_working_is_an_outage_and_not_the_end(tmp_path: Path) -> None:
    hands = Hands()
    body = f"if count == 2: sys.exit('no network')\n{answer(hands.time + 9999)}"
    source = credentials_of(plugin(tmp_path, body), now=hands, monotonic=hands)
    await source.proof()
    source.refresh()
    with pytest.raises(errors.Unavailable, match="no network"):
        await source.proof()
    proof = await source.proof()
    assert proof.authorization is not None
    assert proof.authorization.reveal() == "Bearer run-3"


async def test_exec_plugin_gets_its_environment_and_the_cluster(tmp_path: Path) -> None:
    body = (
        'info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])\n'
        'token = os.environ["EXTRA"] + info["spec"]["cluster"]["server"] + str(info["spec"]["interactive"])\n'
        f'print(json.dumps({{"apiVersion": "{V1}", "kind": "ExecCredential", "status": {{"token": token}}}}))'
    )
    config = plugin(tmp_path, body, env=[ExecVariable("EXTRA", "x-")], provide_cluster_info=True)
    assert await header(config, Hands()) == "Bearer x-https://sFalse"


@pytest.mark.parametrize(
    ("name", "body", "said"),
    [
        ("fails", "sys.exit('no ticket')", "failed with code 1: no ticket"),
        ("prints nonsense", "print('hello')", "printed no ExecCredential"),
        (
            "wrong version",
            f'print(json.dumps({{"apiVersion": "{V1}beta1", "status": {{"token": "t"}}}}))',
            "answered with",
        ),
        ("empty status", f'print(json.dumps({{"apiVersion": "{V1}", "status": {{}}}}))', "neither a token nor"),
    ],
)
async def test_exec_errors_are_explained(tmp_path: Path, name: str, body: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        await header(plugin(tmp_path, body), Hands())
    assert name


async def test_missing_plugin_shows_the_install_hint() -> None:
    config = ServerConfig(
        server="https://s", exec=Exec(command="no-such-plugin", api_version=V1, install_hint="get it")
    )
    with pytest.raises(ConfigError, match=r"cannot be run: .*get it"):
        await header(config, Hands())
    old = ServerConfig(server="https://s", exec=Exec(command="x", api_version="client.authentication.k8s.io/v1alpha1"))
    with pytest.raises(ConfigError, match="is not one of"):
        await header(old, Hands())
