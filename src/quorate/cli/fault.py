"""`quorate fault …`: break things in the local cluster, and mend them again."""

from __future__ import annotations

import json
from collections.abc import Callable

import click

from quorate.cli.local_api import LOCAL, kubeconfig_option, reached, run
from quorate.machinery import errors

COMMAND = "quorate fault"


@click.group("fault")
def command() -> None:
    """Cause faults in the local cluster of `quorate up`, and end them.

    \b
    Examples:
      quorate fault node down node-2
      quorate fault link cut node-1 node-3
      quorate fault list
    """


def _send(kubeconfig: str, body: dict[str, str | float]) -> None:
    async def work() -> str:
        async with reached(kubeconfig) as transport:
            answer = await transport.request(
                "POST",
                f"{LOCAL}/faults",
                query={},
                headers={"Content-Type": "application/json"},
                body=json.dumps(body).encode(),
            )
        if answer.status >= 300:
            raise errors.from_status(answer.status, answer.body)
        message: str = json.loads(answer.body)["message"]
        return message

    click.echo(run(COMMAND, work))


@command.group("node")
def node() -> None:
    """Machines: power off and on."""


@command.group("link")
def link() -> None:
    """Links between two nodes: cut, slow down, heal."""


@command.group("disk")
def disk() -> None:
    """Disks: fail and repair."""


@command.group("pool")
def pool() -> None:
    """Volume groups: take all free space, give it back."""


@command.group("agent")
def agent() -> None:
    """Node agents: stop and start."""


def _single(group: click.Group, subject: str, action: str, text: str, *, target: str = "") -> None:
    """A command about one node, with an optional second word."""

    def callback(kubeconfig: str, name: str, what: str | None = None) -> None:
        body: dict[str, str | float] = {"subject": subject, "action": action, "node": name}
        if what:
            body["target"] = what
        _send(kubeconfig, body)

    function: Callable[..., None] = kubeconfig_option(callback)
    if target:
        function = click.argument("what", metavar=f"[{target}]", required=False)(function)
    function = click.argument("name", metavar="NODE")(function)
    group.command(action, help=text)(function)


_single(node, "node", "down", "Power a node off: kernel and agent are gone, the disks keep what was written.")
_single(node, "node", "up", "Power a node on again; its agent brings its replicas up.")
_single(agent, "agent", "stop", "Stop the agent of a node; DRBD on it runs on.")
_single(agent, "agent", "start", "Start the agent of a node again.")
_single(disk, "disk", "fail", "Let disks of a node answer with I/O errors (default: all).", target="GROUP|VOLUME")
_single(disk, "disk", "repair", "Let failed disks work again.", target="GROUP|VOLUME")
_single(pool, "pool", "full", "Take all free space of a node's volume groups (default: all).", target="GROUP")
_single(pool, "pool", "free", "Give the space back.", target="GROUP")


@link.command("cut")
@click.argument("one", metavar="NODE")
@click.argument("other", metavar="NODE")
@kubeconfig_option
def cut(one: str, other: str, kubeconfig: str) -> None:
    """Let nothing pass between two nodes, in either direction."""
    _send(kubeconfig, {"subject": "link", "action": "cut", "node": one, "other": other})


@link.command("heal")
@click.argument("one", metavar="NODE")
@click.argument("other", metavar="NODE")
@kubeconfig_option
def heal(one: str, other: str, kubeconfig: str) -> None:
    """End what was done to a link: cut or slow."""
    _send(kubeconfig, {"subject": "link", "action": "heal", "node": one, "other": other})


@link.command("slow")
@click.argument("one", metavar="NODE")
@click.argument("other", metavar="NODE")
@click.option(
    "--seconds",
    type=float,
    default=0.5,
    show_default=True,
    help="How much longer a round trip takes; beyond 0.5 DRBD gives the peer up.",
)
@kubeconfig_option
def slow(one: str, other: str, seconds: float, kubeconfig: str) -> None:
    """Make a link slow: each write waits for the slowest copy."""
    _send(kubeconfig, {"subject": "link", "action": "slow", "node": one, "other": other, "seconds": seconds})


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@kubeconfig_option
def list_(as_json: bool, kubeconfig: str) -> None:
    """Show what is broken now, and the command that ends it."""

    async def work() -> list[dict[str, str]]:
        async with reached(kubeconfig) as transport:
            answer = await transport.request("GET", f"{LOCAL}/faults", query={}, headers={}, body=b"")
        if answer.status >= 300:
            raise errors.from_status(answer.status, answer.body)
        found: list[dict[str, str]] = json.loads(answer.body)["faults"]
        return found

    faults = run(COMMAND, work)
    if as_json:
        click.echo(json.dumps({"faults": faults}, indent=1))
        return
    if not faults:
        click.echo("Nothing is broken.")
    width = max((len(fault["where"]) for fault in faults), default=0)
    for fault in faults:
        click.echo(f"{fault['subject']:5}  {fault['where']:{width}}  {fault['what']:15}  end: {fault['end']}")
