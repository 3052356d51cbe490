"""stubs.py FOLDER: makes what nanobind's stubgen wrote of the module _core a part of the package, with the arguments of its generic
types: submodules are imported from the package, and what is only known as an object is Any."""
import pathlib
import re
import sys

ARGUMENTS = {"tuple": "tuple[Any, ...]", "dict": "dict[str, Any]", "list": "list[Any]", "os.PathLike": "os.PathLike[str]", "object": "Any"}


def part_of_package(text):
    text = text.replace("from _core import", "from . import").replace("import _core.", "from . import ")
    text = re.sub(r"((?:: |-> |\| )(?:str \| )?)(tuple|dict|list|os\.PathLike|object)(?=[,)\s:])", lambda m: m[1] + ARGUMENTS[m[2]], text)
    head = re.match(r'("""(?:.|\n)*?"""\n+)?', text).end()
    return text[:head] + "from typing import Any\n" + text[head:]


for file in pathlib.Path(sys.argv[1]).glob("*.pyi"):
    file.write_text(part_of_package(file.read_text()))
