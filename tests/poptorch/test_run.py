"""`python -m poptorch run`: the script's own output and status, and what is told of its executors."""
import json
import os
import subprocess
import sys

import pytest

SCRIPT = """
import sys
import torch
import poptorch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def forward(self, x, target):
        return torch.nn.functional.mse_loss(self.layer(x), target)

training = poptorch.trainingModel(Model())
for _ in range(3):
    training(torch.ones(2, 4), torch.ones(2, 1))
poptorch.inferenceModel(torch.nn.ReLU())
print("said by the script", sys.argv[1:])
sys.exit(int(sys.argv[1]))
"""


def ran(folder, *words, script=SCRIPT):
    (folder / "script.py").write_text(script)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return subprocess.run([sys.executable, "-m", "poptorch", "run", *words], cwd=folder, env=environment, capture_output=True, text=True,
                          check=False)


def test_a_script_runs_as_it_is_and_is_told_of(tmp_path):
    done = ran(tmp_path, "--no-machine", "--report", "told", "script.py", "0", "--report", "own")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "said by the script ['0', '--report', 'own']\n"
    assert "Model, training: 3 calls" in done.stderr and "ReLU, inference: 0 calls" in done.stderr
    told = json.loads((tmp_path / "told" / "report.json").read_text())
    assert [row["calls"] for row in told["executors"]] == [3, 0] and told["status"] == 0
    assert "<td>Model</td>" in (tmp_path / "told" / "report.html").read_text()


def test_cycles_are_the_machines(tmp_path):
    pytest.importorskip("superstep")
    pytest.importorskip("onnx")
    done = ran(tmp_path, "--report", "told", "script.py", "0")
    row = json.loads((tmp_path / "told" / "report.json").read_text())["executors"][0]
    assert row["machine"] == "gc200" and row["fits"] and row["cycles_per_call"] > 0, done.stderr
    assert f"{row['cycles_per_call']:,} cycles per call" in done.stderr


def test_its_status_is_the_scripts(tmp_path):
    assert ran(tmp_path, "--no-machine", "script.py", "7").returncode == 7
    done = ran(tmp_path, "--no-machine", "script.py", script="raise ValueError('of the script')")
    assert done.returncode == 1 and "of the script" in done.stderr and "made no executor" in done.stderr


def test_wrong_calls_are_refused(tmp_path):
    for words, said in [(["absent.py"], "absent.py: there is no such script"), (["--data", "absent", "script.py"], "--data absent"),
                        ([], "script")]:
        done = ran(tmp_path, *words)
        assert done.returncode == 2 and said in done.stderr
