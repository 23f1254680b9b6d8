"""The data sets that ship: they are all there, documented, and what they are said to be."""

import numpy as np
import pytest

from eqlearn.errors import UnknownName
from eqlearn.io.datasets import DATASETS, load_dataset


@pytest.mark.parametrize("name", DATASETS)
def test_every_set_is_a_table_of_finite_numbers_with_its_target(name):
    data = load_dataset(name)

    assert data.y.name == data.target
    assert data.target not in data.X.columns
    assert len(data.X) == len(data.y) >= 7
    assert np.isfinite(data.X.to_numpy()).all()
    assert np.isfinite(data.y.to_numpy()).all()


@pytest.mark.parametrize("name", DATASETS)
def test_every_set_has_a_source_and_a_line_in_the_readme(name):
    data = load_dataset(name)
    readme = (data.path.parent / "README.md").read_text(encoding="utf-8")

    assert data.about.endswith(".")
    assert data.source
    assert f"| `{name}.csv` | {len(data.y)} |" in readme


def test_the_readme_lists_no_other_file():
    files = {path.stem for path in load_dataset("kepler").path.parent.glob("*.csv")}

    assert files == set(DATASETS)


def test_the_planets_are_those_of_the_tables_of_jpl():
    data = load_dataset("kepler")
    axes = [0.38709927, 0.72333566, 1.00000261, 1.52371034, 5.202887, 9.53667594, 19.18916464, 30.06992276]
    periods = [0.2408467, 0.61519726, 1.0000174, 1.8808476, 11.862615, 29.447498, 84.016846, 164.79132]

    assert data.X["a"][:8].tolist() == axes
    assert data.y[:8].tolist() == periods


def test_the_periods_of_the_planets_are_those_of_their_mean_motions():
    # Degrees in a Julian century, from the table of which the axes are another column.
    motions = [149472.67411175, 58517.81538729, 35999.37244981, 19140.30268499]
    motions += [3034.74612775, 1222.49362201, 428.48202785, 218.45945325]

    np.testing.assert_allclose(load_dataset("kepler").y[:8], 36_000 / np.array(motions), rtol=2e-5)


def test_the_planets_obey_keplers_third_law():
    data = load_dataset("kepler")

    np.testing.assert_allclose(data.y, data.X["a"] ** 1.5, rtol=2.5e-3)


def test_the_lines_of_hydrogen_obey_balmers_formula():
    data = load_dataset("balmer")
    n = data.X["n"]

    np.testing.assert_allclose(data.y, 364.6 * n**2 / (n**2 - 4), rtol=1e-5)


def test_the_lines_of_hydrogen_are_those_of_the_rydberg_constant_in_air():
    data = load_dataset("balmer")
    n = data.X["n"]
    vacuum = 4e9 / 10_967_758.34 * n**2 / (n**2 - 4)
    waves = (1e3 / vacuum) ** 2  # per micrometre, squared; the index is that of Peck and Reeder (1972)
    index = 1 + 8060.51e-8 + 2480990e-8 / (132.274 - waves) + 17455.7e-8 / (39.32957 - waves)

    # Fine structure makes every line a little shorter.
    off = data.y / (vacuum / index) - 1
    assert ((off > -1.5e-5) & (off < -5e-6)).all()


def test_the_ultrasound_data_are_those_that_nist_certified():
    data = load_dataset("ultrasound")
    x = data.X["distance"]
    certified = np.exp(-1.6657666537e-01 * x) / (5.1653291286e-03 + 1.2150007096e-02 * x)

    assert ((data.y - certified) ** 2).sum() == pytest.approx(5.1304802941e02, rel=1e-9)


def test_a_name_that_is_not_known_gets_a_suggestion():
    with pytest.raises(UnknownName, match="did you mean 'kepler'"):
        load_dataset("keppler")
