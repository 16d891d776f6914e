"""An event, and the numbers in it."""

from collections.abc import Set

NONE: frozenset[int] = frozenset()
OTHER = 0  # in what a term reaches: a leaf that is no known parameter
Numbers = Set[int]


class Event:
    """Something that happened."""
