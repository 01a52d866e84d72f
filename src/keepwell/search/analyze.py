"""From a question to the words that an index is asked for."""

import unicodedata
from importlib import resources
from typing import Final

_STOP_WORDS: Final = frozenset(resources.files(__package__).joinpath("stop_words.txt").read_text("utf-8").split())
"""English words that stand in most questions and say nothing about what is asked for."""

_AROUND_A_WORD: Final = "?!.,;:()[]{}\"'`\u00ab\u00bb\u2018\u2019\u201c\u201d\u2026"


def words(question: str) -> tuple[str, ...]:
    """The words of a question in their order, each once; never an operator of any query language.

    A word is a run without white space that holds at least one letter, digit or symbol. Words joined by punctuation
    (`pre-edit`, `std::vector`) stay whole, so that an index can look for their parts next to one another. Words that
    stand in most questions are left out, unless there are no others.
    """
    said = tuple(dict.fromkeys(part for part in question.split() if any(map(_says_something, part))))
    return tuple(word for word in said if not _is_stop_word(word)) or said


def _is_stop_word(word: str) -> bool:
    bare = word.strip(_AROUND_A_WORD).replace("\u2019", "'")
    # in capitals it is a name: IT, US, WHO
    is_name = len(bare) > 1 and bare.isupper()
    return not is_name and bare.casefold() in _STOP_WORDS


def _says_something(character: str) -> bool:
    return unicodedata.category(character)[0] in "LNSM"
