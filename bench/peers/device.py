#!/usr/bin/env python3
"""Our programs beside JAX's own of the same models, on the same PJRT plug-in, in turns.

    bench/peers/device.py --plugin build/plugins/xla_plugins/xla_cpu_pjrt/lib/pjrt_plugin.so
    bench/peers/device.py --plugin PATH --models braggnn,mlp --modes train --rounds 9 --json out.json

One processor for both: the plug-in has as many threads as it sees processors. Ours sends its inputs to the device and reads its
results back in every step; JAX's stay there. The ratio is our median time over JAX's; above 1 we are the slower.
"""
import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
# Name, batch to train, batch to serve.
MODELS = {"braggnn": (64, 64), "unet-64": (4, 4), "resnet50": (1, 1), "bert-small": (2, 2), "lstm": (16, 16), "schnet": (8, 8), "mlp": (64, 64)}


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plugin", required=True, help="its library")
    parser.add_argument("--models", default=",".join(MODELS), help="as bench/run.py names them")
    parser.add_argument("--modes", default="train,infer")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.6, help="of each round of each contender")
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent.parent / "build", help="build folder, with JAX by tools/setup-peers")
    parser.add_argument("--json", type=pathlib.Path, help="file for every sample")
    return parser.parse_args()


def measure(arguments, folder, model, mode):
    """The samples of both, or what went wrong."""
    contender = arguments.build / "bench" / "superstep_contender"
    graph, out = folder / (model + ".onnx"), folder / "row.json"
    if not graph.exists():
        subprocess.run([contender, "--model", model, "--export", graph], check=True, stdout=subprocess.DEVNULL)
    batch = MODELS[model][mode == "infer"] if model in MODELS else 1
    processor = sorted(os.sched_getaffinity(0))[-1]
    python = arguments.build / "peers" / "venv" / "bin" / "python"
    ours = "Superstep=taskset -c %d %s --model %s --mode %s --on pjrt:%s --batch {batch} --threads {threads}" % (
        processor, contender, model, mode, arguments.plugin)
    command = [python if python.exists() else sys.executable, HERE / "compare.py", "--model", model, "--mode", mode, "--graph", graph, "--batch", str(batch), "--threads", "1",
               "--peers", "jax", "--plugin", arguments.plugin, "--rounds", str(arguments.rounds), "--seconds", str(arguments.seconds),
               "--build", arguments.build, "--contender", ours, "--json", out]
    out.unlink(missing_ok=True)
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0 or not out.exists():
        return {"batch": batch, "error": (done.stderr or done.stdout).strip()[-400:]}
    results = {"Superstep" if result["contender"].startswith("Superstep") else "JAX": result
               for result in json.loads(out.read_text())["results"]}
    samples = {name: result["metrics"]["step_time"]["samples"] for name, result in results.items()}
    if len(samples) < 2:
        return {"batch": batch, "error": done.stderr.strip()[-400:]}
    medians = {name: statistics.median(found) for name, found in samples.items()}
    return {"batch": batch, "samples": samples, "medians": medians, "ratio": medians["Superstep"] / medians["JAX"],
            "differs": results["JAX"]["differs"]}  # of inference: root mean square over that of ours


def main():
    arguments = parse()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for model in arguments.models.split(","):
            for mode in arguments.modes.split(","):
                row = dict(model=model, mode=mode, **measure(arguments, pathlib.Path(folder), model, mode))
                rows.append(row)
                said = row.get("error") or "batch %d  ours %.3f ms  JAX %.3f ms  ratio %.2f%s" % (
                    row["batch"], 1e3 * row["medians"]["Superstep"], 1e3 * row["medians"]["JAX"], row["ratio"],
                    "  differs by %.1e" % row["differs"] if row["differs"] is not None else "")
                print("%-12s %-6s %s" % (model, mode, said), flush=True)
                if arguments.json:
                    arguments.json.write_text(json.dumps({"plugin": arguments.plugin, "rows": rows}) + "\n")
    ratios = [row["ratio"] for row in rows if "ratio" in row]
    if ratios:
        print("geometric mean %.3f, worst %.2f, of %d rows" % (math.exp(statistics.mean(map(math.log, ratios))), max(ratios), len(ratios)))
    return 0 if len(ratios) == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
