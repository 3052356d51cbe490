"""Tests of a public conformance suite, translated and run on modelled tiles: what passes, where it ran, and
what keeps the others back. The suite is brought by the user: conformance.py SUITE, the folder that holds its
`tests` and `ompvv`."""

import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

NAMES = pathlib.Path(__file__).with_name("conformance.txt")
SKIPPED = 77


def read_names(path):
    """(wave, name, rest) of every line: rest is a version for the parser, or the code of a refusal."""
    for line in path.read_text().splitlines():
        if line and not line.startswith("#"):
            wave, name, *rest = line.split()
            yield wave, name, rest[0] if rest else ""


def translate(call, suite, name, version, program):
    words = [call.cc, f"-fopenmp-version={version or 52}", "-I", suite / "ompvv", "-DVERBOSE_MODE=1",
             suite / "tests" / name, suite / "ompvv" / "libompvv.c", "-o", program, "-lm"]
    return subprocess.run(words, capture_output=True, text=True, timeout=120)


def execute(call, program, report):
    environment = dict(os.environ, SUPERSTEP_OMP_OPTIONS=call.options, SUPERSTEP_OMP_REPORT=str(report),
                       OMP_NUM_THREADS="8")
    try:
        return subprocess.run([program], capture_output=True, text=True, timeout=call.seconds,
                              env=environment, cwd=program.parent)
    except subprocess.TimeoutExpired as late:
        return subprocess.CompletedProcess(program, 124, "", f"still running after {late.timeout} s")


def first_words(text, pattern):
    found = re.search(pattern, text)
    return found.group(0).strip() if found else (text.strip().splitlines() or ["no words"])[0]


def where_it_ran(report):
    """dealt, one tile or host, the farthest from tiles that a region went; and why on the host."""
    regions = json.loads(report.read_text())["regions"] if report.exists() else []
    if not regions:
        return "no region"
    for region in regions:
        if region["on_host"]:
            return "host: " + re.sub(r" \(line \d+\)", "", region["reason"])
    return "dealt" if any(region["dealt"] for region in regions) else "one tile"


def try_test(call, suite, name, version, folder):
    """(passed, where or why not)."""
    program, report = folder / "program", folder / "report.json"
    report.unlink(missing_ok=True)
    made = translate(call, suite, name, version, program)
    if made.returncode != 0:
        return False, "translation: " + first_words(made.stderr, r"refused:.*|error:.*")
    done = execute(call, program, report)
    if done.returncode != 0 or "Test failed" in done.stdout or "Test skipped" in done.stdout:
        return False, f"run ({done.returncode}): " + first_words(done.stderr, r"error:.*|OMPVV_ERROR.*")
    return True, where_it_ran(report)


def try_refusal(call, suite, name, code, folder):
    """A refusal ends the translation; or the region is kept off the tiles, which is an error of the program where
    the tiles are mandatory. File, line and code are in the message."""
    program, file = folder / "program", re.escape(pathlib.Path(name).name)
    made = translate(call, suite, name, "", program)
    said = re.search(rf"{file}:\d+:\d+: refused: {code}: .*", made.stderr)
    if made.returncode == 0:
        os.environ["OMP_TARGET_OFFLOAD"] = "mandatory"
        made = execute(call, program, folder / "report.json")
        del os.environ["OMP_TARGET_OFFLOAD"]
        said = re.search(rf"error: .*{file}:\d+: {code}: .*", made.stderr)
    return bool(said) and made.returncode != 0, said.group(0) if said else "not refused: " + made.stderr[:200]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite", type=pathlib.Path, nargs="?",
                        default=os.environ.get("SUPERSTEP_OPENMP_SUITE", "no-folder-was-named"))
    parser.add_argument("--cc", default="superstep-cc", help="the translator")
    parser.add_argument("--wave", default="1,2,refused")
    parser.add_argument("--only", default="", help="names with this in them")
    parser.add_argument("--options", default="tiles=64", help="SUPERSTEP_OMP_OPTIONS")
    parser.add_argument("--seconds", type=float, default=120, help="for one test")
    parser.add_argument("--least", default="", help="fewest that must pass: 1=105,2=60,refused=3")
    call = parser.parse_args()
    call.suite = pathlib.Path(call.suite)
    if not (call.suite / "ompvv" / "ompvv.h").exists():
        print(f"skipped: no conformance suite in {call.suite}")
        return SKIPPED
    passed, tried, reasons = collections.Counter(), collections.Counter(), collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        for wave, name, rest in read_names(NAMES):
            if wave not in call.wave.split(",") or call.only not in name:
                continue
            attempt = try_refusal if wave == "refused" else try_test
            good, words = attempt(call, call.suite.absolute(), name, rest, pathlib.Path(folder))
            passed[wave] += good
            tried[wave] += 1
            reasons[wave, words if good and wave != "refused" else "refused" if good else "fails"] += 1
            print(("pass" if good else "FAIL"), wave, name, words, sep="  ", flush=True)
    for (wave, words), count in sorted(reasons.items()):
        print(f"wave {wave}: {count} {words}")
    for wave in sorted(tried):
        print(f"wave {wave}: {passed[wave]} of {tried[wave]} pass")
    short = [wave for wave, least in (each.split("=") for each in call.least.split(",") if each)
             if passed[wave] < int(least)]
    if short:
        print("fewer than asked for in: " + ", ".join(short))
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
