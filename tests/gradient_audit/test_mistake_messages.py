"""The text of an error or a log finds the mistake that explains it, and no other first."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradient_audit.mistakes import load, match, names, observe

IN_PLACE = (
    "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation"
)
HINT = "Hint: enable anomaly detection to find the operation that failed to compute its gradient, with torch.autograd."

# As PyTorch 1.2 to 2.14 print them, on the CPU and on CUDA.
MESSAGES = {
    "all-frozen": [
        "p.requires_grad = False\nelement 0 of tensors does not require grad and does not have a grad_fn",
    ],
    "backward-one": [
        (
            "D_real.backward(mone)\nRuntimeError: Mismatch in shape: grad_output[0] has a shape of torch.Size([1])"
            " and output[0] has a shape of torch.Size([])."
        ),
        "D_real.backward(one)\nRuntimeError: invalid gradient at index 0 - expected shape [] but got [1]",
    ],
    "bce-under-autocast": [
        (
            "RuntimeError: binary_cross_entropy and BCELoss are unsafe to autocast.\nMany models use a sigmoid lay"
            "er right before the binary cross entropy layer."
        ),
    ],
    "checkpoint-and-grad": [
        (
            "RuntimeError: Checkpointing is not compatible with .grad() or when an `inputs` parameter is passed t"
            "o .backward(). Please use .backward() and do not pass its `inputs` argument."
        ),
    ],
    "ddp-attribute": [
        "AttributeError: 'DistributedDataParallel' object has no attribute 'generator'",
    ],
    "ddp-batch-norm-twice": [
        (
            "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace o"
            "peration: [torch.cuda.FloatTensor [64]], is at version 3; expected version 2 instead. Hint: enable a"
            "nomaly detection to find the operation that failed to compute its gradient, with torch.autograd."
        ),
        (
            "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace o"
            "peration: [torch.cuda.HalfTensor [512]], is at version 5; expected version 4 instead. Hint: enable a"
            "nomaly detection to find the operation that failed to compute its gradient, with torch.autograd."
        ),
        (
            "network = DistributedDataParallel(network)\nRuntimeError: one of the variables needed for gradient co"
            "mputation has been modified by an inplace operation: [torch.cuda.FloatTensor [768]], is at version 3"
            "; expected version 2 instead. Hint: enable anomaly detection to find the operation that failed to co"
            "mpute its gradient, with torch.autograd."
        ),
    ],
    "ddp-unused-parameters": [
        (
            "[rank0]: RuntimeError: Expected to have finished reduction in the prior iteration before starting a "
            "new one. This error indicates that your module has parameters that were not used in producing loss."
        ),
    ],
    "derivative-missing": [
        "RuntimeError: derivative for aten::grid_sampler_2d_backward is not implemented",
        "NotImplementedError: the derivative for '_cdist_backward' is not implemented.",
    ],
    "edit-after-use": [
        (
            "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace o"
            "peration: [torch.cuda.FloatTensor [8, 64, 9, 9]], which is output 0 of ReluBackward0, is at version "
            "1; expected version 0 instead. Hint: enable anomaly detection to find the operation that failed to c"
            "ompute its gradient, with torch.autograd."
        ),
        (
            "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace o"
            "peration: [torch.FloatTensor [2]], which is output 0 of CopySlices, is at version 1; expected versio"
            "n 0 instead. Hint: enable anomaly detection to find the operation that failed to compute its gradien"
            "t, with torch.autograd."
        ),
    ],
    "edit-one-of-many-views": [
        (
            "RuntimeError: Output 0 of UnbindBackward0 is a view and is being modified inplace. This view is the "
            "output of a function that returns multiple views. Such functions do not allow the output views to be"
            " modified inplace. You should replace the inplace operation by an out-of-place one."
        ),
        "RuntimeError: Output 0 of UnbindBackward is a view and is being modified inplace.",
    ],
    "grad-of-non-leaf": [
        "UserWarning: The .grad attribute of a Tensor that is not a leaf Tensor is being accessed.",
    ],
    "inference-tensor": [
        (
            "RuntimeError: Inference tensors cannot be saved for backward. To work around you can make a clone to"
            " get a normal tensor and use it in autograd."
        ),
    ],
    "inplace-activation": [
        (
            "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace o"
            "peration: [torch.cuda.FloatTensor [8, 64, 9, 9]], which is output 0 of SigmoidBackward0, is at versi"
            "on 1; expected version 0 instead. Hint: enable anomaly detection to find the operation that failed t"
            "o compute its gradient, with torch.autograd."
        ),
        (
            "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace o"
            "peration: [torch.cuda.FloatTensor [8, 64, 9, 9]], which is output 0 of TanhBackward, is at version 1"
            "; expected version 0 instead. Hint: enable anomaly detection to find the operation that failed to co"
            "mpute its gradient, with torch.autograd."
        ),
    ],
    "labels-broadcast": [
        "ValueError: Target size (torch.Size([64])) must be the same as input size (torch.Size([64, 1]))",
        (
            "ValueError: Using a target size (torch.Size([4])) that is different to the input size (torch.Size([4"
            ", 1])) is deprecated. Please ensure they have the same size."
        ),
        (
            "train.py:40: UserWarning: Using a target size (torch.Size([4])) that is different to the input size "
            "(torch.Size([4, 1])). This will likely lead to incorrect results due to broadcasting."
        ),
    ],
    "leaf-in-place": [
        "a leaf Variable that requires grad has been used in an in-place operation.",
        "a view of a leaf Variable that requires grad is being used in an in-place operation.",
    ],
    "logits-to-bce": [
        (
            "../aten/src/ATen/native/cuda/Loss.cu:94: operator(): block: [0,0,0], thread: [31,0,0] Assertion `inp"
            "ut_val >= zero && input_val <= one` failed.\nRuntimeError: CUDA error: device-side assert triggered"
        ),
    ],
    "loss-kept-with-graph": [
        "total_loss += loss\nRuntimeError: Trying to backward through the graph a second time",
    ],
    "nan-gradient": [
        "RuntimeError: Function 'MulBackward0' returned nan values in its 1th output.",
    ],
    "no-graph": [
        "element 0 of variables does not require grad and does not have a grad_fn",
    ],
    "non-scalar-loss": [
        "grad can be implicitly created only for scalar outputs",
    ],
    "numpy-of-grad": [
        "Can't call numpy() on Variable that requires grad. Use var.detach().numpy() instead.",
        "RuntimeError: Can\u2019t call numpy() on Tensor that requires grad.",
    ],
    "penalty-frees-graph": [
        (
            "(g,) = autograd.grad(s, x, create_graph=True, retain_graph=False)\nRuntimeError: Trying to backward t"
            "hrough the graph a second time"
        ),
    ],
    "penalty-without-graph": [
        "penalty.backward()\nelement 0 of tensors does not require grad and does not have a grad_fn",
    ],
    "second-backward": [
        (
            "Trying to backward through the graph a second time, but the buffers have already been freed. Specify"
            " retain_graph=True when calling backward the first time."
        ),
        (
            "Trying to backward through the graph a second time, but the saved intermediate results have already "
            "been freed. Specify retain_graph=True when calling .backward() or autograd.grad() the first time."
        ),
    ],
    "state-of-wrapped": [
        (
            'RuntimeError: Error(s) in loading state_dict for Generator:\n\tMissing key(s) in state_dict: "0.weight'
            '".\n\tUnexpected key(s) in state_dict: "_orig_mod.0.weight".'
        ),
    ],
    "step-between-backwards": [
        (
            "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace o"
            "peration"
        ),
        (
            "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace o"
            "peration: [torch.FloatTensor [128, 1]], which is output 0 of TBackward, is at version 2; expected ve"
            "rsion 1 instead. Hint: enable anomaly detection to find the operation that failed to compute its gra"
            "dient, with torch.autograd."
        ),
        (
            "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace o"
            "peration: [torch.FloatTensor [512, 1]], which is output 0 of AsStridedBackward0, is at version 2; ex"
            "pected version 1 instead. Hint: enable anomaly detection to find the operation that failed to comput"
            "e its gradient, with torch.autograd."
        ),
        (
            "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace o"
            "peration: [torch.cuda.FloatTensor [1, 1024, 1, 1]], is at version 2; expected version 1 instead. Hin"
            "t: enable anomaly detection to find the operation that failed to compute its gradient, with torch.au"
            "tograd."
        ),
        (
            "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace o"
            "peration: [torch.cuda.FloatTensor [64]], is at version 2; expected version 1 instead. Hint: enable a"
            "nomaly detection to find the operation that failed to compute its gradient, with torch.autograd."
        ),
        (
            "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace o"
            "peration: [torch.cuda.FloatTensor [512, 64]], is at version 3; expected version 2 instead. Hint: ena"
            "ble anomaly detection to find the operation that failed to compute its gradient, with torch.autograd"
            "."
        ),
    ],
    "step-function": [
        (
            "loss = scores.argmax(1).float().mean()\nelement 0 of tensors does not require grad and does not have "
            "a grad_fn"
        ),
    ],
    "unused-in-graph": [
        "One of the differentiated Tensors appears to not have been used in the graph.",
    ],
}


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in MESSAGES.items() for text in texts])
def test_messages_of_old_and_new_versions_find_their_mistake(name, text):
    assert match(text)[0].name == name


@pytest.mark.parametrize("name", [name for name in names() if load(name).messages])
def test_a_phrase_alone_finds_a_mistake_that_has_it(name):
    for phrase in load(name).messages:
        matches = match(f"RuntimeError: {phrase.replace('*', '7')}")
        assert load(name) in matches
        assert phrase in matches[0].messages


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
    assert match(text) == match(TRACEBACK) != []


NO_GRAPH = "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn"
SECOND_TIME = "RuntimeError: Trying to backward through the graph a second time"
BROADCAST = f"{observe(load('labels-broadcast').wrong).message}\n"


def traceback(error, line="g_loss.backward()"):
    return f'Traceback (most recent call last):\n  File "train.py", line 65, in <module>\n    {line}\n{error}\n'


STEP = f"{IN_PLACE}: [torch.FloatTensor [512, 1]], is at version 2; expected version 1 instead. {HINT}"
CUDA_MEMORY = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB"
BAR = "  3%|\u258e         | 12/400 [00:05<02:40,  2.41it/s]"
CHILD = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n===\ntrain.py FAILED\n===\n"
LOGS = {
    "an earlier warning": (BROADCAST + traceback(STEP), "step-between-backwards"),
    "an earlier warning, and an error not known": (BROADCAST + traceback(CUDA_MEMORY), None),
    "an earlier warning, and an error without a traceback": (BROADCAST + CUDA_MEMORY, None),
    "an earlier warning, and an exception of another name": (BROADCAST + traceback("_queue.Empty"), None),
    "an earlier warning, and Ctrl-C": (BROADCAST + traceback("KeyboardInterrupt"), None),
    "a warning alone, among other lines": (f"epoch 1\n{BROADCAST}epoch 2", "labels-broadcast"),
    "progress bars around": (f"{BAR}\r{BAR}{traceback(STEP)}{BAR}\nwandb: Run summary:", "step-between-backwards"),
    "a warning behind an error not known": (traceback(CUDA_MEMORY) + BROADCAST, None),
    "an error that was caught before": (traceback(NO_GRAPH) + "retrying\n" + traceback(CUDA_MEMORY), None),
    "a caught error not known before": (traceback(CUDA_MEMORY) + traceback(NO_GRAPH), "no-graph"),
    "chained, the final one known": (
        traceback("KeyError: 'grad'") + "\nDuring handling of the above exception, another exception occurred:\n\n"
        f"{traceback(SECOND_TIME)}",
        "second-backward",
    ),
    "chained, the final one not known": (
        traceback(SECOND_TIME) + "\nThe above exception was the direct cause of the following exception:\n\n"
        f"{traceback('ValueError: training failed')}",
        None,
    ),
    "a rank, and an exception of another name": (
        BROADCAST + traceback("Trouble: no data").replace("\n", "\n[rank0]: "),
        None,
    ),
    "torchrun": (traceback(f"[rank0]: {NO_GRAPH}") + traceback(CHILD), "no-graph"),
    "torchrun, of an error not known": (BROADCAST + traceback(f"[rank0]: {CUDA_MEMORY}") + traceback(CHILD), None),
    "torch.compile": (
        traceback(f"torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:\n{NO_GRAPH}"),
        "no-graph",
    ),
    "a worker": (
        traceback(f"RuntimeError: Caught RuntimeError in DataLoader worker process 0.\nOriginal {traceback(NO_GRAPH)}"),
        "no-graph",
    ),
    "a hint in the code": (traceback(NO_GRAPH, "penalty.backward()"), "penalty-without-graph"),
    "line ends of Windows": ((BROADCAST + traceback(CUDA_MEMORY)).replace("\n", "\r\n"), None),
    "pytest": (f">       loss.backward()\nE       {NO_GRAPH}\n\ntest_train.py:5: RuntimeError", "no-graph"),
    "rich": (
        f"\u256d\u2500 Traceback (most recent call last) \u2500\u256e\n\u2502 loss.backward() \u2502\n{STEP}",
        "step-between-backwards",
    ),
}


@pytest.mark.parametrize(("log", "name"), LOGS.values(), ids=LOGS)
def test_the_last_exception_of_a_log_counts(log, name):
    assert [mistake.name for mistake in match(log)][:1] == [name] * bool(name)


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
    assert match(text) == []
