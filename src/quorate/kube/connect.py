"""From a kubeconfig to a client in one call."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from random import SystemRandom

from quorate.kube.credentials import credentials_of
from quorate.kube.kubeconfig import ServerConfig
from quorate.kube.transport import KubeTransport
from quorate.machinery.client import Client
from quorate.machinery.clock import Clock, SystemClock
from quorate.machinery.machinery_metrics import MachineryMetrics
from quorate.machinery.metrics import Registry


def transport_of(config: ServerConfig, clock: Clock | None = None, *, user_agent: str = "quorate") -> KubeTransport:
    """The transport that a configuration describes."""
    used = clock or SystemClock()
    credentials = credentials_of(config, now=used.now, monotonic=used.monotonic)
    return KubeTransport(config, credentials, used, SystemRandom(), user_agent=user_agent)


@asynccontextmanager
async def connected(config: ServerConfig, *, user_agent: str = "quorate") -> AsyncGenerator[Client]:
    """A client that is closed at the end."""
    transport = transport_of(config, user_agent=user_agent)
    try:
        yield Client(transport, SystemClock(), MachineryMetrics(Registry()), user_agent=user_agent)
    finally:
        await transport.close()
