"""How much there is."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Counts:
    """How many rows a store has, over all scopes."""

    scopes: int
    lessons: int
    active_lessons: int
    changes: int
    retrievals: int
    feedback: int
    categories: int
    category_versions: int
    log_entries: int
