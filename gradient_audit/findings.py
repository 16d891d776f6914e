"""What an audit can find: each kind with its severity, its cure, and the mistakes that look like it."""

from dataclasses import dataclass
from typing import NamedTuple

from gradient_audit.places import Place


class Kind(NamedTuple):
    """A kind of finding. `mistakes` are names of `gradient_audit.mistakes`, the likeliest first."""

    severity: str
    cure: str
    mistakes: tuple[str, ...] = ()


LIMIT = "Limit where gradients go: `loss.backward(inputs=list(network.parameters()))`"
# In the order of the report; `Finding` explains them.
KINDS = {
    "stale": Kind("error", "Call `zero_grad()` after each step; a step too many may be another's.", ("no-zero-grad",)),
    "mixed": Kind("error", f"{LIMIT}, or clear the gradients that are not for the step.", ("d-steps-on-g-loss",)),
    "twice": Kind("error", "Call `zero_grad()` between the steps, or let one optimizer hold it.", ("parameter-twice",)),
    "idle": Kind("error", "Call its `step()`, or give its parameters to an optimizer that steps."),
    "dead": Kind(
        "error",
        "See whether `detach()`, `no_grad()`, `.item()`, or a penalty without `create_graph=True` cuts it off, and "
        "whether the network that it should move is frozen or missing from `inputs=`.",
        ("penalty-without-graph", "penalty-on-frozen", "loss-made-leaf"),
    ),
    "overwritten": Kind("error", "", ("step-between-backwards", "fused-step", "edit-after-use", "inplace-activation")),
    "unreached": Kind(
        "error",
        "See whether `detach()` or `no_grad()` cuts them off, whether `zero_grad()` comes between `backward()` and "
        "`step()`, and whether the forward pass uses them at all.",
        ("detached-fakes", "optimizer-old-weights"),
    ),
    "ownerless": Kind(
        "error",
        "Give them to an optimizer, or freeze them with `requires_grad_(False)` if they must not change.",
        ("optimizer-old-weights",),
    ),
    "meant?": Kind(
        "question",
        f"If this loss is for all of them, as an autoencoder's is, this is right. If not: {LIMIT}.",
        ("d-steps-on-g-loss",),
    ),
    "unused": Kind("question", "If it is a loss, call `backward()` on it; if not, compute it under `torch.no_grad()`."),
    "reused": Kind("question", "If the first gradient was only for that use, call `zero_grad()` after it."),
    "shared": Kind("question", "Give each optimizer its own network alone, unless both are to move it."),
    "renewed": Kind("question", "Make it once, before the loop, unless each one is for another task."),
    "unaveraged": Kind("question", "Call the wrapped network itself, not its `module`."),
    "unfrozen": Kind("waste", "If it only judges, `network.requires_grad_(False)`; else give it to an optimizer."),
    "wasted": Kind("waste", f"{LIMIT}, or `detach()`; if meant, step before `zero_grad()` clears it."),
    "graph": Kind("waste", "Compute it under `torch.no_grad()`, or delete it if it is not needed."),
}
SEVERITIES = ("error", "question", "waste")


@dataclass(frozen=True)
class Finding:
    """Something wrong, doubtful or wasteful: its kind, the networks, what happens, the places, the cure.

    Errors: the weights are, or soon will be, others than those meant.
    `mixed`: an optimizer stepped on the sum of several passes, one of which also moved another player (the networks
    under other optimizers). `stale`: it stepped again on gradients that it had stepped on. `twice`: two optimizers
    stepped on one gradient, or one that holds a parameter twice. `idle`: an optimizer never stepped though its
    parameters got gradients and others stepped (a question where it might step later). `dead`: a term of a loss reaches
    no parameter that its pass moved. `overwritten`: a backward pass needed a tensor that had been changed since its
    forward pass. `unreached`: the optimizer of a parameter never found a gradient for it. `ownerless`: no optimizer
    holds a parameter.
    Questions: `meant?`: one pass moved networks of two players. `unused`: a number was computed with a graph that no
    backward pass came through. `reused`: an optimizer stepped on a gradient that had been used by hand, and on another.
    `shared`: an optimizer holds two networks, of which another one holds one. `renewed`: it was made anew, and its
    state was lost. `unaveraged`: a DistributedDataParallel got gradients without its forward pass.
    Waste: `wasted`: gradients that no optimizer used. `unfrozen`: the same of a network, or of its first layers,
    without an optimizer. `graph`: a graph was built for nothing; or a parameter was written to with a graph.
    """

    kind: str
    networks: tuple[str, ...]
    text: str
    places: tuple[Place, ...]
    cure: str
    facts: tuple[tuple[str, str], ...] = ()  # of `overwritten`: what is wanted, who wrote it, and so on
    silent: bool = False  # of `overwritten`: PyTorch alone gives no error
    doubtful: bool = False  # a question, though its kind is an error

    @property
    def severity(self) -> str:
        """One of "error", "question" and "waste"."""
        return "question" if self.doubtful else KINDS[self.kind].severity

    @property
    def lines(self) -> tuple[str, ...]:
        """The places as `file.py:12`; the first is the one to look at."""
        return tuple(dict.fromkeys(place.where for place in self.places))

    def data(self) -> dict[str, object]:
        """Return it as what `json.dump` takes."""
        places, mistakes = [place.data() for place in self.places], KINDS[self.kind].mistakes
        derived = {"severity": self.severity, "mistakes": mistakes, "facts": dict(self.facts), "places": places}
        return vars(self) | derived

    def __str__(self) -> str:
        at = f" [{', '.join(self.lines)}]" if self.lines else ""
        names = ", ".join(f"`{name}`" for name in KINDS[self.kind].mistakes)
        alike = f" Mistakes like it: {names}." if names else ""
        return f"**{self.kind}** ({self.severity}): {self.text}{at} {self.cure}{alike}"


def joined(words) -> str:
    """Join words: "a", "a and b", "a, b and c"."""
    *most, last = [*words] or [""]
    return f"{', '.join(most)} and {last}" if most else last
