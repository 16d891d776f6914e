"""Errors and silent traps of autograd, each as two functions of a few lines: the mistake and its cure, both runnable.

`PITFALLS` holds them all and `match_error` finds those behind the text of an error. An entry is a pair of functions
followed by a `Pitfall` that says what each of them does; to add one, write such a pair.

Sources: PyTorch's notes "Autograd mechanics", and the messages that PyTorch itself prints.
"""

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
    errors: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()

    @property
    def silent(self) -> bool:
        """Whether the mistake goes through without an error."""
        return not isinstance(self.wrong_gives, type)


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
    """Entries whose message occurs in `text`, best match first; empty where none does.

    text: an error message or a whole traceback of any PyTorch, wrapped or coloured as it may be. What comes last in
    a traceback is what stopped the program, so a later message beats an earlier one; entries that share a message go
    by the number of their hints in the text, then by their order in `PITFALLS`.
    """
    text = _squeeze(text)
    found = []
    for pitfall in PITFALLS:
        position = max((text.rfind(_squeeze(phrase)) for phrase in pitfall.errors), default=-1)
        if position >= 0:
            found.append((-position, -sum(_squeeze(hint) in text for hint in pitfall.hints), pitfall))
    return [pitfall for *_, pitfall in sorted(found, key=lambda entry: entry[:2])]


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
    optimizer_g = torch.optim.SGD(generator.parameters(), lr=1.0)
    optimizer_d = torch.optim.SGD(discriminator.parameters(), lr=1.0)
    return generator, discriminator, optimizer_g, optimizer_d


PITFALLS: list[Pitfall] = []


def _second_backward_wrong():
    generator, discriminator, _, _ = one_weight_gan()
    fake = generator(torch.ones(1, 1))
    d_loss = discriminator(fake) ** 2
    g_loss = (discriminator(fake) - 1) ** 2
    d_loss.backward()  # goes on through G, and frees G's graph
    g_loss.backward()  # needs G's graph
    return generator.weight.grad


def _second_backward_right():
    generator, discriminator, _, _ = one_weight_gan()
    fake = generator(torch.ones(1, 1))
    d_loss = discriminator(fake.detach()) ** 2  # this loss ends at the fakes
    g_loss = (discriminator(fake) - 1) ** 2
    d_loss.backward()
    g_loss.backward()
    return generator.weight.grad


PITFALLS.append(
    Pitfall(
        name="second-backward",
        title="Two losses over one shared graph, backward() twice",
        wrong=_second_backward_wrong,
        right=_second_backward_right,
        wrong_gives=RuntimeError,
        right_gives=[[-0.91]],
        why="backward() frees the graph it went through, to save memory. Both losses here lead through G, so the "
        "first takes away what the second needs.",
        cure="Cut the loss that is not for G off with fake.detach(). Where both losses are meant for the same weights, "
        "add them and go backward once. retain_graph=True also silences the error, but computes G's gradient for a "
        "loss that is not G's, and somebody has to throw it away.",
        errors=("backward through the graph a second time",),
    )
)


MODIFIED_IN_PLACE = ("variables needed for gradient computation", "modified by an inplace operation")


def _step_between_backwards_wrong():
    generator, discriminator, optimizer_g, optimizer_d = one_weight_gan()
    score = discriminator(generator(torch.ones(1, 1)))
    d_loss, g_loss = score**2, (score - 1) ** 2
    d_loss.backward(retain_graph=True)
    optimizer_d.step()  # changes the weights that `score` came from
    optimizer_g.zero_grad()
    g_loss.backward()
    return generator.weight.grad


def _step_between_backwards_right():
    generator, discriminator, optimizer_g, optimizer_d = one_weight_gan()
    fake = generator(torch.ones(1, 1))
    d_loss = discriminator(fake.detach()) ** 2
    d_loss.backward()
    optimizer_d.step()
    g_loss = (discriminator(fake) - 1) ** 2  # D as it is now
    optimizer_g.zero_grad()
    g_loss.backward()
    return generator.weight.grad


PITFALLS.append(
    Pitfall(
        name="step-between-backwards",
        title="D steps between two backward() of one forward pass",
        wrong=_step_between_backwards_wrong,
        right=_step_between_backwards_right,
        wrong_gives=RuntimeError,
        right_gives=[[-0.5775]],
        why="The way back to G leads through D's weights as they were in the forward pass; step() has overwritten "
        "them in place. The tensor that the message names is a weight of D: compare its shape with your layers. "
        "Before PyTorch 1.5 this gave no error and a gradient mixed from old and new weights.",
        cure="After D's step, run D again on the same fakes. Or let both losses go backward before either optimizer "
        "steps, each with inputs=list(network.parameters()) of its own network. inplace=False on activations does "
        "not help here.",
        errors=MODIFIED_IN_PLACE,
    )
)


def _edit_after_use_wrong():
    a = torch.tensor([1.0, 3.0], requires_grad=True)
    b = a + 2
    loss = (b * b).mean()
    b[0] = 1000.0  # b * b wants b back as it was
    loss.backward()
    return a.grad, b._version


def _edit_after_use_right():
    a = torch.tensor([1.0, 3.0], requires_grad=True)
    b = a + 2
    loss = (b * b).mean()
    edited = b.clone()
    edited[0] = 1000.0
    loss.backward()
    return a.grad, b._version


PITFALLS.append(
    Pitfall(
        name="edit-after-use",
        title="A tensor is edited in place after a loss has used it",
        wrong=_edit_after_use_wrong,
        right=_edit_after_use_right,
        wrong_gives=RuntimeError,
        right_gives=([3.0, 5.0], 0),
        why="The gradient of b * b needs the value of b. Every tensor counts its in-place edits in _version: 0 when "
        "b * b saved it, 1 after the assignment, and the message says so.",
        cure="Edit a clone(), or edit after backward().",
        errors=MODIFIED_IN_PLACE,
        hints=("expected version 0 instead", "CopySlices"),
    )
)


def _inplace_activation_wrong():
    x = torch.tensor([0.0, 1.0], requires_grad=True)
    y = nn.Sequential(nn.Sigmoid(), nn.LeakyReLU(0.2, inplace=True))(x)
    y.sum().backward()
    return x.grad


def _inplace_activation_right():
    x = torch.tensor([0.0, 1.0], requires_grad=True)
    y = nn.Sequential(nn.Sigmoid(), nn.LeakyReLU(0.2))(x)
    y.sum().backward()
    return x.grad


PITFALLS.append(
    Pitfall(
        name="inplace-activation",
        title="An in-place activation right after sigmoid or tanh",
        wrong=_inplace_activation_wrong,
        right=_inplace_activation_right,
        wrong_gives=RuntimeError,
        right_gives=[0.25, 0.19661],
        why="Sigmoid computes its gradient from its output, s (1 - s), and so keeps the output. The activation behind "
        "it writes into that very tensor. The message names the layer whose output was lost.",
        cure="inplace=False there. After a layer that does not need its output (Linear, Conv2d, BatchNorm), an "
        "in-place activation is safe.",
        errors=MODIFIED_IN_PLACE,
        hints=(
            "expected version 0 instead",
            "inplace=True",
            "output 0 of Sigmoid",
            "output 0 of Tanh",
            "output 0 of Softmax",
            "output 0 of Exp",
        ),
    )
)


def _edit_after_relu_wrong():
    a = torch.tensor([1.0, 3.0], requires_grad=True)
    b = torch.relu(a)
    b += a  # ReLU keeps its output, to see where it was positive
    b.mean().backward()
    return a.grad, b._version


def _edit_after_relu_right():
    a = torch.tensor([1.0, 3.0], requires_grad=True)
    b = torch.relu(a)
    b = b + a
    b.mean().backward()
    return a.grad, b._version


PITFALLS.append(
    Pitfall(
        name="edit-after-relu",
        title="x += skip, right after ReLU",
        wrong=_edit_after_relu_wrong,
        right=_edit_after_relu_right,
        wrong_gives=RuntimeError,
        right_gives=([1.0, 1.0], 0),
        why="x += skip writes into x; x = x + skip makes a new tensor. ReLU, like Sigmoid and Tanh, computes its "
        "gradient from its output, which the first form destroys.",
        cure="Write x = x + skip.",
        errors=MODIFIED_IN_PLACE,
        hints=("expected version 0 instead", "output 0 of Relu"),
    )
)


def _edit_through_detach_wrong():
    a = torch.tensor([1.0, 3.0], requires_grad=True)
    b = a + 2
    loss = (b * b).sum()
    b.detach().zero_()  # the same memory as b
    loss.backward()
    return a.grad


def _edit_through_detach_right():
    a = torch.tensor([1.0, 3.0], requires_grad=True)
    b = a + 2
    loss = (b * b).sum()
    b.detach().clone().zero_()
    loss.backward()
    return a.grad


PITFALLS.append(
    Pitfall(
        name="edit-through-detach",
        title="A detached tensor is edited, and with it the original",
        wrong=_edit_through_detach_wrong,
        right=_edit_through_detach_right,
        wrong_gives=RuntimeError,
        right_gives=[6.0, 10.0],
        why="detach() makes no copy: it shares the memory and the _version counter of the original. So autograd "
        "catches the edit. Through .data it would not: see data-edit.",
        cure="detach().clone() before an in-place edit, such as mul_(0.5).add_(0.5) on images to be saved.",
        errors=MODIFIED_IN_PLACE,
        hints=("expected version 0 instead",),
    )
)


def _harmless_edit_wrong():
    a = torch.tensor([1.0, 3.0], requires_grad=True)
    b = a.exp()  # the gradient of exp is exp: b is needed
    loss = b.mean()
    b[0] = 1000.0
    loss.backward()
    return a.grad, b._version


def _harmless_edit_right():
    a = torch.tensor([1.0, 3.0], requires_grad=True)
    b = a + 2  # neither this nor mean() needs b for its gradient
    loss = b.mean()
    b[0] = 1000.0
    loss.backward()
    return a.grad, b._version


PITFALLS.append(
    Pitfall(
        name="harmless-edit",
        title="The same edit, an error here and harmless there",
        wrong=_harmless_edit_wrong,
        right=_harmless_edit_right,
        wrong_gives=RuntimeError,
        right_gives=([0.5, 0.5], 1),
        why="Autograd compares _version only when a backward pass asks for a saved value. Both edits raise _version to "
        "1; nobody asks for the second b.",
        cure="Do not rely on it: a change of the loss, or of the layer before, brings the error. Edit a clone().",
        errors=MODIFIED_IN_PLACE,
        hints=("expected version 0 instead",),
    )
)


LEAF_IN_PLACE = ("leaf Variable that requires grad",)


def _leaf_in_place_wrong():
    a = torch.tensor([10.0, 5.0, 2.0, 3.0], requires_grad=True)
    a.add_(10)
    (a * a).mean().backward()
    return a.grad


def _leaf_in_place_right():
    a = torch.tensor([10.0, 5.0, 2.0, 3.0], requires_grad=True)
    with torch.no_grad():
        a.add_(10)
    (a * a).mean().backward()
    return a.grad


PITFALLS.append(
    Pitfall(
        name="leaf-in-place",
        title="A weight is changed in place: a.add_(10), a += 10",
        wrong=_leaf_in_place_wrong,
        right=_leaf_in_place_right,
        wrong_gives=RuntimeError,
        right_gives=[10.0, 7.5, 6.0, 6.5],
        why="A leaf is a tensor that no operation made, such as a weight, and is where gradients are kept. After a "
        "recorded edit it would be the result of that edit, no leaf any more.",
        cure="Change weights under torch.no_grad(), as optimizers do, and before the forward pass that uses them.",
        errors=LEAF_IN_PLACE,
    )
)


def _leaf_assignment_wrong():
    a = torch.tensor([10.0, 5.0, 2.0, 3.0], requires_grad=True)
    a[:] = 0
    (a * a).mean().backward()
    return a.grad


def _leaf_assignment_right():
    a = torch.tensor([10.0, 5.0, 2.0, 3.0], requires_grad=True)
    with torch.no_grad():
        a[:] = 10
    (a * a).mean().backward()
    return a.grad


PITFALLS.append(
    Pitfall(
        name="leaf-assignment",
        title="A weight is assigned to by index: a[:] = 0",
        wrong=_leaf_assignment_wrong,
        right=_leaf_assignment_right,
        wrong_gives=RuntimeError,
        right_gives=[5.0, 5.0, 5.0, 5.0],
        why="An assignment by index is an in-place edit. Old versions of PyTorch let it pass and turned `a` into a "
        "tensor that is no leaf, so that a.grad stayed empty.",
        cure="Assign under torch.no_grad(), or use torch.nn.init, which does so.",
        errors=LEAF_IN_PLACE,
        hints=("a view of a leaf Variable",),
    )
)


NO_GRAPH = ("does not require grad and does not have a grad_fn",)


def _no_graph_wrong():
    generator, discriminator, _, _ = one_weight_gan()
    with torch.no_grad():
        d_loss = discriminator(generator(torch.ones(1, 1))) ** 2
    d_loss.backward()
    return generator.weight.grad, discriminator.weight.grad


def _no_graph_right():
    generator, discriminator, _, _ = one_weight_gan()
    with torch.no_grad():
        fake = generator(torch.ones(1, 1))
    d_loss = discriminator(fake) ** 2
    d_loss.backward()
    return generator.weight.grad, discriminator.weight.grad


PITFALLS.append(
    Pitfall(
        name="no-graph",
        title="backward() on a loss computed under no_grad()",
        wrong=_no_graph_wrong,
        right=_no_graph_right,
        wrong_gives=RuntimeError,
        right_gives=(None, [[0.35]]),
        why="Under no_grad() nothing is recorded, whatever the weights say. The loss has no graph to go back through.",
        cure="Keep under no_grad() only what is to get no gradient: here the fakes that D learns from.",
        errors=NO_GRAPH,
        hints=("no_grad()",),
    )
)


def _all_frozen_wrong():
    generator, discriminator, _, _ = one_weight_gan()
    discriminator.requires_grad_(False)
    fake = generator(torch.ones(1, 1)).detach()
    g_loss = discriminator(fake) ** 2
    g_loss.backward()
    return generator.weight.grad, discriminator.weight.grad


def _all_frozen_right():
    generator, discriminator, _, _ = one_weight_gan()
    discriminator.requires_grad_(False)
    fake = generator(torch.ones(1, 1))
    g_loss = discriminator(fake) ** 2
    g_loss.backward()
    return generator.weight.grad, discriminator.weight.grad


PITFALLS.append(
    Pitfall(
        name="all-frozen",
        title="D is frozen and the fakes are detached: nothing left",
        wrong=_all_frozen_wrong,
        right=_all_frozen_right,
        wrong_gives=RuntimeError,
        right_gives=([[0.49]], None),
        why="An output requires grad when any of its inputs does, weights or what comes in. With D frozen, G's weights "
        "are all that is left, and detach() cuts them off.",
        cure="Detach the fakes in D's loss, never in G's. print(loss.requires_grad) tells whether there is a graph.",
        errors=NO_GRAPH,
        hints=("requires_grad = False",),
    )
)


def _grad_of_non_leaf_wrong():
    i = torch.ones(2, 2)
    w1, w2, w3 = (torch.tensor(w, requires_grad=True) for w in (2.0, 3.0, 4.0))
    l1 = i * w1
    l2, l3 = l1 + w2, l1 * w3
    l4 = l2 * l3
    loss = l4.mean()
    loss.backward()
    return loss, l4.grad, l1.grad, (w1.grad, w2.grad, w3.grad)


def _grad_of_non_leaf_right():
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


PITFALLS.append(
    Pitfall(
        name="grad-of-non-leaf",
        title=".grad of a result is None: only leaves keep theirs",
        wrong=_grad_of_non_leaf_wrong,
        right=_grad_of_non_leaf_right,
        wrong_gives=(40.0, None, None, (28.0, 8.0, 10.0)),
        right_gives=(40.0, [[0.25, 0.25], [0.25, 0.25]], [[7.0, 7.0], [7.0, 7.0]], (28.0, 8.0, 10.0)),
        why="To save memory a backward pass drops the gradients of results on its way; only leaves that require grad, "
        "such as w1, w2 and w3, keep theirs. By hand: dl4 = 1/4; dl1 = (l3 + l2 w3) / 4 = (8 + 20) / 4 = 7.",
        cure="retain_grad() on the tensor before backward(). is_leaf tells which kind a tensor is.",
        errors=("attribute of a Tensor that is not a leaf Tensor is being accessed",),
    )
)


def _numpy_of_grad_wrong():
    weight = torch.tensor([0.5, 0.7], requires_grad=True)
    return weight.numpy()


def _numpy_of_grad_right():
    weight = torch.tensor([0.5, 0.7], requires_grad=True)
    return weight.detach().cpu().numpy()


PITFALLS.append(
    Pitfall(
        name="numpy-of-grad",
        title="numpy() on a tensor that requires grad",
        wrong=_numpy_of_grad_wrong,
        right=_numpy_of_grad_right,
        wrong_gives=RuntimeError,
        right_gives=[0.5, 0.7],
        why="An array shares the tensor's memory, but autograd cannot follow what NumPy does to it.",
        cure="tensor.detach().cpu().numpy(), and .copy() where the array is to be changed. For one number, .item().",
        errors=("Can't call numpy() on",),
    )
)


def _non_scalar_loss_wrong():
    score = torch.tensor([0.0, 3.0], requires_grad=True)
    loss = (score - 1) ** 2
    loss.backward()
    return score.grad


def _non_scalar_loss_right():
    score = torch.tensor([0.0, 3.0], requires_grad=True)
    loss = ((score - 1) ** 2).mean()
    loss.backward()
    return score.grad


PITFALLS.append(
    Pitfall(
        name="non-scalar-loss",
        title="backward() on a loss of several numbers",
        wrong=_non_scalar_loss_wrong,
        right=_non_scalar_loss_right,
        wrong_gives=RuntimeError,
        right_gives=[-1.0, 2.0],
        why="A gradient is that of one number. With one loss per sample, PyTorch would have to guess their weights.",
        cure="mean() or sum() first, and no reduction='none' in the loss.",
        errors=("grad can be implicitly created only for scalar outputs",),
    )
)


def _unused_in_graph_wrong():
    real, fake = torch.tensor([1.0, 3.0]), torch.tensor([0.0, 1.0])
    mixed = (0.5 * real + 0.5 * fake).requires_grad_()
    weight = torch.tensor(0.7, requires_grad=True)
    score = (weight * fake**2).sum()  # `mixed` was never judged
    return torch.autograd.grad(score, mixed)


def _unused_in_graph_right():
    real, fake = torch.tensor([1.0, 3.0]), torch.tensor([0.0, 1.0])
    mixed = (0.5 * real + 0.5 * fake).requires_grad_()
    weight = torch.tensor(0.7, requires_grad=True)
    score = (weight * mixed**2).sum()
    return torch.autograd.grad(score, mixed)


PITFALLS.append(
    Pitfall(
        name="unused-in-graph",
        title="autograd.grad() for a tensor the output never used",
        wrong=_unused_in_graph_wrong,
        right=_unused_in_graph_right,
        wrong_gives=RuntimeError,
        right_gives=([0.7, 2.8],),
        why="A gradient penalty asks how D's score changes with its input. Here D was given another tensor than the "
        "one asked about; a copy or a view made after the call does the same.",
        cure="Ask for the very tensor that went into D. allow_unused=True only turns the error into a None.",
        errors=("appears to not have been used in the graph",),
    )
)


def _label_shape_bce_wrong():
    probability = torch.tensor([[0.9], [0.2], [0.6], [0.5]])
    return F.binary_cross_entropy(probability, torch.ones(4))


def _label_shape_bce_right():
    probability = torch.tensor([[0.9], [0.2], [0.6], [0.5]])
    return F.binary_cross_entropy(probability, torch.ones_like(probability))


PITFALLS.append(
    Pitfall(
        name="label-shape-bce",
        title="BCE: labels of shape (N,), outputs of shape (N, 1)",
        wrong=_label_shape_bce_wrong,
        right=_label_shape_bce_right,
        wrong_gives=ValueError,
        right_gives=0.72969,
        why="A D that ends in Linear(..., 1) gives (N, 1), torch.ones(N) has the shape (N,). They look alike, but are "
        "different to PyTorch.",
        cure="torch.ones_like(output), or a loss that needs no labels: -F.logsigmoid(logits).mean() for real.",
        errors=("is different to the input size", "must be the same as input size"),
        hints=("is deprecated", "ValueError"),
    )
)


def _label_shape_mse_wrong():
    score = torch.tensor([[1.0], [0.0]])
    label = torch.tensor([1.0, 0.0])
    return F.mse_loss(score, label)


def _label_shape_mse_right():
    score = torch.tensor([[1.0], [0.0]])
    label = torch.tensor([[1.0], [0.0]])
    return F.mse_loss(score, label)


PITFALLS.append(
    Pitfall(
        name="label-shape-mse",
        title="MSE: labels of shape (N,), outputs of shape (N, 1)",
        wrong=_label_shape_mse_wrong,
        right=_label_shape_mse_right,
        wrong_gives=0.5,
        right_gives=0.0,
        why="(N, 1) against (N,) broadcasts to a table of N x N differences, every score against every label. A D "
        "without a fault gets the loss 0.5, and nothing but a warning tells.",
        cure="label.view_as(score) or torch.ones_like(score). In tests, warnings.simplefilter('error').",
        errors=("is different to the input size",),
        hints=("incorrect results due to broadcasting", "UserWarning"),
    )
)


def _data_edit_wrong():
    a = torch.tensor([1.0, 3.0], requires_grad=True)
    b = a + 2
    loss = (b * b).sum()
    b.data.zero_()
    loss.backward()
    return a.grad, b._version


def _data_edit_right():
    a = torch.tensor([1.0, 3.0], requires_grad=True)
    b = a + 2
    loss = (b * b).sum()
    b.detach().clone().zero_()
    loss.backward()
    return a.grad, b._version


PITFALLS.append(
    Pitfall(
        name="data-edit",
        title="An edit through .data between forward and backward",
        wrong=_data_edit_wrong,
        right=_data_edit_right,
        wrong_gives=([0.0, 0.0], 0),
        right_gives=([6.0, 10.0], 0),
        why=".data shares the memory of b but not its _version counter, which stays at 0: autograd computes 2 b with "
        "the zeros and cannot know.",
        cure="Never .data. detach() shares the memory as well, but the edit is caught: see edit-through-detach. "
        "To edit freely, detach().clone(); to change a weight, torch.no_grad().",
    )
)


def _sigmoid_then_logits_wrong():
    logits = torch.tensor([-10.0, 0.0, 10.0], requires_grad=True)
    score = torch.sigmoid(logits)
    F.binary_cross_entropy_with_logits(score, torch.ones(3)).backward()
    return logits.grad


def _sigmoid_then_logits_right():
    logits = torch.tensor([-10.0, 0.0, 10.0], requires_grad=True)
    F.binary_cross_entropy_with_logits(logits, torch.ones(3)).backward()
    return logits.grad


PITFALLS.append(
    Pitfall(
        name="sigmoid-then-logits",
        title="A sigmoid, then BCE with logits: the sigmoid twice",
        wrong=_sigmoid_then_logits_wrong,
        right=_sigmoid_then_logits_right,
        wrong_gives=[-7.566e-6, -3.146e-2, -4.07e-6],
        right_gives=[-3.333e-1, -1.667e-1, -1.513e-5],
        why="The loss takes D's probabilities for logits and applies a sigmoid of its own. D's sigmoid is flat where D"
        " is sure (logit -10): a G that is losing gets no gradient, just where it should be largest.",
        cure="No sigmoid in D; binary_cross_entropy_with_logits on what it gives. A sigmoid only to print D(x).",
    )
)


def _both_backward_wrong():
    generator, discriminator, _, optimizer_d = one_weight_gan()
    fake = generator(torch.ones(1, 1))
    d_loss = discriminator(fake.detach()) ** 2
    g_loss = discriminator(fake) ** 2
    d_loss.backward()
    g_loss.backward()  # adds to D's gradient
    optimizer_d.step()
    return discriminator.weight.grad, discriminator.weight


def _both_backward_right():
    generator, discriminator, _, optimizer_d = one_weight_gan()
    fake = generator(torch.ones(1, 1))
    d_loss = discriminator(fake.detach()) ** 2
    g_loss = discriminator(fake) ** 2
    d_loss.backward()
    g_loss.backward(inputs=list(generator.parameters()))
    optimizer_d.step()
    return discriminator.weight.grad, discriminator.weight


PITFALLS.append(
    Pitfall(
        name="both-backward",
        title="Both losses go backward, and D steps on the sum",
        wrong=_both_backward_wrong,
        right=_both_backward_right,
        wrong_gives=([[0.7]], [[0.0]]),
        right_gives=([[0.35]], [[0.35]]),
        why="backward() adds to .grad of every weight on its way, and G's loss comes through D. D then steps on G's "
        "loss as well as its own.",
        cure="Name the weights a loss is for: g_loss.backward(inputs=list(generator.parameters())). Or freeze D with "
        "requires_grad_(False) while G's loss goes backward, or clear D's gradient before D's own loss.",
    )
)


def _zero_grad_forgotten_wrong():
    weight = torch.tensor(1.0, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    for _ in range(3):
        (2 * weight).backward()
        optimizer.step()
    return weight.grad, weight


def _zero_grad_forgotten_right():
    weight = torch.tensor(1.0, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        (2 * weight).backward()
        optimizer.step()
    return weight.grad, weight


PITFALLS.append(
    Pitfall(
        name="zero-grad-forgotten",
        title="optimizer.zero_grad() is missing",
        wrong=_zero_grad_forgotten_wrong,
        right=_zero_grad_forgotten_right,
        wrong_gives=(6.0, -0.2),
        right_gives=(2.0, 0.4),
        why="backward() adds to .grad. Without zero_grad() each step takes the gradients of all steps before it once "
        "more: 2, 4, 6 in place of 2, 2, 2.",
        cure="optimizer.zero_grad() before every backward() that starts a step.",
    )
)


def _detached_by_mistake_wrong():
    first, second, _, _ = one_weight_gan()
    both = [*first.parameters(), *second.parameters()]
    optimizer = torch.optim.SGD(both, lr=1.0)
    loss = second(first(torch.ones(1, 1)).detach()) ** 2
    loss.backward()
    optimizer.step()
    return first.weight.grad, first.weight


def _detached_by_mistake_right():
    first, second, _, _ = one_weight_gan()
    both = [*first.parameters(), *second.parameters()]
    optimizer = torch.optim.SGD(both, lr=1.0)
    loss = second(first(torch.ones(1, 1))) ** 2
    loss.backward()
    optimizer.step()
    return first.weight.grad, first.weight


PITFALLS.append(
    Pitfall(
        name="detached-by-mistake",
        title="detach() between two networks that learn together",
        wrong=_detached_by_mistake_wrong,
        right=_detached_by_mistake_right,
        wrong_gives=(None, [[0.5]]),
        right_gives=([[0.49]], [[0.01]]),
        why="Nothing comes back through detach(): the first network's gradients stay None, and an optimizer skips "
        "such weights without a word. It never learns.",
        cure="detach() only where one loss must not reach a network; not between networks under one optimizer. After "
        "a backward(), check for weights whose .grad is None.",
    )
)
