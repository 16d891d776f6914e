"""Reading tensors, optimizers and autograd's graph."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from math import isnan

import torch
from torch import Tensor, nn
from torch.optim.optimizer import Optimizer

FLAT = re.compile("(Bernoulli|Ceil|Floor|Round|Sign|Trunc)Backward")
SIMPLE = frozenset([int, float, bool, type(None)])  # most arguments of operations: not asked, which would take longer


def parameters_of(optimizer: Optimizer | None) -> Iterator[Tensor]:
    """Yield the parameters that an optimizer holds; none for None."""
    for group in getattr(optimizer, "param_groups", ()):
        if not isinstance(group["params"], Iterator):  # a generator of the script's, which looking at it would use up
            yield from group["params"]


def ids_of(module: nn.Module) -> set[int]:
    """Return the parameters of a module by id, also where the user gives it another `parameters()`."""
    return {id(parameter) for parameter in nn.Module.parameters(module)}


def tensors_in(value: object) -> list[Tensor]:
    """Return the tensors in nested lists, tuples and dictionaries."""
    if isinstance(value, Tensor):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return [tensor for item in items if type(item) not in SIMPLE for tensor in tensors_in(item)]


def node_of(tensor: Tensor) -> object | None:
    """Return the node that made a tensor; None of a leaf, and of a view that may be used no more: asking raises."""
    with suppress(RuntimeError):
        return tensor.grad_fn
    return None


def numbers_in(tensor: Tensor) -> set:
    """Return the numbers of a tensor, by the method that the audit does not watch; none of one without memory."""
    has_none = tensor.is_meta or tensor._is_zerotensor()
    return set() if has_none else {*torch._C.TensorBase.tolist(tensor.detach().flatten())}


def is_zero(grad: Tensor) -> bool:
    """Return whether a gradient is all zeros."""
    grad = grad.detach()
    first = grad[:1] if grad.ndim and grad.layout is torch.strided else grad  # mostly, it tells
    return not (grad.is_meta or first.any() or grad.any())


def size_of(grad: Tensor) -> float | None:
    """Return the largest absolute value in a gradient, NaN if there is one; None if it is no plain array of numbers."""
    is_array = type(grad) is Tensor and grad.layout is torch.strided and not grad.is_meta
    if is_array and grad.is_floating_point() and grad.numel() > 0:
        with suppress(RuntimeError):  # of a kind of numbers that has no order here
            least, most = grad.detach().aminmax()
            return max(-float(least), float(most))
    return None


def sum_of(tensor: Tensor) -> float | None:
    """Return the sum of a plain tensor, which changes when its values do; None for others."""
    is_plain = type(tensor) in (Tensor, nn.Parameter) and tensor.is_floating_point() and not tensor.is_meta
    return tensor.detach().double().sum().item() if is_plain else None


def has_nan(value: object) -> bool:
    """Whether a tensor among the values has a NaN."""
    with suppress(RuntimeError, NotImplementedError):  # of tensors without numbers, or of a kind that cannot say
        tensors = (tensor for tensor in tensors_in(value) if type(tensor) in (Tensor, nn.Parameter))
        # A sum costs less, and tells mostly; it is NaN, too, of two infinities.
        return any(isnan(t.sum().item()) and bool(t.isnan().any()) for t in tensors if t.is_floating_point())
    return False


def storage_of(tensor: Tensor) -> torch.UntypedStorage | None:
    """Return the tensor's memory, or that of what `torch.func` has wrapped; None if it has none."""
    try:
        return tensor.untyped_storage()
    except (NotImplementedError, RuntimeError):  # sparse tensors, and wrapped ones
        wrapped = torch._C._functorch.is_functorch_wrapped_tensor(tensor)
        return storage_of(torch._C._functorch.get_unwrapped(tensor)) if wrapped else None


@cache
def targets_of(function: Callable) -> tuple[int, ...]:
    """Return which arguments an operation writes to, by their positions."""
    arguments = function._schema.arguments if function._schema.is_mutable else ()
    return tuple(i for i, a in enumerate(arguments) if a.alias_info is not None and a.alias_info.is_write)


@cache
def computes(function: Callable) -> bool:
    """Return whether the numbers of an operation's result are new: not those of a view, nor of uninitialized memory."""
    views = any(a.alias_info is not None and not a.alias_info.is_write for a in function._schema.arguments)
    return not views and "empty" not in function.overloadpacket.__name__


def single_operations(function: Callable, args: tuple, kwargs: dict, result: object) -> list[tuple[tuple, object]]:
    """Return arguments, by position, and result; of one on lists, as `_foreach_add_`, those of each element."""
    if kwargs:
        args = (*args, *(kwargs.get(argument.name) for argument in function._schema.arguments[len(args) :]))
    if not (function.overloadpacket.__name__.startswith(("_foreach_", "_fused_")) and isinstance(args[0], list)):
        return [(args, result)]
    results = result if isinstance(result, list | tuple) else [result] * len(args[0])
    each = (tuple(x[i] if isinstance(x, list) and x else x for x in args) for i in range(len(args[0])))
    return [*zip(each, results, strict=False)]


def nodes_of(roots: Iterable, follow: Callable | None = None) -> Iterator:
    """Yield the nodes of a graph. follow: returns those to which one leads, if not to its inputs."""
    seen, stack = set(), list(roots)
    while stack:
        node = stack.pop()
        if node is not None and node not in seen:
            seen.add(node)
            yield node
            stack += follow(node) if follow else [child for child, _ in node.next_functions]


def inputs_with_slope(node) -> list:
    """Return the nodes to which a node gives more than zeros."""
    return [] if FLAT.match(node.name()) else [child for child, _ in node.next_functions]


def nodes_between(losses: list[Tensor], ends: list[Tensor]) -> list:
    """Return the nodes on the way from the losses to the ends."""
    parents = defaultdict(list)
    for node in nodes_of(loss.grad_fn for loss in losses):
        for child, _ in node.next_functions:
            parents[child].append(node)
    found = [n for n in parents if n and any(n is end.grad_fn or getattr(n, "variable", None) is end for end in ends)]
    return [*nodes_of([parent for node in found for parent in parents[node]], parents.__getitem__)]
