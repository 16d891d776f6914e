"""The table's cells: for every event and term, a word for each network."""

from torch import nn

from gradient_audit.record import Event, Pass, Record

Numbers = dict[str, dict[int, str]]  # by network: the numbers of its parameters' accounts, and their names


def numbers_by_network(record: Record, networks: dict[str, nn.Module]) -> Numbers:
    """Return the names of each network's parameters, by the number of the account."""
    return {
        name: {record.accounts[id(p)].number: n for n, p in network.named_parameters() if id(p) in record.accounts}
        for name, network in networks.items()
    }


def fill_cells(record: Record, networks: dict[str, nn.Module], numbers: Numbers) -> None:
    """Fill in the cells; drop the forward passes of anything but the networks, and steps of nothing."""
    events: dict[int, Event] = {}  # those to keep, by id
    of_networks: set[int] = set()
    for event in record.events:
        if event.kind == "forward":
            module = event.module() if event.module else None
            names = [name for name, network in networks.items() if network is module]
            if names:  # the calls of its parts are left out
                of_networks.add(id(event))
                for part in event.parts:
                    if id(part) not in of_networks:
                        events.pop(id(part), None)
            elif any(id(part) in events for part in event.parts):
                continue
            held = record.numbers_of(nn.Module.parameters(module)) if module is not None else set()
            event.cells = words(held, set(), "here", numbers)
            if names:
                event.cells = {name: "here" if name in names else "-" for name in numbers}
            if "here" not in event.cells.values():
                continue
        elif isinstance(event, Pass):
            event.cells = words(event.reached, event.used, "read" if event.number is None else "wasted", numbers)
            for term in event.terms:
                term.cells = words(event.reached & term.reached, event.used & term.reached, "wasted", numbers)
        else:
            event.cells = words(event.reached, set(), "here", numbers)
        if event.kind != "step" or event.reached:
            events[id(event)] = event
    record.events = [*events.values()]


def words(reached: set[int], used: set[int], word: str, numbers: Numbers) -> dict[str, str]:
    """Return the cells: "used", or `word` for what was reached and not used."""
    return {n: "used" if used & ids.keys() else word if reached & ids.keys() else "-" for n, ids in numbers.items()}
