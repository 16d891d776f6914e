"""The comparison of whole loops trains what it says, prints a row for each loop, and ends with Ctrl-C."""

import signal
import sys

import pytest
from torchvision.transforms import ToTensor

from common.data import load_mnist5k
from common.run.command_line import launch
from scripts import gan_detach
from scripts.benchmarks import compare_loops

TINY = ["--model", "mlp", "--batch-size", "2", "--steps", "2", "--repeats", "1", "--device", "cpu"]


def compare(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["compare_loops.py", *arguments])
    launch(compare_loops.main, compare_loops.Options)


def test_the_usual_loop_reads_the_digits_that_the_scripts_train_on():
    digits, (images, labels) = compare_loops.Digits(ToTensor()), load_mnist5k()
    assert len(digits) == len(images) == 4000
    for index in (0, 1234, 3999):
        image, label = digits[index]
        assert (image * 255).round().byte().equal(images[index])
        assert label == labels[index]


def test_every_loop_makes_its_steps_and_has_its_row(monkeypatch, capsys, tmp_path):
    calls = {"usual": 0, "ours": 0}

    def counted(name, step):
        def count(*arguments):
            calls[name] += 1
            return step(*arguments)

        return count

    monkeypatch.setattr(compare_loops, "textbook_detach", counted("usual", compare_loops.textbook_detach))
    monkeypatch.setattr(gan_detach, "train_step", counted("ours", gan_detach.train_step))
    monkeypatch.chdir(tmp_path)
    compare(monkeypatch, *TINY)
    assert calls == {"usual": 2, "ours": 2}
    rows = capsys.readouterr().out.split("\n\n")[1].splitlines()[2:]
    assert [row.split("|")[1].strip() for row in rows] == [compare_loops.USUAL, "gan_detach.py"]
    assert rows[0].split("|")[3].strip() == "1.00 (1.00-1.00)"
    assert not list(tmp_path.iterdir())


def test_ctrl_c_during_a_whole_script_ends_the_comparison(monkeypatch, capsys):
    train_step = gan_detach.train_step

    def interrupted_step(*arguments):
        signal.raise_signal(signal.SIGINT)
        return train_step(*arguments)

    monkeypatch.setattr(gan_detach, "train_step", interrupted_step)
    monkeypatch.setattr(compare_loops, "usual_loop", lambda *_: None)
    monkeypatch.setattr(compare_loops, "timing_table", lambda *_: pytest.fail("the comparison went on"))
    with pytest.raises(SystemExit) as ending:
        compare(monkeypatch, *TINY)
    assert ending.value.code == 128 + signal.SIGINT
    assert "Traceback" not in capsys.readouterr().err
