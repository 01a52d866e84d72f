"""Made-up lessons and questions, the same for the same seed.

Words follow Zipf's law in Mandelbrot's form. With the constants below every fifteenth word is "the", as in English;
some fifty function words make up half of the text, words of the trade a fifth, and a long tail of names the rest.
"""

import itertools
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

_VOCABULARY: Final = Path(__file__).with_name("vocabulary.txt").read_text(encoding="utf-8").split("\n\n")
"""Function words, words of the trade, and the two halves that names are made of."""

_FUNCTION_WORDS, _TRADE_WORDS, _STEMS, _PARTS = (paragraph.split() for paragraph in _VOCABULARY)

_FORMS: Final = ("{0}{1}{2}",) * 6 + ("{0}_{1}_{2}",) * 2 + ("src/{0}/{1}{2}.py", "--{0}-{1}-{2}")
"""How names are made, most of them as one word, so that the tail is long for an index as well."""

_NAMES: Final = 20_000
_EXPONENT: Final = 1.2
_OFFSET: Final = 2.7

_SEEN: Final = ("Seen at commit {0}.", "Reproduced at {0}.", "The tests of {0} passed.", "Found while reviewing {0}.")

_PROMPTS: Final = (
    "how do I {0} the {1} of {name}",
    "why does {name} fail when the {0} is {1}",
    "{0} {1} {name}",
    "what must be done before the {0} {1} in {2}",
    "{0} {1} {2}",
    "is there anything I should know about {0} and {1} for {name}",
)

_LONG_PROMPT_WORDS: Final = 30
"""About the length of a whole request that an assistant hands on as its question; one question in six is such."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One lesson before it is saved. `mark` is a word of its evidence that no other sample has."""

    text: str
    evidence: tuple[str, ...]
    mark: str

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of `memory_add` that save it."""
        return {"text": self.text, "evidence": [{"description": description} for description in self.evidence]}


class Corpus:
    """An endless supply of samples and questions from one seed."""

    def __init__(self, seed: int) -> None:
        self._random: Final = random.Random(seed)
        self._names: Final = _names(self._random)
        self._words: Final = [*_FUNCTION_WORDS, *_TRADE_WORDS, *self._names]
        weights = ((rank + _OFFSET) ** -_EXPONENT for rank in range(1, len(self._words) + 1))
        self._weights: Final = list(itertools.accumulate(weights))
        self._made = 0

    def sample(self) -> Sample:
        """The next lesson: one to four sentences with one to three pieces of evidence."""
        self._made += 1
        # an odd factor modulo a power of two never gives the same number twice
        mark = f"{self._made * 0x9E3779B1 % 2**32:08x}"
        text = " ".join(self._sentence() for _ in range(self._random.choice((1, 1, 2, 2, 3, 4))))
        seen = tuple(self._sentence() for _ in range(self._random.choice((0, 0, 0, 1, 2))))
        return Sample(text, (self._random.choice(_SEEN).format(mark), *seen), mark)

    def question(self) -> str:
        """The next question: from three bare words to a whole request."""
        if self._random.random() < 1 / 6:
            return " ".join(self._picked(_LONG_PROMPT_WORDS))
        words = self._random.sample(_TRADE_WORDS, 3)
        return self._random.choice(_PROMPTS).format(*words, name=self._random.choice(self._names))

    def _sentence(self) -> str:
        return " ".join(self._picked(self._random.randint(6, 18))).capitalize() + "."

    def _picked(self, count: int) -> list[str]:
        return self._random.choices(self._words, cum_weights=self._weights, k=count)


def _names(chance: random.Random) -> list[str]:
    found: dict[str, None] = {}
    while len(found) < _NAMES:
        form, stem = chance.choice(_FORMS), chance.choice(_STEMS)
        found[form.format(stem, chance.choice(_PARTS), chance.choice(_PARTS))] = None
    return list(found)
