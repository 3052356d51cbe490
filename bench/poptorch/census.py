#!/usr/bin/env python3
"""Which names of public PopTorch scripts the packages have.

    census.py USES.csv                     a table of scripts with the names that each uses
    census.py FOLDER [FOLDER ...]          checkouts of repositories: their scripts and notebooks are read

The table's columns are repository, path, names (poptorch.Options ...), option_methods, executor_methods, other_imports,
each a list separated by blanks. Of a checkout every .py and .ipynb that calls trainingModel or inferenceModel is read.
Prints the scripts with a name that is missing, and for how many all are there. A script that registers operators of its
own, compiled in C++ for PopART, is counted apart: its names are there, its operators are not. Status 0: the census was
taken; 1: nothing to read; 2: a wrong call.
"""

import argparse
import ast
import collections
import csv
import importlib
import json
import pathlib
import sys

PACKAGES = ("poptorch", "poptorch_geometric", "popdist", "popart", "horovod")
# Without this name a script needs no compiled operator.
COMPILED = "poptorch.custom_op"


class Script:
    """One script and what it uses."""

    def __init__(self, place, names, option_methods, executor_methods):
        self.place, self.names = place, names
        self.option_methods, self.executor_methods = option_methods, executor_methods


# -- reading ----------------------------------------------------------------------------------------------------------

def of_table(path):
    """The scripts of a table."""
    with path.open(newline="", encoding="utf-8") as held:
        for row in csv.DictReader(held):
            yield Script(f"{row['repository']}/{row['path']}", row["names"].split(), row["option_methods"].split(),
                         row["executor_methods"].split())


def _source(path):
    """The Python text of a script or of a notebook's cells, without lines for the shell."""
    text = path.read_text(encoding="utf-8", errors="replace")
    if path.suffix == ".py":
        return text
    cells = json.loads(text).get("cells", [])
    lines = [line for cell in cells if cell.get("cell_type") == "code"
             for line in "".join(cell["source"]).splitlines()]
    return "\n".join("pass" if line.lstrip().startswith(("!", "%")) else line for line in lines)


class _Names(ast.NodeVisitor):
    """Dotted names below the packages, imports resolved, and names of methods that are called."""

    def __init__(self):
        self.known, self.found, self.called = {}, set(), set()

    def visit_Import(self, node):
        for alias in node.names:
            if alias.name.split(".")[0] in PACKAGES:
                name = alias.asname or alias.name.split(".")[0]
                self.known[name] = alias.name if alias.asname else name

    def visit_ImportFrom(self, node):
        if node.module and node.level == 0 and node.module.split(".")[0] in PACKAGES:
            for alias in node.names:
                if alias.name != "*":
                    self.known[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                    self.found.add(f"{node.module}.{alias.name}")

    def visit_Attribute(self, node):
        parts, inner = [node.attr], node.value
        while isinstance(inner, ast.Attribute):
            parts.append(inner.attr)
            inner = inner.value
        if isinstance(inner, ast.Name) and inner.id in self.known:
            self.found.add(".".join([self.known[inner.id], *reversed(parts)]))
        self.generic_visit(node)

    def visit_Call(self, node):
        if isinstance(node.func, ast.Attribute):
            self.called.add(node.func.attr)
        self.generic_visit(node)


def of_checkout(folder):
    """The scripts of a checkout that wrap a model; files that Python cannot parse are left out."""
    for path in sorted(folder.rglob("*")):
        if path.suffix not in (".py", ".ipynb") or not path.is_file():
            continue
        try:
            tree = ast.parse(_source(path))
        except (SyntaxError, ValueError, OSError, KeyError):
            continue
        names = _Names()
        names.visit(tree)
        if not any(name.endswith((".trainingModel", ".inferenceModel")) for name in names.found):
            continue
        # Which object a method is called on is not known here: those of options have names of their own.
        from poptorch import Options
        methods = sorted(name for name in names.called if hasattr(Options, name) and not name.startswith("_"))
        yield Script(str(path.relative_to(folder.parent)), sorted(names.found), methods, [])


# -- resolving --------------------------------------------------------------------------------------------------------

def resolves(dotted):
    """Whether a dotted name can be imported or read."""
    parts = dotted.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:count]))
        except ImportError:
            continue
        for name in parts[count:]:
            found = getattr(found, name, _MISSING)
            if found is _MISSING:
                return False
        return True
    return False


_MISSING = object()


def _holders_of_options():
    import poptorch
    options = poptorch.Options()
    return [options, options.Training, options.Precision, options.TensorLocations, options.Distributed, options._Popart,
            options.Jit, poptorch.TensorLocationSettings()]


def missing(script):
    """Names, option methods and executor methods that are not there."""
    import poptorch
    lost = [name for name in script.names if not resolves(name)]
    holders = _holders_of_options()
    lost += [f"Options.{name}" for name in script.option_methods if not any(hasattr(holder, name) for holder in holders)]
    # `model` and `options` of an executor are made with the object.
    own = {"model", "options"}
    lost += [f"executor.{name}" for name in script.executor_methods
             if name not in own and not hasattr(poptorch.PoplarExecutor, name)]
    return lost


def take(scripts):
    """Prints the census; returns the number of scripts whose names are all there and that need nothing compiled."""
    whole, compiled, lost_by_name = 0, [], collections.Counter()
    every = 0
    for script in scripts:
        every += 1
        lost = missing(script)
        if lost:
            print(f"{script.place}: {' '.join(lost)}")
            lost_by_name.update(set(lost))
        elif COMPILED in script.names:
            compiled.append(script.place)
        else:
            whole += 1
    for place in compiled:
        print(f"{place}: operators compiled for PopART")
    for name, count in lost_by_name.most_common():
        print(f"{count:4} {name}")
    print(f"{whole} of {every} scripts have all their names here; {len(compiled)} more need operators compiled for PopART")
    return whole


def main(arguments):
    """Status 0: taken, 1: nothing to read."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0], epilog=__doc__.split("\n\n", 2)[2],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="+", type=pathlib.Path, metavar="USES.csv|FOLDER")
    options = parser.parse_args(arguments)
    absent = [path for path in options.sources if not path.exists()]
    if absent:
        print(f"census: {absent[0]} is not there: no census", file=sys.stderr)
        return 1
    # Stand-in names that only importing popdist brings.
    importlib.import_module("popdist")
    scripts = [script for path in options.sources for script in (of_checkout(path) if path.is_dir() else of_table(path))]
    if not scripts:
        print("census: no script that wraps a model was found", file=sys.stderr)
        return 1
    take(scripts)
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "python"))
    sys.exit(main(sys.argv[1:]))
