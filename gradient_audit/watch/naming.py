"""Which of a library's lines is named beside the user's, where several lead from there to what happened."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import takewhile

from gradient_audit.places import Place
from gradient_audit.trace import Event, PassBegan, Term
from gradient_audit.watch.frames import package_of

Chain = tuple[Place, ...]  # a library's lines, outermost first


def named(events: list[Event]) -> list[Event]:
    """Return the events with one line of a library's in each place.

    Of a pass it is the outermost whose line differs from that of another pass; where two passes have that in common,
    the next one that differs, of the same package. If none differs, it is the innermost of the trainer's own package.
    Of what is no pass, it is the first that is not on the way to a pass.
    """
    if not any(place.via and place.via.via for place in places_in(events)):
        return events
    passes = {event.place for event in events if isinstance(event, PassBegan)}
    ways: dict[tuple, set[Chain]] = defaultdict(set)
    for place in passes:
        ways[_key(place)].add(tuple(map(_key, _chain(place))))

    @cache
    def name(place: Place) -> Place:
        chain = _chain(place)
        chosen = _chosen(chain, ways[_key(place)]) if len(chain) > 1 else place.via
        return place._replace(via=chosen and chosen._replace(via=None))

    return [_renamed(event, name) for event in events]


def _chosen(chain: Chain, ways: set[Chain]) -> Place:
    keys, chosen = tuple(map(_key, chain)), None
    for depth, line in enumerate(chain):
        others = {way[depth] for way in ways if way[:depth] == keys[:depth] and len(way) > depth}
        if others - {keys[depth]} and (chosen is None or package_of(line.file) == package_of(chosen.file)):
            chosen = line
    own = package_of(chain[0].file)
    return chosen or [*takewhile(lambda line: package_of(line.file) == own, chain)][-1]


def _key(place: Place) -> tuple[str, int]:
    return place.file, place.number


def _chain(place: Place) -> Chain:
    return (place.via, *_chain(place.via)) if place.via else ()


def _renamed(value: object, name: Callable[[Place], Place]) -> object:
    kind = type(value)
    if kind is Place:
        return name(value)
    if kind is tuple:
        return tuple(_renamed(item, name) for item in value)
    if isinstance(value, Event | Term):
        changes = {key: new for key, old in vars(value).items() if (new := _renamed(old, name)) is not old}
        return replace(value, **changes) if changes else value
    return value


def places_in(events: list[Event]) -> set[Place]:
    """Return the places that events name."""
    found: set[Place] = set()

    def name(place: Place) -> Place:
        found.add(place)
        return place

    for event in events:
        _renamed(event, name)
    return found
