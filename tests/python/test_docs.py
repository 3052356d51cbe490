"""The pages say what is so: their Python runs, and prints what stands behind it."""
import contextlib
import io
import os
import pathlib
import re

import pytest

SOURCE = pathlib.Path(os.environ.get("SUPERSTEP_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
BLOCK = re.compile(r"```python\n(.*?)```\n(\n(?:    [^\n]*\n)+)?", re.S)


def blocks(name):
    return [(code, (output or "").replace("\n    ", "\n").strip()) for code, output in BLOCK.findall((SOURCE / name).read_text())]


@pytest.mark.parametrize("page", ["docs/python.md", "docs/tutorial-python.md", "README.md"])
def test_python_of_the_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SUPERSTEP_HOME", str(tmp_path / "home"))
    found = [(code, output) for code, output in blocks(page) if "superstep" in code or page != "README.md"]
    assert found
    names = {}
    for code, output in found:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, page, "exec"), names)
        assert printed.getvalue().strip() == output, code
