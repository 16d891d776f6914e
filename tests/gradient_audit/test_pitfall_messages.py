"""The text of an error finds the entry that explains it, and no other first."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.pitfalls import PITFALLS, match_error, observe

ENTRIES = {pitfall.name: pitfall for pitfall in PITFALLS}

IN_PLACE = (
    "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation"
)
HINT = "Hint: enable anomaly detection to find the operation that failed to compute its gradient, with torch.autograd."


def in_place(tensor, expected):
    return f"{IN_PLACE}: [{tensor}, is at version {expected + 1}; expected version {expected} instead. {HINT}"


@pytest.mark.parametrize(
    ("text", "best"),
    [
        (IN_PLACE, "step-between-backwards"),
        (in_place("torch.FloatTensor [128, 1]], which is output 0 of TBackward", 1), "step-between-backwards"),
        (in_place("torch.FloatTensor [512, 1]], which is output 0 of AsStridedBackward0", 1), "step-between-backwards"),
        (in_place("torch.cuda.FloatTensor [1, 1024, 1, 1]]", 1), "step-between-backwards"),
        (in_place("torch.cuda.FloatTensor [64]]", 1), "step-between-backwards"),  # the weight of a BatchNorm
        (in_place("torch.cuda.FloatTensor [64]]", 2), "ddp-batch-norm-twice"),  # a running mean
        (in_place("torch.cuda.HalfTensor [512]]", 4), "ddp-batch-norm-twice"),
        (in_place("torch.cuda.FloatTensor [512, 64]]", 2), "step-between-backwards"),
        (
            in_place("torch.cuda.FloatTensor [8, 64, 9, 9]], which is output 0 of SigmoidBackward0", 0),
            "inplace-activation",
        ),
        (in_place("torch.cuda.FloatTensor [8, 64, 9, 9]], which is output 0 of TanhBackward", 0), "inplace-activation"),
        (in_place("torch.cuda.FloatTensor [8, 64, 9, 9]], which is output 0 of ReluBackward0", 0), "edit-after-relu"),
        (in_place("torch.FloatTensor [2]], which is output 0 of CopySlices", 0), "edit-after-use"),
        (
            "Trying to backward through the graph a second time, but the buffers have already been freed. Specify "
            "retain_graph=True when calling backward the first time.",
            "second-backward",
        ),
        (
            "Trying to backward through the graph a second time, but the saved intermediate results have already been "
            "freed. Specify retain_graph=True when calling .backward() or autograd.grad() the first time.",
            "second-backward",
        ),
        ("a leaf Variable that requires grad has been used in an in-place operation.", "leaf-in-place"),
        ("a view of a leaf Variable that requires grad is being used in an in-place operation.", "leaf-assignment"),
        ("element 0 of variables does not require grad and does not have a grad_fn", "no-graph"),
        (
            "p.requires_grad = False\nelement 0 of tensors does not require grad and does not have a grad_fn",
            "all-frozen",
        ),
        ("Can't call numpy() on Variable that requires grad. Use var.detach().numpy() instead.", "numpy-of-grad"),
        ("RuntimeError: Can\u2019t call numpy() on Tensor that requires grad.", "numpy-of-grad"),
        ("grad can be implicitly created only for scalar outputs", "non-scalar-loss"),
        ("One of the differentiated Tensors appears to not have been used in the graph.", "unused-in-graph"),
        (
            "ValueError: Target size (torch.Size([64])) must be the same as input size (torch.Size([64, 1]))",
            "label-shape-bce",
        ),
        (
            "ValueError: Using a target size (torch.Size([4])) that is different to the input size (torch.Size([4, 1]))"
            " is deprecated. Please ensure they have the same size.",
            "label-shape-bce",
        ),
        (
            "train.py:40: UserWarning: Using a target size (torch.Size([4])) that is different to the input size "
            "(torch.Size([4, 1])). This will likely lead to incorrect results due to broadcasting.",
            "label-shape-mse",
        ),
        (
            "UserWarning: The .grad attribute of a Tensor that is not a leaf Tensor is being accessed.",
            "grad-of-non-leaf",
        ),
        # Texts below are as PyTorch 2.6.0 prints them, or an older version, or one with CUDA.
        (
            "RuntimeError: Inference tensors cannot be saved for backward. To work around you can make a clone "
            "to get a "
            "normal tensor and use it in autograd.",
            "inference-tensor",
        ),
        ("RuntimeError: Found dtype Double but expected Float", "label-dtype"),
        ("RuntimeError: Found dtype Long but expected Float", "label-dtype"),
        ("RuntimeError: result type Float can't be cast to the desired output type Long", "label-dtype"),
        ("RuntimeError: expected scalar type Long but found Float", "class-as-float"),
        ("RuntimeError: expected scalar type Long but found Int", "class-as-float"),
        ("RuntimeError: expected target dtype to be Long or Byte, but got Float", "class-as-float"),
        ("RuntimeError: 1D target tensor expected, multi-target not supported", "class-shape"),
        ("RuntimeError: expected scalar type Half but found Float", "input-dtype"),
        ("RuntimeError: expected scalar type Float but found Double", "input-dtype"),
        ("RuntimeError: expected m1 and m2 to have the same dtype, but got: float != double", "input-dtype"),
        (
            "RuntimeError: Input type (torch.cuda.HalfTensor) and weight type (torch.cuda.FloatTensor) should be "
            "the same",
            "input-dtype",
        ),
        (
            "RuntimeError: Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the same",
            "two-devices",
        ),
        (
            "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 "
            "and cpu! "
            "(when checking argument for argument mat1 in method wrapper_CUDA_addmm)",
            "two-devices",
        ),
        (
            "RuntimeError: attempting to assign a gradient with dtype 'double' to a tensor with dtype 'float'. Please "
            "ensure that the gradient and the tensor have the same dtype",
            "grad-assigned",
        ),
        (
            "RuntimeError: Output 0 of UnbindBackward0 is a view and is being modified inplace. This view is the "
            "output of "
            "a function that returns multiple views. Such functions do not allow the output views to be modified "
            "inplace. "
            "You should replace the inplace operation by an out-of-place one.",
            "edit-one-of-many-views",
        ),
        ("RuntimeError: Output 0 of UnbindBackward is a view and is being modified inplace.", "edit-one-of-many-views"),
        ("RuntimeError: derivative for aten::grid_sampler_2d_backward is not implemented", "derivative-missing"),
        ("NotImplementedError: the derivative for '_cdist_backward' is not implemented.", "derivative-missing"),
        ("RuntimeError: Function 'MulBackward0' returned nan values in its 1th output.", "nan-gradient"),
        ("torch._dynamo.exc.Unsupported: Tensor.backward", "compiled-step"),
        ("torch._dynamo.exc.UserError: Dynamic control flow is not supported at the moment.", "compiled-branch"),
        (
            "RuntimeError: cannot register a hook on a variable that doesn't require gradient",
            "hook-on-constant",
        ),
        ("RuntimeError: only Tensors of floating point dtype can require gradients", "integer-requires-grad"),
        ("ValueError: only one element tensors can be converted to Python scalars", "item-of-many"),
        (
            "RuntimeError: Checkpointing is not compatible with .grad() or when an `inputs` parameter is passed to "
            ".backward(). Please use .backward() and do not pass its `inputs` argument.",
            "checkpoint-and-grad",
        ),
        (
            "RuntimeError: binary_cross_entropy and BCELoss are unsafe to autocast.\nMany models use a sigmoid "
            "layer right "
            "before the binary cross entropy layer.",
            "bce-under-autocast",
        ),
        (
            "RuntimeError: Unable to handle autograd's threading in combination with fork-based multiprocessing. See "
            "https://github.com/pytorch/pytorch/wiki/Autograd-and-Fork",
            "backward-after-fork",
        ),
        (
            "[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=98, OpType=ALLREDUCE, "
            "NumelIn=1180160, NumelOut=1180160, Timeout(ms)=600000) ran for 600029 milliseconds before timing out.",
            "ranks-disagree",
        ),
        (
            "../aten/src/ATen/native/cuda/Loss.cu:94: operator(): block: [0,0,0], thread: [31,0,0] Assertion "
            "`input_val >= "
            "zero && input_val <= one` failed.\nRuntimeError: CUDA error: device-side assert triggered",
            "logits-to-bce",
        ),
        (
            "../aten/src/ATen/native/cuda/Loss.cu:250: nll_loss_forward_reduce_cuda_kernel_2d: block: [0,0,0], thread: "
            "[5,0,0] Assertion `t >= 0 && t < n_classes` failed.\nRuntimeError: CUDA error: device-side assert "
            "triggered",
            "class-out-of-range",
        ),
        (
            "[rank0]: RuntimeError: Expected to have finished reduction in the prior iteration before starting a "
            "new one. "
            "This error indicates that your module has parameters that were not used in producing loss.",
            "ddp-unused-parameters",
        ),
        ("AttributeError: 'DistributedDataParallel' object has no attribute 'generator'", "ddp-attribute"),
        (
            "RuntimeError: Error(s) in loading state_dict for Generator:\n\tMissing key(s) in state_dict: "
            '"0.weight".\n\tUnexpected key(s) in state_dict: "_orig_mod.0.weight".',
            "state-of-wrapped",
        ),
        (
            f"network = DistributedDataParallel(network)\n{in_place('torch.cuda.FloatTensor [768]]', 2)}",
            "ddp-batch-norm-twice",
        ),
        (
            "D_real.backward(mone)\nRuntimeError: Mismatch in shape: grad_output[0] has a shape of torch.Size([1]) "
            "and output[0] has a shape of torch.Size([]).",
            "backward-one",
        ),
        (
            "D_real.backward(one)\nRuntimeError: invalid gradient at index 0 - expected shape [] but got [1]",
            "backward-one",
        ),
        (
            "  accelerator.backward(loss)\n/site-packages/torch/optim/lr_scheduler.py:136: UserWarning: Detected call "
            "of `lr_scheduler.step()` before `optimizer.step()`. accelerate/optimizer.py",
            "wrapper-skips-step",
        ),
        (
            "total_loss += loss\nRuntimeError: Trying to backward through the graph a second time",
            "loss-kept-with-graph",
        ),
        (
            "(g,) = autograd.grad(s, x, create_graph=True, retain_graph=False)\nRuntimeError: Trying to backward "
            "through "
            "the graph a second time",
            "penalty-frees-graph",
        ),
        (
            "loss = scores.argmax(1).float().mean()\nelement 0 of tensors does not require grad and does not "
            "have a grad_fn",
            "step-function",
        ),
        (
            "UserWarning: None of the inputs have requires_grad=True. Gradients will be None\nRuntimeError: "
            "element 0 of "
            "tensors does not require grad and does not have a grad_fn",
            "checkpoint-of-constant",
        ),
        (
            "penalty.backward()\nelement 0 of tensors does not require grad and does not have a grad_fn",
            "penalty-without-graph",
        ),
    ],
)
def test_messages_of_old_and_new_versions_find_their_entry(text, best):
    assert match_error(text)[0].name == best


@pytest.mark.parametrize(("phrase", "pitfall"), [(phrase, entry) for entry in PITFALLS for phrase in entry.errors])
def test_a_phrase_alone_finds_an_entry_that_has_it(phrase, pitfall):
    matches = match_error(f"RuntimeError: {phrase.replace('*', '7')}")
    assert pitfall in matches
    assert phrase in matches[0].errors


TRACEBACK = f"""Traceback (most recent call last):
  File "train.py", line 65, in <module>
    g_loss.backward()
  File "/usr/lib/python3/site-packages/torch/_tensor.py", line 255, in backward
    torch.autograd.backward(self, gradient, retain_graph, create_graph, inputs=inputs)
{IN_PLACE}: [torch.FloatTensor [512, 1]], which is output 0 of AsStridedBackward0, is at version 2; expected version 1
instead. {HINT}set_detect_anomaly(True).
"""


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.integers(0, len(TRACEBACK)), max_size=12),
    st.sampled_from(["\n", "\r\n    ", " ", "\x1b[31m", "\x1b[1;91m", " \u2502\n\u2502 ", "\n> "]),
    st.sampled_from([str, str.upper]),
)
def test_wrapping_colours_frames_and_case_do_not_matter(places, noise, case):
    text = case(TRACEBACK)
    for place in sorted(places, reverse=True):
        text = text[:place] + noise + text[place:]
    assert match_error(text) == match_error(TRACEBACK) != []


def test_the_error_that_ended_the_program_beats_the_warnings_before_it():
    warning = observe(ENTRIES["label-shape-mse"].wrong).message
    names = [pitfall.name for pitfall in match_error(warning + "\n" + TRACEBACK)]
    assert names[0] == "step-between-backwards"
    assert "label-shape-mse" in names


@pytest.mark.parametrize(
    "text",
    [
        "",
        "...",
        "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB",
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied (64x100 and 128x256)",
        "RuntimeError: The size of tensor a (3) must match the size of tensor b (2) at non-singleton dimension 0",
        "RuntimeError: Sizes of tensors must match except in dimension 1. Expected size 4 but got size 3 for tensor 1",
        "RuntimeError: CUDA error: device-side assert triggered",
        "RuntimeError: Given groups=1, weight of size [64, 3, 4, 4], expected input[32, 1, 28, 28] to have 3 channels",
        "IndexError: index 10 is out of bounds for dimension 0 with size 10",
        "IndexError: index 10 is out of bounds for axis 0 with size 10",
        "AttributeError: 'NoneType' object has no attribute 'zero_grad'",
        "AttributeError: 'Generator' object has no attribute 'module'",
        "RuntimeError: Error(s) in loading state_dict for Linear:\n\tsize mismatch for weight: copying a "
        "param with shape "
        "torch.Size([1, 2]) from checkpoint, the shape in current model is torch.Size([1, 1]).",
        "TypeError: forward() missing 1 required positional argument: 'labels'",
        "KeyError: 'grad'",
        "KeyError: 'betas'",
    ],
)
def test_other_errors_match_nothing(text):
    assert match_error(text) == []
