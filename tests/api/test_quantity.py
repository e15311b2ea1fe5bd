from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.api.quantity import ZERO, Quantity

VECTORS = [
    # text, canonical form, whole units
    ("0", "0", 0),
    ("10Gi", "10Gi", 10 * 2**30),
    ("1.5Gi", "1536Mi", 3 * 2**29),
    ("0.5Gi", "512Mi", 2**29),
    ("1024Ki", "1Mi", 2**20),
    ("1023Ki", "1023Ki", 1023 * 1024),
    ("1048840Ki", "1048840Ki", 1074012160),
    ("0.5Ki", "512", 512),
    ("0.1Ki", "102400m", 103),
    ("231.9Gi", "249000728985600m", 249000728986),
    ("1.0000000001Gi", "1073741824107374183n", 1073741825),
    ("1Ei", "1Ei", 2**60),
    ("8Ei", "9223372036854775807", 2**63 - 1),
    ("512M", "512M", 512_000_000),
    ("1000k", "1M", 1_000_000),
    ("1500M", "1500M", 1_500_000_000),
    ("1.5G", "1500M", 1_500_000_000),
    ("123456789", "123456789", 123456789),
    ("10737418240", "10737418240", 10 * 2**30),
    ("1000", "1k", 1000),
    ("100m", "100m", 1),
    ("1500m", "1500m", 2),
    ("2000m", "2", 2),
    (".5", "500m", 1),
    ("5.", "5", 5),
    ("+7", "7", 7),
    ("-1500m", "-1500m", -2),
    ("-3Ki", "-3Ki", -3072),
    ("1e3", "1e3", 1000),
    ("12E6", "12e6", 12_000_000),
    ("1e-3", "1e-3", 1),
    ("100e1", "1e3", 1000),
    ("1E", "1E", 10**18),
    ("1n", "1n", 1),
    ("0.1n", "1n", 1),
]


@pytest.mark.parametrize(("text", "canonical", "units"), VECTORS)
def test_text_is_parsed_and_written_like_kubernetes_does(text: str, canonical: str, units: int) -> None:
    quantity = Quantity.parse(text)
    assert str(quantity) == canonical
    assert quantity.value == units
    assert Quantity.parse(canonical) == quantity


@pytest.mark.parametrize(
    "text", ["", " 1", "1 Gi", "ten", "1Kib", "1gi", "--1", "1e", "1e99", ".", "1_000", "50%", "١"]
)
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="quantity"):
        Quantity.parse(text)


def test_equality_and_order_are_by_value() -> None:
    assert Quantity.parse("1Gi") == Quantity.parse("1024Mi") == Quantity.parse(1073741824) == Quantity.of(2**30)
    assert hash(Quantity.parse("1Gi")) == hash(Quantity.of(2**30))
    assert Quantity.parse("1G") < Quantity.parse("1Gi") <= Quantity.of(2**30)
    assert Quantity.parse("0") == ZERO
    assert Quantity.of(1) != 1


@given(st.integers(0, 2**62))
def test_bytes_round_trip_with_binary_suffixes(amount: int) -> None:
    quantity = Quantity.of(amount)
    assert quantity.value == amount
    assert Quantity.parse(str(quantity)) == quantity


@given(
    st.tuples(
        st.integers(0, 10**6),
        st.sampled_from(["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti"]),
    )
)
def test_the_canonical_form_is_stable(parts: tuple[int, str]) -> None:
    quantity = Quantity.parse(f"{parts[0]}{parts[1]}")
    again = Quantity.parse(str(quantity))
    assert again == quantity
    assert str(again) == str(quantity)
