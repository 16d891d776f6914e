"""The judgement: a function of the record, which finds what is wrong, doubtful or wasteful."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import permutations

from torch import Tensor, nn

from gradient_audit.cells import fill_cells, numbers_by_network
from gradient_audit.findings import KINDS, LIMIT, SEVERITIES, Finding, joined
from gradient_audit.graph import parameters_of, united
from gradient_audit.lineage import BLIND, CALL, PARAMETER, bit, numbers_in
from gradient_audit.overwritten import overwritten_finding
from gradient_audit.places import Place, expression_place
from gradient_audit.record import CLIMB, Event, Record, Term
from gradient_audit.steps import steps_of

IDLE_AFTER = 6  # steps of another optimizer; more than the five critic steps that are usual before the generator's one


def judge(record: Record, networks: dict[str, nn.Module], *, ended: bool = True) -> list[Finding]:
    """Fill in the cells of the record's events and terms, and return the findings, errors first.

    networks: by name. ended: whether nothing is to follow.
    """
    judgement = _Judgement(record, networks, ended)
    fill_cells(record, networks, judgement.numbers)
    return sorted(
        dict.fromkeys(judgement.findings()), key=lambda f: (SEVERITIES.index(f.severity), [*KINDS].index(f.kind))
    )


class _Judgement:
    def __init__(self, record: Record, networks: dict[str, nn.Module], ended: bool):
        self.record, self.networks, self.ended = record, networks, ended
        self.optimizers, self.steps = record.optimizers, steps_of(record)
        self.fed = set().union(*(steps.fed for steps in self.steps.values()))
        self.numbers = numbers_by_network(record, networks)
        self.by_number = {account.number: account for account in record.accounts.values()}
        # By optimizer: the accounts of its parameters, in their order. And all that any holds, also plain tensors.
        self.accounts_of = {
            number: [account.number for p in parameters_of(o) if (account := record.accounts.get(id(p)))]
            for number, o in self.optimizers.items()
        }
        self.owned = set().union(*self.accounts_of.values())
        self.held = {id(p) for optimizer in self.optimizers.values() for p in parameters_of(optimizer)}
        self.last_detailed = {p.place: p for p in record.passes if p.detailed}
        self.excused: set[int] = set()  # parameters whose optimizer is idle

    def findings(self) -> Iterator[Finding]:
        yield from self.idle_optimizers()
        yield from self.mixed_players()
        yield from self.wrong_steps()
        yield from self.dead_passes()
        yield from self.dead_terms()
        for blame in self.record.overwritten:
            yield overwritten_finding(blame, self.networks, self.networks_of)
        yield from self.owners()
        yield from self.plain_leaves()
        yield from self.doubtful_holders()
        yield from self.renewed_optimizers()
        yield from self.unaveraged_networks()
        yield from self.unused_graphs()

    def in_detail(self, p: Event) -> Event | None:
        """Return the pass, or another one of its line, that was watched in detail."""
        return p if p.detailed else self.last_detailed.get(p.place)

    # Which players a pass moved.

    def groups_crossed(self, p: Event) -> Iterator[dict[str, set[int]]]:
        """Yield the groups of networks of several players that a pass moved together, with the optimizers of each.

        Terms of a loss that share no network are not together.
        """
        movers = {
            name: {optimizer for optimizer, used in p.users.items() if used & p.reached & ids.keys()}
            for name, ids in self.numbers.items()
        }
        groups = [{name for name, optimizers in movers.items() if optimizers}]
        alike = self.in_detail(p)
        terms = alike.terms if alike else []
        if terms and all(term.complete for term in terms):
            groups = united([{name for name, cell in term.cells.items() if cell == "used"} for term in terms])
        for group in groups:
            together = {name: movers[name] for name in self.numbers if name in group}
            if len(united(together.values())) > 1:
                yield together

    def mixed_players(self) -> Iterator[Finding]:
        """Yield the passes that moved networks of two players, and the steps that added them to other passes."""
        passes = self.record.passes
        crossed = [list(self.groups_crossed(p)) for p in passes]
        mixed: dict[tuple[str, ...], list[Place]] = defaultdict(list)
        added: dict[tuple[str, ...], set[str]] = defaultdict(set)  # of a group: the networks that stepped on a sum
        meant: dict[tuple[str, ...], list[Place]] = defaultdict(list)
        proved: set[tuple[str, ...]] = set()
        mixed_places: set[Place] = set()
        for key, steps in self.steps.items():
            for summed, (numbers, place) in steps.sums.items():
                if all(crossed[number] for number in summed):  # one loss in several batches
                    continue
                for number in sorted(summed):
                    for group in crossed[number]:
                        mine = {name for name in group if key in group[name] and numbers & self.numbers[name].keys()}
                        others = [name for name in group if key not in group[name]]
                        if mine and others:
                            mixed_places.add(passes[number].place)
                            mixed[tuple(group)] += [passes[number].place, place]
                            added[tuple(group)] |= mine
                            if not self.may_be_meant(passes[number], summed, mine, others):
                                proved.add(tuple(group))
        for p, groups in zip(passes, crossed, strict=True):
            for group in groups if p.place not in mixed_places else ():
                meant[tuple(group)].append(p.place)
        for networks, places in mixed.items():
            names = joined(name for name in networks if name in added[networks])
            text = f"`backward()` also wrote gradients into {names}. They were not cleared, so `step()` used the sum "
            text += "of two losses."
            yield _finding("mixed", networks, text, places, doubtful=networks not in proved)
        for networks, places in meant.items():
            text = (
                "one `backward()` wrote gradients into {}, which have different optimizers, and both stepped on them."
            )
            yield _finding("meant?", networks, text, places)
        for (made, judge), place in self.judges_moved().items():
            text = f"one backward pass moved {made} and {judge}, and another {judge} alone on what {made} computed."
            yield _finding("meant?", (made, judge), text, [place])

    def judges_moved(self) -> dict[tuple[str, str], Place]:
        """Return the networks that a pass moved through a judge under the same optimizer, with this judge, and where.

        Another pass moved the judge alone, on what the network computed, without a graph.
        """
        moved = [(p, self.networks_of(p.used & p.reached)) for p in self.record.passes]
        return {
            (made, judge): p.place
            for made, judge in permutations(self.numbers, 2)
            if self.holders_of(made) == self.holders_of(judge)
            for p, names in moved
            if {made, judge} <= {*names} and self.leads_through(p, judge, made)
            if any(judge in names and self.is_fed_by(q, made) for q, names in moved)
        }

    def holders_of(self, network: str) -> list[int]:
        return [key for key, held in self.accounts_of.items() if self.numbers[network].keys() & held]

    def may_be_meant(self, p: Event, summed: frozenset, mine: set[str], others: list[str]) -> bool:
        """Whether a step on the sum of a loss for both players and another one may be meant, as in BicycleGAN.

        The loss goes to the others through the player that stepped, as a decoder's does to the encoder. And no other
        pass is of that player alone on what the others computed, without a graph to them, as D's on detached fakes.
        """
        alike = {number: self.in_detail(self.record.passes[number]) for number in summed}
        loss = alike[p.number]
        return (
            None not in alike.values()
            and any(self.leads_through(loss, name, other) for name in mine for other in others)
            and not any(self.is_fed_by(q, other) for q in alike.values() for other in others)
        )

    def leads_through(self, p: Event, name: str, other: str) -> bool:
        """Whether the gradient goes to the other network through the output of this one."""
        ids = self.numbers[other].keys()
        return any(reached & ids for module, reached in p.outputs if module() is self.networks[name])

    def is_fed_by(self, p: Event, other: str) -> bool:
        """Whether the loss was computed from what the network computed, and has no graph to it."""
        inside = any(module() is self.networks[other] for module, _ in p.outputs)
        return not inside and bool((p.values - p.reached) & self.numbers[other].keys())

    # Steps.

    def wrong_steps(self) -> Iterator[Finding]:
        """Yield the steps on gradients that are too old, another optimizer's, counted twice, or that never come."""
        passes = self.record.passes
        for key, steps in self.steps.items():
            for places, numbers in steps.stale.items():
                if places[1] in steps.repeated:
                    text = "an optimizer of {} stepped again, and no backward pass had come between."
                    cure = "Call `step()` once after each `backward()`."
                    yield _finding("stale", self.networks_of(numbers), text, places[::-1], cure)
                else:
                    text = "an optimizer of {} stepped on gradients older than its own last step."
                    yield _finding("stale", self.networks_of(numbers), text, places)
            reused: dict[tuple[Place, Place], set[int]] = defaultdict(set)
            for summed, (numbers, place) in steps.sums.items():
                climbed = [passes[n] for n in sorted(summed) if passes[n].users.get(CLIMB, set()) & numbers]
                if climbed and len(climbed) < len(summed):
                    reused[place, climbed[0].place] |= numbers
            for places, numbers in reused.items():
                text = "a gradient of {} was used by hand, and a step added it to another one."
                yield _finding("reused", self.networks_of(numbers), text, places)
            for places, numbers in steps.twice.items():
                text = "two optimizers stepped on the same gradients of {}."
                yield _finding("twice", self.networks_of(numbers), text, places)
            times = Counter(self.accounts_of.get(key, ()))
            if numbers := {number for number in times if times[number] > 1}:
                text = f"an optimizer holds {self.count_of(numbers)} of {{}} twice; each step moves them twice."
                cure = "Give each parameter to the optimizer once: `list(dict.fromkeys(parameters))`."
                yield _finding("twice", self.networks_of(numbers), text, [[*steps.places][-1]], cure)
            for shape in (shape for number, shape, never in self.record.bare.values() if never and number == key):
                text = f"a tensor of shape {shape} had no gradient whenever its optimizer stepped."
                yield _finding("unreached", (), text, steps.places)
        for network, ids in self.numbers.items():
            missing = {n for n in ids if self.by_number[n].stepped and n not in self.fed}
            if missing:
                of_it = [s for key, s in self.steps.items() if missing & {*self.accounts_of.get(key, ())}]
                count = self.count_of(missing, network)
                text = f"{count} of {network} had no gradient whenever their optimizer stepped"
                places = [place for s in of_it for place in s.places]
                cut = any(missing & p.values - p.reached for p in passes)
                if cut or missing == {n for n in ids if self.by_number[n].stepped}:
                    yield _finding("unreached", (network,), f"{text}.", places)
                    continue
                cleared = any(missing & p.reached for p in passes)
                why = (
                    "it was cleared between `backward()` and `step()`" if cleared else "no loss was computed from them"
                )
                cure = "If they are held still, or not in use, on purpose, this is right."
                yield _finding("unreached", (network,), f"{text}: {why}.", places, cure, doubtful=True)

    def idle_optimizers(self) -> Iterator[Finding]:
        """Yield the optimizers that never stepped though their parameters got gradients."""
        most = max((sum(steps.places.values()) for steps in self.steps.values()), default=0)
        stepped = {number for number, account in self.by_number.items() if account.stepped}
        for key, optimizer in self.optimizers.items():
            if key in self.steps:
                continue
            numbers = {*self.accounts_of[key]} - stepped
            passes = [p for p in self.record.passes if p.reached & numbers and not p.raised]
            dropped = [
                p
                for p in passes
                if p.reached <= numbers
                and all(p.number not in self.by_number[k].passes for k in p.reached & self.by_number.keys())
            ]
            if (names := self.networks_of(numbers)) and passes and (most >= IDLE_AFTER or (most > 1 and dropped)):
                self.excused |= numbers
                later = not self.ended and len(dropped) < IDLE_AFTER  # it may be that of a second stage
                text = f"the optimizer of {{}} ({type(optimizer).__name__}) never stepped; another did {most}x."
                yield _finding("idle", names, text, [p.place for p in dropped or passes], doubtful=later)

    # Terms of a loss.

    def dead_passes(self) -> Iterator[Finding]:
        lost = []
        for p in self.record.passes:
            loose = {id(leaf) for ref in p.loose if (leaf := ref()) is not None}
            # A gradient of a plain tensor may be read, as FGSM reads that of images.
            serves = p.reached or loose & self.held or (p.filled and p.read)
            if p.detailed and p.complete and not (p.raised or serves):
                lost.append(p.place)
        for place in dict.fromkeys(lost):
            yield _finding("dead", (), "a backward pass reached no parameter of any network.", [place])

    def dead_terms(self) -> Iterator[Finding]:
        """Yield the terms that were dead in all passes of their line; keep only the terms that tell something."""
        passes = self.record.passes
        rows: dict[tuple[Place, int, int], list[tuple[Event, Term]]] = defaultdict(list)
        for p in passes:
            for index, term in enumerate(p.terms):
                rows[p.place, len(p.terms), index].append((p, term))
        moved = sum(bit(PARAMETER, number) for number in set().union(*(p.used for p in passes)))
        for (place, _, _), pairs in rows.items():
            constants = {term.value for _, term in pairs}
            proved = True
            if None not in constants:  # one that changes, and comes from what is trained, was cut off
                dead = len(constants) > 1 and any(term.sources & moved for _, term in pairs)
                proved = any(self.is_cut_loss(p, term) for p, term in pairs)
            else:
                dead = all(
                    term.value is None and term.complete and not (term.loose or term.reached & (self.excused | p.used))
                    for p, term in pairs
                ) and any(p.users for p, _ in pairs)
            if dead:
                for _, term in pairs:
                    term.dead = True
                p, term = pairs[0]
                networks = tuple(name for name in self.numbers if p.cells[name] == "used")
                origin = f" from {term.place.where}" if term.place else ""
                name = "a term of the sum" if term.value is not None else f"`{term.name}`"
                text = f"{name}{origin} contributes no gradient to any parameter that is updated."
                cure = (
                    "" if proved else "If it is a target, a baseline or a number to print, this is right; if not, see "
                )
                cure += "" if proved else "whether `detach()`, `no_grad()` or `.item()` cuts it off."
                places = [place, *[term.place] * bool(term.place)]
                yield _finding("dead", networks, text, places, cure, doubtful=not proved)
        for p in passes:
            p.terms = [term for term in p.terms if term.value is None or term.dead]
            if len(p.terms) < 2:
                p.terms = []

    def is_cut_loss(self, p: Event, term: Term) -> bool:
        """Whether a constant was computed as a loss is, and without the graph that it needs.

        It is a penalty on a gradient without `create_graph`, or the answer, under no_grad(), of what this pass moved.
        """
        calls = (self.record.calls[number] for number in numbers_in(CALL, term.sources))
        blind = p.used & {*numbers_in(BLIND, term.sources)}
        return bool(blind) or any(call.kind == "grad" and not call.create_graph for call in calls)

    # Gradients that nobody uses.

    def owners(self) -> Iterator[Finding]:
        """Yield what no optimizer holds, and the gradients that none used."""
        passes = self.record.passes
        wasted: dict[tuple[str, Place], dict[int, set[int]]] = defaultdict(dict)
        for number, p in enumerate(passes):
            for network, ids in self.numbers.items():
                unused = (p.reached & ids.keys()).difference(self.excused, p.used)
                if unused and not p.raised:
                    wasted[network, p.place][number] = unused
        unfrozen = set()
        reached = set().union(*(p.reached for p in passes))
        for network, ids in self.numbers.items():
            ownerless = ids.keys() & reached - self.owned
            ownerless -= self.fed  # stepped by hand
            if not ownerless or not self.optimizers:  # without any optimizer, no parameter is expected to have one
                continue
            here = {place: unused for (name, place), unused in wasted.items() if name == network}
            numbers = {number for unused in here.values() for number in unused}
            count = self.count_of(ownerless, network)
            cure, judged = "", [passes[number] for number in numbers]
            to_train = self.is_led_to(network, judged) or not all(p.used for p in judged)  # or by a loss of its own
            if not ids.keys() & self.owned and here and not to_train:
                text = f"no optimizer holds {network}, and it gets gradients, {len(numbers)}x."
                twin = any(term.dead and term.reached & ids.keys() for p in judged for term in p.terms)
                if not twin and not any(self.leads_on(p, network) for p in judged):  # a target
                    calls = [event for event in self.record.forwards if event.module() is self.networks[network]]
                    here = [event.place for event in calls if event.in_loss] or here
                    cure = "Compute it under `torch.no_grad()`, or freeze the network, `network.requires_grad_(False)`."
            elif here and self.is_backbone(ids, ownerless):
                text = f"no optimizer holds {count} of {network}, which get gradients."
            else:
                holders = self.holders_of(network) or [*self.accounts_of]
                makers = [self.networks[network], *(self.optimizers[number] for number in holders)]
                made = [p for o, p in self.record.made.items() if any(o is maker for maker in makers)]
                yield _finding("ownerless", (network,), f"{count} of {network} are held by no optimizer.", made)
                continue
            unfrozen.add(network)
            yield _finding("unfrozen", (network,), text, here, cure)
        for (network, place), unused in wasted.items():
            if network not in unfrozen:
                yield self.wasted_gradients(network, place, unused)

    def is_backbone(self, names: dict[int, str], ownerless: set[int]) -> bool:
        """Whether these are the first layers of a network, and an optimizer holds later ones, as of a head."""
        layers = [(number, name.rpartition(".")[0]) for number, name in names.items()]
        trained = [layer for number, layer in layers if number in self.owned]
        first = next((index for index, (number, _) in enumerate(layers) if number in self.owned), 0)
        return {number for number, layer in layers[:first] if layer not in trained} >= ownerless

    def plain_leaves(self) -> Iterator[Finding]:
        """Yield the leaves in a network that are no parameters of it: no optimizer gets them."""
        attributes = {
            id(value): (network, f"{path}.{name}".lstrip("."))
            for network, top in self.networks.items()
            for path, module in top.named_modules()
            for name, value in vars(module).items()
            if isinstance(value, Tensor) and id(value) not in self.held
        }
        places: dict[tuple[str, str], list[Place]] = defaultdict(list)
        for p in self.record.passes:
            for leaf in () if p.read else p.filled & attributes.keys():
                places[attributes[leaf]].append(p.place)
        for (network, name), where in places.items():
            text = f"the tensor {network}.{name} gets gradients, but it is no nn.Parameter and no optimizer holds it."
            cure = "Make it an `nn.Parameter`, so that `parameters()` holds it."
            yield _finding("ownerless", (network,), text, where, cure)

    def doubtful_holders(self) -> Iterator[Finding]:
        """Yield the optimizers that hold what is another's, or what cannot move."""
        stepping = {key: held for key, held in self.accounts_of.items() if key in self.steps}
        for key, mine in stepping.items():
            others = [{*held} for other, held in stepping.items() if other != key]
            networks = self.networks_of(mine)
            shared = [n for n in networks if any(held & self.numbers[n].keys() for held in others)]
            places = self.steps[key].places
            if shared and len(shared) < len(networks):
                text = f"an optimizer holds {joined(networks)}, and another one holds {joined(shared)}, too."
                yield _finding("shared", networks, text, places)
            frozen = [n for n in mine if not self.by_number[n].stepped]
            if 0 < len(frozen) < len(mine) and frozen == mine[-len(frozen) :]:  # the last layers, not the first
                for network in self.networks_of(frozen):
                    count = self.count_of({*frozen}, network)
                    text = f"{count} of {network} are frozen, and an optimizer holds them; it does not move them."
                    yield _finding("held", (network,), text, places)

    def renewed_optimizers(self) -> Iterator[Finding]:
        """Yield the optimizers that are made anew while they train, whose state is lost."""
        for number, times in self.record.renewed.items():
            optimizer = self.optimizers[number]
            if times > 1 and any(optimizer.state.values()):
                text = f"the optimizer of {{}} ({type(optimizer).__name__}) was made anew {times}x; its state was lost."
                yield _finding(
                    "renewed", self.networks_of(self.accounts_of[number]), text, [self.record.made[optimizer]]
                )

    def unaveraged_networks(self) -> Iterator[Finding]:
        """Yield the networks in DistributedDataParallel that got gradients without its forward pass."""
        called = {id(event.module()) for event in self.record.forwards if event.module}
        for network, module in self.networks.items():
            passes = [p for p in self.record.passes if p.detailed and p.reached & self.numbers[network].keys()]
            if isinstance(module, nn.parallel.DistributedDataParallel) and passes and id(module) not in called:
                text = f"{network} got gradients without a forward pass of its own, so nothing averages them."
                yield _finding("unaveraged", (network,), text, [p.place for p in passes])

    def wasted_gradients(self, network: str, place: Place, unused: dict[int, set[int]]) -> Finding:
        """Return the finding for gradients of a network that no optimizer used. unused: parameters, by pass."""
        count = self.count_of(set().union(*unused.values()), network)
        text = f"{count} of {network} got gradients that no optimizer used, {len(unused)}x."
        cure = KINDS["wasted"].cure
        if any(self.leads_on(self.record.passes[number], network) for number in unused):
            cure = LIMIT + "."  # `detach()` there would cut off those whom the loss is for
        if not self.steps:
            cure = "No optimizer stepped during the audit: audit whole steps."
        elif all(n in self.by_number[k].passes for n, numbers in unused.items() for k in numbers):
            cure += " They were left over at the end of the audit: if their step was to follow, audit whole steps."
        return _finding("wasted", (network,), text, [place], cure)

    def is_led_to(self, network: str, passes: list[Event]) -> bool:
        """Whether the gradient comes to the network through one that an optimizer holds: it is a part, no judge."""
        trained = [name for name, ids in self.numbers.items() if name != network and ids.keys() & self.owned]
        alike = [p for q in passes if (p := self.in_detail(q))]
        return any(self.leads_through(p, name, network) for p in alike for name in trained)

    def leads_on(self, p: Event, network: str) -> bool:
        """Whether the gradient goes on, through the network, to another one that the pass moved."""
        moved = [name for name in self.networks_of(p.used) if name != network]
        return (alike := self.in_detail(p)) is not None and any(self.leads_through(alike, network, n) for n in moved)

    def unused_graphs(self) -> Iterator[Finding]:
        """Yield the lines whose graphs were built and dropped; of a function that is needed elsewhere, its caller."""
        built = [
            (names, event)
            for event in self.record.events
            if (names := tuple(name for name, cell in event.cells.items() if cell in ("here", "read")))
        ]
        needed = {(names, caller) for names, event in built if event.needed for caller in event.callers}
        lines: dict[tuple[Place, str], list[tuple[tuple[str, ...], Event]]] = defaultdict(list)
        for names, event in built:
            useless = [caller for caller in event.callers if (names, caller) not in needed]
            tried = any(code.co_name == "__init__" for code, *_ in event.callers)  # to see the shapes
            in_part = any(part.needed for part in event.parts)  # that of features which a hook has taken
            if event.gone and useless and not (tried or in_part):
                place = event.place if useless[0] == event.callers[0] else expression_place(*useless[0])
                lines[place, event.kind].append((names, event))
        for (place, kind), pairs in lines.items():
            times = Counter(name for names, _ in pairs for name in names)
            what = "a forward pass of" if kind == "forward" else "autograd.grad(create_graph=True) through"
            names = [name for name in self.numbers if name in times]
            text = f"{what} {joined(names)} built a graph that no backward pass came through, {max(times.values())}x."
            lost = kind == "grad" or any(event.scalar and not event.in_loss for _, event in pairs)
            yield _finding("unused" if lost else "graph", names, text, [place])
        if self.record.grown:
            text = "parameters were written to with a graph, which grows with each write and holds its memory."
            cure = "Write to them under `torch.no_grad()`."
            yield _finding("graph", (), text, self.record.grown, cure)

    # Words.

    def networks_of(self, numbers: Iterable[int]) -> tuple[str, ...]:
        """Return the names of the networks that hold any of these accounts."""
        return tuple(network for network, ids in self.numbers.items() if set(numbers) & ids.keys())

    def count_of(self, numbers: set[int], network: str | None = None) -> str:
        """Return how many parameters, and which: "2 of the 4 parameters (0.weight, 0.bias)" or "all parameters"."""
        names = {k: v for n, ids in self.numbers.items() if network in (None, n) for k, v in ids.items()}
        chosen = [name for key, name in names.items() if key in numbers]
        if len(chosen) == len(names):
            return "all parameters"
        first = ", ".join(chosen[:3]) + (", ..." if len(chosen) > 3 else "")
        return f"{len(chosen)} of the {len(names)} parameters ({first})"


def _finding(
    kind: str, networks: Iterable[str], text: str, places: Iterable[Place], cure: str = "", *, doubtful: bool = False
) -> Finding:
    """Return a finding; {} in the text stands for the networks."""
    networks, text = tuple(networks), text.replace("{}", joined(networks))
    return Finding(kind, networks, text, tuple(dict.fromkeys(places)), cure or KINDS[kind].cure, doubtful=doubtful)
