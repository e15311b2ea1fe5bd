"""Kubernetes quantities (`10Gi`, `512M`, `1e3`, `100m`, plain integers), parsed and formatted like Kubernetes does.

A `Quantity` is immutable, equal and ordered by value, and remembers its family of suffixes, so that `10Gi` stays binary
and `512M` stays decimal when written back. Precision is one nano unit; finer values round up, and amounts
are capped at the largest signed 64-bit integer, as in Kubernetes.
"""

from __future__ import annotations

import re
from functools import lru_cache, total_ordering

_NANO = 10**9
_MAX = (2**63 - 1) * _NANO
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_BY_POWER = {power: suffix for suffix, power in _BINARY.items()}
_DECIMAL_BY_POWER = {power: suffix for suffix, power in _DECIMAL.items()}
_SYNTAX = re.compile(r"([+-]?)(\d+(?:\.\d*)?|\.\d+)(Ki|Mi|Gi|Ti|Pi|Ei|[eE][+-]?\d+|[numkMGTPE]?)", re.ASCII)

BINARY = "BinarySI"
DECIMAL = "DecimalSI"
EXPONENT = "DecimalExponent"


@total_ordering
class Quantity:
    """An amount, usually of bytes."""

    __slots__ = ("_family", "_nano")

    def __init__(self, nano: int, family: str) -> None:
        self._nano = nano
        self._family = family

    @staticmethod
    def parse(text: str | int) -> Quantity:
        """The quantity of a wire value; ValueError when it is none."""
        return _parse(str(text))

    @staticmethod
    def of(amount: int) -> Quantity:
        """A whole number of units (bytes), written with binary suffixes."""
        return Quantity(amount * _NANO, BINARY)

    @property
    def nano(self) -> int:
        """The exact amount in nano units."""
        return self._nano

    @property
    def value(self) -> int:
        """The number of whole units, rounded up (away from zero), as Kubernetes' `Value()`."""
        whole, rest = divmod(abs(self._nano), _NANO)
        whole += 1 if rest else 0
        return whole if self._nano >= 0 else -whole

    def __str__(self) -> str:
        if self._nano == 0:
            return "0"
        sign = "-" if self._nano < 0 else ""
        nano = abs(self._nano)
        # Kubernetes writes binary quantities as decimals when they are below 1024 or not whole.
        if self._family == BINARY and nano >= 1024 * _NANO and nano % _NANO == 0:
            return sign + _format_binary(nano // _NANO)
        return sign + _format_decimal(nano, exponent=self._family == EXPONENT)

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self._nano == other._nano

    def __lt__(self, other: Quantity) -> bool:
        return self._nano < other._nano

    def __hash__(self) -> int:
        return hash(self._nano)

    def __reduce__(self) -> tuple[type[Quantity], tuple[int, str]]:
        return Quantity, (self._nano, self._family)


def _format_binary(units: int) -> str:
    power = 0
    while power < 6 and units % 1024 == 0:
        units //= 1024
        power += 1
    return f"{units}{_BINARY_BY_POWER.get(power, '')}"


def _format_decimal(nano: int, *, exponent: bool) -> str:
    power = -9
    while power + 3 <= 18 and nano % 1000 == 0:
        nano //= 1000
        power += 3
    if exponent:
        return f"{nano}e{power}" if power else str(nano)
    return f"{nano}{_DECIMAL_BY_POWER[power]}"


@lru_cache(maxsize=8192)
def _parse(text: str) -> Quantity:
    """Cached: a cluster has few distinct sizes, and equal ones then share one object."""
    match = _SYNTAX.fullmatch(text)
    if match is None:
        raise ValueError(f"not a quantity: {text!r}")
    sign, number, suffix = match.groups()
    whole, _, fraction = number.partition(".")
    numerator = int((whole or "0") + fraction)
    denominator = 10 ** len(fraction)
    family = DECIMAL
    if suffix in _BINARY:
        numerator <<= 10 * _BINARY[suffix]
        family = BINARY
    else:
        if suffix[:1] in ("e", "E") and len(suffix) > 1:
            power = int(suffix[1:])
            family = EXPONENT
        else:
            power = _DECIMAL[suffix]
        if abs(power) > 30:
            raise ValueError(f"quantity out of range: {text!r}")
        if power >= 0:
            numerator *= 10**power
        else:
            denominator *= 10**-power
    nano = min(-(-numerator * _NANO // denominator), _MAX)
    return Quantity(-nano if sign == "-" else nano, family)


ZERO = Quantity(0, BINARY)
