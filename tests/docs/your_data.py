"""The files of docs/your-data.md can be made, and its commands work on them. your_data.py PROGRAM PYTHON"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = "h5py, numpy, onnx, pandas, pyarrow, webdataset, PIL.Image"
MODEL = """
import numpy, onnx
from onnx import helper
node = helper.make_node("MatMul", ["x", "A"], ["y"])
graph = helper.make_graph([node], "own", [helper.make_tensor_value_info("x", 1, ["N", 4])],
                          [helper.make_tensor_value_info("y", 1, ["N", 3])],
                          [onnx.numpy_helper.from_array(numpy.full((4, 3), 0.5, "f4"), "A")])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), "model.onnx")
"""


def main():
    program, python = pathlib.Path(sys.argv[1]).absolute(), sys.argv[2]
    if not pathlib.Path(python).exists() or subprocess.run([python, "-c", "import " + PACKAGES],
                                                                    stderr=subprocess.DEVNULL).returncode:
        print(f"{PACKAGES} are not installed: tools/setup-oracles installs them")
        return 77
    page = (SOURCE / "docs/your-data.md").read_text()
    script, = re.findall(r"```python\n(.*?)```", page, re.S)
    commands = [line.strip() for line in page.splitlines() if line.startswith("    superstep ")]
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, PATH=f"{program.parent}:{os.environ['PATH']}",
                           SUPERSTEP_HOME=str(pathlib.Path(folder) / "home"))
        for code in (script, MODEL):
            subprocess.run([python, "-c", code], cwd=folder, check=True)
        for command in commands:
            done = subprocess.run(command, shell=True, text=True, timeout=300, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, cwd=folder, env=environment)
            if done.returncode != 0:
                wrong += 1
                print(f"{command}\nended with {done.returncode} and printed\n{done.stdout}")
    print(f"{len(commands)} commands tried, {wrong} failed")
    return 1 if wrong or len(commands) < 14 else 0


if __name__ == "__main__":
    sys.exit(main())
