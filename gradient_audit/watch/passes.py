"""The calls of autograd: what is known of one before it runs, and what it has added to."""

import weakref

import torch
from torch import Tensor, nn

from gradient_audit.places import Place
from gradient_audit.trace import MOST_PASSES, GradientRead, HandStep, Pass, PassBegan, TermCrossed
from gradient_audit.watch.errors import Errors
from gradient_audit.watch.frames import callers_at, current_place, runs_in_function
from gradient_audit.watch.guard import guarded
from gradient_audit.watch.measure import Measure
from gradient_audit.watch.operations import Details
from gradient_audit.watch.parameters import Account
from gradient_audit.watch.session import Running
from gradient_audit.watch.sources import CALL, GRADIENT, PARAMETER, Sources
from gradient_audit.watch.splitting import Summand, is_start_of_sum, summands_of
from gradient_audit.watch.tensors import has_nan, inputs_with_slope, is_zero, nodes_between, nodes_of, tensors_in


class Passes:
    """Adds the events of the calls of autograd."""

    def __init__(self, details: Details):
        self.details, self.gradients, self.forwards = details, details.gradients, details.forwards
        self.lineage, self.parameters, self.session = details.lineage, details.parameters, details.session
        self.optimizers = self.gradients.optimizers
        self.guard, self.activity = self.session.guard, self.session.activity
        self.measure = Measure(self.session)
        self.errors = Errors(self.forwards)
        self.term_nodes: dict[int, list[tuple[int, int, int]]] = {}  # by sequence number: call, term, its number

    @guarded
    def begin_backward(
        self, tensors: object, *, grad_tensors: object = None, inputs: object = None, **options: object
    ) -> Running | None:
        """Note that `backward` begins. The arguments are those of `torch.autograd.backward`, by name."""
        self.gradients.leave_step()
        if len(self.session.history.passes) >= MOST_PASSES:
            self.guard.closed = True
            return None
        self.gradients.look_at_all()
        call = self._begin("backward", grad_tensors, **options)
        if self.activity.detailed:
            self._begin_in_detail(call, tensors_in(tensors), grad_tensors, inputs)
        else:
            named = self.parameters.numbers_of(tensors_in(inputs))
            self.session.add(PassBegan(call.place, call.number, "backward", False, call.create_graph, named=named))
        self.details.watch_again(call.place)
        return call

    def _begin(
        self, kind: str, given: object, *, create_graph: bool = False, retain_graph: bool | None = None, **_: object
    ) -> Running:
        for tensor in tensors_in(given) if self.activity.detailed else ():  # as a gradient, read from a leaf
            self.details.note_use("", tensor)
            for number in self.lineage.sources_of(tensor).numbers(CALL):
                self.session.add(GradientRead(number, "for backward"))
        keeps_graph = bool(create_graph if retain_graph is None else retain_graph)
        return Running(next(self.session.built), kind, current_place(), bool(create_graph), keeps_graph)

    def _begin_in_detail(self, call: Running, losses: list[Tensor], grad_tensors: object, inputs: object) -> None:
        nodes = [*nodes_of(loss.grad_fn for loss in losses)]
        leaves = [node.variable for node in nodes if hasattr(node, "variable")]
        leaves += [tensor for tensor in losses if tensor.is_leaf]
        for leaf in (leaf for leaf in leaves if leaf in self.parameters.made):  # a parameter beside all networks
            self.parameters.open(leaf)
        named = self.parameters.numbers_of(tensors_in(inputs))
        summands = summands_of(self.lineage, losses, call.lines)
        accounts = self.parameters.accounts_of(leaf for leaf in leaves if leaf.requires_grad)
        to_move = {account.number: leaf for account, leaf in accounts if inputs is None or account.number in named}
        given = grad_tensors if isinstance(grad_tensors, list | tuple) else [grad_tensors] * len(losses)
        with_graph = [summand for summand in summands if summand.way]
        hooked, unmeasured = self.measure.begin(call.place, nodes, (losses, given), with_graph, to_move)
        between = nodes if inputs is None else nodes_between(losses, tensors_in(inputs))
        self._note_graph(call, between)
        self.lineage.passed |= dict.fromkeys(call.nodes, call)
        # LBFGS keeps the first loss until its step ends.
        has_graph = not self.activity.closures and self.forwards.follow_graph(call.number, losses)
        self.forwards.watch_for_nan(nodes)
        plain = [leaf for leaf in leaves if id(leaf) not in self.parameters.accounts]
        call.leaves = [weakref.ref(leaf) for leaf in plain]
        self.optimizers.leaves += [weakref.ref(leaf) for leaf in plain if not is_start_of_sum(leaf, losses)]
        began = PassBegan(
            call.place,
            call.number,
            "backward",
            detailed=True,
            create_graph=call.create_graph,
            has_graph=has_graph,
            callers=callers_at(call.lines),
            named=named,
            terms=tuple(summand.term for summand in summands),
            unmeasured=unmeasured,
            hooked=hooked,
            outputs=self.forwards.outputs_in(nodes),
            flat=frozenset(to_move) - self.lineage.reach([loss.grad_fn for loss in losses], inputs_with_slope),
            outdated=self._outdated(call, nodes),
            cuts=self.lineage.cuts_behind(losses + plain),
            sources=frozenset(self.lineage.sources_of(losses).numbers(PARAMETER)),
            adds_to_used=self._adds_to_used(call.place, plain),
            nan=has_nan(losses),
        )
        self.lineage.forget_numbers()
        self.session.add(began)
        self._note_crossings(call, summands)

    def _outdated(self, call: Running, nodes: list) -> tuple[int, Place, frozenset[int]] | None:
        """Return what has read parameters before the last step on them; a view of one is made anew after a step."""
        inputs = [(node, id(getattr(child, "variable", None))) for node in nodes for child, _ in node.next_functions]
        reads = [(node._sequence_nr(), node, self.parameters.accounts.get(key)) for node, key in inputs]
        reads = [(age, node, account) for age, node, account in reads if account and age < account.stepped]
        age, first, _ = min(reads, key=lambda read: read[0], default=(0, None, None))
        place = self.lineage.place_of(first, call.lines) if first else None
        return place and (age, place, frozenset(account.number for *_, account in reads))

    def _adds_to_used(self, place: Place, plain: list[Tensor]) -> bool:
        """Whether the script has computed from gradients of leaves that an earlier pass of this line has given."""
        grads = [leaf.grad for leaf in plain if leaf.grad is not None and not is_zero(leaf.grad)]
        before = map(self.session.history.calls.get, self.lineage.sources_of(grads).numbers(CALL))
        return any("for inputs" in call.read and call.place == place for call in before)

    def _note_graph(self, call: Running, nodes: list) -> None:
        self.session.calls[call.number] = call
        call.nodes = {node._sequence_nr() for node in nodes if not hasattr(node, "variable")}
        self.errors.watch_hidden_writes(nodes)

    def _note_crossings(self, call: Running, summands: list[Summand]) -> None:
        """Note which terms of other passes this one goes through, and which other calls go through its terms."""
        for node in call.nodes & self.term_nodes.keys():
            for number, term, total in self.term_nodes[node]:
                self.session.add(TermCrossed(number, term, total in call.nodes, call.number))
        for index, summand in ((index, summand) for index, summand in enumerate(summands) if summand.way):
            for other in self.session.calls.values():
                if other is not call and summand.node in other.nodes:
                    self.session.add(TermCrossed(call.number, index, summand.number in other.nodes, other.number))
            self.term_nodes.setdefault(summand.node, []).append((call.number, index, summand.number))

    @guarded
    def end_backward(self, call: Running | None, _results: object = None, **_: object) -> None:
        """Note what a pass has added to."""
        if call is None:
            return
        reached = [pair for pair in self.parameters.living() if pair[0].number in call.reached]
        grads = [(account, parameter.grad) for account, parameter in reached if parameter.grad is not None]
        dropped = frozenset(account.number for account, parameter in reached if parameter.grad is None)
        for account, grad in grads:
            account.grad, account.version = weakref.ref(grad), grad._version
        reads_values = self.activity.reads_values
        zeros = frozenset(account.number for account, grad in grads if reads_values and is_zero(grad))
        leaves = [leaf() for leaf in call.leaves if getattr(leaf(), "grad", None) is not None]
        numbers = frozenset(map(self.session.number_of, leaves))
        shared = self.session.shared(frozenset(call.reached))
        self.session.add(Pass(call.number, shared, zeros, dropped, numbers, call.raised))
        if self.activity.detailed:
            self._note_sources(call, grads, leaves)
        if dropped:
            self.session.add(GradientRead(call.number, "copied"))
        used = frozenset(number for number in dropped if not self.session.ledger.balances[number].stepped)
        if used and not call.raised:  # a hook has used and cleared it already
            self.session.add(HandStep(call.place, used, frozenset([call.number]), alone=True))
        self.activity.spent += not self.activity.closures

    def _note_sources(self, call: Running, grads: list[tuple[Account, Tensor]], leaves: list[Tensor]) -> None:
        calls, balances = self.session.calls, self.session.ledger.balances
        for account, grad in grads:
            summed = [number for number in balances[account.number].passes if number in calls]
            self.lineage.memory_of(grad).sources = Sources.of(CALL, *summed)
        for account, grad in grads:  # several may share their memory
            self.lineage.memory_of(grad).sources |= Sources.of(GRADIENT, account.number)
        for leaf in leaves:
            self.lineage.memory_of(leaf.grad).sources = Sources.of(CALL, call.number)

    @guarded
    def begin_grad(
        self, outputs: object, inputs: object, grad_outputs: object = None, **options: object
    ) -> Running | None:
        """Note that `grad` begins. The arguments are those of `torch.autograd.grad`, by name."""
        tensors, ends = tensors_in(outputs), tensors_in(inputs)
        # Other kinds of tensors are those of a compiler that derives the graph.
        if any(type(tensor) not in (Tensor, nn.Parameter) for tensor in tensors + ends):
            return None
        if self.activity.detailed:  # results that the script has made gradients, before it makes others
            self.gradients.look_at_all()
        call = self._begin("grad", grad_outputs, **options)
        self.details.watch_again(call.place)
        detailed = self.activity.detailed
        nodes = nodes_between(tensors, ends)
        uses = (child for node in nodes for child, _ in node.next_functions if hasattr(child, "variable"))
        crossed = self.parameters.numbers_of(child.variable for child in uses)
        if detailed:
            self._note_graph(call, nodes)
        self.session.add(
            PassBegan(
                call.place,
                call.number,
                "grad",
                detailed,
                create_graph=call.create_graph,
                callers=callers_at(call.lines),
                outputs=self.forwards.outputs_in([*nodes_of(tensor.grad_fn for tensor in tensors)]) if detailed else (),
                crossed=crossed,
                for_adjoint=runs_in_function(),
                functional=any(map(torch._C._functorch.is_functorch_wrapped_tensor, tensors + ends)),
            )
        )
        return call

    @guarded
    def end_grad(self, call: Running | None, results: object, *, outputs: object, inputs: object, **_: object) -> None:
        """Note what a call of `grad` has returned."""
        if call is None:
            return
        if call.number in self.session.calls and self.activity.detailed:
            self.forwards.follow_graph(call.number, results)
            sources = self.lineage.sources_of(inputs) | Sources.of(CALL, call.number)
            behind = self.session.history.calls[call.number].began.crossed  # else, as for a multiplier of logits:
            sources |= Sources.of(PARAMETER, *(behind or self.lineage.sources_of(outputs).numbers(PARAMETER)))
            cut = {} if call.create_graph else {("penalty-without-graph", call.place): sources}
            self.lineage.derive(results, sources, cut)
            for tensor, result in zip(tensors_in(inputs), results or (), strict=False):
                self.lineage.derive(result, Sources.of(GRADIENT, *self.parameters.numbers_of([tensor])))
        self.session.add(Pass(call.number, raised=call.raised))
