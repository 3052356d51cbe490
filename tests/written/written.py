#!/usr/bin/env python3
"""ONNX's own checker and ONNX Runtime read what tests write.

    written.py FOLDER                    every FOLDER/*.onnx, kept there by tests under SUPERSTEP_KEEP_WRITTEN=FOLDER
    written.py FOLDER --tests BUILD      first runs the tests of TESTS below, which write files of every kind
    written.py FOLDER --tests BUILD --all    first runs every test of the build that may write files, and the walk

onnx.checker with full_check (shapes and types are inferred and compared with what the file says) and a session of ONNX
Runtime, which resolves every node against its operator. FOLDER/broken has what is no model on purpose: it is counted. Needs the
Python of tools/setup-oracles; ends with 77 where onnx or onnxruntime is missing.
"""
import argparse
import multiprocessing
import os
import pathlib
import re
import shutil
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77

# Programs of tests, and which of their tests write files of each kind: exports of the zoo with an open and with a fixed batch,
# training steps, every operator of ONNX's suite, files of users as they were trained, results of bounded length, the libraries'.
TESTS = {
    "run": "*/ExportedModel*:*ExportedStep*/mlp:*ExportedStep*/braggnn:*BoundedFile*:UserModels*:OneRoad*:Calibrate*",
    "onnx": "Model*:ExternalData*",
    "api": "Api*:CApi*",
    "cli": "UserModel*:Int8*:OwnModelPage*",
}
# Rooms whose tests write no file of models, or ask for hours (kernels in every form).
WITHOUT = {"cpu_kernels", "bsp", "openmp", "poplar", "matrix", "op", "physics", "machine", "graph", "base"}


def run_tests(build, folder, everything):
    """Runs test programs with their files kept; those that fail are told, for a failure of theirs is no matter of this test."""
    environment = os.environ | {"SUPERSTEP_KEEP_WRITTEN": str(folder), "OMP_WAIT_POLICY": "passive"}
    programs = sorted((build / "tests").glob("*/test_*"))
    for program in programs:
        room = program.name.removeprefix("test_")
        if not os.access(program, os.X_OK) or program.is_dir() or (room not in TESTS and (not everything or room in WITHOUT)):
            continue
        words = [] if everything else [f"--gtest_filter={TESTS[room]}"]
        done = subprocess.run([program.resolve(), "--gtest_brief=1", *words], env=environment, cwd=program.parent,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        print(f"test_{room}: {'passed' if done.returncode == 0 else f'ended with {done.returncode}'}", flush=True)
    if everything:
        subprocess.run([sys.executable, "-B", SOURCE / "tools/walk", "--short", "--program", build / "superstep"], env=environment)


def check(path):
    """(path, what the checker said, what ONNX Runtime said): empty where it read the file."""
    import onnx
    import onnxruntime
    said = ["", ""]
    try:
        onnx.checker.check_model(str(path), full_check=True)
    except Exception as error:
        said[0] = " ".join(str(error).split())[:400] or type(error).__name__
    try:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = 1
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        said[1] = " ".join(str(error).split())[:400] or type(error).__name__
    return path, *said


def origin(path):
    text = path.with_suffix(".txt")
    return text.read_text().strip() if text.exists() else path.name


# It has no kernel for an operator in some element type or form, or knows no newer operator set: the file is right all the same.
WITHOUT_KERNEL = re.compile(r"NOT_IMPLEMENTED|Could not find an implementation|is under development and support"
                            r"|operations \(layout == 1\) are not supported|ai\.onnx\.preview\.training:\w+\(-1\) is not a registered")
# What the checker says of ONNX's own cases too. MeanVarianceNormalization without its attribute: the default is not put into its body.
OF_THE_CHECKER = re.compile(r"op_type:MeanVarianceNormalization.*op_type:Constant.*One and only one of the attributes")


def report(folder, results):
    wrong, without = [], []
    for path, checker, runtime in results:
        if checker and not OF_THE_CHECKER.search(checker):
            wrong.append(f"{origin(path)}\n    {path.name}: onnx.checker: {checker}")
        if runtime and WITHOUT_KERNEL.search(runtime):
            without.append(f"{origin(path)}\n    {path.name}: {runtime}")
        elif runtime:
            wrong.append(f"{origin(path)}\n    {path.name}: ONNX Runtime: {runtime}")
    broken = len(list((folder / "broken").glob("*.onnx")))
    for line in without:
        print(f"without a kernel in ONNX Runtime: {line}")
    for line in wrong:
        print(f"WRONG {line}")
    print(f"{len(results)} files: {len(wrong)} wrong, {len(without)} for which ONNX Runtime has no kernel; {broken} more are broken on purpose")
    return len(wrong)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--tests", type=pathlib.Path, metavar="BUILD")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--least", type=int, default=1, help="how many files there must be")
    parser.add_argument("--jobs", type=int, default=2)
    chosen = parser.parse_args()
    try:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
    except ImportError as error:
        print(f"skipped: {error} (tools/setup-oracles installs it)")
        return SKIPPED
    if chosen.tests:
        shutil.rmtree(chosen.folder, ignore_errors=True)
        run_tests(chosen.tests.resolve(), chosen.folder.resolve(), chosen.all)
    files = sorted(chosen.folder.glob("*.onnx"))
    with multiprocessing.Pool(chosen.jobs, maxtasksperchild=50) as pool:
        results = pool.map(check, files, chunksize=4)
    wrong = report(chosen.folder, results)
    if len(files) < chosen.least:
        print(f"{len(files)} files are fewer than {chosen.least}: the tests that write them were not run, or keep nothing")
        return 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
