"""Categories: named JSON documents with versions. Times are UTC milliseconds.

A category of kind `log` is append-only and bounded; `model.journal` knows what its document looks like.
"""

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from keepwell.model import jsonform
from keepwell.model.errors import Conflict, Invalid
from keepwell.model.text import utf8_size

NAME_BYTES: Final = 128
"""How long a name may be in UTF-8: with a stamp and an ending it must still be a file name everywhere (255 bytes)."""

DOCUMENT_BYTES: Final = 1024 * 1024
"""How long the canonical form of a document may be."""

ABSENT: Final = "absent"
"""What `expected_hash` says of a category that must not exist."""

_HINT: Final = "Use letters, digits, blanks, - and _, such as projects or workflow_my-laptop."
_SEPARATORS: Final = '/\\:*?"<>|'
_UNSHOWN: Final = ("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp")
"""Unicode's general categories of what has no visible form: control, format, unassigned, private, surrogate, lines."""

_RESERVED: Final = re.compile(r"(con|prn|aux|nul|con(in|out)\$|com[0-9¹²³]|lpt[0-9¹²³]) *(\..*)?", re.IGNORECASE)
"""Names of devices that Windows keeps for itself, with any ending (learn.microsoft.com, Naming Files)."""


class CategoryKind(StrEnum):
    """What a category is."""

    MEMORY = "memory"
    LOG = "log"


class VersionAction(StrEnum):
    """What made a version."""

    WRITTEN = "written"
    ADOPTED = "adopted"
    RESTORED = "restored"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class Retention:
    """How many entries a log keeps, and for how many days; each is a bound unless None."""

    max_entries: int | None
    max_age_days: int | None


UNBOUNDED: Final = Retention(None, None)


@dataclass(frozen=True, slots=True)
class Heading:
    """What is known of a category without reading it, deleted ones included; `retention` is a log's.

    A deleted one keeps its name, its versions and the number that its next entry would get.
    """

    name: str
    kind: CategoryKind
    version: int
    updated_at: int
    updated_by: str
    next_entry_id: int
    retention: Retention | None
    deleted_at: int | None

    @property
    def is_live(self) -> bool:
        """Whether it is not deleted."""
        return self.deleted_at is None


@dataclass(frozen=True, slots=True)
class Category:
    """A live category. `hash` and `size_bytes` are those of its canonical document.

    `version` names its newest version on this device; 0 where there is only a file that a hand has made.
    """

    name: str
    kind: CategoryKind
    hash: str
    size_bytes: int
    version: int
    updated_at: int
    updated_by: str


@dataclass(frozen=True, slots=True)
class Document:
    """What a category holds: the canonical text, and whether somebody else than keepwell wrote it into the file."""

    category: Category
    text: str
    edited_outside: bool = False

    @property
    def data(self) -> Any:
        """The document as a JSON value."""
        return jsonform.read(self.text)


@dataclass(frozen=True, slots=True)
class Version:
    """One state of a category; `id` is the number of the change that made it.

    `text` is None where only its hash was kept, or where nothing was asked for.
    """

    id: int
    action: VersionAction
    kind: CategoryKind
    hash: str
    previous_hash: str | None
    size_bytes: int
    actor: str
    reason: str | None
    created_at: int
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Compacted:
    """How many versions and entries were removed, or would be."""

    versions: int
    entries: int


def check_name(name: str, *, parameter: str = "category") -> str:
    """Give a category's name back unchanged, or refuse it: it must be a file name on every system.

    `Invalid` for one that is empty or longer than `NAME_BYTES`, holds a separator, `..`, or a character without a
    visible form, begins with a dot or a blank, ends with either, or is reserved by Windows.
    """
    size = utf8_size(parameter, name)
    if not 1 <= size <= NAME_BYTES:
        raise Invalid(f"{parameter} must be a name of 1 to {NAME_BYTES} bytes in UTF-8, not {size}.", hint=_HINT)
    for position, character in enumerate(name, start=1):
        if character in _SEPARATORS or unicodedata.category(character) in _UNSHOWN:
            raise Invalid(
                f"{parameter} holds U+{ord(character):04X} at character {position}, which no name may.", hint=_HINT
            )
    if name.startswith((".", " ")) or name.endswith((".", " ")) or ".." in name or name != name.strip():
        raise Invalid(
            f"{parameter} begins or ends with a dot or a blank, or holds two dots in a row.",
            hint=_HINT,
        )
    if _RESERVED.fullmatch(name):
        raise Invalid(f"{parameter} is a name that Windows reserves.", hint=_HINT)
    return name


def name_key(name: str) -> str:
    """What two names must not share: a file system may fold case or normalise (Unicode, D146: canonical caseless)."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def checked_document(value: object, *, parameter: str = "data") -> str:
    """The canonical text of a JSON value that may be stored; `Invalid` names what is wrong with it."""
    try:
        text = jsonform.canonical(jsonform.kept(value))
    except Invalid as error:
        raise Invalid(f"{parameter}: {error.sentence}", hint=error.hint) from None
    size = len(text.encode())
    if size > DOCUMENT_BYTES:
        raise Invalid(
            f"{parameter} is {size:,} bytes in canonical JSON; the limit is {DOCUMENT_BYTES:,} bytes.",
            hint="Split it into several categories.",
        )
    return text


def merged(present: object, patch: Mapping[str, object]) -> dict[str, object]:
    """The object with each key of `patch` put in its place; null takes a key away.

    `Conflict` where `present` is no object.
    """
    if not isinstance(present, dict):
        raise Conflict(
            "the category does not hold an object, so nothing can be merged into it.",
            hint="Read it, and replace it with memory_write without merge.",
        )
    together = {**present, **patch}
    return {key: value for key, value in together.items() if key not in patch or value is not None}


def leaves(value: object, path: str = "") -> Iterator[tuple[str, str]]:
    """What a document says, piece by piece: the path of each scalar and its text; null and empty text say nothing.

    Keys are joined with dots, positions stand in brackets.
    """
    match value:
        case dict():
            for key in sorted(value):
                yield from leaves(value[key], f"{path}.{key}" if path else key)
        case list():
            for index, item in enumerate(value):
                yield from leaves(item, f"{path}[{index}]")
        case None | "":
            return
        case str():
            yield path, value
        case _:
            yield path, jsonform.canonical(value)


def merkle_leaf(name: str, content_hash: str) -> str:
    """SHA-256 of `name:hash` in hexadecimal: the leaf of a category in a manifest (the format of mcp-memory-rs)."""
    return hashlib.sha256(f"{name}:{content_hash}".encode()).hexdigest()


def merkle_root(categories: Iterable[tuple[str, str]]) -> str:
    """SHA-256 over the sorted leaves in hexadecimal of (name, hash) pairs; `empty` where there are none."""
    leaves_ = sorted(merkle_leaf(name, content_hash) for name, content_hash in categories)
    return hashlib.sha256("".join(leaves_).encode()).hexdigest() if leaves_ else "empty"
