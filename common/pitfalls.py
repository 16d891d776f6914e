"""Errors and silent traps of autograd, each as a mistake and its cure that both run; an error's text finds its entry.

Sources: PyTorch's notes "Autograd mechanics", and the messages that PyTorch itself prints.
"""

# ruff: noqa: D102 (the docstring of an entry speaks for both of its functions)

import math
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass(frozen=True)
class Pitfall:
    """One mistake, its cure, and what PyTorch does with either.

    `wrong` and `right` take nothing; what they return (numbers, tensors, None, or a tuple of these) shows the effect.
    `wrong_gives` and `right_gives` are what to expect: such a value in plain numbers, or the type of the exception.
    `errors` are phrases of the message, any of which identifies it in every PyTorch that has the message; `hints` are
    phrases that speak for this entry where several share one message.
    """

    name: str
    title: str
    wrong: Callable[[], object]
    right: Callable[[], object]
    wrong_gives: object
    right_gives: object
    why: str
    cure: str
    errors: tuple[str, ...]
    hints: tuple[str, ...]

    @property
    def silent(self) -> bool:
        """Whether the mistake goes through without an error."""
        return not isinstance(self.wrong_gives, type)


PITFALLS: list[Pitfall] = []


def pitfall(wrong: object, right: object, errors: tuple[str, ...] = (), hints: tuple[str, ...] = ()) -> Callable:
    """Enter a class with the functions `wrong` and `right`; the paragraphs of its docstring are title, why and cure.

    wrong, right: what the functions give. errors, hints: as in `Pitfall`.
    """

    def add(entry: type) -> type:
        name = re.sub(r"\B[A-Z]", r"-\g<0>", entry.__name__).lower()
        title, why, cure = (" ".join(paragraph.split()) for paragraph in entry.__doc__.split("\n\n"))
        PITFALLS.append(
            Pitfall(name, title.removesuffix("."), entry.wrong, entry.right, wrong, right, why, cure, errors, hints)
        )
        return entry

    return add


@dataclass(frozen=True)
class Outcome:
    """What a function did: the value it returned, in plain numbers, or the exception; and any message with it."""

    value: object = None
    exception: type[Exception] | None = None
    message: str | None = None

    def is_as(self, expected: object) -> bool:
        """Whether this is the expected value, numbers to within 0.2 %, or the expected exception."""
        if isinstance(expected, type) or self.exception:
            return self.exception is expected
        return _close(self.value, expected)


def observe(function: Callable[[], object]) -> Outcome:
    """Run `function` and report what it returned, raised, or warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            value = _plain(function())
        except Exception as error:
            return Outcome(exception=type(error), message=f"{type(error).__name__}: {error}")
    return Outcome(value, message=f"{caught[0].category.__name__}: {caught[0].message}" if caught else None)


def match_error(text: str) -> list[Pitfall]:
    """Return the entries whose message occurs in `text`, best match first; empty where none does.

    text: an error message or a whole traceback of any PyTorch, wrapped or coloured as it may be. What comes last in
    a traceback is what stopped the program, so a later message beats an earlier one; entries that share a message go
    by the number of their hints in the text, then by their order in `PITFALLS`.
    """
    text = _squeeze(text)
    found = []
    for entry in PITFALLS:
        position = max((text.rfind(_squeeze(phrase)) for phrase in entry.errors), default=-1)
        if position >= 0:
            found.append((-position, -sum(_squeeze(hint) in text for hint in entry.hints), entry))
    return [entry for *_, entry in sorted(found, key=lambda match: match[:2])]


def _squeeze(text: str) -> str:
    """Lower-case letters and digits only: neither colours, line breaks, frames nor "in-place" for "inplace" matter."""
    return re.sub(r"[^a-z0-9]", "", re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text).lower())


def _plain(value: object) -> object:
    """Tensors and arrays as numbers and lists, also inside a tuple."""
    if isinstance(value, tuple):
        return tuple(_plain(item) for item in value)
    return value.tolist() if hasattr(value, "tolist") else value


def _close(a: object, b: object) -> bool:
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(_close, a, b))
    if isinstance(a, int | float) and isinstance(b, int | float):
        return math.isclose(a, b, rel_tol=2e-3, abs_tol=1e-7)
    return a is b


def one_weight_gan():
    """G(x) = 0.5 x and D(x) = 0.7 x, each with SGD of learning rate 1, so that every number can be checked by hand."""
    generator, discriminator = nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False)
    nn.init.constant_(generator.weight, 0.5)
    nn.init.constant_(discriminator.weight, 0.7)
    optimizers = [torch.optim.SGD(network.parameters(), lr=1.0) for network in (generator, discriminator)]
    return generator, discriminator, *optimizers


@pitfall(wrong=RuntimeError, right=[[-0.91]], errors=("backward through the graph a second time",))
class SecondBackward:
    """Two losses over one shared graph, backward() twice.

    backward() frees the graph it went through, to save memory. Both losses here lead through G, so the first takes away
    what the second needs.

    Cut the loss that is not for G off with fake.detach(). Where both losses are meant for the same weights, add them
    and go backward once. retain_graph=True also silences the error, but computes G's gradient for a loss that is not
    G's, and somebody has to throw it away.
    """

    def wrong():
        generator, discriminator, _, _ = one_weight_gan()
        fake = generator(torch.ones(1, 1))
        d_loss = discriminator(fake) ** 2
        g_loss = (discriminator(fake) - 1) ** 2
        d_loss.backward()  # goes on through G, and frees G's graph
        g_loss.backward()  # needs G's graph
        return generator.weight.grad

    def right():
        generator, discriminator, _, _ = one_weight_gan()
        fake = generator(torch.ones(1, 1))
        d_loss = discriminator(fake.detach()) ** 2  # this loss ends at the fakes
        g_loss = (discriminator(fake) - 1) ** 2
        d_loss.backward()
        g_loss.backward()
        return generator.weight.grad


FIRST_EDIT = "expected version 0 instead"
MODIFIED_IN_PLACE = ("variables needed for gradient computation", "modified by an inplace operation")


@pitfall(wrong=RuntimeError, right=[[-0.5775]], errors=MODIFIED_IN_PLACE)
class StepBetweenBackwards:
    """D steps between two backward() of one forward pass.

    The way back to G leads through D's weights as they were in the forward pass; step() has overwritten them in place.
    The tensor that the message names is a weight of D: compare its shape with your layers. It also names the operation
    that made the tensor, AsStridedBackward0 in PyTorch 2.6 and AsStrided in 2.13 and later. Before PyTorch 1.5 this
    gave no error and a gradient mixed from old and new weights.

    After D's step, run D again on the same fakes. Or let both losses go backward before either optimizer steps, each
    with inputs=list(network.parameters()) of its own network. inplace=False on activations does not help here.
    """

    def wrong():
        generator, discriminator, optimizer_g, optimizer_d = one_weight_gan()
        score = discriminator(generator(torch.ones(1, 1)))
        d_loss, g_loss = score**2, (score - 1) ** 2
        d_loss.backward(retain_graph=True)
        optimizer_d.step()  # changes the weights that `score` came from
        optimizer_g.zero_grad()
        g_loss.backward()
        return generator.weight.grad

    def right():
        generator, discriminator, optimizer_g, optimizer_d = one_weight_gan()
        fake = generator(torch.ones(1, 1))
        d_loss = discriminator(fake.detach()) ** 2
        d_loss.backward()
        optimizer_d.step()
        g_loss = (discriminator(fake) - 1) ** 2  # D as it is now
        optimizer_g.zero_grad()
        g_loss.backward()
        return generator.weight.grad


@pitfall(wrong=RuntimeError, right=([3.0, 5.0], 0), errors=MODIFIED_IN_PLACE, hints=(FIRST_EDIT, "CopySlices"))
class EditAfterUse:
    """A tensor is edited in place after a loss has used it.

    The gradient of b * b needs the value of b. Every tensor counts its in-place edits in _version: 0 when b * b saved
    it, 1 after the assignment, and the message says so.

    Edit a clone(), or edit after backward().
    """

    def wrong():
        a = torch.tensor([1.0, 3.0], requires_grad=True)
        b = a + 2
        loss = (b * b).mean()
        b[0] = 1000.0  # b * b wants b back as it was
        loss.backward()
        return a.grad, b._version

    def right():
        a = torch.tensor([1.0, 3.0], requires_grad=True)
        b = a + 2
        loss = (b * b).mean()
        edited = b.clone()
        edited[0] = 1000.0
        loss.backward()
        return a.grad, b._version


@pitfall(
    wrong=RuntimeError,
    right=[0.25, 0.19661],
    errors=MODIFIED_IN_PLACE,
    hints=(FIRST_EDIT, "inplace=True", *(f"output 0 of {name}" for name in ("Sigmoid", "Tanh", "Softmax", "Exp"))),
)
class InplaceActivation:
    """An in-place activation right after sigmoid or tanh.

    Sigmoid computes its gradient from its output, s (1 - s), and so keeps the output. The activation behind it writes
    into that very tensor. The message names the layer whose output was lost.

    inplace=False there. After a layer that does not need its output (Linear, Conv2d, BatchNorm), an in-place activation
    is safe.
    """

    def wrong():
        x = torch.tensor([0.0, 1.0], requires_grad=True)
        y = nn.Sequential(nn.Sigmoid(), nn.LeakyReLU(0.2, inplace=True))(x)
        y.sum().backward()
        return x.grad

    def right():
        x = torch.tensor([0.0, 1.0], requires_grad=True)
        y = nn.Sequential(nn.Sigmoid(), nn.LeakyReLU(0.2))(x)
        y.sum().backward()
        return x.grad


@pitfall(wrong=RuntimeError, right=([1.0, 1.0], 0), errors=MODIFIED_IN_PLACE, hints=(FIRST_EDIT, "output 0 of Relu"))
class EditAfterRelu:
    """x += skip, right after ReLU.

    x += skip writes into x; x = x + skip makes a new tensor. ReLU, like Sigmoid and Tanh, computes its gradient from
    its output, which the first form destroys.

    Write x = x + skip.
    """

    def wrong():
        a = torch.tensor([1.0, 3.0], requires_grad=True)
        b = torch.relu(a)
        b += a  # ReLU keeps its output, to see where it was positive
        b.mean().backward()
        return a.grad, b._version

    def right():
        a = torch.tensor([1.0, 3.0], requires_grad=True)
        b = torch.relu(a)
        b = b + a
        b.mean().backward()
        return a.grad, b._version


@pitfall(wrong=RuntimeError, right=[6.0, 10.0], errors=MODIFIED_IN_PLACE, hints=(FIRST_EDIT,))
class EditThroughDetach:
    """A detached tensor is edited, and with it the original.

    detach() makes no copy: it shares the memory and the _version counter of the original. So autograd catches the edit.
    Through .data it would not: see data-edit.

    detach().clone() before an in-place edit, such as mul_(0.5).add_(0.5) on images to be saved.
    """

    def wrong():
        a = torch.tensor([1.0, 3.0], requires_grad=True)
        b = a + 2
        loss = (b * b).sum()
        b.detach().zero_()  # the same memory as b
        loss.backward()
        return a.grad

    def right():
        a = torch.tensor([1.0, 3.0], requires_grad=True)
        b = a + 2
        loss = (b * b).sum()
        b.detach().clone().zero_()
        loss.backward()
        return a.grad


@pitfall(wrong=RuntimeError, right=([0.5, 0.5], 1), errors=MODIFIED_IN_PLACE, hints=(FIRST_EDIT,))
class HarmlessEdit:
    """The same edit, an error here and harmless there.

    Autograd compares _version only when a backward pass asks for a saved value. Both edits raise _version to 1; nobody
    asks for the second b.

    Do not rely on it: a change of the loss, or of the layer before, brings the error. Edit a clone().
    """

    def wrong():
        a = torch.tensor([1.0, 3.0], requires_grad=True)
        b = a.exp()  # the gradient of exp is exp: b is needed
        loss = b.mean()
        b[0] = 1000.0
        loss.backward()
        return a.grad, b._version

    def right():
        a = torch.tensor([1.0, 3.0], requires_grad=True)
        b = a + 2  # neither this nor mean() needs b for its gradient
        loss = b.mean()
        b[0] = 1000.0
        loss.backward()
        return a.grad, b._version


LEAF_IN_PLACE = ("leaf Variable that requires grad",)


@pitfall(wrong=RuntimeError, right=[10.0, 7.5, 6.0, 6.5], errors=LEAF_IN_PLACE)
class LeafInPlace:
    """A weight is changed in place: a.add_(10), a += 10.

    A leaf is a tensor that no operation made, such as a weight, and is where gradients are kept. After a recorded edit
    it would be the result of that edit, no leaf any more.

    Change weights under torch.no_grad(), as optimizers do, and before the forward pass that uses them.
    """

    def wrong():
        a = torch.tensor([10.0, 5.0, 2.0, 3.0], requires_grad=True)
        a.add_(10)
        (a * a).mean().backward()
        return a.grad

    def right():
        a = torch.tensor([10.0, 5.0, 2.0, 3.0], requires_grad=True)
        with torch.no_grad():
            a.add_(10)
        (a * a).mean().backward()
        return a.grad


@pitfall(wrong=RuntimeError, right=[5.0, 5.0, 5.0, 5.0], errors=LEAF_IN_PLACE, hints=("a view of a leaf Variable",))
class LeafAssignment:
    """A weight is assigned to by index: a[:] = 0.

    An assignment by index is an in-place edit. PyTorch 2.6 speaks of a view of a leaf here, 2.13 and later of a leaf,
    as for any such edit. Old versions let it pass and turned `a` into a tensor that is no leaf, so that a.grad stayed
    empty.

    Assign under torch.no_grad(), or use torch.nn.init, which does so.
    """

    def wrong():
        a = torch.tensor([10.0, 5.0, 2.0, 3.0], requires_grad=True)
        a[:] = 0
        (a * a).mean().backward()
        return a.grad

    def right():
        a = torch.tensor([10.0, 5.0, 2.0, 3.0], requires_grad=True)
        with torch.no_grad():
            a[:] = 10
        (a * a).mean().backward()
        return a.grad


NO_GRAPH = ("does not require grad and does not have a grad_fn",)


@pitfall(wrong=RuntimeError, right=(None, [[0.35]]), errors=NO_GRAPH, hints=("no_grad()",))
class NoGraph:
    """backward() on a loss computed under no_grad().

    Under no_grad() nothing is recorded, whatever the weights say. The loss has no graph to go back through.

    Keep under no_grad() only what is to get no gradient: here the fakes that D learns from.
    """

    def wrong():
        generator, discriminator, _, _ = one_weight_gan()
        with torch.no_grad():
            d_loss = discriminator(generator(torch.ones(1, 1))) ** 2
        d_loss.backward()
        return generator.weight.grad, discriminator.weight.grad

    def right():
        generator, discriminator, _, _ = one_weight_gan()
        with torch.no_grad():
            fake = generator(torch.ones(1, 1))
        d_loss = discriminator(fake) ** 2
        d_loss.backward()
        return generator.weight.grad, discriminator.weight.grad


@pitfall(wrong=RuntimeError, right=([[0.49]], None), errors=NO_GRAPH, hints=("requires_grad = False",))
class AllFrozen:
    """D is frozen and the fakes are detached: nothing left.

    An output requires grad when any of its inputs does, weights or what comes in. With D frozen, G's weights are all
    that is left, and detach() cuts them off.

    Detach the fakes in D's loss, never in G's. print(loss.requires_grad) tells whether there is a graph.
    """

    def wrong():
        generator, discriminator, _, _ = one_weight_gan()
        discriminator.requires_grad_(False)
        fake = generator(torch.ones(1, 1)).detach()
        g_loss = discriminator(fake) ** 2
        g_loss.backward()
        return generator.weight.grad, discriminator.weight.grad

    def right():
        generator, discriminator, _, _ = one_weight_gan()
        discriminator.requires_grad_(False)
        fake = generator(torch.ones(1, 1))
        g_loss = discriminator(fake) ** 2
        g_loss.backward()
        return generator.weight.grad, discriminator.weight.grad


@pitfall(
    wrong=(40.0, None, None, (28.0, 8.0, 10.0)),
    right=(40.0, [[0.25, 0.25], [0.25, 0.25]], [[7.0, 7.0], [7.0, 7.0]], (28.0, 8.0, 10.0)),
    errors=("attribute of a Tensor that is not a leaf Tensor is being accessed",),
)
class GradOfNonLeaf:
    """.grad of a result is None: only leaves keep theirs.

    To save memory a backward pass drops the gradients of results on its way; only leaves that require grad, such as w1,
    w2 and w3, keep theirs. By hand: dl4 = 1/4; dl1 = (l3 + l2 w3) / 4 = (8 + 20) / 4 = 7.

    retain_grad() on the tensor before backward(). is_leaf tells which kind a tensor is.
    """

    def wrong():
        i = torch.ones(2, 2)
        w1, w2, w3 = (torch.tensor(w, requires_grad=True) for w in (2.0, 3.0, 4.0))
        l1 = i * w1
        l2, l3 = l1 + w2, l1 * w3
        l4 = l2 * l3
        loss = l4.mean()
        loss.backward()
        return loss, l4.grad, l1.grad, (w1.grad, w2.grad, w3.grad)

    def right():
        i = torch.ones(2, 2)
        w1, w2, w3 = (torch.tensor(w, requires_grad=True) for w in (2.0, 3.0, 4.0))
        l1 = i * w1
        l2, l3 = l1 + w2, l1 * w3
        l4 = l2 * l3
        loss = l4.mean()
        l1.retain_grad()
        l4.retain_grad()
        loss.backward()
        return loss, l4.grad, l1.grad, (w1.grad, w2.grad, w3.grad)


@pitfall(wrong=RuntimeError, right=[0.5, 0.7], errors=("Can't call numpy() on",))
class NumpyOfGrad:
    """numpy() on a tensor that requires grad.

    An array shares the tensor's memory, but autograd cannot follow what NumPy does to it.

    tensor.detach().cpu().numpy(), and .copy() where the array is to be changed. For one number, .item().
    """

    def wrong():
        weight = torch.tensor([0.5, 0.7], requires_grad=True)
        return weight.numpy()

    def right():
        weight = torch.tensor([0.5, 0.7], requires_grad=True)
        return weight.detach().cpu().numpy()


@pitfall(wrong=RuntimeError, right=[-1.0, 2.0], errors=("grad can be implicitly created only for scalar outputs",))
class NonScalarLoss:
    """backward() on a loss of several numbers.

    A gradient is that of one number. With one loss per sample, PyTorch would have to guess their weights.

    mean() or sum() first, and no reduction='none' in the loss.
    """

    def wrong():
        score = torch.tensor([0.0, 3.0], requires_grad=True)
        loss = (score - 1) ** 2
        loss.backward()
        return score.grad

    def right():
        score = torch.tensor([0.0, 3.0], requires_grad=True)
        loss = ((score - 1) ** 2).mean()
        loss.backward()
        return score.grad


@pitfall(wrong=RuntimeError, right=([0.7, 2.8],), errors=("appears to not have been used in the graph",))
class UnusedInGraph:
    """autograd.grad() for a tensor the output never used.

    A gradient penalty asks how D's score changes with its input. Here D was given another tensor than the one asked
    about; a copy or a view made after the call does the same. PyTorch 2.6 says that one of the tensors was not used,
    2.13 and later which one.

    Ask for the very tensor that went into D. allow_unused=True only turns the error into a None.
    """

    def wrong():
        real, fake = torch.tensor([1.0, 3.0]), torch.tensor([0.0, 1.0])
        mixed = (0.5 * real + 0.5 * fake).requires_grad_()
        weight = torch.tensor(0.7, requires_grad=True)
        score = (weight * fake**2).sum()  # `mixed` was never judged
        return torch.autograd.grad(score, mixed)

    def right():
        real, fake = torch.tensor([1.0, 3.0]), torch.tensor([0.0, 1.0])
        mixed = (0.5 * real + 0.5 * fake).requires_grad_()
        weight = torch.tensor(0.7, requires_grad=True)
        score = (weight * mixed**2).sum()
        return torch.autograd.grad(score, mixed)


OTHER_SIZE = "is different to the input size"


@pitfall(
    wrong=ValueError,
    right=0.72969,
    errors=(OTHER_SIZE, "must be the same as input size"),
    hints=("is deprecated", "ValueError"),
)
class LabelShapeBce:
    """BCE: labels of shape (N,), outputs of shape (N, 1).

    A D that ends in Linear(..., 1) gives (N, 1), torch.ones(N) has the shape (N,). They look alike, but are different
    to PyTorch.

    torch.ones_like(output), or a loss that needs no labels: -F.logsigmoid(logits).mean() for real.
    """

    def wrong():
        probability = torch.tensor([[0.9], [0.2], [0.6], [0.5]])
        return F.binary_cross_entropy(probability, torch.ones(4))

    def right():
        probability = torch.tensor([[0.9], [0.2], [0.6], [0.5]])
        return F.binary_cross_entropy(probability, torch.ones_like(probability))


@pitfall(wrong=0.5, right=0.0, errors=(OTHER_SIZE,), hints=("incorrect results due to broadcasting", "UserWarning"))
class LabelShapeMse:
    """MSE: labels of shape (N,), outputs of shape (N, 1).

    (N, 1) against (N,) broadcasts to a table of N x N differences, every score against every label. A D without a fault
    gets the loss 0.5, and nothing but a warning tells.

    label.view_as(score) or torch.ones_like(score). In tests, warnings.simplefilter('error').
    """

    def wrong():
        score = torch.tensor([[1.0], [0.0]])
        label = torch.tensor([1.0, 0.0])
        return F.mse_loss(score, label)

    def right():
        score = torch.tensor([[1.0], [0.0]])
        label = torch.tensor([[1.0], [0.0]])
        return F.mse_loss(score, label)


@pitfall(wrong=([0.0, 0.0], 0), right=([6.0, 10.0], 0))
class DataEdit:
    """An edit through .data between forward and backward.

    .data shares the memory of b but not its _version counter, which stays at 0: autograd computes 2 b with the zeros
    and cannot know.

    Never .data. detach() shares the memory as well, but the edit is caught: see edit-through-detach. To edit freely,
    detach().clone(); to change a weight, torch.no_grad().
    """

    def wrong():
        a = torch.tensor([1.0, 3.0], requires_grad=True)
        b = a + 2
        loss = (b * b).sum()
        b.data.zero_()
        loss.backward()
        return a.grad, b._version

    def right():
        a = torch.tensor([1.0, 3.0], requires_grad=True)
        b = a + 2
        loss = (b * b).sum()
        b.detach().clone().zero_()
        loss.backward()
        return a.grad, b._version


@pitfall(wrong=[-7.566e-6, -3.146e-2, -4.07e-6], right=[-3.333e-1, -1.667e-1, -1.513e-5])
class SigmoidThenLogits:
    """A sigmoid, then BCE with logits: the sigmoid twice.

    The loss takes D's probabilities for logits and applies a sigmoid of its own. D's sigmoid is flat where D is sure
    (logit -10): a G that is losing gets no gradient, just where it should be largest.

    No sigmoid in D; binary_cross_entropy_with_logits on what it gives. A sigmoid only to print D(x).
    """

    def wrong():
        logits = torch.tensor([-10.0, 0.0, 10.0], requires_grad=True)
        score = torch.sigmoid(logits)
        F.binary_cross_entropy_with_logits(score, torch.ones(3)).backward()
        return logits.grad

    def right():
        logits = torch.tensor([-10.0, 0.0, 10.0], requires_grad=True)
        F.binary_cross_entropy_with_logits(logits, torch.ones(3)).backward()
        return logits.grad


@pitfall(wrong=([[0.7]], [[0.0]]), right=([[0.35]], [[0.35]]))
class BothBackward:
    """Both losses go backward, and D steps on the sum.

    backward() adds to .grad of every weight on its way, and G's loss comes through D. D then steps on G's loss as well
    as its own.

    Name the weights a loss is for: g_loss.backward(inputs=list(generator.parameters())). Or freeze D with
    requires_grad_(False) while G's loss goes backward, or clear D's gradient before D's own loss.
    """

    def wrong():
        generator, discriminator, _, optimizer_d = one_weight_gan()
        fake = generator(torch.ones(1, 1))
        d_loss = discriminator(fake.detach()) ** 2
        g_loss = discriminator(fake) ** 2
        d_loss.backward()
        g_loss.backward()  # adds to D's gradient
        optimizer_d.step()
        return discriminator.weight.grad, discriminator.weight

    def right():
        generator, discriminator, _, optimizer_d = one_weight_gan()
        fake = generator(torch.ones(1, 1))
        d_loss = discriminator(fake.detach()) ** 2
        g_loss = discriminator(fake) ** 2
        d_loss.backward()
        g_loss.backward(inputs=list(generator.parameters()))
        optimizer_d.step()
        return discriminator.weight.grad, discriminator.weight


@pitfall(wrong=(6.0, -0.2), right=(2.0, 0.4))
class ZeroGradForgotten:
    """optimizer.zero_grad() is missing.

    backward() adds to .grad. Without zero_grad() each step takes the gradients of all steps before it once more: 2, 4,
    6 in place of 2, 2, 2.

    optimizer.zero_grad() before every backward() that starts a step.
    """

    def wrong():
        weight = torch.tensor(1.0, requires_grad=True)
        optimizer = torch.optim.SGD([weight], lr=0.1)
        for _ in range(3):
            (2 * weight).backward()
            optimizer.step()
        return weight.grad, weight

    def right():
        weight = torch.tensor(1.0, requires_grad=True)
        optimizer = torch.optim.SGD([weight], lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            (2 * weight).backward()
            optimizer.step()
        return weight.grad, weight


@pitfall(wrong=(None, [[0.5]]), right=([[0.49]], [[0.01]]))
class DetachedByMistake:
    """detach() between two networks that learn together.

    Nothing comes back through detach(): the first network's gradients stay None, and an optimizer skips such weights
    without a word. It never learns.

    detach() only where one loss must not reach a network; not between networks under one optimizer. After a backward(),
    check for weights whose .grad is None.
    """

    def wrong():
        first, second, _, _ = one_weight_gan()
        both = [*first.parameters(), *second.parameters()]
        optimizer = torch.optim.SGD(both, lr=1.0)
        loss = second(first(torch.ones(1, 1)).detach()) ** 2
        loss.backward()
        optimizer.step()
        return first.weight.grad, first.weight

    def right():
        first, second, _, _ = one_weight_gan()
        both = [*first.parameters(), *second.parameters()]
        optimizer = torch.optim.SGD(both, lr=1.0)
        loss = second(first(torch.ones(1, 1))) ** 2
        loss.backward()
        optimizer.step()
        return first.weight.grad, first.weight
