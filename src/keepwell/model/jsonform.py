"""JSON as keepwell keeps it: read strictly, written in one canonical form, named by the hash of that form.

The canonical form is that of category files: two blanks of indent, keys sorted by code point, non-ASCII as it is, no
line end at the end. Numbers are kept to the digit or refused: a document must not say something else after it was
stored.
"""

import hashlib
import json
import math
import re
from collections.abc import Iterator
from decimal import Decimal
from json.encoder import encode_basestring
from typing import Any, Final

from keepwell.model.errors import Invalid

MAX_DEPTH: Final = 127
"""How many objects and arrays may stand in one another."""

MAX_NUMBER_LENGTH: Final = 400
"""How many characters a number may have; the longest exact double has fewer."""

_SMALLEST_INTEGER: Final = -(2**63)
_LARGEST_INTEGER: Final = 2**64 - 1
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def parse(text: str) -> Any:
    """The value that a JSON text stands for (RFC 8259), with what most readers let pass refused.

    `Invalid`, naming the place, for text that is not JSON, a key that stands twice in one object, NaN and Infinity,
    halves of surrogate pairs, nesting deeper than `MAX_DEPTH`, and numbers that would not be kept: whole numbers
    outside of 64 bits and decimals with more digits than a double holds, unless the double is exactly that number.
    """
    try:
        value = json.loads(
            text, object_pairs_hook=_object, parse_constant=_refuse_constant, parse_int=integer, parse_float=decimal
        )
    except RecursionError:
        raise _too_deep() from None
    except json.JSONDecodeError as error:
        raise Invalid(f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}.") from None
    check(value)
    return value


def check(value: object) -> None:
    """Raise `Invalid` for a parsed value that cannot be kept: too deep, half a surrogate pair, NaN or Infinity."""
    # finding the place costs several times what finding a fault does, and there seldom is one
    if not _is_sound(value, MAX_DEPTH):
        _refuse_fault(value)


def _is_sound(value: object, levels: int) -> bool:
    match value:
        case str():
            return value.isascii() or not _SURROGATE.search(value)
        case dict():
            return levels > 0 and all(_is_sound(key, 0) and _is_sound(item, levels - 1) for key, item in value.items())
        case list():
            return levels > 0 and all(_is_sound(item, levels - 1) for item in value)
        case float():
            return math.isfinite(value)
        case _:
            return True


def _refuse_fault(value: object) -> None:
    for place, depth, part in _parts(value, "", 1):
        if depth > MAX_DEPTH:
            raise _too_deep()
        if isinstance(part, str) and (half := _SURROGATE.search(part)):
            raise Invalid(f"{place or 'the text'} holds U+{ord(half.group()):04X}, half of a surrogate pair.")
        if isinstance(part, float) and not math.isfinite(part):
            raise Invalid(f"{place or 'the value'} is {part}, which is not a JSON number.")


def read(text: str) -> Any:
    """The value of a canonical text, which was checked when it was written."""
    return json.loads(text)


def kept(value: object) -> Any:
    """A value that another parser read, as `parse` would have given it: checked, and large whole numbers as floats.

    `Invalid` as for `parse`.
    """
    check(value)
    return _with_kept_numbers(value)


def _with_kept_numbers(value: object) -> object:
    if isinstance(value, dict):
        return {key: _with_kept_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_kept_numbers(item) for item in value]
    if isinstance(value, int) and not isinstance(value, bool):
        return integer(str(value))
    return value


def _too_deep() -> Invalid:
    return Invalid(f"the document is nested deeper than {MAX_DEPTH} levels.")


def _parts(value: object, place: str, depth: int) -> Iterator[tuple[str, int, object]]:
    """Every key and value, with its place and the number of containers around it and of itself."""
    if isinstance(value, dict):
        yield place, depth, None
        if depth <= MAX_DEPTH:
            for key, item in value.items():
                yield f"{place} key", depth, key
                yield from _parts(item, f"{place}.{key}" if place else key, depth + 1)
    elif isinstance(value, list):
        yield place, depth, None
        if depth <= MAX_DEPTH:
            for index, item in enumerate(value):
                yield from _parts(item, f"{place}[{index}]", depth + 1)
    else:
        yield place, depth - 1, value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise Invalid(f"the key {ascii(key)[:60]} stands twice in one object.")
            seen.add(key)
    return members


def _refuse_constant(word: str) -> None:
    raise Invalid(f"{word} is not a JSON number.")


def integer(digits: str) -> int | float:
    """The whole number that JSON text stands for: a float outside of 64 bits, if that is exact; else `Invalid`."""
    _refuse_long(digits)
    number = int(digits)
    if digits == "-0":
        return -0.0
    if _SMALLEST_INTEGER <= number <= _LARGEST_INTEGER:
        return number
    return decimal(digits)


def decimal(digits: str) -> float:
    """The decimal that JSON text stands for; `Invalid` if the float nearest to it says something else."""
    _refuse_long(digits)
    number = float(digits)
    # kept if it is the double's exact value, or the shortest text that reads back as the double
    if math.isinf(number) or Decimal(digits) not in (Decimal(number), Decimal(repr(number))):
        raise Invalid(
            f"the number {digits[:60]} cannot be kept exactly.",
            hint="Send it as a string, or with no more digits than a 64-bit float holds.",
        )
    return number


def _refuse_long(digits: str) -> None:
    if len(digits) > MAX_NUMBER_LENGTH:
        raise Invalid(f"a number has {len(digits):,} characters; the limit is {MAX_NUMBER_LENGTH}.")


def canonical(value: object) -> str:
    """The one text that stands for a value. The value must be one that `check` accepts."""
    return "".join(_written(value, "\n"))


def content_hash(text: str) -> str:
    """SHA-256 of a canonical text in UTF-8, 64 lower-case hexadecimal digits."""
    return content_hash_of(text.encode())


def content_hash_of(data: bytes) -> str:
    """The hash that a file's bytes have; a document's if they are its canonical text."""
    return hashlib.sha256(data).hexdigest()


def compact(value: object) -> str:
    """JSON on one line without blanks, keys in their order: how replies say a value."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _written(value: object, line: str) -> Iterator[str]:
    deeper = line + "  "
    if isinstance(value, str):
        yield encode_basestring(value)
    elif isinstance(value, dict) and value:
        separator = "{"
        for key in sorted(value):
            yield f"{separator}{deeper}{encode_basestring(key)}: "
            yield from _written(value[key], deeper)
            separator = ","
        yield line + "}"
    elif isinstance(value, list) and value:
        separator = "["
        for item in value:
            yield separator + deeper
            yield from _written(item, deeper)
            separator = ","
        yield line + "]"
    elif isinstance(value, float):
        yield _float(value)
    elif type(value) is int:
        yield str(value)
    else:
        yield json.dumps(value, ensure_ascii=False)


def _float(number: float) -> str:
    """Shortest digits that read back the same; positional for exponents from -5 to 15, else scientific.

    The form of serde_json (zmij), which wrote the category files that exist already.
    """
    sign, digits, exponent = Decimal(repr(number)).as_tuple()
    assert isinstance(exponent, int)  # noqa: S101 - a finite number has one
    text = "".join(map(str, digits)).rstrip("0") or "0"
    # the position of the decimal point, counted from the first digit
    point = len(digits) + exponent
    if text == "0":
        shown = "0.0"
    elif -4 <= point <= 0:
        shown = "0." + "0" * -point + text
    elif 0 < point <= 16:
        whole, fraction = text[:point].ljust(point, "0"), text[point:]
        shown = f"{whole}.{fraction or '0'}"
    else:
        fraction = f".{text[1:]}" if len(text) > 1 else ""
        shown = f"{text[0]}{fraction}e{point - 1:+d}"
    return "-" + shown if sign else shown
