"""`eqlearn doctor` for files as people bring them."""

import io
import json
import sys

import pytest

from eqlearn.cli import main


@pytest.fixture
def messy(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"0{k}.01.2024;{k},5;1.20{k * k % 7},5;Ulm;;{2 * k + 1};" for k in range(1, 9)]
    text = "\n".join(["Day;Length;Mass;Site;Note;Twice;", ";m;g;;;m;", *rows])
    (tmp_path / "messy.csv").write_text(text, encoding="utf-8")


def test_a_messy_sheet_gets_a_command_that_works(messy, capsys):
    assert main(["doctor", "messy.csv", "--target", "Length"]) == 0
    *_, last = capsys.readouterr().out.strip().splitlines()
    command = last.removeprefix("Next: eqlearn ").split()

    assert command == ["fit", "messy.csv", "--target", "Length", "--ignore", "Day,Site,Note"]
    assert main([*command, "--restarts", "1", "--quiet"]) == 0


def test_json_is_for_programs(messy, capsys):
    assert main(["doctor", "messy.csv", "--json"]) == 0

    seen = json.loads(capsys.readouterr().out)
    assert (seen["rows"], len(seen["columns"]), len(seen["numbers"])) == (8, 6, 4)
    assert {"weight", "columns", "what", "advice"} == set(seen["findings"][0])


def test_a_mean_below_the_table_is_seen(messy, tmp_path, capsys):
    with (tmp_path / "messy.csv").open("a", encoding="utf-8") as file:
        file.writelines(f"\n{k}.02.2024;{k},5;1.201,5;Ulm;;{2 * k + 1};" for k in range(10, 20))
        file.write("\nMittelwert;9,5;1.201,5;;;9;\n")

    assert main(["doctor", "messy.csv"]) == 0

    assert "row 19 has 'Mittelwert' among the dates of 'Day'" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["missing.csv"], "there is no file"),
        (["messy.csv", "--target", "Lenght"], "did you mean 'Length'?"),
        (["messy.csv", "--target", "Site"], "the target 'Site' of 'messy.csv' holds text"),
        (["names.csv"], "holds no column of numbers"),
        (["bare.csv"], "holds no rows"),
    ],
)
def test_what_can_not_be_looked_at_is_refused_in_one_sentence(messy, tmp_path, capsys, words, message):
    (tmp_path / "names.csv").write_text("a,b\nu,v\nw,x\n")
    (tmp_path / "bare.csv").write_text("a,b\n")

    assert main(["doctor", *words]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_an_old_terminal_gets_plain_letters(messy, monkeypatch):
    screen = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", screen)

    assert main(["doctor", "messy.csv"]) == 0
    screen.flush()
    assert screen.buffer.getvalue().decode("ascii").startswith("'messy.csv': 8 rows")
