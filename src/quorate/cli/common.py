"""What the commands share: which cluster, which output, how coroutines are run, and how failures become sentences.

Guarantees: a mistake of a person ends with one sentence and exit code 2 (wrong input, no cluster) or 1 (the cluster
refused or could not be reached), never with a traceback; tracebacks are left to bugs.
"""

from __future__ import annotations

import asyncio
import errno
import os
import re
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from quorate.kube.kubeconfig import ServerConfig
    from quorate.machinery.client import Client
    from quorate.machinery.errors import ApiError

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., object])

EXIT_FAILED = 1
EXIT_WRONG_INPUT = 2
LOCAL_KUBECONFIG = Path(".quorate") / "kubeconfig"
"""What `quorate up` writes; used in the directory it was started in, so that the next command needs no setting."""
FORMATS = ("table", "json", "yaml")
LEVELS = ("trace", "debug", "info", "warning", "error")
"""Log levels of the processes."""
_NO_LISTENING = (errno.EADDRINUSE, errno.EADDRNOTAVAIL, errno.EACCES)


class Refused(click.ClickException):
    """Something cannot be done; the text says why and what to do."""

    exit_code = EXIT_FAILED


class WrongInput(click.ClickException):
    """Something about the input or the configuration must be changed first."""

    exit_code = EXIT_WRONG_INPUT


def cluster_options(function: F) -> F:
    """Adds --kubeconfig and --context (parameters `kubeconfig`, `context`)."""
    function = click.option("--context", default="", metavar="NAME", help="Context of the kubeconfig to use.")(function)
    return click.option(
        "--kubeconfig",
        default="",
        metavar="FILE",
        help="Cluster to talk to. Default: KUBECONFIG, ./.quorate/kubeconfig, ~/.kube/config, the pod's account.",
    )(function)


def output_options(function: F) -> F:
    """Adds -o/--output and --json (parameter `output`)."""
    function = click.option(
        "--json", "as_json", is_flag=True, expose_value=False, callback=_choose_json, help="Short for -o json."
    )(function)
    return click.option(
        "-o",
        "--output",
        type=click.Choice(FORMATS),
        default="table",
        show_default=True,
        callback=_chosen,
        help="How to print the result.",
    )(function)


_JSON_KEY = "quorate.output.json"


def _choose_json(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    """Remembers --json, whichever of the two options is read first."""
    del parameter
    if value:
        context.meta[_JSON_KEY] = True
        if "output" in context.params:
            context.params["output"] = "json"


def _chosen(context: click.Context, parameter: click.Parameter, value: str) -> str:
    del parameter
    return "json" if context.meta.get(_JSON_KEY) else value


def server_config(kubeconfig: str, context: str) -> ServerConfig:
    """The cluster that the options name; what is missing is said in a sentence."""
    from quorate.kube.kubeconfig import ConfigError, load

    if not kubeconfig and not os.environ.get("KUBECONFIG") and LOCAL_KUBECONFIG.is_file():
        kubeconfig = str(LOCAL_KUBECONFIG)
    try:
        return load(kubeconfig, context=context)
    except ConfigError as error:
        raise WrongInput(str(error)) from error


@asynccontextmanager
async def connected(kubeconfig: str, context: str) -> AsyncGenerator[Client]:
    """A client of the chosen cluster."""
    from quorate.kube import connect

    async with connect.connected(server_config(kubeconfig, context), user_agent="quorate/cli") as client:
        yield client


def run(main: Callable[[], Coroutine[object, object, T]]) -> T:
    """Run a coroutine on uvloop where there is one."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(main())
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main())


def as_click(error: Exception) -> click.ClickException | None:
    """The sentence for a failure that a person or the cluster caused; None for a bug."""
    from quorate.kube.kubeconfig import ConfigError
    from quorate.machinery.errors import ApiError

    if isinstance(error, ConfigError):
        return WrongInput(str(error))
    if isinstance(error, ApiError):
        return Refused(api_sentence(error))
    if isinstance(error, OSError) and error.filename:
        return WrongInput(f"{error.filename}: {error.strerror or error}")
    if isinstance(error, OSError) and error.errno in _NO_LISTENING:
        return WrongInput(f"cannot listen: {error.strerror or error}; choose another address or port")
    return None


def api_sentence(error: ApiError) -> str:
    """An API error for people: fields by name, and what to try."""
    from quorate.machinery import errors

    text = error.message
    if error.causes:
        text = "; ".join(f"{cause.field}: {cause.message}" if cause.field else cause.message for cause in error.causes)
    match error:
        case errors.Unavailable() | errors.Timeout():
            plain = re.sub(r" ssl:(<[^>]*>|\S+)", "", text)
            return f"the API server does not answer: {plain}. Is it running (`quorate up`), is the kubeconfig right?"
        case errors.Forbidden():
            return f"the API server refuses: {text}. Check the user of the kubeconfig and its rights."
        case errors.NotFound() if "could not find the requested resource" in text:
            return f"{text}: the CustomResourceDefinitions are not installed; `quorate crds | kubectl apply -f -`"
        case errors.Invalid():
            return f"refused: {text}"
        case _:
            return text
