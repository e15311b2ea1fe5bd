"""The Kubernetes extension functions of CEL that are not part of the CEL library itself: quantities, regexes, lists,
addresses.

CEL for Python cannot carry opaque values, so a quantity is a map with its value in nano units; equal quantities are
equal maps, whatever their notation (`quantity('1Gi') == quantity('1024Mi')`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from itertools import pairwise
from typing import TypeAlias
from urllib.parse import urlsplit

from cel_expr_python import cel

from quorate.api.quantity import Quantity

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


def _is_integer(value: CelQuantity) -> bool:
    return _nano(value) % _NANO == 0


def _as_float(value: CelQuantity) -> float:
    return _nano(value) / _NANO


def _sign(value: CelQuantity) -> int:
    return _compare(value, _of(0))


def _is_greater(left: CelQuantity, right: CelQuantity) -> bool:
    return _compare(left, right) > 0


def _is_less(left: CelQuantity, right: CelQuantity) -> bool:
    return _compare(left, right) < 0


def _add(left: CelQuantity, right: CelQuantity) -> CelQuantity:
    return _of(_nano(left) + _nano(right))


def _add_units(left: CelQuantity, units: int) -> CelQuantity:
    return _of(_nano(left) + units * _NANO)


def _subtract(left: CelQuantity, right: CelQuantity) -> CelQuantity:
    return _of(_nano(left) - _nano(right))


def _subtract_units(left: CelQuantity, units: int) -> CelQuantity:
    return _of(_nano(left) - units * _NANO)


def _is_sorted(items: Sequence[float]) -> bool:
    return all(left <= right for left, right in pairwise(items))


def _sum(items: Sequence[float]) -> float:
    return sum(items)


def _minimum(items: Sequence[float]) -> float:
    return min(items)


def _maximum(items: Sequence[float]) -> float:
    return max(items)


def _matches(text: str, pattern: str, limit: int) -> list[str]:
    found = [match.group(0) for match in re.finditer(pattern, text)]
    return found if limit < 0 else found[:limit]


def _all_matches(text: str, pattern: str) -> list[str]:
    return _matches(text, pattern, -1)


def _first_match(text: str, pattern: str) -> str:
    found = _matches(text, pattern, 1)
    return found[0] if found else ""


def _is_url(text: str) -> bool:
    return _succeeds(lambda: urlsplit(text)) and (bool(urlsplit(text).scheme) or text.startswith("/"))


def _is_ip(text: str) -> bool:
    return _succeeds(lambda: ip_address(text))


def _is_cidr(text: str) -> bool:
    return "/" in text and _succeeds(lambda: ip_network(text, strict=False))


@dataclass(frozen=True)
class _Declared:
    """One overload of one function."""

    name: str
    returns: cel.Type
    parameters: tuple[cel.Type, ...]
    implementation: Callable[..., Result]
    member: bool = True


def functions() -> list[cel.FunctionDecl]:
    """All of them, for a CEL environment."""
    declared: dict[str, list[cel.Overload]] = {}
    for each in _declarations():
        identifier = "_".join([each.name, *(parameter.name() for parameter in each.parameters)])
        overload = cel.Overload(
            identifier,
            return_type=each.returns,
            parameters=list(each.parameters),
            is_member=each.member,
            impl=each.implementation,
        )
        declared.setdefault(each.name, []).append(overload)
    return [cel.FunctionDecl(name, overloads) for name, overloads in declared.items()]


def _declarations() -> tuple[_Declared, ...]:
    kind = cel.Type
    text, number, found = kind.STRING, kind.INT, kind.List(kind.STRING)
    both = (QUANTITY, QUANTITY)
    return (
        _Declared("quantity", QUANTITY, (text,), _quantity, member=False),
        _Declared("isQuantity", kind.BOOL, (text,), _is_quantity, member=False),
        _Declared("isInteger", kind.BOOL, (QUANTITY,), _is_integer),
        _Declared("asInteger", number, (QUANTITY,), _as_integer),
        _Declared("asApproximateFloat", kind.DOUBLE, (QUANTITY,), _as_float),
        _Declared("sign", number, (QUANTITY,), _sign),
        _Declared("isGreaterThan", kind.BOOL, both, _is_greater),
        _Declared("isLessThan", kind.BOOL, both, _is_less),
        _Declared("compareTo", number, both, _compare),
        _Declared("add", QUANTITY, both, _add),
        _Declared("add", QUANTITY, (QUANTITY, number), _add_units),
        _Declared("sub", QUANTITY, both, _subtract),
        _Declared("sub", QUANTITY, (QUANTITY, number), _subtract_units),
        _Declared("find", text, (text, text), _first_match),
        _Declared("findAll", found, (text, text), _all_matches),
        _Declared("findAll", found, (text, text, number), _matches),
        _Declared("isSorted", kind.BOOL, (kind.LIST,), _is_sorted),
        _Declared("sum", kind.DYN, (kind.LIST,), _sum),
        _Declared("min", kind.DYN, (kind.LIST,), _minimum),
        _Declared("max", kind.DYN, (kind.LIST,), _maximum),
        _Declared("isURL", kind.BOOL, (text,), _is_url, member=False),
        _Declared("isIP", kind.BOOL, (text,), _is_ip, member=False),
        _Declared("isCIDR", kind.BOOL, (text,), _is_cidr, member=False),
    )
