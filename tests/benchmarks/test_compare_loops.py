"""The comparison of whole loops trains what it says, and prints a row for each loop."""

import pytest
from helpers import call
from PIL import Image
from torchvision.transforms import ToTensor

from common.data import load_mnist5k
from common.errors import BadInput
from scripts import gan_detach
from scripts.benchmarks import compare_loops

TINY = ["--model", "mlp", "--batch-size", "2", "--steps", "2", "--repeats", "1", "--device", "cpu"]


def test_the_usual_loop_reads_the_digits_that_the_scripts_train_on():
    images, _ = load_mnist5k()
    digits = compare_loops.PilImages(images, ToTensor())
    assert len(digits) == 4000
    for index in (0, 1234, 3999):
        assert (digits[index] * 255).round().byte().equal(images[index])


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
    rows = capsys.readouterr().out.split("\n\n")[2].splitlines()[2:]
    assert [row.split("|")[1].strip() for row in rows] == [compare_loops.USUAL, "gan_detach.py"]
    assert rows[0].split("|")[3].strip() == "1.00 (1.00-1.00)"
    assert not list(tmp_path.iterdir())


def test_own_networks_and_images_are_trained_by_both_loops(monkeypatch, tmp_path):
    (tmp_path / "own.py").write_text(
        "from torch import nn\n"
        "def make(shape, z_dim):\n"
        "    print('made for', *shape, z_dim)\n"
        "    return nn.Sequential(nn.Linear(z_dim, 27), nn.Unflatten(1, shape)), "
        "nn.Sequential(nn.Flatten(), nn.Linear(27, 1))\n"
    )
    made = []
    monkeypatch.setattr("builtins.print", lambda *words, **_: made.append(words))
    for number in range(2):
        Image.new("RGB", (5, 5)).save(tmp_path / f"{number}.png")
    own = ["--dataset", tmp_path, "--image-size", 3, "--z-dim", 6, "--networks", f"{tmp_path / 'own.py'}:make"]
    call(compare_loops, *TINY, *own)
    assert made.count(("made for", 3, 3, 3, 6)) == 2
    with pytest.raises(BadInput, match="holds 2 images; name one that fits into memory, and has a batch"):
        compare_loops.main(compare_loops.Options(dataset=str(tmp_path), model="mlp", batch_size=3, device="cpu"))
