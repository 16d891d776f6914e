"""The catalogue of mistakes: each does what its file says, its message finds it and no other first, and it is shown."""

import inspect
import re
import sys

import pages
import pytest
import torch
import torch.nn.functional as F
from helpers import ROOT
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim.swa_utils import AveragedModel

from gradient_audit import GradientAudit
from gradient_audit.mistakes import does_as_described, load, match, names, observe
from gradient_audit.mistakes.one_rank import one_rank
from gradient_audit.rules import kinds_of_mistakes

ALL = [load(name) for name in names()]
PAGE = (ROOT / "docs" / "mistakes.md").read_text()


@pytest.mark.parametrize("mistake", [m for m in ALL if not m.not_run], ids=lambda mistake: mistake.name)
def test_both_forms_do_what_the_file_says_and_the_message_finds_the_mistake_among_those_that_share_it(mistake):
    wrong, right = observe(mistake.wrong), observe(mistake.right)
    assert does_as_described(mistake, wrong, right), (wrong, right)
    assert not right.message
    assert not does_as_described(mistake, right, right)
    assert not does_as_described(mistake, wrong, wrong)
    if wrong.message:
        matches = match(wrong.message)
        assert mistake in matches
        assert set(matches[0].messages) & set(mistake.messages)


@pytest.mark.parametrize("mistake", ALL, ids=lambda mistake: mistake.name)
def test_the_mistakes_that_a_text_or_a_finding_names_exist(mistake):
    assert kinds_of_mistakes().keys() <= set(names())
    for text in (mistake.why, mistake.cure):
        assert set(re.findall(r"\bsee ([a-z]+(?:-[a-z]+)+)", text)) <= set(names())
    assert bool(mistake.not_run) == (mistake.wrong is None) == (mistake.right is None)
    assert mistake.messages or not mistake.not_run


@pytest.mark.parametrize("page", pages.PAGES, ids=lambda page: page.name)
def test_the_pages_say_what_the_rules_and_the_museum_hold(page):
    assert page.read_text() == pages.written(page.read_text()), "run: python tests/gradient_audit/pages.py"
    assert any(form.split("{}")[-1] in page.read_text() for form in pages.counts()) == (page.name == "README.md")
    assert (pages.table() in page.read_text()) == (page.name == "mistakes.md")


@pytest.mark.parametrize("mistake", ALL, ids=lambda mistake: mistake.name)
def test_a_silent_mistake_is_seen_in_an_exhibit_or_it_and_the_page_say_what_to_look_at(mistake):
    exhibits = (path.read_text() for path in (ROOT / "tests/gradient_audit/museum/bugs").glob("*.py"))
    shown = any(f"\n# mistake: {mistake.name}\n" in exhibit for exhibit in exhibits)
    assert bool(mistake.unseen) == (mistake.silent and not shown)
    assert not shown or mistake.audit(kinds_of_mistakes().get(mistake.name, ())).startswith("[")
    assert (f"| `{mistake.name}` | {mistake.unseen} |" in PAGE) == bool(mistake.unseen)
    if mistake.unseen:
        module = inspect.getsource(sys.modules[mistake.wrong.__module__])
        with GradientAudit() as audit:
            assert not observe(lambda: exec(compile(f"{module}\nwrong()", "loop.py", "exec"), {})).raised
        assert audit.severity in ("", "waste")


# Messages.

NO_GRAPH = "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn"
SECOND_TIME = "RuntimeError: Trying to backward through the graph a second time"
IN_PLACE = "one of the variables needed for gradient computation has been modified by an inplace operation"
ASSERT = "RuntimeError: CUDA error: device-side assert triggered"


def in_place(tensor, now):
    """The message of an in-place edit; tensor: its type and shape, or with what made it."""
    return f"RuntimeError: {IN_PLACE}: [torch.{tensor}, is at version {now}; expected version {now - 1} instead."


def traceback(error, line="g_loss.backward()"):
    return f'Traceback (most recent call last):\n  File "train.py", line 65, in <module>\n    {line}\n{error}\n'


# As PyTorch 1.2 to 2.14 print them, on the CPU and on CUDA.
MESSAGES = [
    ("all-frozen", f"p.requires_grad = False\n{NO_GRAPH}"),
    ("step-between-backwards", in_place("cuda.FloatTensor [64]]", 3)),  # also fits a norm of DDP
    ("ddp-batch-norm-twice", f"net = DistributedDataParallel(net)\n{in_place('cuda.FloatTensor [768]]', 3)}"),
    ("derivative-missing", "NotImplementedError: the derivative for '_cdist_backward' is not implemented."),
    ("edit-after-use", in_place("cuda.FloatTensor [8, 64, 9, 9]], which is output 0 of ReluBackward0", 1)),
    ("inplace-activation", in_place("cuda.FloatTensor [8, 64, 9, 9]], which is output 0 of SigmoidBackward0", 1)),
    ("inplace-activation", in_place("cuda.FloatTensor [8, 64, 9, 9]], which is output 0 of TanhBackward", 1)),
    ("logits-to-bce", f"block: [0,0,0] Assertion `input_val >= zero && input_val <= one` failed.\n{ASSERT}"),
    ("loss-kept-with-graph", f"total_loss += loss\n{SECOND_TIME}"),
    ("loss-rebuilt", f"loss = torch.tensor(loss.item())\n{NO_GRAPH}"),
    ("no-graph", "element 0 of variables does not require grad and does not have a grad_fn"),
    ("numpy-of-grad", "Can't call numpy() on Variable that requires grad. Use var.detach().numpy() instead."),
    ("numpy-of-grad", "TypeError: can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy"),
    ("leaf-in-place", "RuntimeError: a leaf Variable has been moved into the graph interior"),
    ("numpy-of-grad", "RuntimeError: Can\u2019t call numpy() on Tensor that requires grad."),
    ("penalty-frees-graph", f"(g,) = grad(s, x, create_graph=True, retain_graph=False)\n{SECOND_TIME}"),
    ("penalty-without-graph", f"penalty.backward()\n{NO_GRAPH}"),
    ("second-backward", f"{SECOND_TIME}, but the buffers have already been freed. Specify retain_graph=True"),
    ("second-backward", f"{SECOND_TIME} (or directly access saved tensors after they have already been freed)."),
    ("step-between-backwards", IN_PLACE),
    ("step-between-backwards", in_place("FloatTensor [512, 1]], which is output 0 of AsStridedBackward0", 2)),
    ("step-function", f"loss = scores.argmax(1).float().mean()\n{NO_GRAPH}"),
    ("ddp-unused-parameters", "your LightningModule has parameters that were not used in producing the loss returned"),
    ("scaler-not-updated", "RuntimeError: step() has already been called since the last update()."),
    ("unscaled-half", "ValueError: Attempting to unscale FP16 gradients."),
    ("view-in-place", "RuntimeError: Output 0 of UnbindBackward0 is a view and is being modified inplace."),
    ("inference-mode", "RuntimeError: Inplace update to inference tensor outside InferenceMode is not allowed."),
    ("scheduler-first", "UserWarning: Detected call of `lr_scheduler.step()` before `optimizer.step()`."),
    ("checkpoint-of-data", "UserWarning: None of the inputs have requires_grad=True. Gradients will be None"),
    ("no-main-guard", "a new process before the current process has finished its bootstrapping phase."),
    ("loss-kept-with-graph", "CUDA out of memory. Tried to allocate 20.00 MiB"),
    ("loss-kept-with-graph", "torch.OutOfMemoryError"),
    ("loss-kept-with-graph", "RuntimeError: CUDA error: out of memory"),
    # Quotations without a beginning.
    ("step-between-backwards", "by an inplace operation: [torch.FloatTensor [64, 1]], which is output 0 of"),
    ("step-between-backwards", "is output 0 of AsStridedBackward0, is at version 2; expected version 1"),
    ("edit-after-use", "expected version 0 instead. Hint: the operation that failed to compute its gradient"),
    ("second-backward", "a second time (or directly access saved tensors after they have already been freed)"),
    ("no-graph", "does not have a grad_fn"),
    ("step-between-backwards", "the operation that failed to compute its gradient"),
    ("nan-gradient", "std(): degrees of freedom is <= 0"),
    # As people put them into a search box.
    *(("detached-fakes", text) for text in ("生成器没有梯度", "生成器的梯度为 None", "生成器参数不更新")),
    *(("ddp-unused-parameters", text) for text in ("在上一次迭代中未完成归约", "有参数没有参与损失计算")),
    ("ddp-ready-twice", "参数被标记为就绪两次"),
    *(("second-backward", text) for text in ("第二次反向传播计算图", "尝试第二次向后遍历图", "计算图已经被释放")),
    *(("step-between-backwards", text) for text in ("被原地操作修改", "所需的变量之一已被就地操作修改")),
    *(("no-graph", text) for text in ("不需要梯度且没有grad_fn", "张量的元素 0 不需要 grad 并且没有 grad_fn")),
    *(("non-scalar-loss", text) for text in ("梯度只能对标量输出隐式创建", "只能为标量输出隐式创建 grad")),
    *(("leaf-in-place", text) for text in ("叶子变量 原地操作", "需要梯度的叶变量正被用于就地操作")),
    ("loss-kept-with-graph", "训练几轮后 GPU 显存不足"),
]


@pytest.mark.parametrize(("name", "text"), MESSAGES)
def test_messages_of_old_and_new_versions_find_their_mistake(name, text):
    assert match(text)[0].name == name


@pytest.mark.parametrize("name", [name for name in names() if load(name).messages])
def test_a_phrase_alone_finds_a_mistake_that_has_it(name):
    for phrase in load(name).messages:
        matches = match(f"RuntimeError: {phrase.replace('*', '7')}")
        assert load(name) in matches
        assert phrase in matches[0].messages


def leaf():
    return torch.tensor((1.0, 3.0), requires_grad=True)


def unscaled():
    """A scaler whose loss is scaled, but of other weights than those of any optimizer."""
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale(leaf().sum()).backward()
    return scaler


def attribute_of_ddp():
    with one_rank():
        return DistributedDataParallel(nn.Linear(1, 1)).weight


LIVE = [
    ("nan-gradient", lambda: leaf()[:1].std().backward()),
    ("backward-one", lambda: torch.autograd.grad(leaf() * 2, leaf(), torch.ones(3))),
    ("backward-one", lambda: (leaf() * 2).backward(torch.FloatTensor([1]))),
    ("derivative-missing", lambda: torch.igamma(leaf(), torch.ones(2)).sum().backward()),
    ("labels-broadcast", lambda: F.binary_cross_entropy_with_logits(torch.ones(4, 1), torch.ones(4))),
    ("leaf-in-place", lambda: leaf()[0].fill_(1)),
    ("logits-to-bce", lambda: F.binary_cross_entropy(torch.tensor([float("nan")]), torch.ones(1))),
    ("logits-to-bce", lambda: F.binary_cross_entropy(torch.tensor([0.5]), torch.tensor([1.2]))),
    ("loss-rebuilt", lambda: leaf().sum().item().backward()),
    ("optimize-result", lambda: (leaf() * 2).requires_grad_(False)),
    ("parameter-twice", lambda: torch.optim.SGD([leaf()] * 2, lr=0.1)),
    ("scaler-no-gradients", lambda: torch.amp.GradScaler("cpu").step(torch.optim.SGD([leaf()], lr=0.1))),
    ("scaler-no-gradients", lambda: torch.amp.GradScaler("cpu").update()),
    ("scaler-no-gradients", lambda: unscaled().update()),
    ("state-of-wrapped", lambda: nn.Linear(1, 1).load_state_dict(torch.compile(nn.Linear(1, 1)).state_dict())),
    ("state-of-wrapped", lambda: nn.DataParallel(nn.Linear(1, 1)).load_state_dict(nn.Linear(1, 1).state_dict())),
    ("state-of-wrapped", lambda: nn.DataParallel(nn.Linear(1, 1)).weight),
    ("state-of-wrapped", attribute_of_ddp),
    ("state-of-wrapped", lambda: nn.Linear(1, 1).load_state_dict(AveragedModel(nn.Linear(1, 1)).state_dict())),
    ("state-of-wrapped", lambda: AveragedModel(nn.Linear(1, 1)).load_state_dict(nn.Linear(1, 1).state_dict())),
    ("state-of-wrapped", lambda: AveragedModel(nn.Linear(1, 1)).weight),
    ("unused-in-graph", lambda: torch.autograd.grad(leaf().sum(), torch.ones(2))),
]


@pytest.mark.parametrize(("name", "make"), LIVE)
def test_a_message_made_here_finds_its_mistake(name, make):
    message = observe(make).message
    assert [mistake.name for mistake in match(message)][:1] == [name], message


TRACEBACK = traceback(in_place("FloatTensor [512, 1]], which is output 0 of AsStridedBackward0", 2))


@settings(max_examples=50)
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


BROADCAST = f"{observe(load('labels-broadcast').wrong).message}\n"
STEP = in_place("FloatTensor [512, 1]]", 2)
UNKNOWN = "ValueError: Expected more than 1 value per channel when training"
BAR = "  3%|\u258e         | 12/400 [00:05<02:40,  2.41it/s]"
CHILD = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n===\ntrain.py FAILED\n===\n"
CAUSED = "\nThe above exception was the direct cause of the following exception:\n\n"
WORKER = "RuntimeError: Caught RuntimeError in DataLoader worker process 0.\nOriginal "
LOGS = {
    "an earlier warning": (BROADCAST + traceback(STEP), "step-between-backwards"),
    "an earlier warning, and an error not known": (BROADCAST + traceback(UNKNOWN), None),
    "an earlier warning, and an error without a traceback": (BROADCAST + UNKNOWN, None),
    "an earlier warning, and an exception of another name": (BROADCAST + traceback("_queue.Empty"), None),
    "a warning alone, among other lines": (f"epoch 1\n{BROADCAST}epoch 2", "labels-broadcast"),
    "progress bars around": (f"{BAR}\r{BAR}{traceback(STEP)}{BAR}\nwandb: Run summary:", "step-between-backwards"),
    "a warning behind an error not known": (traceback(UNKNOWN) + BROADCAST, None),
    "an error that was caught before": (traceback(NO_GRAPH) + "retrying\n" + traceback(UNKNOWN), None),
    "chained": (traceback(SECOND_TIME) + CAUSED + traceback(UNKNOWN), None),
    "a rank, another name": (BROADCAST + traceback("Trouble: no data").replace("\n", "\n[rank0]: "), None),
    "torchrun, of an error not known": (BROADCAST + traceback(f"[rank0]: {UNKNOWN}") + traceback(CHILD), None),
    "torchrun": (traceback(f"[rank0]: {STEP}") + traceback(CHILD), "step-between-backwards"),
    "Ctrl-C": (BROADCAST + "KeyboardInterrupt", "labels-broadcast"),
    "torch.compile": (traceback(f"torch._dynamo.exc.BackendCompilerFailed: raised:\n{NO_GRAPH}"), "no-graph"),
    "a worker": (traceback(WORKER + traceback(NO_GRAPH)), "no-graph"),
    "a hint in the code": (traceback(NO_GRAPH, "penalty.backward()"), "penalty-without-graph"),
    "line ends of Windows": ((BROADCAST + traceback(UNKNOWN)).replace("\n", "\r\n"), None),
    "pytest": (f">       loss.backward()\nE       {NO_GRAPH}\n\ntest_train.py:5: RuntimeError", "no-graph"),
    "rich": (f"\u256d\u2500 Traceback (most recent call last) \u2500\u256e\n\u2502 {STEP}", "step-between-backwards"),
}


@pytest.mark.parametrize(("log", "name"), LOGS.values(), ids=LOGS)
def test_the_last_exception_of_a_log_counts_also_if_it_is_pasted_as_one_line(log, name):
    for text in [log, *[" ".join(log.split())] * ("Traceback" in log)]:
        assert [mistake.name for mistake in match(text)][:1] == [name] * bool(name)


@pytest.mark.parametrize(
    "text",
    [
        "...",
        "RuntimeError: The size of tensor a (3) must match the size of tensor b (2) at non-singleton dimension 0",
        ASSERT,
        "AttributeError: 'Generator' object has no attribute 'module'",
        "RuntimeError: Error(s) in loading state_dict for Linear:\n\tsize mismatch for weight: copying a param",
        "[88.2] Out of memory: Killed process 1234 (python) total-vm:99kB, oom_score_adj:0",
        "epoch 1: loss 0.69, second time 0.3 s, schema is at version 2; expected version 1",
        "判别器的损失降到零 生成器不再学习",
        "秋天的叶子落在原地 第二次训练图像时梯度为零",
    ],
)
def test_other_errors_match_nothing(text):
    assert match(text) == []


@pytest.mark.parametrize(
    ("arguments", "status", "parts"),
    [
        ("--mistake no-zero-grad", 0, ["range(3):", "returns 6, -0.2", "returns 2, 0.4", "  why   ", "  cure  "]),
        ("--mistake ddp-batch-norm-twice", 0, ["not run here: ", "... modified by an inplace operation ..."]),
        ("--mistake data-edit", 0, ["  audit [overwritten]"]),
        ("--error nothing", 1, ["No mistake"]),
    ],
)
def test_a_mistake_is_shown_with_both_forms_what_they_did_why_and_the_cure(command, arguments, status, parts):
    done = command(*arguments.split())
    assert done.returncode == status
    assert all(part in done.stdout for part in parts), done


@pytest.mark.parametrize("log", [TRACEBACK.encode(), b"caf\xe9\n" + TRACEBACK.encode(), TRACEBACK.encode("utf-16")])
def test_an_error_also_in_a_log_that_is_not_utf_8_names_the_mistakes_that_fit_and_shows_the_likeliest(command, log):
    done = command("--error", "-", given=log)
    assert done.returncode == 0
    fitting = [mistake.name for mistake in match(TRACEBACK)]
    assert [line.split()[0] for line in done.stdout.splitlines()[1 : len(fitting) + 1]] == fitting
    assert "\nstep-between-backwards\n" in done.stdout
    assert observe(load("step-between-backwards").wrong).message[:100] in " ".join(done.stdout.split())


def test_a_place_for_the_report_that_cannot_be_written_is_refused_before_the_script_runs(refusal, tmp_path):
    (tmp_path / "folder.md").mkdir()
    (tmp_path / "train.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    for name, why in {"folder.md": "give a file", f"{'x' * 251}.html": "cannot be written: File name too long"}.items():
        assert why in refusal("--output", tmp_path / name, tmp_path / "train.py")
    assert {path.name for path in tmp_path.iterdir()} == {"folder.md", "train.py"}


def test_list_names_every_mistake_under_its_kind(command):
    lines = command("--list").stdout.splitlines()
    assert sorted(re.findall(r"^  (\S+)", "\n".join(lines), re.M)) == sorted(names())
    kinds = [line.split(":")[0] for line in lines if line and not line.startswith(" ")]
    errors, silent = ["Errors of PyTorch", "Errors that are described, not run here"], ["Silent, not seen by the audit"]
    assert kinds == [*errors, *silent, "Silent, seen by the audit", "Questions"]
    assert all(re.search(rf"docs/questions{of}", lines[-1]) for of in (r"\.md", r"\.zh\.md")) and "显存" in lines[-1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--mistake", "second-backwards"], ["--mistake", "second-backward"]),
        (["--mistake", "qqq"], ["--mistake", "--list"]),
        (["--error", __file__], ["is a file; --error - < ", " reads it"]),
        (["--error", "-"], ["--error -", "standard input cannot be read; pipe the log into this"]),
        (["--list", "--error", "x"], ["--list", "--error", "one of"]),
        ([], ["SCRIPT", "--error"]),
        (["nothing.py"], ["nothing.py is no regular file, and no folder"]),
        (["--iterations", "0", __file__], ["--iterations"]),
        (["--iterations", "three", __file__], ["--iterations"]),
        (["--output", "report.md", "--error", "x"], ["--output", "for a script"]),
        (["--output", "report.pdf", __file__], ["--output", ".html or .md"]),
        (["--output", "nowhere/report.md", __file__], ["--output", "in a folder"]),
    ],
)
def test_bad_input_gives_one_line_that_says_what_to_do_and_status_2(refusal, arguments, words):
    line = refusal(*arguments, given=None)
    assert all(word in line for word in words)
