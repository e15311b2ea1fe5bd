"""How `quorate fault` and `quorate io` reach the running `quorate up`."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import click

from quorate.kube.connect import transport_of
from quorate.kube.kubeconfig import ConfigError, load
from quorate.kube.transport import KubeTransport
from quorate.machinery import errors

T = TypeVar("T")
EXIT_USAGE = 2
LOCAL = "/local/v1"
BESIDE = Path(".quorate/kubeconfig")
"""Where `quorate up` without --data leaves its kubeconfig."""
NOT_LOCAL = "this server is not a local cluster of `quorate up`; faults and writers exist only there"


def kubeconfig_option(function: Callable[..., None]) -> Callable[..., None]:
    """--kubeconfig, with the local cluster of this directory as a default."""
    return click.option(
        "--kubeconfig",
        default="",
        help="Kubeconfig of the local cluster (default: KUBECONFIG, then .quorate/kubeconfig, then ~/.kube/config).",
    )(function)


def choose_kubeconfig(option: str, environment: Mapping[str, str] = os.environ) -> str:
    """The kubeconfig to use; empty means the usual places."""
    if option or environment.get("KUBECONFIG") or not BESIDE.is_file():
        return option
    return str(BESIDE)


@asynccontextmanager
async def reached(kubeconfig: str) -> AsyncGenerator[KubeTransport]:
    """A transport to the local cluster, closed at the end."""
    transport = transport_of(load(choose_kubeconfig(kubeconfig)), user_agent="quorate/cli")
    try:
        yield transport
    finally:
        await transport.close()


def run(command: str, work: Callable[[], Coroutine[object, object, T]]) -> T:
    """Run to the end; what a person can get wrong is one sentence and exit code 2."""
    try:
        return asyncio.run(work())
    except ConfigError as error:
        text = str(error)
    except errors.ApiError as error:
        text = explain(error)
    click.echo(f"{command}: {text}", err=True)
    sys.exit(EXIT_USAGE)


def explain(error: errors.ApiError) -> str:
    """A sentence for people."""
    match error:
        case errors.Unavailable() | errors.Timeout():
            return f"the local cluster does not answer ({error.message}); is `quorate up` running?"
        case errors.NotFound() | errors.Forbidden():
            return NOT_LOCAL
        case _:
            return f"{error.message}."
