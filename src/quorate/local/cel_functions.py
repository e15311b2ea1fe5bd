"""The Kubernetes extension functions of CEL that are not part of the CEL library itself: quantities, regexes, lists,
addresses.

CEL for Python cannot carry opaque values, so a quantity is a map with its value in nano units; equal quantities are
equal maps, whatever their notation (`quantity('1Gi') == quantity('1024Mi')`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from ipaddress import ip_address, ip_network
from typing import TypeAlias
from urllib.parse import urlsplit

from cel_expr_python import cel

from quorate.api.quantity import Quantity

Number: TypeAlias = "int | float"
CelQuantity: TypeAlias = "dict[str, str]"
Result: TypeAlias = "bool | int | float | str | list[str] | CelQuantity"

_NANO = 10**9
_KEY = "nano"
QUANTITY = cel.Type.Map(cel.Type.STRING, cel.Type.STRING)


def _nano(value: CelQuantity) -> int:
    return int(value[_KEY])


def _of(nano: int) -> CelQuantity:
    return {_KEY: str(nano)}


def _quantity(text: str) -> CelQuantity:
    return _of(Quantity.parse(text)._nano)  # the exact amount, which no public property rounds


def _is_quantity(text: str) -> bool:
    return _succeeds(lambda: Quantity.parse(text))


def _succeeds(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except ValueError:
        return False
    return True


def _as_integer(value: CelQuantity) -> int:
    nano = _nano(value)
    if nano % _NANO or not -(2**63) <= nano // _NANO < 2**63:
        raise ValueError("cannot convert value to integer")
    return nano // _NANO


def _compare(left: CelQuantity, right: CelQuantity) -> int:
    return (_nano(left) > _nano(right)) - (_nano(left) < _nano(right))


def _is_sorted(items: Sequence[Number | str]) -> bool:
    return list(items) == sorted(items, key=lambda item: item)  # pyright: ignore[reportArgumentType, reportUnknownLambdaType]


def _overload(
    function: str, returns: cel.Type, parameters: list[cel.Type], implementation: Callable[..., Result], *, member: bool
) -> cel.Overload:
    name = "_".join([function, *(parameter.name() for parameter in parameters)])
    return cel.Overload(name, return_type=returns, parameters=parameters, is_member=member, impl=implementation)


def functions() -> list[cel.FunctionDecl]:
    """All of them, for a CEL environment."""
    kind = cel.Type
    strings, anything = kind.STRING, kind.LIST
    table: list[tuple[str, cel.Type, list[cel.Type], Callable[..., Result], bool]] = [
        ("quantity", QUANTITY, [strings], _quantity, False),
        ("isQuantity", kind.BOOL, [strings], _is_quantity, False),
        ("isInteger", kind.BOOL, [QUANTITY], lambda value: _nano(value) % _NANO == 0, True),
        ("asInteger", kind.INT, [QUANTITY], _as_integer, True),
        ("asApproximateFloat", kind.DOUBLE, [QUANTITY], lambda value: _nano(value) / _NANO, True),
        ("sign", kind.INT, [QUANTITY], lambda value: _compare(value, _of(0)), True),
        ("isGreaterThan", kind.BOOL, [QUANTITY, QUANTITY], lambda a, b: _compare(a, b) > 0, True),
        ("isLessThan", kind.BOOL, [QUANTITY, QUANTITY], lambda a, b: _compare(a, b) < 0, True),
        ("compareTo", kind.INT, [QUANTITY, QUANTITY], _compare, True),
        ("find", strings, [strings, strings], lambda text, pattern: _find_all(text, pattern, 1), True),
        ("isSorted", kind.BOOL, [anything], _is_sorted, True),
        ("sum", kind.DYN, [anything], lambda items: sum(items), True),
        ("min", kind.DYN, [anything], lambda items: min(items), True),
        ("max", kind.DYN, [anything], lambda items: max(items), True),
        ("isURL", kind.BOOL, [strings], _is_url, False),
        ("isIP", kind.BOOL, [strings], lambda text: _succeeds(lambda: ip_address(text)), False),
        ("isCIDR", kind.BOOL, [strings], _is_cidr, False),
    ]
    single = [
        cel.FunctionDecl(name, [_overload(name, returns, parameters, implementation, member=member)])
        for name, returns, parameters, implementation, member in table
    ]
    return [*single, *_overloaded()]


def _overloaded() -> list[cel.FunctionDecl]:
    kind = cel.Type
    both = [QUANTITY, QUANTITY], [QUANTITY, kind.INT]
    implementations: list[tuple[str, Callable[..., Result], Callable[..., Result]]] = [
        ("add", lambda a, b: _of(_nano(a) + _nano(b)), lambda a, n: _of(_nano(a) + n * _NANO)),
        ("sub", lambda a, b: _of(_nano(a) - _nano(b)), lambda a, n: _of(_nano(a) - n * _NANO)),
    ]
    declared = [
        cel.FunctionDecl(
            name,
            [
                _overload(name, QUANTITY, both[0], with_quantity, member=True),
                _overload(name, QUANTITY, both[1], with_int, member=True),
            ],
        )
        for name, with_quantity, with_int in implementations
    ]
    found = kind.List(kind.STRING)
    find_all = cel.FunctionDecl(
        "findAll",
        [
            _overload("findAll", found, [kind.STRING, kind.STRING], lambda t, p: _matches(t, p, -1), member=True),
            _overload("findAll", found, [kind.STRING, kind.STRING, kind.INT], _matches, member=True),
        ],
    )
    return [*declared, find_all]


def _matches(text: str, pattern: str, limit: int) -> list[str]:
    found = [match.group(0) for match in re.finditer(pattern, text)]
    return found if limit < 0 else found[:limit]


def _find_all(text: str, pattern: str, limit: int) -> str:
    found = _matches(text, pattern, limit)
    return found[0] if found else ""


def _is_url(text: str) -> bool:
    return _succeeds(lambda: urlsplit(text)) and (bool(urlsplit(text).scheme) or text.startswith("/"))


def _is_cidr(text: str) -> bool:
    return "/" in text and _succeeds(lambda: ip_network(text, strict=False))
