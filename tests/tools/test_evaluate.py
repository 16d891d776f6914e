"""The figures against float64 references, the floor, and what an evaluation leaves behind."""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest
import torch
from helpers import SMALL, call, change, load, make_images, points_of
from PIL import Image
from torch_fidelity import feature_extractor_inceptionv3

from common import data
from common.conditional import LabeledImages, conditional
from common.data import load_dataset, load_images, to_float
from common.errors import BadInput
from common.image_files import image_paths, training_paths
from common.models import mlp
from scripts.tools import classifier, evaluate, real_images
from scripts.tools.classifier import Classifier, class_classifier, digit_classifier
from scripts.tools.evaluate import Options
from scripts.tools.measures import measure_colours, measure_distances, measure_lattice, measure_overlap
from scripts.tools.output import table


@pytest.fixture(scope="module", autouse=True)
def quick_classifier():
    """A fraction of the steps."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(classifier, "STEPS", {"digits": 100, "classes": 30})
        digit_classifier.cache_clear()
        yield
    digit_classifier.cache_clear()


def reports(run):
    return json.loads((run / "evaluation.json").read_text())


def evaluated(run, **options):
    """Evaluate the run; return the latest of its reports."""
    evaluate.main(Options(run, **options))
    return reports(run)[-1]


@pytest.mark.numerics
def test_the_classifier_knows_digits_it_never_saw_and_leaves_the_global_generator_alone():
    before = torch.get_rng_state()
    with torch.no_grad():  # as the first caller may have it
        judge = digit_classifier()
    assert torch.get_rng_state().equal(before)
    images, labels, _ = load_dataset("mnist5k", held_out=True)
    assert judge.accuracy == (judge.classify(judge.features(images))[1] == labels).float().mean().item()
    assert judge.accuracy >= 0.93  # 95.1%; by the processor, a little more or less
    assert judge.measure(judge.features(images[labels == 0]))["share_of_0"] > 0.9
    shares = judge.measure(judge.features(images))
    assert 0.08 < shares["rarest"] == min(shares[f"share_of_{digit}"] for digit in range(10)) <= 0.1


@pytest.mark.numerics
def test_the_distances_are_those_of_their_papers():
    # In float64. The features are float32, of batches of another size: hence 1e-4, and 3 images of 300 on an edge.
    images = load_images("mnist5k")
    fake, real = images[:300], images[torch.randperm(4000, generator=torch.Generator().manual_seed(0))[:300]]
    features = [digit_classifier().features(part) for part in (fake, real)]
    found = measure_distances(*features, seed=0) | measure_overlap(*features)
    x, y = (part.double() for part in features)

    a, b = x.T.cov(), y.T.cov()
    root = torch.linalg.eigvals(a @ b).real.clamp(min=0).sqrt().sum()  # the trace of (a b)^(1/2)
    fid = (x.mean(0) - y.mean(0)).square().sum() + a.trace() + b.trace() - 2 * root
    assert found["fid"] == pytest.approx(fid.item(), rel=1e-4)

    kernel = {name: (u @ v.T / 128 + 1) ** 3 for name, u, v in (("xx", x, x), ("yy", y, y), ("xy", x, y))}
    own = sum(kernel[name].sum() - kernel[name].trace() for name in ("xx", "yy")) / (300 * 299)
    assert found["kid"] == pytest.approx((own - 2 * kernel["xy"].mean()).item(), rel=1e-4)

    def share_inside(points, centres):
        radius = torch.cdist(centres, centres).sort().values[:, 3]
        return (torch.cdist(points, centres) <= radius).any(1).double().mean().item()

    assert found["precision"] == pytest.approx(share_inside(x, y), abs=0.01)
    assert found["recall"] == pytest.approx(share_inside(y, x), abs=0.01)
    assert found["precision"] > 0.8 > 0.5 > found["recall"]  # the first 300 digits are all zeros


@pytest.mark.numerics
def test_a_generator_that_draws_other_real_images_reaches_the_floor_to_the_bit(run, monkeypatch):
    random = torch.Generator().manual_seed(3)
    torch.randn(200, 8, generator=random)
    others = load_images("mnist5k")[torch.randperm(4000, generator=random)[200:400]]
    monkeypatch.setattr(evaluate, "generate", lambda *_: others)
    found = evaluated(run, count=200, seed=3)
    assert found["samples"] == found["floor"]


@pytest.mark.numerics
def test_an_evaluation_is_printed_kept_and_shown(run, capsys):
    found = evaluated(run, count=100)
    printed = capsys.readouterr().out
    (row,) = (line for line in printed.splitlines() if line.startswith("| fid "))
    assert row.split()[3:6:2] == [f"{found[part]['fid']:.3f}" for part in ("samples", "floor")]
    assert (found["features"], found["count"], found["step"], found["weights"]) == ("digits", 100, 7, "average")
    assert found["samples"]["fid"] > 5 * found["floor"]["fid"]
    assert found["floor"]["confident"] > 0.7  # 85% of all digits, give or take 4% for a hundred of them
    points = points_of(run / "evaluation")
    for column, group in (("samples", "quality"), ("floor", "quality_floor")):
        for name, value in found[column].items():
            assert points[f"{group}/digits-100-average/{name}"] == [(7, pytest.approx(value))]


def test_other_settings_and_steps_add_to_the_file_and_the_same_ones_replace_their_entry(run):
    (run / "best.pt").write_bytes((run / "checkpoint.pt").read_bytes())
    tiny, written = Options(run, count=10), []
    for changes in ({}, {}, {"count": 9}, {"weights": "last"}, {"seed": 3}, {"run": run / "best.pt"}):
        evaluate.main(replace(tiny, **changes))
        written.append(reports(run))
    change(run, lambda checkpoint: checkpoint.update(step=9))
    evaluate.main(tiny)
    assert written[0] == written[1]
    first, last, other_seed = (written[number][-1] for number in (0, 3, 4))
    assert all(first[part]["fid"] != other_seed[part]["fid"] for part in ("samples", "floor"))
    assert (first["samples"]["fid"] == last["samples"]["fid"], first["floor"] == last["floor"]) == (False, True)
    names = ["digits-10-average", "digits-9-average", "digits-10-last", "digits-10-average-seed-3"]
    kept = reports(run)
    assert [evaluate.curve_name(entry) for entry in kept] == [*names, names[0], names[0]]
    assert [entry["checkpoint"] for entry in kept] == ["checkpoint.pt"] * 4 + ["best.pt", "checkpoint.pt"]
    assert [entry["step"] for entry in kept] == [7] * 5 + [9]


NEGATIVE = """
from common.models import mlp

def negative(*given):
    generator, discriminator = mlp(*given)
    generator.register_forward_hook(lambda _, __, images: -images)
    return generator, discriminator
"""


@pytest.mark.usefixtures("untrained")
def test_networks_that_are_named_are_a_setting_with_entries_and_curves_of_their_own(run, tmp_path):
    own = tmp_path / "own.py"
    for text, function in (("", None), (NEGATIVE, "mlp"), (NEGATIVE, "negative"), (f"{NEGATIVE}# edited", "negative")):
        own.write_text(text)
        evaluate.main(Options(run, count=10, networks=function and f"{own}:{function}"))
    kept = reports(run)
    assert ["networks" in entry for entry in kept] == [False, True, True, True]
    assert [entry["networks"].split("-")[::2] for entry in kept[1:]] == [["own", f] for f in ("mlp", *["negative"] * 2)]
    fids = [entry["samples"]["fid"] for entry in kept]
    assert fids[0] == fids[1] != fids[2] == fids[3]
    points = points_of(run / "evaluation")
    names = [evaluate.curve_name(entry) for entry in kept]
    assert len({*names}) == 4
    assert [points[f"quality/{name}/fid"] for name in names] == [[(7, pytest.approx(fid))] for fid in fids]


KNOWN = """
import torch

class Known(torch.nn.Embedding):
    def forward(self, z, labels):
        return super().forward(labels).view(-1, 1, 28, 28)

def make_networks(image_shape, z_dim, classes):
    return Known(classes, 784), None
"""


@pytest.mark.numerics
def test_a_class_is_the_share_of_samples_that_are_of_it_and_each_has_its_recall(run, tmp_path):
    """Each class has one image; those of 0 to 4 are right."""
    images, labels, _ = load_dataset("mnist5k")
    drawn = torch.stack([images[labels == digit][0] for digit in (0, 1, 2, 3, 4, 6, 7, 8, 9, 5)])
    (tmp_path / "own.py").write_text(KNOWN)
    own = f"{tmp_path / 'own.py'}:make_networks"
    change(run, lambda checkpoint: checkpoint.pop("averages"))
    weights = {"weight": to_float(drawn).flatten(1)}
    change(run, lambda checkpoint: checkpoint.update(classes=[list("0123456789")], generator=weights))
    few = evaluated(run, count=20, networks=own, seed=2**32 - 1)
    assert few["samples"].keys() - few["floor"].keys()  # classes of which there are too few among the other images
    found = evaluated(run, count=400, networks=own)
    samples, floor = found["samples"], found["floor"]
    assert 0.4 < samples["of_their_class"] < 0.6 < 0.9 < floor["of_their_class"]
    recalls = [f"recall_of_{digit}" for digit in range(10)]
    assert all(samples[name] <= 0.5 < floor[name] for name in recalls)  # one image cannot surround many

    change(run, lambda checkpoint: checkpoint.update(classes=[list("012345678x")]))
    with pytest.raises(BadInput, match=r"classes of mnist5k are .*'9'], not .*'x']; use"):
        evaluate.main(Options(run, networks=own))


def test_the_classes_of_digits_in_folders_are_compared_by_their_names(run, tmp_path):
    """Each sample is a digit of the class asked for; the classifier of digits knows ten classes, in their order."""
    images, labels, _ = load_dataset("mnist5k")
    for digit in (7, 3):
        (tmp_path / "data" / str(digit)).mkdir(parents=True)
        for number, image in enumerate(images[labels == digit][:10, 0].numpy()):
            Image.fromarray(image).save(tmp_path / "data" / str(digit) / f"{number}.png")
    (tmp_path / "own.py").write_text(KNOWN)
    weights = {"weight": to_float(torch.cat([images[labels == digit][:1] for digit in (3, 7)])).flatten(1)}
    entries = {"averages": {}, "classes": [["3", "7"]], "data_shapes": [[20, 1, 28, 28]], "generator": weights}
    change(run, lambda checkpoint: checkpoint.update(entries))
    options = {"features": "digits", "networks": f"{tmp_path / 'own.py'}:make_networks", "count": 10}
    found = evaluated(run, dataset=str(tmp_path / "data"), **options)
    assert (found["samples"]["of_their_class"], found["floor"]["of_their_class"]) == (1, 1)
    (tmp_path / "data" / "3").rename(tmp_path / "data" / "three")
    change(run, lambda checkpoint: checkpoint.update(classes=[["7", "three"]]))
    assert "of_their_class" not in evaluated(run, dataset=str(tmp_path / "data"), **options)["samples"]


def test_test_images_of_another_data_set_than_that_of_the_run_are_refused(run):
    with pytest.raises(BadInput, match=r"--dataset cifar10: the run .* was trained on mnist5k; leave it out"):
        evaluate.main(Options(run, dataset="cifar10"))


def test_greyscale_files_are_those_of_a_run_that_takes_all_for_colour(run, shades):
    """As `gan_standalone.py` does, whose runs have no checksums of images."""
    entries = {"averages": {}, "data_shapes": [[57, 3, 28, 28]], "generator": mlp((3, 28, 28), 8)[0].state_dict()}
    change(run, lambda checkpoint: checkpoint.update(entries))
    assert evaluated(run, features="random")["count"] == 28


def test_features_of_a_network_that_changes_its_input_are_those_of_the_images(run, tmp_path):
    class Doubled(torch.nn.Module):
        def forward(self, images):
            return images.mul_(2).flatten(1)

    for name, network in {"plain": torch.nn.Flatten(), "doubled": Doubled()}.items():
        dimensions = ({0: torch.export.Dim("batch")},)
        program = torch.export.export(network, (torch.zeros(2, 3, 28, 28),), dynamic_shapes=dimensions)
        torch.export.save(program, tmp_path / f"{name}.pt2")
    fids = [
        evaluated(run, features=str(tmp_path / f"{name}.pt2"), count=20)["samples"]["fid"]
        for name in ("plain", "doubled")
    ]
    assert fids[1] == pytest.approx(4 * fids[0], rel=1e-3)  # rounding of a product of covariances' root


def test_inception_gets_three_channels_and_offline_the_reader_is_told_what_to_do(run, tmp_path, monkeypatch):
    monkeypatch.setattr(feature_extractor_inceptionv3, "URL_INCEPTION_V3", "http://127.0.0.1:9/weights.pth")
    monkeypatch.setattr(torch.hub, "_hub_dir", str(tmp_path / "hub"))
    with pytest.raises(BadInput, match=r"--features inception: .*could not be downloaded.*hub/check.*or take random"):
        evaluate.main(Options(run, features="inception"))
    assert not (run / "evaluation.json").exists()

    class Corners(torch.nn.Module):
        def forward(self, images):
            assert images.shape[1:] == (3, 28, 28)
            assert images.dtype == torch.uint8
            return (images[:, :, 10:12, 10:12].flatten(1).float(),)

    monkeypatch.setattr(feature_extractor_inceptionv3, "FeatureExtractorInceptionV3", lambda *_: Corners())
    found = evaluated(run, count=20, features="inception")
    assert list(found["samples"]) == ["fid", "kid", "precision", "recall", "lattice", "lattice_of_4", "colours"]
    assert "classifier_accuracy" not in found


def test_a_folder_is_judged_by_what_its_run_has_not_seen_or_by_any_images_with_features_of_random_or_own_weights(
    tmp_path, monkeypatch, capsys
):
    images = torch.randint(256, (500, 8, 8, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    (tmp_path / "images").mkdir()
    for number, image in enumerate(images.numpy()):
        Image.fromarray(image).save(tmp_path / "images" / f"{number:03}.png")
    call("gan_detach", *SMALL, "--steps", 1, "--dataset", tmp_path / "images", "--runs-dir", tmp_path / "runs")
    (run,) = (tmp_path / "runs").glob("gan_detach/*")
    paths = image_paths(tmp_path / "images")
    held_out = [number for number, path in enumerate(paths) if path not in training_paths(paths)]
    assert load(run)["data_shapes"] == [[500 - len(held_out), 3, 8, 8]]
    monkeypatch.setattr(evaluate, "generate", lambda *_: images[held_out].permute(0, 3, 1, 2))
    found = evaluated(run)
    assert (found["real"], found["features"], found["count"]) == ("held-out", "random", len(held_out))
    assert abs(found["samples"]["fid"]) < 1e-4 < 0.01 < found["floor"]["fid"]  # the floor is of images trained on
    assert (found["samples"]["recall"], found["samples"]["colours"]) == (1, 1)

    dimensions = ({0: torch.export.Dim("batch")},)
    network = torch.export.export(torch.nn.Flatten(), (torch.zeros(2, 3, 8, 8),), dynamic_shapes=dimensions)
    torch.export.save(network, tmp_path / "flat.pt2")
    assert evaluated(run, features=str(tmp_path / "flat.pt2"))["features"].startswith("flat-")
    monkeypatch.setattr(evaluate, "generate", lambda *_: images[:250].permute(0, 3, 1, 2))
    any_of_them = evaluated(run, real="any", features="random")
    assert (any_of_them["real"], any_of_them["count"], len(reports(run))) == ("any", 250, 3)
    printed = capsys.readouterr().out
    assert printed.count("More images a side, most of which the run has seen: --real any.") == 2
    assert printed.count("The FID of papers has other features: --features inception.") == 3
    assert "note: " not in printed
    Image.new("RGB", (8, 8)).save(tmp_path / "images" / Path(training_paths(paths)[0]).name)
    assert evaluated(run)["step"] == 1
    assert "note: as many images as it was trained on, but not the same" in capsys.readouterr().out
    change(run, lambda checkpoint: checkpoint.update(images_replaced=True))
    assert evaluated(run)["real"] == "held-out (perhaps not before images were replaced)"
    change(run, lambda checkpoint: checkpoint["options"].update(init_from="a run that may have seen them"))
    assert evaluated(run)["real"] == "held-out (perhaps not by the run that it began with)"
    assert "--real any." in capsys.readouterr().out
    change(run, lambda checkpoint: checkpoint.update(data_shapes=[[500, 3, 8, 8]]))  # as before there was a share
    monkeypatch.setattr(evaluate, "generate", lambda *_: images[:20].permute(0, 3, 1, 2))
    assert evaluated(run, count=20)["real"] == "training"
    (tmp_path / "images" / "000.png").unlink()
    assert evaluated(run, count=20)["real"] == "499 (not the 500 trained on)"


@pytest.fixture
def shades(run, tmp_path):
    """The folder that `run` was trained on: 19 images of each of three classes, of which 51 train the classifier."""
    for name, shade in (("dark", 20), ("grey", 120), ("bright", 220)):
        make_images(tmp_path / "shades" / name, 19, 28, shade)
    change(run, lambda checkpoint: checkpoint["options"].update(dataset=str(tmp_path / "shades")))
    change(run, lambda checkpoint: checkpoint.update(data_shapes=[[57, 1, 28, 28]]))
    return tmp_path / "shades"


def test_a_classifier_of_the_classes_is_trained_once_and_a_moved_folder_is_named(run, shades, monkeypatch):
    first = evaluated(run)
    assert (first["features"], first["held_out"]) == ("classes", 6)
    assert first["classifier_accuracy"] > 0.9
    with monkeypatch.context() as patch:
        patch.setattr(classifier, "train_classifier", None)
        assert evaluated(run) == first
    moved = shades.rename(run / "moved")
    with pytest.raises(BadInput, match=r"/shades': neither a folder nor .*; name one, --dataset"):
        evaluate.main(Options(run))
    assert evaluated(run, dataset=str(moved)) == first
    with pytest.raises(BadInput, match=r"--count 29: must be from 4 to 28, of 57 real images"):
        evaluate.main(Options(run, dataset=str(moved), count=29))


@pytest.mark.parametrize(("accuracy", "features"), [(0.0, "random"), (0.66, "random"), (0.67, "classes")])
def test_features_of_a_classifier_that_guesses_more_than_it_knows_are_not_taken(
    accuracy, features, run, shades, monkeypatch, capsys
):
    """Halfway from a third, the share of each class, to one."""
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 3))
    judge = Classifier(network, (1, 28), ("bright", "dark", "grey"), accuracy, 6)
    monkeypatch.setattr(evaluate, "class_classifier", lambda *_: judge)
    found = evaluated(run)
    assert (found["features"], found["classifier_accuracy"]) == (features, accuracy)
    told = f"features: {features} (the classifier's accuracy is {accuracy:.1%} on 6 held-out images"
    assert told + (": its own features tell little)" if features == "random" else ")") in capsys.readouterr().out


def test_what_training_images_lack_and_all_have_is_named_if_a_class_and_taken_if_a_colour(run, tmp_path):
    """The one image of class c, the only one in colour, is held out; older runs have the classes that they saw."""
    for name, number in (("a", 256), ("b", 256), ("c", 1)):
        make_images(tmp_path / "data" / name, number)
    (tmp_path / "data" / "c" / "000.png").unlink()
    Image.new("RGB", (8, 8), "red").save(tmp_path / "data" / "c" / "6.png")
    count = len(training_paths(image_paths(tmp_path / "data")))
    change(run, lambda checkpoint: checkpoint["options"].update(dataset=str(tmp_path / "data")))
    entries = {"averages": {}, "data_shapes": [[count, 1, 8, 8]], "generator": mlp((1, 8, 8), 8)[0].state_dict()}
    change(run, lambda checkpoint: checkpoint.update(entries))
    assert evaluated(run, features="random")["real"] == "held-out"
    entries = {"classes": [["a", "b"]], "generator": conditional("mlp", (1, 8, 8), 8, 2)[0].state_dict()}
    change(run, lambda checkpoint: checkpoint.update(entries))
    with pytest.raises(BadInput, match="the held-out tenth has all of c; take --no-hold-out"):
        evaluate.main(Options(run))


NETWORKS = {  # a network, the size of its example, and whether any number of images is taken
    "fixed": (torch.nn.Flatten(), 28, False),
    "another size": (torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 64, 5)), 8, True),
    "4-d": (torch.nn.Conv2d(3, 4, 3), 28, True),
    "one feature": (torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 784, 1)), 28, True),
    "training": (torch.nn.Sequential(torch.nn.Flatten(), torch.nn.BatchNorm1d(3 * 784)), 28, True),
    "constant": (torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Threshold(2, 1.0)), 28, True),
    "NaN": (torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Threshold(2, float("nan"))), 28, True),
}


@pytest.mark.parametrize("name", [*NETWORKS, "text", "missing"])
def test_features_that_cannot_be_taken_are_refused_in_a_line(name, run, untrained, tmp_path, refusal):
    path = tmp_path / "own.pt2"
    asked = "neither digits, classes, random or inception, nor by torch.export.save"
    if name in NETWORKS:
        network, size, is_any = NETWORKS[name]
        dimensions = ({0: torch.export.Dim("batch")},) if is_any else None
        program = torch.export.export(network, (torch.zeros(2, 3, size, size),), dynamic_shapes=dimensions)
        torch.export.save(program, path)
        asked = "must give finite (N, F), F > 1, of floats (N, 3, 28, 28), for any N; export it so"
    elif name == "text":
        path.write_text("no network")
    line = refusal("evaluate", run, "--count", 10, "--features", path)
    assert line.startswith(f"error: --features {path}: {asked}: ")


def test_a_fifo_called_evaluation_json_is_not_waited_for(run, refusal):
    os.mkfifo(run / "evaluation.json")
    assert "evaluation.json: was not written by evaluate.py; move it elsewhere: no reg" in refusal("evaluate", run)


def test_figures_are_printed_before_they_are_written_where_that_cannot_be(run, untrained, outcome):
    (run / "evaluation").write_text("in the way")
    status, printed, errors = outcome("evaluate", run, "--count", 10)
    assert status == 1
    assert "| fid " in printed
    assert errors.startswith(f"error: {run}: evaluation.json or evaluation/: cannot be written: ")


def test_figures_are_written_where_the_reader_of_stdout_has_left_and_stderr_is_not_silenced(
    run, untrained, capfd, monkeypatch
):
    reader, writer = os.pipe()
    os.close(reader)  # as that of `| head`
    with os.fdopen(writer, "w") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        call("evaluate", run, "--count", 10)
        call("sample", run)
    assert len(json.loads((run / "evaluation.json").read_text())) == 1
    os.write(2, b"a later error")
    assert capfd.readouterr().err == "a later error"


def test_a_name_of_a_class_breaks_no_table_and_identical_images_have_no_spread_of_colours():
    rows = [line.split(" | ") for line in table(["a", "b"], [["share of\n1|2", "3"], ["4", "5"]]).splitlines()]
    assert [len(row) for row in rows] == [2] * 4
    assert rows[2][0] == r"| share of\n1\|2"
    alike = torch.zeros(8, 1, 2, 2, dtype=torch.uint8)
    assert measure_colours(alike + 9, alike) == {}
    assert measure_colours(alike, torch.arange(8, dtype=torch.uint8)[:, None, None, None] + alike) == {"colours": 0}


def test_fashion_mnist_is_compared_with_its_test_images_and_fewer_images_take_fewer_steps(monkeypatch, capsys):
    def dataset(*_, train, **__):
        count, shade = (60_000, 0) if train else (40, 255)
        images = torch.full((count, 2, 2), shade, dtype=torch.uint8)
        return mock.Mock(data=images, targets=torch.arange(count) % 2, classes=["a", "b"])

    monkeypatch.setitem(data.TORCHVISION, "fashion-mnist", dataset)
    monkeypatch.setitem(classifier.STEPS, "classes", 2400)
    real = real_images.load_real("fashion-mnist", 2)
    assert (real.images == 255).all()
    assert (len(real.labels), real.classes) == (40, ("a", "b"))
    of_run = {"options": {"dataset": "fashion-mnist"}, "data_shapes": [[60_000, 1, 2, 2]]}
    for shade, told in ((0, False), (255, True)):  # of the images that it was trained on
        sums = [data.checksum(torch.full((60_000, 1, 2, 2), shade, dtype=torch.uint8))]
        real_images.real_images_of(Path("run"), of_run | {"image_checksums": sums}, None)
        assert ("does the script change them?" in capsys.readouterr().out) == told
    few = LabeledImages(torch.zeros(372, 1, 2, 2), torch.zeros(372).long(), ("a",))
    train = mock.Mock(side_effect=KeyboardInterrupt)
    monkeypatch.setattr(classifier, "train_classifier", train)
    for name, images, steps in (("fashion-mnist", real, 2400), ("a folder", few, 534), ("forty", real, 400)):
        with pytest.raises(KeyboardInterrupt):
            class_classifier(name, images)
        assert train.call_args.args[2] == steps


@pytest.mark.numerics
def test_the_lattice_is_the_power_at_a_period_of_two_pixels():
    columns = torch.tensor([0, 255], dtype=torch.uint8).repeat(4).expand(8, 8)
    checks = torch.where(torch.eye(2).repeat(4, 4) > 0, 255, 0).to(torch.uint8)
    halves = torch.tensor([0, 255], dtype=torch.uint8).repeat_interleave(4).expand(8, 8)
    blank = torch.full((8, 8), 201, dtype=torch.uint8)
    for image, share in ((columns, 1), (columns.T, 1), (checks, 1), (halves, 0), (blank, 0)):
        assert measure_lattice(image.expand(2, 3, 8, 8)) == pytest.approx(share, abs=1e-6)
    wide = torch.tensor([0, 0, 255, 255], dtype=torch.uint8).repeat(2).expand(2, 3, 8, 8)
    assert [measure_lattice(wide, period) for period in (2, 4)] == pytest.approx([0, 1], abs=1e-6)
    waves = columns[None, None] // 2 + halves[None, None] // 2  # a wave of two pixels beside one of eight
    expected = 128**2 / 4 / ((columns // 2 + halves // 2).float().var(correction=0).item())
    assert measure_lattice(waves) == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize(
    ("entries", "options", "message"),
    [
        *(({"report": text}, {}, "was not written by evaluate") for text in ("mine", '{"fid": 1}', "[{}]", "[1]")),
        ({}, {"count": 2001}, "--count 2001: must be from 4 to 2000, of 4000 real images"),
        ({}, {"count": 3}, "--count 3: must be from 4"),
        ({"options": {"dataset": "no/such", "model": "mlp", "z_dim": 8}}, {}, "'no/such': neither a folder nor"),
        ({"a_to_b": {}, "b_to_a": {}}, {}, "takes no noise"),
        ({"a_to_b": {}, "options": {}}, {}, "takes z: it stores no length of the noise"),  # a pix2pix
        ({"average": {}}, {}, "does not hold this network.*: .*n_averaged"),
        ({"average": {}, "data_shapes": [(9, 1, 28, 28, 1)]}, {}, "--networks FILE:FUNCTION"),
        ({"data_types": ["float32"]}, {}, "its data are floats, not images"),
        ({"data_shapes": []}, {}, "it stores no shape of its data"),
        ({"options": {"model": "mlp", "z_dim": 8}}, {}, "does not say which images .* name them, --dataset"),
        (
            {"options": {"fit": "cover", "model": "mlp", "z_dim": 8}},
            {"dataset": "mnist5k"},
            "its option fit is 'cover', none of crop",
        ),
        ({"data_shapes": [(9, 1, 28, 28)]}, {"dataset": "mnist5k"}, r"are \[4000, 1, .* not \[9, 1, .*; use"),
        ({"options": {"dataset": "mnist5k", "model": "mlp", "z_dim": 10**12}}, {}, "does not hold this network"),
    ],
)
def test_what_cannot_be_judged_is_refused_before_a_classifier_is_trained(entries, options, message, run, monkeypatch):
    monkeypatch.setattr(evaluate, "digit_classifier", None)
    before = entries.get("report", "[]")
    (run / "evaluation.json").write_text(before)
    change(run, lambda checkpoint: checkpoint.update(entries))
    with pytest.raises(BadInput, match=message):
        evaluate.main(Options(run, **options))
    assert (run / "evaluation.json").read_text() == before
