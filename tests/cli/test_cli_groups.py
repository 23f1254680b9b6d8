"""`eqlearn fit --group` and `--varies`, the run's folder and its page."""

import json

import numpy as np
import pytest

from eqlearn.cli import main


@pytest.fixture(scope="module")
def springs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("springs")
    rng = np.random.default_rng(0)
    lines = [
        f"s{i},{x},{k * x + 2}" for i, k in enumerate([1.1, 1.9, 2.7, 3.4]) for x in rng.uniform(0, 2, 10)
    ]
    (folder / "springs.csv").write_text("\n".join(["sample,x,force", *lines]) + "\n")
    assert main(["fit", str(folder / "springs.csv"), "--target", "force", "--group", "sample",
                 "--out", str(folder / "run"), "--quiet"]) == 0  # fmt: skip
    return folder


def test_a_run_has_the_constants_of_each_group_in_its_folder_and_page(springs, capsys):
    table = (springs / "run" / "constants.csv").read_text().splitlines()

    assert table[0] == "sample,c1[sample],c1[sample] standard error"
    assert [float(line.split(",")[1]) for line in table[1:]] == pytest.approx([1.1, 1.9, 2.7, 3.4])
    page = (springs / "run" / "report.html").read_text()
    assert "Constants that vary" in page
    assert page.split('<div class="multiples">')[1].count("<figcaption>sample s") == 4


def test_a_run_is_shown_predicted_and_continued(springs, capsys):
    run, data = str(springs / "run"), str(springs / "springs.csv")
    capsys.readouterr()

    assert main(["show", run]) == 0
    text = capsys.readouterr().out
    assert "c1[sample]   1.1 to 3.4 over 4 groups by sample" in text
    assert "force by the equation" in text
    assert main(["show", run, "--as", "json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert main(["predict", run, data]) == 0
    predicted = [float(line) for line in capsys.readouterr().out.split()[1:]]
    assert (
        main(["fit", data, "--target", "force", "--group", "sample", "--out", run, "--resume", "--json"]) == 0
    )
    again = json.loads(capsys.readouterr().out)

    best = shown["front"][shown["pick"]]
    assert best["outputs"][0]["expression"] == "c1[sample]*x + 2"
    assert best["varying"]["labels"] == ["s0", "s1", "s2", "s3"]
    truth = [float(line.split(",")[2]) for line in (springs / "springs.csv").read_text().splitlines()[1:]]
    assert predicted == pytest.approx(truth)
    assert again["front"] == shown["front"]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("sample,x,y\na,1,2\n,2,3\na,3,4\nb,4,5\nb,5,7\nb,6,7\n", "no label in 1 row"),
        ("sample,x,y\na,1,2\na,2,3\na,3,4\na,4,5\na,5,7\n", "one group only"),
        ("other,x,y\na,1,2\na,2,3\na,3,4\na,4,5\na,5,7\n", "no column 'sample'"),
    ],
)
def test_bad_groups_are_refused_in_a_sentence(tmp_path, capsys, table, message):
    (tmp_path / "data.csv").write_text(table)

    assert main(["fit", str(tmp_path / "data.csv"), "--target", "y", "--group", "sample"]) == 2
    assert message in capsys.readouterr().err


def test_what_can_not_go_with_a_group_is_named_as_it_was_typed(springs, capsys):
    data = str(springs / "springs.csv")

    assert main(["fit", data, "--target", "force", "--group", "sample", "--loss", "auto"]) != 0

    assert "`--group` can't be used with `--loss`; leave one out" in capsys.readouterr().err
