#!/usr/bin/env python3
"""Do Google Benchmark and hyperfine say what our protocol says of the same work?

Both tools and ours take turns, so that a busy machine slows them alike; what counts is the median of the
rounds' ratios. Needs the target `agreement`, and hyperfine for whole commands (Debian: hyperfine).
"""

import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent / "build")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each tool a round")
    parser.add_argument("--configs", default="gemm:gemm_k1,gemm:gemm_k2,gemm:gemm_k3,conv:conv_k2,lstm:rnn_k3")
    parser.add_argument("--processor-time", action="store_true", help="beside Google Benchmark: of the calling thread, for a busy machine")
    parser.add_argument("--command", help="a whole command (default: superstep list workloads)")
    return parser.parse_args()


def by_hyperfine(command, folder):
    file = pathlib.Path(folder) / "hyperfine.json"
    subprocess.run(["hyperfine", "-N", "--warmup", "2", "--runs", "20", "--style", "none", "--export-json", file, command],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return json.loads(file.read_text())["results"][0]["median"]


def by_protocol(build, command, seconds):
    run = subprocess.run([build / "bench" / "agreement", "--command", command, "--seconds", str(seconds)],
                         check=True, stdout=subprocess.PIPE, text=True)
    return float(run.stdout)


def compare_commands(arguments):
    if not shutil.which("hyperfine"):
        print("hyperfine is not installed: whole commands are not compared")
        return
    command = arguments.command or "%s list workloads" % (arguments.build / "superstep")
    with tempfile.TemporaryDirectory() as folder:
        pairs = [(by_hyperfine(command, folder), by_protocol(arguments.build, command, 4 * arguments.seconds))
                 for _ in range(arguments.rounds)]
    ratios = [ours / theirs for theirs, ours in pairs]
    print("%s: hyperfine %.2f ms, our protocol %.2f ms, ours / hyperfine's %.3f (rounds %.3f to %.3f), of the quietest %.3f" %
          (pathlib.Path(command).name, 1e3 * statistics.median(p[0] for p in pairs),
           1e3 * statistics.median(p[1] for p in pairs), statistics.median(ratios), min(ratios), max(ratios),
           min(p[1] for p in pairs) / min(p[0] for p in pairs)))


def main():
    arguments = parse()
    subprocess.run([arguments.build / "bench" / "agreement", "--rounds", str(arguments.rounds), "--seconds",
                    str(arguments.seconds), "--configs", arguments.configs, *(["--processor-time"] if arguments.processor_time else [])],
                   check=True)
    compare_commands(arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
