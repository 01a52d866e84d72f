"""From a question to the words that an index is asked for."""

import unicodedata


def words(question: str) -> tuple[str, ...]:
    """The words of a question in their order, each once; never an operator of any query language.

    A word is a run without white space that holds at least one letter, digit or symbol. Words joined by punctuation
    (`pre-edit`, `std::vector`) stay whole, so that an index can look for their parts next to one another.
    """
    return tuple(dict.fromkeys(part for part in question.split() if any(map(_says_something, part))))


def _says_something(character: str) -> bool:
    return unicodedata.category(character)[0] in "LNSM"
