"""Made-up lessons and questions, the same for the same seed.

Words follow Zipf's law in Mandelbrot's form: a few function words make up a third of the text, everyday words of the
trade come next, and a long tail of names of modules, files and flags makes each lesson its own.
"""

import itertools
import random
from dataclasses import dataclass
from typing import Any, Final

_FUNCTION_WORDS: Final = (
    "the to a of in and is for with on it when not before after from that be by as if must this only an or at never use "
    "always are has one first no because each so then without which while there all until can does more than but into"
).split()

_TRADE_WORDS: Final = (
    "test tests build run file error cache server database config branch commit release version type query index schema "
    "migration table column key value token session request response client user password deploy container image "
    "pipeline job worker queue message event handler callback thread process lock deadlock timeout retry backoff limit "
    "memory disk network socket port proxy header cookie route endpoint method function class module package import "
    "dependency lockfile update upgrade downgrade patch rollback merge rebase conflict review format lint warning "
    "exception traceback log metric trace alert dashboard flag feature toggle setting variable secret certificate "
    "permission role policy scope project workspace folder path symlink encoding newline whitespace unicode timezone "
    "date timestamp duration clock float integer decimal rounding overflow string bytes buffer stream chunk batch page "
    "cursor offset pagination sort filter search rank score match pattern regex template render component state store "
    "hook effect style layout theme button form field input output validation serializer parser compiler linker binary "
    "symbol macro header generic trait interface protocol adapter driver plugin fixture mock stub snapshot coverage "
    "flaky slow fast stale broken missing empty null default optional required deprecated legacy upstream local remote "
    "staging production nightly weekly fails passes hangs crashes leaks blocks waits starts stops restarts reads writes "
    "deletes creates checks needs returns raises ignores skips expects assumes breaks fixes hides shows keeps drops "
    "sends receives opens closes loads saves parses copies moves renames compares counts measures documents generated"
).split()

_STEMS: Final = (
    "auth billing cart catalog checkout crawler digest editor export fetch gallery geo graph grid importer invoice "
    "journal ledger loader mailer media notifier order parser payment planner player profile publisher quota radar "
    "report router scheduler shipping signup spool stats storage sync tenant theme tracker upload vault viewer webhook "
    "widget wizard"
).split()

_PARTS: Final = (
    "api base cache check client config core data diff flags format guard index init job keys list load main map merge "
    "model parse pool queue read retry rules run schema send state store sync task test tree types utils view worker"
).split()

_FORMS: Final = ("{0}_{1}", "{0}/{1}.py", "{0}-{1}", "src/{0}/{1}.ts", "--{0}-{1}", "{0}.{1}")

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
        self._words: Final = [*_FUNCTION_WORDS, *dict.fromkeys(_TRADE_WORDS), *self._names]
        weights = (1 / (rank + 2.7) for rank in range(1, len(self._words) + 1))
        self._weights: Final = list(itertools.accumulate(weights))
        self._made = 0

    def sample(self) -> Sample:
        """The next lesson: one to four sentences with one to three pieces of evidence."""
        self._made += 1
        # an odd factor modulo a power of two never gives the same number twice
        mark = f"{self._made * 0x9E3779B1 % 2**32:08x}"
        text = " ".join(self._sentence() for _ in range(self._random.choice((1, 1, 2, 2, 3, 4))))
        seen = tuple(self._sentence() for _ in range(self._random.choice((0, 0, 0, 1, 2))))
        return Sample(text, (f"Seen at commit {mark}.", *seen), mark)

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
    every = [form.format(stem, part) for stem in _STEMS for part in _PARTS for form in _FORMS]
    chance.shuffle(every)
    return every
