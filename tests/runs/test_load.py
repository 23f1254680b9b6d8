"""`eqlearn.load` reads networks, equations and laws behind encoders, and says what it can't read."""

import pytest
import torch

import eqlearn
from eqlearn import EQL, Equation, InvalidArgument, InvalidFile
from eqlearn.runs.load import load
from made_latent import made_encoder, made_found


def test_a_law_comes_back_with_its_model(tmp_path):
    found = made_found()
    found.save(tmp_path / "law")
    inputs, columns = {"k": torch.randn(5, 3)}, {"x": torch.randn(5)}

    again = load(tmp_path / "law", encoders={"k": made_encoder()})

    assert str(again) == str(found)
    torch.testing.assert_close(again.model(inputs, columns), found.model(inputs, columns), rtol=0, atol=0)


def test_without_encoders_there_is_the_law_but_no_model(tmp_path):
    made_found().save(tmp_path)

    again = eqlearn.load(tmp_path)

    assert again.agreement == (2, 2)
    assert again.constants[0][0].standard_error == 0.01
    with pytest.raises(InvalidArgument, match="encoders="):
        _ = again.model


def test_files_are_loaded_as_before(tmp_path):
    equation, network = Equation.parse("2*x", ["x"]), EQL(1, 1, "id", seed=0)
    eqlearn.save(equation, tmp_path / "law.json")
    eqlearn.save(network, tmp_path / "net.safetensors")

    assert load(tmp_path / "law.json") == equation
    assert isinstance(load(tmp_path / "net.safetensors"), EQL)


def test_encoders_for_a_file_are_refused(tmp_path):
    eqlearn.save(Equation.parse("2*x", ["x"]), tmp_path / "equation.json")

    with pytest.raises(InvalidArgument, match="is a file, load it without"):
        load(tmp_path / "equation.json", encoders={"k": made_encoder()})


@pytest.mark.parametrize(
    ("name", "message"), [("run.json", "folder of a run"), ("notes.txt", "without law.json")]
)
def test_a_folder_of_something_else_is_refused_in_a_sentence(name, message, tmp_path):
    (tmp_path / name).write_text("{}")

    with pytest.raises(InvalidFile, match=message):
        load(tmp_path)


def test_a_folder_whose_law_is_another_file_is_refused(tmp_path):
    eqlearn.save(Equation.parse("2*x", ["x"]), tmp_path / "law.json")

    with pytest.raises(InvalidFile, match="no law behind encoders"):
        load(tmp_path)


def test_nothing_there_is_the_error_that_python_has_for_it(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load(tmp_path / "nowhere", encoders={"k": made_encoder()})


def test_encoders_of_another_kind_are_refused(tmp_path):
    made_found().save(tmp_path)

    with pytest.raises(InvalidArgument, match="not of the kind"):
        load(tmp_path, encoders={"k": torch.nn.Linear(4, 1)})
    with pytest.raises(InvalidArgument, match="must be for k"):
        load(tmp_path, encoders={"q": made_encoder()})
