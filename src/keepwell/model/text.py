"""Rules for stored text: what is refused, what counts as the same, and the digests that stand for it.

Text is kept to the byte or refused; nothing here changes what will be stored.
"""

import hashlib
import hmac
import json
import unicodedata
from typing import Final

from keepwell.model.errors import Invalid

LESSON_BYTES: Final = 2_000
DESCRIPTION_BYTES: Final = 1_000
REASON_BYTES: Final = 1_000
QUERY_BYTES: Final = 1_000
SOURCE_URI_BYTES: Final = 2_048
OPERATION_ID_BYTES: Final = 128
EVIDENCE_MAX: Final = 5

LARGEST_SAFE_INTEGER: Final = 2**53 - 1
"""The largest whole number that every JSON reader keeps exactly (RFC 8259, section 6)."""

_ALLOWED_CONTROLS: Final = "\t\n\r"


def check_text(name: str, value: str, *, max_bytes: int) -> str:
    """Give `value` back unchanged, or refuse it.

    Refused with `Invalid`: text that is empty or only white space, longer than `max_bytes` in UTF-8, a lone surrogate
    (it has no UTF-8 form), and control characters other than tab, line feed and carriage return.
    """
    size = utf8_size(name, value)
    if size > max_bytes:
        raise Invalid(
            f"{name} is {size:,} bytes in UTF-8; the limit is {max_bytes:,} bytes.",
            hint="Shorten it, or split it into several.",
        )
    if not value.strip():
        raise Invalid(f"{name} is empty; it takes 1 to {max_bytes:,} bytes of UTF-8 text.")
    _refuse_controls(name, value)
    return value


def utf8_size(name: str, value: str) -> int:
    """The length of `value` in UTF-8 bytes; `Invalid` if it holds a lone surrogate."""
    try:
        return len(value.encode())
    except UnicodeEncodeError as error:
        raise Invalid(
            f"{name} holds a lone surrogate (U+{ord(value[error.start]):04X}) at character {error.start + 1}.",
            hint="Send whole Unicode characters.",
        ) from None


def _refuse_controls(name: str, value: str) -> None:
    for position, character in enumerate(value):
        if character < " " and character not in _ALLOWED_CONTROLS:
            raise Invalid(
                f"{name} holds the control character U+{ord(character):04X} at character {position + 1}.",
                hint="Remove it; of the control characters only tab and line ends can be kept.",
            )


def normal_form(text: str) -> str:
    """What two texts must share to be the same lesson: NFKC (UAX #15), runs of white space as one blank, trimmed."""
    return " ".join(unicodedata.normalize("NFKC", text).split())


def text_hash(text: str) -> str:
    """SHA-256 of the normal form in UTF-8, 64 lower-case hexadecimal digits."""
    return hashlib.sha256(normal_form(text).encode()).hexdigest()


def keyed_digest(key: bytes, data: bytes) -> str:
    """HMAC-SHA-256 (RFC 2104), 64 hexadecimal digits: stands for a text without letting anyone guess it."""
    return hmac.new(key, data, hashlib.sha256).hexdigest()


def key_fingerprint(key: bytes) -> str:
    """Sixteen hexadecimal digits that name a digest key without revealing it."""
    return hashlib.sha256(b"keepwell digest key\0" + key).hexdigest()[:16]


def canonical_json(value: object) -> str:
    """Compact JSON with sorted keys: equal values give equal text."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
