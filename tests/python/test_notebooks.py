"""The notebooks of examples/notebooks: every cell runs, and what a cell ends with can be shown."""
import ast
import json
import os
import pathlib
import re

import pytest

SOURCE = pathlib.Path(os.environ.get("SUPERSTEP_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
NOTEBOOKS = sorted((SOURCE / "examples/notebooks").glob("*.ipynb"))


def shown(value):
    """What a notebook would show of it."""
    page = getattr(value, "_repr_html_", None)
    return page() if page else repr(value)


def run_cell(code, names, name):
    tree = ast.parse(code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), names)
    if last is not None:
        value = eval(compile(ast.Expression(last.value), name, "eval"), names)
        if value is not None:
            assert shown(value)


def test_there_are_six():
    assert len(NOTEBOOKS) == 6


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_runs(file, tmp_path, monkeypatch):
    notebook = json.loads(file.read_text())
    assert notebook["nbformat"] == 4
    kept = [output for cell in notebook["cells"] for output in cell.get("outputs", [])]
    assert all(output["output_type"] != "error" for output in kept)
    assert not re.search(r"/(home|root|work|tmp)/|Traceback", json.dumps(kept)), "what is kept says nothing of a machine's folders"
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    if any("import torch" in cell for cell in cells):
        pytest.importorskip("torch")
        pytest.importorskip("onnxscript")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SUPERSTEP_HOME", str(tmp_path / "home"))
    names = {"__name__": "__main__"}
    for number, code in enumerate(cells):
        run_cell(code, names, f"{file.stem}, cell {number + 1}")
