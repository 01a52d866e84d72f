"""From several rankings to one list: reciprocal rank fusion (Cormack, Clarke and Buettcher, SIGIR 2009)."""

from collections.abc import Hashable, Sequence
from typing import Final, TypeVar

K: Final = 60
"""How little the first places count more than the next: the constant of the paper."""

Item = TypeVar("Item", bound=Hashable)


def fused(*rankings: Sequence[Item]) -> list[tuple[Item, float]]:
    """All items with their fused score, best first; what scores the same keeps the order of the rankings."""
    scores: dict[Item, float] = {}
    for ranking in rankings:
        for place, item in enumerate(ranking, start=1):
            scores[item] = scores.get(item, 0.0) + 1 / (K + place)
    return sorted(scores.items(), key=lambda pair: -pair[1])
