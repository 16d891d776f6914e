"""What a loss takes: scalars, and labels of the right shape, range and kind."""

# ruff: noqa: D102 (the docstring of an entry speaks for both of its functions)

import torch
import torch.nn.functional as F
from torch import nn

from common.pitfalls.engine import pitfall


@pitfall(wrong=RuntimeError, right=[-1.0, 2.0], errors=("grad can be implicitly created only for scalar outputs",))
class NonScalarLoss:
    """backward() on a loss of several numbers.

    backward() computes the gradient of one number. For several numbers it would need a weight for each.

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


OTHER_SIZE = "is different to the input size"


@pitfall(
    wrong=ValueError,
    right=0.72969,
    errors=(OTHER_SIZE, "must be the same as input size"),
    hints=("is deprecated", "ValueError"),
)
class LabelShapeBce:
    """BCE: labels of shape (N,), outputs of shape (N, 1).

    A D that ends in Linear(..., 1) gives (N, 1), torch.ones(N) has the shape (N,). The two shapes differ.

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

    (N, 1) against (N,) broadcasts to a table of N x N differences, every score against every label. A perfect D gets
    the loss 0.5, with only a warning.

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


@pitfall(wrong=RuntimeError, right=[2.0, 6.0], errors=("grad can be implicitly created only for real scalar outputs",))
class ComplexLoss:
    """A loss is complex: one of a Fourier transform.

    A loss is minimised, and complex numbers have no order.

    Make it real by abs() or .real before mean().
    """

    def wrong():
        x = torch.tensor([1.0, 3.0], requires_grad=True)
        (torch.fft.fft(x) ** 2).mean().backward()
        return x.grad

    def right():
        x = torch.tensor([1.0, 3.0], requires_grad=True)
        (torch.fft.fft(x).abs() ** 2).mean().backward()  # is the sum of x^2
        return x.grad


@pitfall(wrong=RuntimeError, right=[-1.0, 2.0], errors=("Mismatch in shape: grad_output[0]",))
class GradOutputShape:
    """backward(gradient) with another shape than the output.

    The argument of backward(), and grad_outputs of torch.autograd.grad(), hold a weight for each number of the output.

    torch.ones_like(output); or sum() first and no argument.
    """

    def wrong():
        score = torch.tensor([0.0, 3.0], requires_grad=True)
        loss = (score - 1) ** 2
        loss.backward(torch.tensor([0.5]))
        return score.grad

    def right():
        score = torch.tensor([0.0, 3.0], requires_grad=True)
        loss = (score - 1) ** 2
        loss.backward(torch.full_like(loss, 0.5))
        return score.grad


@pitfall(
    wrong=RuntimeError,
    right=[-1.0],
    errors=("Mismatch in shape: grad_output[0]", "invalid gradient at index 0 - expected shape"),
    hints=(
        "backward(one",
        "backward(mone",
        "backward(-one",
        "backward(neg_one",
        "grad_output[0] has a shape of torch.Size([1])",
    ),
)
class BackwardOne:
    """Old WGAN code: backward(one) and backward(mone).

    The argument is the sign of the loss: one to minimize, mone = -one to maximize. Before PyTorch 0.4
    the mean of a score had shape (1,); now it has shape (), and torch.FloatTensor([1]) still has (1,).

    score.backward() to minimize, (-score).backward() to maximize. torch.tensor(1.0) as the argument works as well.
    """

    def wrong():
        weight = torch.tensor([0.0], requires_grad=True)
        one = torch.FloatTensor([1])
        mone = one * -1
        score = weight.mean()
        score.backward(mone)
        return weight.grad

    def right():
        weight = torch.tensor([0.0], requires_grad=True)
        score = weight.mean()
        (-score).backward()
        return weight.grad


@pitfall(wrong=AttributeError, right=2.0, errors=("'float' object has no attribute 'backward'",))
class FloatLoss:
    """backward() on a number: .item() came too early.

    .item() and float() give a Python number, which has no graph.

    backward() first, .item() only to print.
    """

    def wrong():
        weight = torch.tensor(1.0, requires_grad=True)
        loss = (weight**2).item()
        loss.backward()
        return weight.grad

    def right():
        weight = torch.tensor(1.0, requires_grad=True)
        loss = weight**2
        loss.backward()
        return weight.grad


@pitfall(
    wrong=RuntimeError,
    right=0.5,
    errors=(
        "a Tensor with * elements cannot be converted to Scalar",
        "only one element tensors can be converted to Python scalars",
        "Boolean value of Tensor with more than one value is ambiguous",
    ),
)
class ItemOfMany:
    """.item() or `if` on a tensor of several numbers.

    .item(), float(), int() and `if` take one number. A D that gives one logit a patch, or a loss with
    reduction='none', gives many.

    mean() first; all() or any() for a condition.
    """

    def wrong():
        probability = torch.tensor([0.25, 0.75])
        return probability.item()

    def right():
        probability = torch.tensor([0.25, 0.75])
        return probability.mean().item()


@pitfall(
    wrong=RuntimeError,
    right=1.41004,
    errors=(
        "all elements of input should be between 0 and 1",
        "all elements of target should be between 0 and 1",
        "Assertion `input_val >= zero && input_val <= one` failed",
        "Assertion `target_val >= zero && target_val <= one` failed",
    ),
)
class LogitsToBce:
    """BCELoss on logits, or on NaN.

    BCELoss takes probabilities; a D without a sigmoid gives logits, which are any numbers. NaN is not between 0 and 1
    either: if a sigmoid is there, look for the step at which D's weights became NaN. Labels must lie in the range too.
    On CUDA the message is a failed assertion.

    binary_cross_entropy_with_logits, and no sigmoid.
    """

    def wrong():
        logits, real = torch.tensor([0.0, -2.0]), torch.ones(2)
        return F.binary_cross_entropy(logits, real)

    def right():
        logits, real = torch.tensor([0.0, -2.0]), torch.ones(2)
        return F.binary_cross_entropy_with_logits(logits, real)


@pitfall(
    wrong=IndexError,
    right=2.30259,
    errors=(
        "Target * is out of bounds",
        "Assertion `t >= 0 && t < n_classes` failed",
        "Class values must be smaller than num_classes",
        "index out of range in self",
    ),
)
class ClassOutOfRange:
    """A class label beyond the number of classes.

    Labels count from 0: of 10 classes the last is 9. The same holds for the rows of an nn.Embedding in a conditional
    GAN, and for one_hot(). An auxiliary classifier with one more class for fakes needs that many outputs. On CUDA the
    message is a failed assertion, and may come at a later line.

    Check labels.min() and labels.max(); start from 0.
    """

    def wrong():
        scores = torch.zeros(2, 10)
        return F.cross_entropy(scores, torch.tensor([1, 10]))

    def right():
        scores = torch.zeros(2, 10)
        return F.cross_entropy(scores, torch.tensor([1, 10]) - 1)


@pitfall(
    wrong=RuntimeError,
    right=2.30259,
    errors=(
        "expected target dtype to be Long or Byte",
        "expected scalar type Long but found",
        "one_hot is only applicable to index tensor",
        "'indices' to have one of the following scalar types: Long, Int",
    ),
)
class ClassAsFloat:
    """A class label that is no integer of 64 bits.

    cross_entropy, nll_loss, nn.Embedding and one_hot take the number of a class. A tensor of floats with a dimension
    for the classes is taken for probabilities instead.

    labels.long(), and torch.randint(10, (n,)) for labels of fakes.
    """

    def wrong():
        scores = torch.zeros(2, 10)
        return F.cross_entropy(scores, torch.tensor([1.0, 9.0]))

    def right():
        scores = torch.zeros(2, 10)
        return F.cross_entropy(scores, torch.tensor([1.0, 9.0]).long())


@pitfall(
    wrong=RuntimeError,
    right=2.30259,
    errors=("multi-target not supported", "to match target batch_size"),
)
class ClassShape:
    """Class labels with a shape of their own.

    (N, C) scores take (N,) labels, not (N, 1) and not those of another batch: the last batch of an epoch is often
    smaller, and labels made once for all batches no longer fit.

    labels.view(-1); make labels for len(images) images, or drop_last=True in the DataLoader.
    """

    def wrong():
        scores = torch.zeros(2, 10)
        return F.cross_entropy(scores, torch.tensor([[1], [9]]))

    def right():
        scores = torch.zeros(2, 10)
        return F.cross_entropy(scores, torch.tensor([[1], [9]]).view(-1))


@pitfall(
    wrong=ValueError,
    right=[[-1.0], [1.0]],
    errors=(
        "Expected more than 1 value per channel when training",
        "Expected more than 1 spatial element when training",
    ),
)
class BatchOfOne:
    """BatchNorm on a single value: the last batch is 1.

    BatchNorm subtracts the mean over batch and pixels, which makes a single value 0. InstanceNorm does so over the
    pixels of each image, so it cannot be used where the image is 1x1.

    drop_last=True in the DataLoader; network.eval() to sample one image; GroupNorm, which works with a batch of 1.
    """

    def wrong():
        norm = nn.BatchNorm1d(1)
        return norm(torch.tensor([[1.0]]))

    def right():
        norm = nn.BatchNorm1d(1)
        return norm(torch.tensor([[1.0], [3.0]]))
