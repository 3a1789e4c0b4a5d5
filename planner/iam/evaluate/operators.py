"""The condition operators of IAM: whether one test holds for what a request carries.  Knows nothing of statements.

Three answers: it holds, it does not, or it cannot be judged (None): an operator that is not known here, a value that is no number, date or address.
Absent keys and keys of several values follow the IAM user guide (condition operators; single- and multivalued keys, read 2026-11):
    absent      a negated operator holds, any other does not; `…IfExists` and `ForAllValues:` hold; `ForAnyValue:` does not
    several     without a set operator: one of the request's values fits; negated: none of them does
A key without a value is an absent one.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Final, NamedTuple, Protocol

from planner.iam.evaluate.patterns import Form, Lookup, literal, matches
from planner.model.policy import Test

#: what a request carries, by key in lower case
Context = Mapping[str, tuple[str, ...]]


class _Fits(Protocol):
    """Whether a value of the request fits one of the policy.  Raises ValueError if either is not of the operator's kind."""

    def __call__(self, value: str, want: str, /, lookup: Lookup, variables: bool) -> bool: ...


class _Operator(NamedTuple):
    fits: _Fits
    negated: bool = False


def holds(test: Test, context: Context, *, variables: bool = True) -> bool | None:
    """Whether the test holds; None where that cannot be judged.  `variables`: the policy's version knows them."""
    parsed = _parsed(test.operator)
    if parsed is None:
        return None
    quantifier, base, if_exists = parsed
    have = context.get(test.key.lower(), ())
    if base == "null":
        return _null(test, present=bool(have), plain=not (quantifier or if_exists))
    operator = _OPERATORS.get(base)
    if operator is None:
        return None
    if not have:
        return if_exists or quantifier == "forallvalues" or (operator.negated and quantifier != "foranyvalue")
    try:
        fits = partial(operator.fits, lookup=lookup_in(context), variables=variables)
        return _several(quantifier, operator.negated, fits, have, test.values)
    except ValueError:
        return None


def lookup_in(context: Context) -> Lookup:
    """Values of policy variables: of keys with exactly one value."""

    def lookup(key: str) -> str | None:
        have = context.get(key, ())
        return have[0] if len(have) == 1 else None

    return lookup


def _several(
    quantifier: str, negated: bool, fits: Callable[[str, str], bool], have: tuple[str, ...], wanted: tuple[str, ...]
) -> bool:
    fitting = (any(fits(value, want) for want in wanted) for value in have)
    if quantifier == "forallvalues":
        return all(fit is not negated for fit in fitting)
    if quantifier == "foranyvalue":
        return any(fit is not negated for fit in fitting)
    return any(fitting) is not negated


def _null(test: Test, *, present: bool, plain: bool) -> bool | None:
    wanted = {value.lower() for value in test.values}
    if not plain or not wanted or not wanted <= {"true", "false"}:
        return None
    return ("false" if present else "true") in wanted


_FORM: Final = re.compile(r"(?:(forallvalues|foranyvalue):)?([a-z]+?)(ifexists)?")


def _parsed(operator: str) -> tuple[str, str, bool] | None:
    found = _FORM.fullmatch(operator.lower())
    return (found[1] or "", found[2], bool(found[3])) if found else None


def _equals(value: str, want: str, lookup: Lookup, variables: bool) -> bool:
    return literal(want, lookup, variables=variables) == value


def _equals_ignoring_case(value: str, want: str, lookup: Lookup, variables: bool) -> bool:
    text = literal(want, lookup, variables=variables)
    return text is not None and text.lower() == value.lower()


def _like(value: str, want: str, lookup: Lookup, variables: bool) -> bool:
    return matches(want, value, Form.TEXT, lookup, variables=variables)


def _arn(value: str, want: str, lookup: Lookup, variables: bool) -> bool:
    return matches(want, value, Form.ARN, lookup, variables=variables)


def _bool(value: str, want: str, lookup: Lookup, variables: bool) -> bool:
    text = literal(want, lookup, variables=variables)
    if text is not None and text.lower() not in {"true", "false"}:
        raise ValueError(f"{text} is no boolean")
    return text is not None and value.lower() == text.lower()


def _binary(value: str, want: str, lookup: Lookup, variables: bool) -> bool:
    del lookup, variables
    try:
        return base64.b64decode(value, validate=True) == base64.b64decode(want, validate=True)
    except binascii.Error as error:
        raise ValueError(f"{value} or {want} is no base64") from error


def _address(value: str, want: str, lookup: Lookup, variables: bool) -> bool:
    del lookup, variables
    address, network = ipaddress.ip_address(value), ipaddress.ip_network(want, strict=False)
    return address.version == network.version and address in network


def _number(text: str) -> Decimal:
    try:
        number = Decimal(text.strip())
    except InvalidOperation as error:
        raise ValueError(f"{text} is no number") from error
    if not number.is_finite():
        raise ValueError(f"{text} is no number")
    return number


def _instant(text: str) -> Decimal:
    """Seconds since 1970, of ISO 8601 or of just those."""
    if re.fullmatch(r"\d{5,}(\.\d+)?", text):
        return Decimal(text)
    found = datetime.fromisoformat(text)
    return Decimal(str((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()))


def _ordered(read: Callable[[str], Decimal], compare: Callable[[Decimal, Decimal], bool]) -> _Fits:
    def fits(value: str, want: str, lookup: Lookup, variables: bool) -> bool:
        del lookup, variables
        return compare(read(value), read(want))

    return fits


_COMPARISONS: Final[dict[str, tuple[Callable[[Decimal, Decimal], bool], bool]]] = {
    "equals": (Decimal.__eq__, False),
    "notequals": (Decimal.__eq__, True),
    "lessthan": (Decimal.__lt__, False),
    "lessthanequals": (Decimal.__le__, False),
    "greaterthan": (Decimal.__gt__, False),
    "greaterthanequals": (Decimal.__ge__, False),
}
_OPERATORS: Final[dict[str, _Operator]] = {
    "stringequals": _Operator(_equals),
    "stringnotequals": _Operator(_equals, negated=True),
    "stringequalsignorecase": _Operator(_equals_ignoring_case),
    "stringnotequalsignorecase": _Operator(_equals_ignoring_case, negated=True),
    "stringlike": _Operator(_like),
    "stringnotlike": _Operator(_like, negated=True),
    "arnequals": _Operator(_arn),
    "arnlike": _Operator(_arn),
    "arnnotequals": _Operator(_arn, negated=True),
    "arnnotlike": _Operator(_arn, negated=True),
    "bool": _Operator(_bool),
    "binaryequals": _Operator(_binary),
    "ipaddress": _Operator(_address),
    "notipaddress": _Operator(_address, negated=True),
    **{
        f"numeric{name}": _Operator(_ordered(_number, compare), negated)
        for name, (compare, negated) in _COMPARISONS.items()
    },
    **{
        f"date{name}": _Operator(_ordered(_instant, compare), negated)
        for name, (compare, negated) in _COMPARISONS.items()
    },
}
