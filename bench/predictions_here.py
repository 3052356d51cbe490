"""Predictions of this computer beside what it measures, for every workload, mode, batch, precision and number of threads.

    bench/predictions_here.py PROGRAM --machine mybox.toml --out table.json

The machine file comes from `PROGRAM machine measure --out mybox.toml`, which times probes of random shapes and no
workload. Each row is one call of `PROGRAM predict WORKLOAD --on FILE --measure S`: the plan that runs, its predicted time,
and the best of its runs. Prints the errors; exits with 1 where a row could not be had.
"""
import argparse
import json
import math
import os
import subprocess
import sys
import tempfile


def workloads(program):
    text = subprocess.run([program, "list", "workloads"], capture_output=True, text=True, check=True).stdout
    return [line.split()[0] for line in text.splitlines()[2:] if line.strip()]


def row(arguments, workload, mode, batch, precision, threads):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "row.json")
        call = [arguments.program, "predict", workload, "--on", arguments.machine, "--mode", mode, "--batch", str(batch),
                "--precision", precision, "--threads", str(threads), "--measure", str(arguments.seconds), "--extrapolate",
                "--json", path, "--quiet"]
        try:
            done = subprocess.run(call, capture_output=True, text=True, timeout=arguments.limit)
        except subprocess.TimeoutExpired:
            return {"why": f"took longer than {arguments.limit} s"}
        if done.returncode != 0:
            return {"why": done.stderr.strip().splitlines()[0] if done.stderr.strip() else "no reason given"}
        found = json.load(open(path))
    metrics = found["metrics"]
    if "step_time" not in metrics:
        return {"why": "does not fit"}
    return {"predicted": metrics["step_time"]["value"], "low": metrics["step_time"]["low"],
            "high": metrics["step_time"]["high"], "best": metrics["measured_step_time_best"]["value"],
            "median": metrics["measured_step_time"]["value"], "unknown": found["config"]["unknown_share"]}


def quantile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)] if ordered else float("nan")


def summary(name, rows):
    errors = [abs(math.log(r["predicted"] / r["best"])) for r in rows]
    inside = sum(r["low"] <= r["best"] <= r["high"] for r in rows)
    as_percent = lambda value: f"{100 * (math.exp(value) - 1):7.1f} %"
    print(f"{name:28} {len(rows):5} {as_percent(quantile(errors, 0.5))} {as_percent(quantile(errors, 0.9))} "
          f"{as_percent(max(errors))}   {inside} of {len(rows)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--machine", required=True, help="a file that `machine measure` wrote")
    parser.add_argument("--workloads", default="", help="names with commas between; default: all")
    parser.add_argument("--modes", default="train,infer")
    parser.add_argument("--batches", default="1,8,64")
    parser.add_argument("--precisions", default="f32,bf16")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--seconds", type=float, default=0.3, help="of timed runs a row")
    parser.add_argument("--limit", type=float, default=60, help="seconds after which a row is given up")
    parser.add_argument("--out", default="", help="JSON file for the rows")
    arguments = parser.parse_args()
    chosen = [w for w in arguments.workloads.split(",") if w] or workloads(arguments.program)
    rows, without = [], []
    print(f"{'workload':20} {'mode':6} {'batch':>5} {'type':5} thr   measured  predicted  ratio  unknown")
    for workload in chosen:
        for mode in arguments.modes.split(","):
            for batch in (int(b) for b in arguments.batches.split(",")):
                for precision in arguments.precisions.split(","):
                    for threads in (int(t) for t in arguments.threads.split(",")):
                        what = {"workload": workload, "mode": mode, "batch": batch, "precision": precision, "threads": threads}
                        found = row(arguments, workload, mode, batch, precision, threads)
                        if "why" in found:
                            without.append({**what, **found})
                            print(f"{workload:20} {mode:6} {batch:5} {precision:5} {threads:3}   {found['why']}", flush=True)
                            continue
                        rows.append({**what, **found})
                        print(f"{workload:20} {mode:6} {batch:5} {precision:5} {threads:3} {1e3 * found['best']:8.3f} ms "
                              f"{1e3 * found['predicted']:8.3f} ms {found['predicted'] / found['best']:5.2f} "
                              f"{100 * found['unknown']:6.1f} %", flush=True)
    print(f"\n{'predicted over measured':28} {'rows':>5} {'median':>9} {'90th':>9} {'worst':>9}   inside")
    groups = [("all", rows)]
    for key in ("mode", "batch", "precision", "threads"):
        for value in sorted({r[key] for r in rows}, key=str):
            groups.append((f"{key} {value}", [r for r in rows if r[key] == value]))
    for name, members in groups:
        if members:
            summary(name, members)
    if without:
        print(f"{len(without)} rows could not be had")
    if arguments.out:
        json.dump({"rows": rows, "without": without}, open(arguments.out, "w"), indent=1)
    sys.exit(1 if without else 0)


if __name__ == "__main__":
    main()
