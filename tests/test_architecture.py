"""The package reads top to bottom: a module imports only from rooms above its own, or upwards in its own."""

import ast
import graphlib
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

import eqlearn

SOURCE = Path(eqlearn.__file__).parent
# Rooms and single files, in the order in which data walk through them. Inside a room imports form no circle.
READING_ORDER = [
    "errors",
    "functions",
    "validation",
    "numerics",
    "nn",
    "symbolic",
    "training",
    "search",
    "dynamics",
    "fields",
    "verify",
    "io",
    "report",
    "latent",
    "estimator",
    "runs",
    "live",
    "paper",
    "cli",
]
MAY_PRINT = ("cli", "paper", "report")
RUNS_CODE = {"eval", "exec", "__import__"}
READS_CODE = {
    "pickle.load",
    "pickle.loads",
    "torch.load",
    "joblib.load",
    "sp.sympify",
    "sympy.sympify",
    "sp.parse_expr",
}

MODULES = {
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(SOURCE.rglob("*.py"))
}
TREES = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in MODULES.items()}
INSIDE_ROOMS = [name for name in MODULES if name != "__init__"]


def room(module: str) -> str:
    return module.split(".")[0]


@cache
def imported(module: str) -> frozenset[str]:
    """The modules of the package that `module` imports, also late, inside functions."""
    names = []
    for node in ast.walk(TREES[module]):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return frozenset(home(name.removeprefix("eqlearn.")) for name in names if name.startswith("eqlearn."))


def home(name: str) -> str:
    """The module where an imported thing lives; public names live where the package says."""
    if name in eqlearn._HOME_OF:
        return eqlearn._HOME_OF[name].removeprefix("eqlearn.")
    while name not in MODULES and "." in name:
        name = name.rpartition(".")[0]
    return name if name in MODULES else "__init__"


@cache
def called(module: str) -> frozenset[str]:
    return frozenset(ast.unparse(n.func) for n in ast.walk(TREES[module]) if isinstance(n, ast.Call))


def test_every_module_has_a_room():
    assert [module for module in INSIDE_ROOMS if room(module) not in READING_ORDER] == []


def test_imports_point_up_the_page():
    below = [
        (module, name)
        for module in INSIDE_ROOMS
        for name in imported(module) - {"__init__"}
        if READING_ORDER.index(room(name)) > READING_ORDER.index(room(module))
    ]

    assert below == []


@pytest.mark.parametrize("name", READING_ORDER)
def test_inside_a_room_imports_form_no_circle(name):
    inside = {
        m: {i for i in imported(m) if room(i) == name and i != name} for m in MODULES if room(m) == name
    }

    order = list(graphlib.TopologicalSorter(inside).static_order())

    assert set(order) == set(inside)


FOLDERS = sorted(
    {str(p.parent.relative_to(SOURCE)) for p in MODULES.values() if p.parent != SOURCE} - {"cli"}
)


@pytest.mark.parametrize("folder", [f for f in FOLDERS if room(f.replace("/", ".")) != "paper"])
def test_the_page_lists_every_module_of_a_folder_in_reading_order(folder):
    page = (SOURCE.parents[1] / "ARCHITECTURE.md").read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if line.startswith(f"| `{folder}/`"))
    modules = {
        path.stem: name
        for name, path in MODULES.items()
        if path.parent == SOURCE / folder and path.name != "__init__.py"
    }
    listed = [word for word in re.findall(r"`(\w+)`", row) if word in modules]

    assert sorted(listed) == sorted(modules)
    for place, module in enumerate(listed):
        later = {modules[word] for word in listed[place + 1 :]}
        assert not later & imported(modules[module]), module


def outside_the_paper(module: str) -> set[str]:
    """What a module of the paper imports from the rest of the package, but for public names."""
    names = set()
    for node in ast.walk(TREES[module]):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names if room(alias.name) == "eqlearn"}
        elif isinstance(node, ast.ImportFrom) and (node.level > 0 or room(node.module or "") == "eqlearn"):
            public = eqlearn.__all__ if node.module == "eqlearn" and node.level == 0 else ()
            names |= {f"{node.module}.{alias.name}" for alias in node.names if alias.name not in public}
    return {name for name in names if not name.startswith("eqlearn.paper.")}


def test_the_paper_uses_public_names_only():
    assert {m: outside_the_paper(m) for m in MODULES if room(m) == "paper" and outside_the_paper(m)} == {}


def test_nothing_but_its_command_imports_the_paper():
    users = {m for m in MODULES if room(m) != "paper" and any(room(name) == "paper" for name in imported(m))}

    assert users == {"cli.reproduce"}


@pytest.mark.parametrize(
    "line",
    ["from eqlearn.nn.eql import EQL", "import eqlearn.nn", "from eqlearn import nn", "from ..nn import eql"],
)
def test_an_inner_name_in_the_paper_would_be_seen(line, monkeypatch):
    monkeypatch.setitem(TREES, "paper.made_up", ast.parse(line))

    assert outside_the_paper("paper.made_up")


def imports_from(module: str) -> list[ast.ImportFrom]:
    return [node for node in ast.walk(TREES[module]) if isinstance(node, ast.ImportFrom)]


def test_no_module_imports_everything():
    assert [m for m in MODULES if any(n.names[0].name == "*" for n in imports_from(m))] == []


def test_no_module_imports_what_is_private_to_another():
    names = [
        (module, alias.name)
        for module in MODULES
        for node in imports_from(module)
        if (node.module or "").startswith("eqlearn")
        for alias in node.names
    ]

    assert [(m, name) for m, name in names if name.startswith("_") and not name.startswith("__")] == []


def test_every_module_says_what_it_holds():
    assert [module for module in MODULES if not ast.get_docstring(TREES[module])] == []


def test_only_the_command_line_and_the_report_print():
    assert [m for m in MODULES if room(m) not in MAY_PRINT and "print" in called(m)] == []


def test_nothing_runs_code_from_data():
    assert [(m, called(m) & (RUNS_CODE | READS_CODE)) for m in MODULES
            if called(m) & (RUNS_CODE | READS_CODE)] == []  # fmt: skip


def test_importing_the_package_is_light():
    heavy = "{'torch', 'sympy', 'numpy', 'pandas', 'sklearn', 'scipy', 'matplotlib'}"
    code = f"import sys, eqlearn; heavy = {heavy} & sys.modules.keys(); assert not heavy, heavy"

    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_public_name_is_there():
    assert [name for name in eqlearn.__all__ if getattr(eqlearn, name) is None] == []


def test_type_checkers_see_the_public_names_where_they_live():
    stub = ast.parse((SOURCE / "__init__.pyi").read_text(encoding="utf-8"))
    imports = [n for n in ast.walk(stub) if isinstance(n, ast.ImportFrom)]
    seen = {a.asname: n.module for n in imports for a in n.names if a.asname == a.name}

    assert seen == eqlearn._HOME_OF


def test_a_former_name_still_works_and_tells_the_new_one():
    with pytest.warns(DeprecationWarning, match="`train_dynamics`"):
        former = eqlearn.find_dynamics

    assert former is eqlearn.train_dynamics
    assert "find_dynamics" not in eqlearn.__all__


def test_an_unknown_public_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="EQLL"):
        _ = eqlearn.EQLL


def test_every_module_of_the_search_has_a_test_of_its_own():
    modules = [m for m in MODULES if room(m) == "search" and MODULES[m].name != "__init__.py"]

    for module in modules:
        *folders, name = module.split(".")
        path = Path(__file__).parent.joinpath(*folders, f"test_{name}.py")
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        assert f"eqlearn.{module}" in {n.module for n in nodes if isinstance(n, ast.ImportFrom)}, module


def test_the_house_is_no_larger_than_agreed():
    """Without the paper's room: at most 256 modules of at most 350 lines, 15 to a folder, 45,700 lines."""
    files = [path for name, path in MODULES.items() if room(name) != "paper"]
    modules = [path for path in files if path.name != "__init__.py"]
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in files}
    folders = Counter(path.parent for path in modules)

    assert len(modules) <= 256
    assert sum(lines.values()) <= 45_700
    assert [path.name for path in files if lines[path] > 350] == []
    assert [folder.name for folder, count in folders.items() if count > 15] == []
