"""Recorded decisions: what a controller saw and decided, as JSON, so that it can be decided again.

A recording holds the snapshot's objects, the answers, the time and the decision. Guarantees: secrets are redacted, random
bytes are recorded by their size only (replaying draws zeros, and the decision made of them is redacted alike);
`replay` gives the recorded and the new decision in the same form, so a difference is a change of behaviour.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import TypeGuard, TypeVar, cast

import msgspec

from quorate.api import wire
from quorate.api.meta import Object
from quorate.api.quantity import Quantity
from quorate.api.schema import Json
from quorate.api.value import FrozenMap, SharedSecret, Value
from quorate.machinery.effects import Answer, Answers, Decision, Entropy, Request

S = TypeVar("S")
JsonObject = dict[str, Json]
REDACTED = "***"


@dataclass(frozen=True)
class Recording:
    """One decision with its inputs."""

    controller: str
    key: str
    now: float
    snapshot: Json
    answers: Json
    """Pairs of request and answer."""
    decision: JsonObject


def record(controller: str, key: str, snapshot: object, answers: Answers, now: float, decision: Decision) -> Recording:
    """The recording of one decision; the arguments are those of the manager's `record` sink."""
    return Recording(
        controller=controller,
        key=key,
        now=now,
        snapshot=plain(snapshot),
        answers=[[_request(request), _answer(request, answer)] for request, answer in answers.items()],
        decision=_decision(decision),
    )


def encode(recording: Recording) -> bytes:
    """One line of JSON."""
    return msgspec.json.encode(recording)


def decode(data: bytes) -> Recording:
    """The recording of one line; ValueError when it is none."""
    found = cast("Json", msgspec.json.decode(data))
    if not isinstance(found, dict) or set(found) != {field.name for field in fields(Recording)}:
        raise ValueError("not a recording")
    return Recording(
        controller=str(found["controller"]),
        key=str(found["key"]),
        now=float(cast("float", found["now"])),
        snapshot=found["snapshot"],
        answers=found["answers"],
        decision=cast("JsonObject", found["decision"]),
    )


def replay(
    recording: Recording,
    snapshot_type: type[S],
    decide: Callable[[S, Answers, float], Decision],
    answer_types: Mapping[type[object], object] | None = None,
) -> tuple[JsonObject, JsonObject]:
    """The recorded decision and the one `decide` takes now.

    `answer_types` maps request types to the type of their answer, or to a tuple of the types it may have.
    """
    snapshot = msgspec.convert(recording.snapshot, snapshot_type, dec_hook=_dec_hook)
    answers: dict[Request, Answer] = {}
    for request, answer in cast("list[list[Json]]", recording.answers):
        asked, answered = _asked(request, answer, answer_types or {})
        answers[asked] = answered
    return recording.decision, _decision(decide(snapshot, answers, recording.now))


def plain(value: object) -> Json:
    """JSON of any value that snapshots, requests and effects are made of; secrets are redacted."""
    match value:
        case None | bool() | int() | float() | str():
            return value if not isinstance(value, Enum) else cast("Json", value.value)
        case SharedSecret():
            return REDACTED
        case bytes():
            return value.hex()
        case FrozenMap():
            # The text form of a secret's data is redacted, its content is not.
            redacted = type(value) is not FrozenMap
            return {key: REDACTED if redacted else text for key, text in value.items()}
        case Quantity():
            return str(value)
        case Enum():
            return cast("Json", value.value)
        case Value():
            return _struct(value)
        case Mapping():
            entries = cast("Mapping[object, object]", value)
            return {str(plain(key)): plain(item) for key, item in entries.items()}
        case tuple() | list():
            return [plain(item) for item in cast("tuple[object, ...]", value)]
        case frozenset() | set():
            items = [plain(item) for item in cast("frozenset[object]", value)]
            return sorted(items, key=lambda item: msgspec.json.encode(item))
        case _ if is_dataclass(value):
            return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
        case msgspec.Struct():
            return _struct(value)
        case _:
            raise TypeError(f"cannot record a {type(value).__name__}")


def _struct(value: msgspec.Struct) -> JsonObject:
    found: JsonObject = {}
    for field in _fields_of(type(value)):
        item: object = getattr(value, field.name)
        if not _omitted(field, item):
            found[field.encode_name] = plain(item)
    return found


@cache
def _fields_of(kind: type[msgspec.Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    """Reading the annotations of a class costs a hundred times what recording one of its values does."""
    return msgspec.structs.fields(kind)


def _omitted(field: msgspec.structs.FieldInfo, item: object) -> bool:
    """As on the wire (`quorate.api.value`): a struct is absent only while it *is* the default."""
    if item is field.default:
        return True
    return not isinstance(item, msgspec.Struct) and field.default is not msgspec.NODEFAULT and item == field.default


def _decision(decision: Decision) -> JsonObject:
    return {
        "effects": [_effect(effect) for effect in decision.effects],
        "wakeAfter": decision.wake_after,
        "requeue": decision.requeue,
        "error": decision.error,
    }


def _effect(effect: object) -> JsonObject:
    """An effect by its name; a patch by its difference, which says more than two whole objects."""
    assert is_dataclass(effect)
    found: JsonObject = {"effect": type(effect).__name__}
    before: object = getattr(effect, "before", None)
    after: object = getattr(effect, "after", None)
    for field in fields(effect):
        value: object = getattr(effect, field.name)
        if isinstance(value, Object):
            found[field.name] = f"{type(value).__name__}/{value.metadata.name}"
        else:
            found[field.name] = plain(value)
    if isinstance(before, Object) and isinstance(after, Object):
        found["after"] = _redacted(cast("Json", wire.merge_patch(before, after)))
    obj: object = getattr(effect, "obj", None)
    if isinstance(obj, Object):
        found["obj"] = {"kind": type(obj).__name__, "object": plain(obj)}
    return found


def _redacted(value: Json) -> Json:
    """A patch without the secrets in it; they are found by their name on the wire."""
    if isinstance(value, dict):
        return {
            key: REDACTED if key in ("sharedSecret", "data", "stringData") and item is not None else _redacted(item)
            for key, item in value.items()
        }
    return [_redacted(item) for item in value] if isinstance(value, list) else value


def _request(request: Request) -> Json:
    return {"type": type(request).__name__, "value": plain(request)}


def _answer(request: Request, answer: Answer) -> Json:
    return None if isinstance(request, Entropy) else plain(answer)


def _asked(request: Json, answer: Json, answer_types: Mapping[type[object], object]) -> tuple[Request, Answer]:
    if not isinstance(request, dict):
        raise ValueError("a recorded request is an object")
    if request["type"] == Entropy.__name__:
        entropy = msgspec.convert(request["value"], Entropy)
        return entropy, bytes(entropy.size)
    for kind, answer_type in answer_types.items():
        if kind.__name__ == request["type"]:
            asked = msgspec.convert(request["value"], kind, dec_hook=_dec_hook)
            kinds = cast("tuple[object, ...]", answer_type) if isinstance(answer_type, tuple) else (answer_type,)
            return asked, _answered(answer, kinds)
    raise ValueError(f"no type is given for the recorded request {request['type']}")


def _answered(answer: Json, kinds: tuple[object, ...]) -> Answer:
    """The answer as the first of these types that has all its fields; values are told apart by nothing else."""
    for kind in kinds[:-1]:
        known = [field.encode_name for field in msgspec.structs.fields(kind)] if _is_struct(kind) else []
        known += [field.name for field in fields(kind)] if isinstance(kind, type) and is_dataclass(kind) else []
        fits = answer is None if kind is None else isinstance(answer, dict) and all(key in known for key in answer)
        if fits:
            return msgspec.convert(answer, cast("type[object]", kind), dec_hook=_dec_hook)
    return msgspec.convert(answer, cast("type[object]", kinds[-1]), dec_hook=_dec_hook)


def _is_struct(kind: object) -> TypeGuard[type[msgspec.Struct]]:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _dec_hook(kind: type[object], value: object) -> object:
    if issubclass(kind, FrozenMap):
        return kind(cast("Mapping[str, str]", value))
    if kind is Quantity:
        return Quantity.parse(cast("str", value))
    if kind is SharedSecret:
        return SharedSecret(cast("str", value))
    raise NotImplementedError(f"cannot decode {kind.__name__}")
