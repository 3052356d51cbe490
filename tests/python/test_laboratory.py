"""The program's other commands as functions."""
import os
import subprocess
import sys

import pytest
from support import error_of

import superstep
from superstep import program


@pytest.fixture(autouse=True)
def own_records(tmp_path, monkeypatch):
    monkeypatch.setenv("SUPERSTEP_HOME", str(tmp_path / "home"))


def test_the_command_is_the_program():
    command = os.path.join(os.path.dirname(sys.executable), "superstep")
    for words in ([command], [sys.executable, "-m", "superstep"]):
        if words[0] == command and not os.path.exists(command):
            continue  # the package is on the path, not installed
        done = subprocess.run([*words, "--version"], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == f"superstep {superstep.__version__}"
        assert subprocess.run([*words, "train", "nonesuch"], capture_output=True, check=False).returncode == 2


def test_predictions_have_intervals():
    result = superstep.predict("mlp", on="gc200", mode="train")
    quantity = next(q for q in result.metrics.values() if q.unit == "s" and q.low is not None)
    assert quantity.how == "predicted" and quantity.low <= quantity.value <= quantity.high
    assert result.workload == "mlp" and result.data["schema"] == "superstep-result/1"
    assert result.row()["machine"] == result.machine and "predicted" in str(quantity)
    assert "<table>" in result._repr_html_() and "predicted" in result._repr_html_()


def test_errors_of_the_program_are_exceptions():
    with error_of(superstep.InvalidArgument, "mlp"):
        superstep.predict("mlpp")
    with error_of(superstep.InvalidArgument, "nonesuch"):
        superstep.predict("mlp", nonesuch=3)
    with pytest.raises(superstep.Error, match="absent"):
        superstep.infer("braggnn", weights="absent", input="absent.h5")


def test_data_and_conventional_method(tmp_path):
    made = superstep.generate("braggnn", tmp_path / "peaks.h5", samples=200, seed=3, set={"margin": 1})
    assert (tmp_path / "peaks.h5").stat().st_size > 200 * 121 and made.command == "generate"
    found = superstep.baseline("braggnn", input=tmp_path / "peaks.h5", output=tmp_path / "fits.h5")
    assert (tmp_path / "fits.h5").exists() and found.metrics


def test_records_hold_what_was_run():
    assert superstep.records() == []
    superstep.infer("mlp", samples=64, batch=32, threads=1)
    found = superstep.records(workload="mlp")
    assert len(found) == 1 and found[0].command == "infer" and found[0].metrics


def test_a_bench_has_samples():
    rows = superstep.bench("mlp", mode="infer", batch=8, seconds=0.2, threads=1, no_peak=True)
    sampled = [quantity for quantity in rows[0].metrics.values() if len(quantity.samples) > 1]
    assert sampled and all(quantity.how == "measured" for quantity in sampled)


def test_pages_are_shown(tmp_path):
    page = superstep.profile("mlp", on="gc200", batch=64)
    assert page.html().startswith("<!") and "<iframe" in page._repr_html_()
    page.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size > 1000
    advice = superstep.advise("mlp", on=["gc200", "bow"], precision="f32", batch=8)
    assert "gc200" in advice.html() and advice.result


def test_lists():
    assert "braggnn" in superstep.workloads() and "gc200" in superstep.machines()
    assert str(program.path()).endswith("superstep")
