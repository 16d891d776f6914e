"""The cost of the audit is measured for both kinds of networks."""

import re

from scripts.benchmarks.compare_audit import Options, main


def test_a_row_for_each_kind_of_networks(capsys):
    main(Options(batch_size=2, repeats=1, device="cpu"))
    rows = [row.split("|")[1:-1] for row in capsys.readouterr().out.split("\n\n")[1].splitlines()[2:]]
    assert [row[0].strip() for row in rows] == ["conv", "mlp"]
    assert all(re.fullmatch(r"\d+\.\d\d \(\d+\.\d\d-\d+\.\d\d\)", cell.strip()) for row in rows for cell in row[2:])


def test_bad_options_are_refused(refusal):
    for option in ("--repeats=0", "--image-size=30", "--batch-size=0"):
        assert option.replace("=", " ") in refusal("compare_audit", option)
