"""One line of the wire to one JSON-RPC message, or to the reason why it is none.

Strict on purpose: what Python's parser would let pass silently (NaN, repeated keys, halves of surrogate pairs, digits
that a double does not hold) is refused with a sentence, so that nothing is stored that another reader would read
differently. Knows JSON and the JSON-RPC envelope; knows nothing of descriptors, of the SDK or of any method.
"""

import json
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from keepwell.model import jsonform
from keepwell.model.errors import Invalid

NOT_JSON: Final = -32700
INVALID_REQUEST: Final = -32600
INVALID_PARAMS: Final = -32602

MAX_DEPTH: Final = 200
"""Nested objects and arrays in one message; the SDK cannot write an answer deeper than 254."""

MAX_DIGITS: Final = 640
"""Characters of one integer: the lowest limit that a Python process can be set to, so that reading one never fails."""

_SHOWN: Final = 160
_SURROGATE_ESCAPE: Final = re.compile(r"\\u[dD][89a-fA-F]")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_PLAIN_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


class Refused(Exception):
    """A line that is not passed on.

    `reply_id` is the id to answer with, None when none could be read; `answered` is False for a broken notification,
    which JSON-RPC leaves without an answer.
    """

    def __init__(self, code: int, sentence: str, *, reply_id: str | int | None = None, answered: bool = True) -> None:
        super().__init__(sentence)
        self.code: Final = code
        self.sentence: Final = sentence
        self.reply_id: Final = reply_id
        self.answered: Final = answered


def read_message(line: bytes) -> dict[str, object]:
    """The JSON-RPC request, notification or response that `line` holds.

    Raises `Refused`: -32700 for what is not JSON, -32602 for text that is not Unicode, -32600 for everything else.
    """
    text = _decoded(line)
    reader = _Reader()
    value = reader.read(text)
    if not isinstance(value, dict):
        raise _refused_as_a_whole(reader.fault or _shape_fault(value))
    message: dict[str, object] = value
    fault = reader.fault or _envelope_fault(message) or _depth_fault(message, text) or _text_fault(message, text)
    if fault:
        raise _refused_message(fault, message)
    return message


class _Fault(NamedTuple):
    code: int
    sentence: str


class _Reader:
    """Reads one document to its end and keeps the first thing that strict JSON does not allow.

    Reading on after a fault is what lets the refusal carry the id of the request.
    """

    def __init__(self) -> None:
        self.fault: _Fault | None = None

    def read(self, text: str) -> object:
        try:
            return json.loads(
                text,
                object_pairs_hook=self._members,
                parse_constant=self._constant,
                parse_int=self._integer,
                parse_float=self._real,
            )
        except RecursionError:
            raise Refused(*_TOO_DEEP) from None
        except json.JSONDecodeError as error:
            raise Refused(NOT_JSON, f"The line is not JSON: {error.msg} at character {error.pos}.") from None

    def _note(self, code: int, sentence: str) -> None:
        self.fault = self.fault or _Fault(code, sentence)

    def _constant(self, word: str) -> None:
        self._note(NOT_JSON, f"The line is not JSON: {word} is no JSON value.")

    def _integer(self, digits: str) -> int | float:
        if digits == "-0":
            # as a whole number it would lose its sign
            return -0.0
        if len(digits) <= MAX_DIGITS:
            return int(digits)
        self._note(INVALID_REQUEST, f"An integer has {len(digits)} digits; the limit is {MAX_DIGITS}.")
        return 0

    def _real(self, digits: str) -> float:
        try:
            return jsonform.decimal(digits)
        except Invalid as error:
            # refused here, for nobody behind this door can see the digits that were lost
            self._note(INVALID_PARAMS, f"{error.sentence[:1].upper()}{error.sentence[1:]} {error.hint}".strip())
            return 0.0

    def _members(self, pairs: list[tuple[str, object]]) -> dict[str, object]:
        members: dict[str, object] = dict(pairs)
        if len(members) == len(pairs):
            return members
        repeated = _first_repeated(key for key, _ in pairs)
        self._note(INVALID_REQUEST, f"The key {_shown(json.dumps(repeated))} occurs twice in one object.")
        # Two ids are no id: answering with either could settle another request.
        return members | {"id": None} if repeated == "id" else members


_TOO_DEEP: Final = _Fault(INVALID_REQUEST, f"The message is nested deeper than {MAX_DEPTH} levels.")


def _decoded(line: bytes) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        at = f"byte 0x{line[error.start]:02x} at position {error.start}"
        raise Refused(NOT_JSON, f"The line is not UTF-8: {at}.") from None


def _first_repeated(keys: Iterator[str]) -> str:
    seen: set[str] = set()
    return next(key for key in keys if key in seen or seen.add(key))  # type: ignore[func-returns-value]  # add is None


def _shape_fault(value: object) -> _Fault:
    if isinstance(value, list):
        return _Fault(INVALID_REQUEST, "Batches are not supported; send one message per line.")
    return _Fault(INVALID_REQUEST, "A message must be a JSON object.")


def _envelope_fault(message: dict[str, object]) -> _Fault | None:
    sentence = _envelope_sentence(message)
    return _Fault(INVALID_REQUEST, sentence) if sentence else None


def _envelope_sentence(message: dict[str, object]) -> str | None:
    if message.get("jsonrpc") != "2.0":
        return 'The member jsonrpc must be "2.0".'
    if "method" in message:
        return _call_sentence(message)
    return _response_sentence(message)


def _call_sentence(message: dict[str, object]) -> str | None:
    if "id" in message and not _is_id(message["id"]):
        return "The member id must be a string or an integer."
    if not isinstance(message["method"], str):
        return "The member method must be a string."
    # Some clients write an absent params as null; the SDK reads it as absent too.
    if not isinstance(message.get("params"), dict | None):
        return "The member params must be an object."
    return "A message has either a method or a result, not both." if _is_response(message) else None


def _response_sentence(message: dict[str, object]) -> str | None:
    if not _is_response(message):
        return "The member method is missing."
    if "result" in message and "error" in message:
        return "A response has either a result or an error, not both."
    # An error may name no request: its sender could not read which one it was.
    may_be_null = "error" in message and "id" in message and message["id"] is None
    if not (may_be_null or _is_id(message.get("id"))):
        return "The member id must be a string or an integer."
    kind = "result" if "result" in message else "error"
    return None if isinstance(message[kind], dict) else f"The member {kind} must be an object."


def _is_id(value: object) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _is_response(message: dict[str, object]) -> bool:
    return "result" in message or "error" in message


def _depth_fault(message: dict[str, object], text: str) -> _Fault | None:
    # Counting brackets is cheap, and nearly every message has too few of them to be looked at.
    may_be_deep = text.count("{") + text.count("[") > MAX_DEPTH
    return _TOO_DEEP if may_be_deep and not _fits(message, MAX_DEPTH) else None


def _fits(value: object, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return True
    members = value.values() if isinstance(value, dict) else value
    return levels > 0 and all(_fits(member, levels - 1) for member in members)


def _text_fault(message: dict[str, object], text: str) -> _Fault | None:
    # The line was valid UTF-8, so half a pair can only have come in as an escape.
    if not _SURROGATE_ESCAPE.search(text):
        return None
    for path, words in _texts(message, ""):
        if half := _SURROGATE.search(words):
            sentence = f"{_shown(path)} holds U+{ord(half.group()):04X}, half of a surrogate pair, which is not text."
            return _Fault(INVALID_PARAMS, sentence)
    return None


def _texts(value: object, path: str) -> Iterator[tuple[str, str]]:
    """Every key and every string at or below `value`, each with the path where it is."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, list):
        for place, member in enumerate(value):
            yield from _texts(member, f"{path}[{place}]")
    elif isinstance(value, dict):
        for key, member in value.items():
            below = _below(path, key)
            yield below, key
            yield from _texts(member, below)


def _below(path: str, key: str) -> str:
    if not _PLAIN_KEY.fullmatch(key):
        return f"{path}[{json.dumps(key)}]"
    return f"{path}.{key}" if path else key


def _shown(words: str) -> str:
    return words if len(words) <= _SHOWN else words[:_SHOWN] + "…"


def _refused_as_a_whole(fault: _Fault) -> Refused:
    return Refused(fault.code, fault.sentence)


def _refused_message(fault: _Fault, message: dict[str, object]) -> Refused:
    # A line that is not JSON is always answered: nobody can say for sure that it was meant as a notification.
    notification = "id" not in message and isinstance(message.get("method"), str)
    answered = fault.code == NOT_JSON or not notification
    return Refused(fault.code, fault.sentence, reply_id=_reply_id(message), answered=answered)


def _reply_id(message: dict[str, object]) -> str | int | None:
    value = message.get("id")
    # The id of a response is one of ours; in an answer it would be taken for a request of the client's.
    if "method" not in message and _is_response(message):
        return None
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    return None if isinstance(value, str) and _SURROGATE.search(value) else value
