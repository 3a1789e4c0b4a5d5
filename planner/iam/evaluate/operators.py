"""The condition operators of IAM: whether one test holds for what a request carries.  Knows nothing of statements.

Three answers: it holds, it does not, or it cannot be judged (None): an operator that is not known here; a value that is no number, date, address or
ARN; several values without a set operator; a negated test against a variable that the request does not fill.  Of these IAM says nothing certain.
Absent keys and keys of several values follow the IAM user guide (condition operators; single- and multivalued keys, read 2026-11):
    absent      a negated operator holds, any other does not; `…IfExists` and `ForAllValues:` hold; `ForAnyValue:` does not
    several     `ForAllValues:` takes each of the request's values to fit, `ForAnyValue:` one; negated, each or one that fits none of the policy's
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
from functools import lru_cache
from typing import Final, NamedTuple, Protocol

from planner.iam.evaluate.patterns import Form, Lookup, filled, is_arn, literal, matches
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
    quantifier, base, if_exists = _parsed(test.operator)
    have = context.get(test.key.lower(), ())
    if base == "null":
        return _null(test, present=bool(have), plain=not (quantifier or if_exists))
    operator = _OPERATORS.get(base)
    if operator is None:
        return None
    if not have:
        return _absent(quantifier, if_exists=if_exists, negated=operator.negated)
    lookup = lookup_in(context)
    fitting = [_fitting(operator, value, test.values, lookup, variables) for value in have]
    if operator.negated:
        fitting = [None if one is None else not one for one in fitting]
    return _over(quantifier, fitting)


def _absent(quantifier: str, *, if_exists: bool, negated: bool) -> bool | None:
    if quantifier == "foranyvalue":
        # of both together the guide has no word, and says true of the one and false of the other
        return None if if_exists else False
    return if_exists or negated or quantifier == "forallvalues"


def _over(quantifier: str, answers: list[bool | None]) -> bool | None:
    """All of the answers, or any of them; one that is not known leaves open what it could change."""
    if quantifier == "foranyvalue":
        return True if True in answers else (None if None in answers else False)
    if len(answers) > 1 and not quantifier:
        return None
    return False if False in answers else (None if None in answers else True)


def _fitting(operator: _Operator, value: str, wanted: tuple[str, ...], lookup: Lookup, variables: bool) -> bool | None:
    """Whether the value fits one of those wanted; None if that hangs on one that cannot be compared."""
    unclear = False
    for want in wanted:
        try:
            if operator.fits(value, want, lookup=lookup, variables=variables):
                return True
        except ValueError:
            unclear = True
        # "is not what nobody knows" would hold for everything
        unclear = unclear or (operator.negated and variables and not filled(want, lookup))
    return None if unclear else False


def lookup_in(context: Context) -> Lookup:
    """Values of policy variables: of keys with exactly one value."""

    def lookup(key: str) -> str | None:
        have = context.get(key, ())
        return have[0] if len(have) == 1 else None

    return lookup


def _null(test: Test, *, present: bool, plain: bool) -> bool | None:
    wanted = {value.lower() for value in test.values}
    if not plain or not wanted or not wanted <= {"true", "false"}:
        return None
    return ("false" if present else "true") in wanted


_FORM: Final = re.compile(r"(?:(forallvalues|foranyvalue):)?([a-z]+?)(ifexists)?")


@lru_cache(maxsize=1024)
def _parsed(operator: str) -> tuple[str, str, bool]:
    """Set operator, operator, whether `IfExists`; what has another form is an operator of its own, which is not known."""
    found = _FORM.fullmatch(operator.lower())
    return (found[1] or "", found[2], bool(found[3])) if found else ("", operator, False)


def _equals(value: str, want: str, lookup: Lookup, variables: bool) -> bool:
    return literal(want, lookup, variables=variables) == value


def _equals_ignoring_case(value: str, want: str, lookup: Lookup, variables: bool) -> bool:
    text = literal(want, lookup, variables=variables)
    return text is not None and text.lower() == value.lower()


def _like(value: str, want: str, lookup: Lookup, variables: bool) -> bool:
    return matches(want, value, Form.TEXT, lookup, variables=variables)


def _arn(value: str, want: str, lookup: Lookup, variables: bool) -> bool:
    if not is_arn(want):
        raise ValueError(f"{want} is no ARN")
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
