"""The page says what is so: its Python runs, and prints what stands behind it."""
import contextlib
import io
import os
import pathlib
import re

SOURCE = pathlib.Path(os.environ.get("SUPERSTEP_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
BLOCK = re.compile(r"```python\n(.*?)```\n(\n(?:    [^\n]*\n)+)?", re.S)


def test_python_of_the_page_runs():
    found = BLOCK.findall((SOURCE / "docs/poptorch.md").read_text(encoding="utf-8"))
    assert len(found) == 2
    names = {}
    for code, output in found:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "docs/poptorch.md", "exec"), names)
        assert printed.getvalue().strip() == output.replace("\n    ", "\n").strip(), code
