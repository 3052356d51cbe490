"""Runs PopTorch's own test suite, which is not part of this project, against the package here.

    python suite.py FOLDER [--files NAME...] [--write-table FILE] [--results FILE.json]

FOLDER is the folder `tests` of a checkout of PopTorch (MIT license). Each file runs twice: with POPTORCH_IPU_MODEL=1, then
without it the tests marked as for hardware. A function passes when all its cases pass or are skipped and one passes.
`expected.toml` beside this file names the functions that do not pass, each with its reason: the call fails where another one
fails, and where one of these passes. It ends with 77 where the folder or pytest is missing.
"""

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import tomllib
import xml.etree.ElementTree as xml
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parents[1] / "python"
SECONDS_PER_TEST = 60
SECONDS_PER_FILE = 900

# Files by subject.
GROUPS = {
    "operators": "activations blas convs distance_ops index_ops math_ops misc_nn_layers norms other_ops pooling_and_padding "
                 "reduce_ops slice tensor_ops inplace functional bool_support type_support non_contiguous_tensors",
    "recurrent, control, random": "gru lstm rnn loop if ctc_decoder random_sampling cpu_op",
    "losses, inputs, outputs, half": "losses custom_loss requires_grad fine_tuning outputs batching inputs half half_float",
    "options, optimizers": "options optimizers",
    "executors": "poplar_executor weights_writing buffers precompilation attach_detach attach_detach_wait_for_ipu hooks misc "
                 "exception perf_counters debug_tensors replicated_graph io_performance",
    "pipelines, phases, hints": "pipelining phased_execution sharding overlapped_io multiconv ops ipu_print_tensor",
    "data": "dataloader",
    "others": "custom_ops custom_ops_attributes grouping_scatters_gathers pyg_torch_scatter bert_small_and_medium "
              "torchvision_inference popdist torch_nn doc_urls",
}


def files_of(folder):
    """{subject of a file: its path}."""
    found = {}
    for path in sorted(folder.glob("*.py")):
        name = path.stem
        if name.endswith("_test"):
            found[name.removesuffix("_test")] = path
        elif name.startswith("test_"):
            found[name.removeprefix("test_")] = path
    return found


def package_path():
    """PYTHONPATH of the tests: as it is where the package is installed, else with the package of this tree."""
    given = os.environ.get("PYTHONPATH", "")
    return given if importlib.util.find_spec("poptorch") else os.pathsep.join(filter(None, [str(PACKAGE), given]))


def run(path, hardware, folder):
    """{function: [outcome of each case]} of one file; a file that cannot be read counts as one function of that name."""
    environment = {**os.environ, "PYTHONPATH": package_path(), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1",
                   # The table is that of PyTorch's numbers and words; another engine may be named, and compared with it.
                   "SUPERSTEP_POPTORCH_ENGINE": os.environ.get("SUPERSTEP_POPTORCH_ENGINE", "eager"),
                   "POPTORCH_IPU_MODEL": "0" if hardware else "1", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1",
                   "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])}
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.xml"
        command = [sys.executable, "-m", "pytest", str(path), "-q", "-p", "no:cacheprovider", f"--junitxml={report}",
                   "--timeout", str(SECONDS_PER_TEST)] + (["--hw-tests-only"] if hardware else [])
        try:
            subprocess.run(command, cwd=folder, env=environment, capture_output=True, timeout=SECONDS_PER_FILE, check=False)
        except subprocess.TimeoutExpired:
            return {f"{path.stem}::(the file)": ["failed"]}
        if not report.exists():
            return {f"{path.stem}::(the file)": ["failed"]}
        return outcomes(report, path.stem)


def outcomes(report, stem):
    """{function: [outcome of each case]} of a report in JUnit's form."""
    found = {}
    for case in xml.parse(report).getroot().iter("testcase"):
        function = case.get("name", "").split("[")[0]
        classes = case.get("classname", "").split(".")
        if classes and classes[-1].startswith("Test"):
            function = f"{classes[-1]}.{function}"
        tags = {child.tag for child in case}
        outcome = "failed" if tags & {"failure", "error"} else "skipped" if "skipped" in tags else "passed"
        found.setdefault(f"{stem}::{function}" if "." in case.get("classname", ".") or function else f"{stem}::(the file)",
                         []).append(outcome)
    return found


def judged(both):
    """passed, failed or skipped of the cases of a function in both runs."""
    if "failed" in both:
        return "failed"
    return "passed" if "passed" in both else "skipped"


def table(results, known):
    """The results by subject, as text."""
    lines = ["| files | functions | passed | expected not to pass | skipped |", "|---|---|---|---|---|"]
    total = [0, 0, 0, 0]
    for group, names in GROUPS.items():
        stems = set(names.split())
        chosen = {function: outcome for function, outcome in results.items() if subject(function) in stems}
        counts = [len(chosen), sum(outcome == "passed" for outcome in chosen.values()),
                  sum(outcome == "failed" and function in known for function, outcome in chosen.items()),
                  sum(outcome == "skipped" for outcome in chosen.values())]
        total = [one + other for one, other in zip(total, counts)]
        lines.append(f"| {group} | " + " | ".join(map(str, counts)) + " |")
    lines.append("| all | " + " | ".join(map(str, total)) + " |")
    return "\n".join(lines)


def subject(function):
    """The subject of a function's file."""
    return function.split("::")[0].removesuffix("_test").removeprefix("test_")


def arguments():
    """The call's arguments."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--files", nargs="*", help="subjects, such as losses: these files only")
    parser.add_argument("--results", type=Path, help="writes the outcome of each function as JSON")
    return parser.parse_args()


def main():
    """Runs the files and compares with expected.toml."""
    call = arguments()
    if not (call.folder / "helpers.py").exists():
        print(f"there is no suite of PopTorch in {call.folder}")
        return 77
    known = tomllib.loads((HERE / "expected.toml").read_text(encoding="utf-8"))
    known = {f"{stem}::{function}": reason for stem, functions in known.items() for function, reason in functions.items()}
    results = {}
    for name, path in files_of(call.folder).items():
        if call.files and name not in call.files:
            continue
        cases = run(path, False, call.folder)
        for function, found in run(path, True, call.folder).items():
            cases.setdefault(function, []).extend(found)
        results.update({function: judged(found) for function, found in cases.items()})
        print(f"{name}: {sum(results[function] == 'passed' for function in cases)} of {len(cases)} functions", flush=True)
    if call.results:
        call.results.write_text(json.dumps(results, indent=1), encoding="utf-8")
    print(table(results, known))
    new = sorted(function for function, outcome in results.items() if outcome == "failed" and function not in known)
    mended = sorted(function for function, outcome in results.items() if outcome == "passed" and function in known)
    for function in new:
        print(f"fails, and expected.toml does not name it: {function}")
    for function in mended:
        print(f"passes, and expected.toml still names it: {function}")
    return 1 if new or mended else 0


if __name__ == "__main__":
    sys.exit(main())
