"""The manual's code runs, page by page, and says what the pages say; the manual itself can be built."""

import ast
import contextlib
import importlib.util
import io
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer

import eqlearn
from eqlearn.cli import app, main

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = {path.relative_to(DOCS).as_posix(): path.read_text(encoding="utf-8") for path in DOCS.rglob("*.md")}
# These start worker processes, simulate motions or train encoders: longer than all other pages together.
SLOW_PAGES = {
    "explanation/gauge.md",
    "how-to/cluster.md",
    "how-to/dynamics.md",
    "how-to/film.md",
    "how-to/knowledge.md",
    "how-to/network.md",
}
# Every block that is not run, by page, and why; a new one has to be argued for here.
NOT_RUN = {
    "index.md": ["changes the environment"],
    "how-to/cluster.md": ["needs SLURM", "needs SLURM"],
    "how-to/fields.md": ["needs experiments of one's own"],
    "how-to/live.md": ["serves until Ctrl-C", "needs another machine"],
    "how-to/loops.md": ["needs a GPU", "needs Lightning, which is not a dependency"],
}
BLOCK = re.compile(
    r"(?:<!-- not run: (?P<reason>.+?) -->\n)?```(?P<language>\w+)\n(?P<code>.*?)^```", re.M | re.S
)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page; `line` is where its code begins."""

    language: str
    code: str
    line: int
    reason: str | None


def blocks(page: str) -> list[Block]:
    text = PAGES[page]
    return [
        Block(m["language"], m["code"], text.count("\n", 0, m.start("code")), m["reason"])
        for m in BLOCK.finditer(text)
    ]


def run(block: Block, page: str, names: dict[str, object]) -> str:
    """What a block prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        if block.language == "python":
            # Leading lines make an error name the page's own line.
            exec(compile("\n" * block.line + block.code, str(DOCS / page), "exec"), names)
        else:
            for line in block.code.splitlines():
                program, *arguments = shlex.split(line, comments=True)
                assert program == "eqlearn", f"{page}: only eqlearn is run, mark {line!r} as not run"
                assert main(arguments) == 0, line
    return printed.getvalue()


def runnable() -> list[object]:
    pages = [page for page in sorted(PAGES) if any(b.language in ("python", "sh") for b in blocks(page))]
    return [pytest.param(p, marks=pytest.mark.slow if p in SLOW_PAGES else ()) for p in pages]


@pytest.mark.parametrize("page", runnable())
def test_a_page_runs_from_top_to_bottom_and_prints_what_it_shows(
    page, tmp_path, monkeypatch, unchecked_types
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    registered = dict(eqlearn.PRIMITIVES)
    names: dict[str, object] = {"__name__": "__main__"}
    printed = ""

    try:
        for block in blocks(page):
            if block.language in ("python", "sh") and block.reason is None:
                printed = run(block, page, names)
            elif block.language == "text":
                assert printed.split() == block.code.split(), f"{page}, line {block.line}"
    finally:
        eqlearn.PRIMITIVES.clear()
        eqlearn.PRIMITIVES.update(registered)


def test_no_block_is_left_out_in_silence():
    left_out = {page: [b.reason for b in blocks(page) if b.reason is not None] for page in PAGES}

    assert {page: reasons for page, reasons in left_out.items() if reasons} == NOT_RUN


@pytest.mark.parametrize("page", sorted(PAGES))
def test_every_fence_is_one_that_is_read(page):
    fences = re.findall(r"^ *```", PAGES[page], flags=re.M)

    assert len(fences) == 2 * len(blocks(page))
    assert {b.language for b in blocks(page)} <= {"python", "sh", "text", "bibtex"}


def test_the_reference_shows_the_public_names_and_no_others():
    shown = re.findall(r"^::: ([\w.]+)\.(\w+)$", "\n".join(PAGES.values()), flags=re.M)

    assert sorted(shown) == sorted((home, name) for name, home in eqlearn._HOME_OF.items())


def inner_imports(code: str) -> list[str]:
    """Modules of the package that code imports from, where `eqlearn` itself should be enough."""
    nodes = list(ast.walk(ast.parse(code)))
    names = [a.name for n in nodes if isinstance(n, ast.Import) for a in n.names]
    names += [n.module or "" for n in nodes if isinstance(n, ast.ImportFrom)]
    return [name for name in names if name.startswith("eqlearn.")]


def written_for_users() -> dict[str, str]:
    """The code of every example, of the README, and of every page of the manual."""
    texts = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "examples").glob("*.py")}
    pages = {**PAGES, "README.md": (ROOT / "README.md").read_text(encoding="utf-8")}
    for name, text in pages.items():
        python = [m["code"] for m in BLOCK.finditer(text) if m["language"] == "python"]
        texts |= {f"{name}, block {number}": code for number, code in enumerate(python)}
    return texts


USERS_CODE = written_for_users()


@pytest.mark.parametrize("place", sorted(USERS_CODE))
def test_users_import_from_the_package_itself(place):
    assert inner_imports(USERS_CODE[place]) == []


def test_an_import_from_a_module_would_be_seen():
    assert inner_imports("def f():\n    from eqlearn.nn.eql import EQL") == ["eqlearn.nn.eql"]
    assert inner_imports("import eqlearn.nn as nn") == ["eqlearn.nn"]
    assert inner_imports("import eqlearn\nfrom eqlearn import EQL") == []


def test_every_function_is_in_the_list_of_functions():
    page = (DOCS / "how-to" / "primitives.md").read_text()
    code = "from eqlearn.nn.primitives import PRIMITIVES; print(*PRIMITIVES)"
    names = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    listed = re.findall(r"\| (?:\*\*)?`(\w+)`(?:\*\*)? ", page)
    assert set(names.split()) <= set(listed)


def test_every_option_of_every_command_is_in_the_manual():
    page = (DOCS / "reference" / "commands.md").read_text()
    shown = (
        p for c in commands(typer.main.get_command(app)) for p in c.params if not getattr(p, "hidden", False)
    )
    options = {o for p in shown for o in p.opts}

    assert sorted(o for o in options if o.startswith("--") and f"{o}`" not in page) == []


def commands(command):
    inner = getattr(command, "commands", {})
    return [command, *(c for each in inner.values() for c in commands(each))]


def test_every_row_of_the_paper_that_the_source_cites_is_there():
    cited = set()
    for path in (ROOT / "src").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if "docs/paper.md" in text:
            comments = "\n".join(re.findall(r"#.*", text))
            groups = re.findall(r"\[(\d+(?:, \d+)*)\]", comments)
            cited |= {int(number) for group in groups for number in group.split(", ")}
    rows = [int(n) for n in re.findall(r"^\| (\d+) \|", PAGES["paper.md"], flags=re.M)]

    assert cited
    assert cited <= set(rows)
    assert rows == list(range(1, len(rows) + 1))


def test_every_picture_is_drawn_by_code(tmp_path):
    spec = importlib.util.spec_from_file_location("pictures", DOCS / "pictures.py")
    assert spec is not None
    assert spec.loader is not None
    pictures = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pictures)

    pictures.main(tmp_path)

    drawn = {path.name for path in tmp_path.iterdir()}
    assert drawn == {path.name for path in (DOCS / "pictures").iterdir()}
    assert drawn == set(re.findall(r"pictures/([\w.-]+\.png)", "\n".join(PAGES.values())))


def test_the_manual_can_be_built_strictly(tmp_path):
    if importlib.util.find_spec("mkdocs") is None or importlib.util.find_spec("mkdocstrings") is None:
        pytest.skip("mkdocs is not installed; `pip install 'eqlearn[docs]'` brings it")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]

    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "reference" / "network.html").exists()
