"""The tutorials are notebooks with their outputs, which running them gives again."""

import json
import re
from pathlib import Path

import pytest

TUTORIALS = sorted((Path(__file__).parent.parent / "docs" / "tutorials").glob("*.ipynb"))
every_tutorial = pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)


def cells(path):
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def printed(cell):
    """What a cell prints."""
    return "".join("".join(o["text"]) for o in cell.get("outputs", []) if o["output_type"] == "stream")


@every_tutorial
def test_a_tutorial_is_committed_with_small_outputs_of_one_run(path):
    code = [cell for cell in cells(path) if cell["cell_type"] == "code"]
    outputs = [output for cell in code for output in cell["outputs"]]

    assert path.stat().st_size < 30_000
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert outputs
    assert not [o for o in outputs if o["output_type"] == "error" or o.get("name") == "stderr"]


def test_tutorials_lead_to_each_other_and_into_the_manual():
    for path in TUTORIALS:
        text = "".join("".join(cell["source"]) for cell in cells(path) if cell["cell_type"] == "markdown")
        links = re.findall(r"\]\(([^)#]+)", text)

        assert links
        for link in links:
            assert (path.parent / link).exists(), link


@pytest.mark.slow
@pytest.mark.timeout(1200)
@every_tutorial
def test_a_tutorial_runs_and_prints_what_it_shows(path):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    notebook = nbformat.read(path, as_version=4)

    nbclient.NotebookClient(
        notebook, timeout=900, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}}
    ).execute()

    for shown, cell in zip(cells(path), notebook.cells, strict=True):
        assert printed(cell) == printed(shown)
