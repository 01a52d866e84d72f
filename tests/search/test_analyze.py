"""From a question to the words that are looked for."""

import pytest

from keepwell.search.analyze import words
from keepwell.search.rank import fused


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("How do I run the tests?", ("run", "tests?")),
        ("what\u2019s the port of the database", ("port", "database")),
        ("The who", ("The", "who")),
        ("to be or not to be", ("to", "be", "or", "not")),
        ("our IT department", ("IT", "department")),
        ("std::vector pre-edit C++ .env", ("std::vector", "pre-edit", "C++", ".env")),
        ("tests tests TESTS", ("tests", "TESTS")),
        ("?! ... --", ()),
        ("", ()),
        ("日本 の", ("日本", "の")),
    ],
)
def test_a_question_becomes_the_words_that_say_what_is_asked_for(question: str, asked: tuple[str, ...]) -> None:
    assert words(question) == asked


def test_rankings_are_fused_by_rank_and_ties_keep_their_order() -> None:
    assert [item for item, _ in fused(["a", "b"], ["c", "a"])] == ["a", "c", "b"]
    assert [item for item, _ in fused(["a"], ["b"])] == ["a", "b"]
    assert fused([], []) == []
