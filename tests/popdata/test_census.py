"""The census of names: of a table, of a checkout, of what is not there."""

import importlib.util
import json
import pathlib

import pytest

PATH = pathlib.Path(__file__).parents[2] / "bench" / "poptorch" / "census.py"
specification = importlib.util.spec_from_file_location("census", PATH)
census = importlib.util.module_from_spec(specification)
specification.loader.exec_module(census)

HEAD = "repository,path,names,option_methods,executor_methods,other_imports\n"


def test_a_table(tmp_path, capsys):
    table = tmp_path / "uses.csv"
    table.write_text(HEAD + "a/b,one.py,poptorch.Options poptorch.optim.LAMB,deviceIterations setPartialsType,compile model,\n"
                     "a/b,two.py,poptorch.Option poptorch.OutputMode.All,turnFaster,fly,\n"
                     "a/b,three.py,poptorch.custom_op,,,\n")
    assert census.main([str(table)]) == 0
    said = capsys.readouterr().out
    assert "a/b/two.py: poptorch.Option Options.turnFaster executor.fly" in said
    assert "a/b/three.py: operators compiled for PopART" in said
    assert "1 of 3 scripts have all their names here; 1 more need operators compiled" in said


def test_a_checkout(tmp_path, capsys):
    folder = tmp_path / "scripts"
    folder.mkdir()
    (folder / "good.py").write_text("import poptorch as p\nfrom popdist import init\n"
                                    "p.trainingModel(None, p.Options().deviceIterations(2))\n")
    (folder / "bad.py").write_text("import poptorch\nimport popart\npoptorch.inferenceModel(1)\npopart.Session()\n")
    (folder / "other.py").write_text("import poptorch\npoptorch.Missing\n")
    (folder / "broken.py").write_text("def (")
    cells = [{"cell_type": "code", "source": ["!pip install x\n", "import poptorch\n", "poptorch.trainingModel(poptorch.Gone)"]},
             {"cell_type": "markdown", "source": ["text"]}]
    (folder / "book.ipynb").write_text(json.dumps({"cells": cells}))
    assert census.main([str(folder)]) == 0
    said = capsys.readouterr().out
    assert "scripts/bad.py: popart.Session" in said and "scripts/book.ipynb: poptorch.Gone" in said
    assert "1 of 3 scripts" in said


def test_names():
    pytest.importorskip("torch_geometric")
    for name in ("poptorch.optim.AdamW", "poptorch_geometric.cluster_loader.FixedSizeClusterLoader", "popdist.poptorch.Options",
                 "popart.RecomputationType.Standard", "horovod.torch.allreduce", "poptorch.enums.CommGroupType"):
        assert census.resolves(name), name
    for name in ("poptorch.optim.AdamWW", "poptorch_geometrical.X", "popart.Builder"):
        assert not census.resolves(name), name


def test_what_is_not_there(tmp_path, capsys):
    assert census.main([str(tmp_path / "none.csv")]) == 1
    assert "none.csv is not there" in capsys.readouterr().err
    assert census.main([str(tmp_path)]) == 1
    with pytest.raises(SystemExit) as ended:
        census.main([])
    assert ended.value.code == 2
