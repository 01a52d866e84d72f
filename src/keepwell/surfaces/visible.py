"""Text as a terminal may be given it: nothing in it moves the cursor, turns the writing direction or hides."""

import unicodedata
from typing import Final

# Cc: controls; Cf: bidi overrides, tags and other unseen marks; Zl, Zp: line ends that some terminals obey; Cs: halves
# of characters, Co: private ones
_HIDDEN: Final = frozenset({"Cc", "Cf", "Zl", "Zp", "Cs", "Co"})
# they join emoji and letters of several scripts; harmless, and needed to show them
_JOINERS: Final = frozenset("\u200c\u200d")


def visible(text: str) -> str:
    r"""The text on one line, with everything that a terminal would obey or hide shown as an escape such as `\u202e`."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_visible(character) for character in text)


def _visible(character: str) -> str:
    if character in _JOINERS or not _is_hidden(character):
        return character
    return character.encode("unicode_escape").decode()


def _is_hidden(character: str) -> bool:
    # the last two of each plane and U+FDD0-FDEF are no characters (Unicode Standard, section 23.7); other unassigned
    # ones may be letters or emoji of a newer Unicode than this Python's
    code = ord(character)
    return unicodedata.category(character) in _HIDDEN or code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF
