"""The comparison of whole loops trains what it says, and prints a row for each loop."""

from helpers import call
from torchvision.transforms import ToTensor

from common.data import load_mnist5k
from scripts import gan_detach
from scripts.benchmarks import compare_loops

TINY = ["--model", "mlp", "--batch-size", "2", "--steps", "2", "--repeats", "1", "--device", "cpu"]


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
    call(compare_loops, *TINY)
    assert calls == {"usual": 2, "ours": 2}
    rows = capsys.readouterr().out.split("\n\n")[1].splitlines()[2:]
    assert [row.split("|")[1].strip() for row in rows] == [compare_loops.USUAL, "gan_detach.py"]
    assert rows[0].split("|")[3].strip() == "1.00 (1.00-1.00)"
    assert not list(tmp_path.iterdir())
