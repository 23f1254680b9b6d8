"""The package as people install it: what it needs is declared, what it does not need is not loaded."""

import ast
import os
import re
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

import eqlearn

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# Modules whose package has another name.
PACKAGE_OF = {
    "PIL": "pillow",
    "sklearn": "scikit-learn",
    "markdown_it": "markdown-it-py",
    "mpmath": "sympy",
    "pyarrow": "pyarrow",
}
# What is offered where the user has it, and asked for nowhere.
IF_THERE = {"IPython"}


def name_of(requirement):
    return re.match(r"[\w.-]+", requirement)[0].lower()


def imported():
    """The packages that the source imports, by whether they are needed to load the module."""
    names = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names.add((node.module or "").split(".")[0])
    return names - set(sys.stdlib_module_names) - {"eqlearn", ""}


def test_everything_that_is_imported_is_declared():
    optional = [r for extra in PROJECT["optional-dependencies"].values() for r in extra]
    declared = {name_of(r) for r in (*PROJECT["dependencies"], *optional)}

    missing = {PACKAGE_OF.get(n, n).replace("_", "-").lower() for n in imported() - IF_THERE} - declared

    assert missing == set()


def test_everything_that_is_declared_is_imported():
    used = {PACKAGE_OF.get(n, n).replace("_", "-").lower() for n in imported()}

    assert {name_of(r) for r in PROJECT["dependencies"]} - used == set()


def test_every_dependency_has_a_lower_bound_and_no_upper_one():
    for requirement in PROJECT["dependencies"]:
        assert ">=" in requirement
        assert "<" not in requirement
        assert "==" not in requirement


def test_the_extra_all_holds_every_extra_of_users():
    (everything,) = PROJECT["optional-dependencies"]["all"]
    listed = set(re.search(r"\[(.*)\]", everything)[1].split(","))

    assert listed == set(PROJECT["optional-dependencies"]) - {"all", "dev", "docs"}


def test_the_recipe_asks_for_the_same_versions():
    recipe = (ROOT / "packaging" / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    other = {"torch": "pytorch", "matplotlib": "matplotlib-base"}

    for requirement in PROJECT["dependencies"]:
        name, _, version = requirement.partition(">=")
        assert f"- {other.get(name, name)} >={version}\n" in recipe
    assert f'version: "{PROJECT["version"]}"' in recipe
    assert PROJECT["version"] == eqlearn.__version__


def test_workflows_and_hooks_can_be_read():
    yaml = pytest.importorskip("yaml")

    for path in [
        *ROOT.glob(".github/**/*.yml"),
        ROOT / ".pre-commit-config.yaml",
        ROOT / "packaging/conda/recipe.yaml",
    ]:
        assert isinstance(yaml.safe_load(path.read_text(encoding="utf-8")), dict), path
    matrix = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text())["jobs"]["matrix"]["strategy"][
        "matrix"
    ]
    versions = [c.rpartition(" ")[2] for c in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", c)]
    assert matrix["python"] == versions


def test_the_estimator_loads_nothing_that_it_may_not_need():
    code = (
        "import sys, warnings; warnings.simplefilter('error'); from eqlearn import EQLRegressor, discover;"
        "heavy = {'matplotlib', 'markdown_it', 'pint', 'rich', 'dask', 'jax', 'IPython'};"
        "assert not heavy & sys.modules.keys(), heavy & sys.modules.keys()"
    )

    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.slow
def test_a_wheel_made_of_the_sdist_works_in_an_empty_environment_and_another_folder(tmp_path):
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    tools = tmp_path / "tools"
    got = subprocess.run(
        [*pip, "install", "--quiet", "--target", str(tools), "build", "hatchling"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if got.returncode:
        pytest.skip("there is nothing to build with")
    # The wheel is built from the sdist, which therefore holds all that is needed.
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(tmp_path / "dist"), str(ROOT)],
        env={**os.environ, "PYTHONPATH": str(tools)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    (sdist,), (wheel,) = ((tmp_path / "dist").glob(kind) for kind in ("*.tar.gz", "*.whl"))
    assert sdist.stat().st_size < 10_000_000
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {"eqlearn/__init__.pyi", "eqlearn/io/files/kepler.csv", "eqlearn/paper/problems.json"} <= set(
        names
    )
    assert not [n for n in names if n.startswith("tests/")]

    empty = tmp_path / "empty"
    venv.create(empty, with_pip=False)
    python = empty / "bin" / "python"
    subprocess.run([*pip, "--python", str(python), "install", "--quiet", "--no-deps", str(wheel)], check=True)
    (site,) = empty.glob("lib/python*/site-packages")
    # Dependencies come from this environment, after the empty one's own packages; eqlearn must not.
    others = [p for p in sys.path if p.endswith("-packages")]
    (site / "others.pth").write_text("\n".join(others))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    plain = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "OMP_NUM_THREADS": "1"}
    where = subprocess.run(
        [python, "-W", "error", "-c", "import eqlearn; print(eqlearn.__file__)"],
        cwd=elsewhere, env=plain, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert str(site) in where
    fitted = subprocess.run(
        [empty / "bin" / "eqlearn", "fit", "--restarts", "20"],
        cwd=elsewhere, env=plain, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert fitted.returncode == 0, fitted.stderr
    assert "T = a**(3/2)" in fitted.stdout
    assert "Warning" not in fitted.stderr
    assert (elsewhere / "runs" / "kepler" / "report.html").exists()
