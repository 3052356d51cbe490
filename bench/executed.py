"""Executed over predicted, in cycles and in the fullest tile's memory, of every workload whose program an IPU holds.

    bench/executed.py PROGRAM --machine gc200 --out table.json

Cycles: of a program executed vertex by vertex (`PROGRAM profile WORKLOAD --on MACHINE`), without what is exchanged with the host,
over `PROGRAM predict WORKLOAD`'s step. The control code around operators, which an executed program has none of, counts on both
sides as it is predicted. Both are modelled, not measured: what is compared is whether what is planned is what
the program then does. Programs that do not fit, or take longer than --limit to execute, are listed with the reason.
"""
import argparse
import json
import math
import os
import subprocess
import sys
import tempfile

# Samples of a micro-batch: few, so that programs are small enough to be executed in minutes.
FORMS = {"braggnn": 16, "mlp": 64, "wallmodel": 64, "gravity-wave-drag": 64, "ptychonn-64": 1, "ptychonn-128": 1, "cookienetae": 1,
         "pca-compress-128": 4, "uno": 8, "polymer-gcn": 1, "polymer-mpnn": 1, "gin": 1, "schnet": 1, "yieldgnn": 1, "unet-64": 1, "cifar10-cnn": 4,
         "image-autoencoder": 1, "conductivity": 1, "bert-small": 1, "lstm": 4, "rnn-k1": 4, "mobilenet-v3-small": 1,
         "efficientnet-b0": 1, "resnet50": 1, "unet-256": 1, "mcmc": 16, "sobel-800": 1}


def executed(arguments, workload, mode, batch, folder):
    call = [arguments.program, "profile", workload, "--on", arguments.machine, "--mode", mode, "--batch", str(batch), "--precision",
            arguments.precision, "--out", folder, "--quiet", "--threads", "1"]
    done = subprocess.run(call, capture_output=True, text=True, timeout=arguments.limit)
    if done.returncode != 0:
        return None, (done.stderr.strip().splitlines() or ["no reason given"])[0]
    profile = json.load(open(os.path.join(folder, "profile.json")))
    compilation, execution = profile["compilation"], profile["execution"]
    if compilation["planned"] or compilation["tooFull"]:
        return None, compilation["tooFull"] or compilation["planned"]
    cycles = execution["cycles"]
    return {"cycles": cycles["total"] - cycles["hostExchange"],
            "clock": compilation["target"]["clockFrequency"],
            "tile": compilation["memory"]["maxTile"]["includingGaps"]}, ""


# Bytes, as the program prints them.
UNITS = {"B": 1, "kB": 1e3, "MB": 1e6}


def predicted(arguments, workload, mode, batch, folder):
    path = os.path.join(folder, "predicted.json")
    call = [arguments.program, "predict", workload, "--on", arguments.machine, "--mode", mode, "--micro-batch", str(batch),
            "--precision", arguments.precision, "--json", path, "--extrapolate", "--approximate"]
    done = subprocess.run(call, capture_output=True, text=True, timeout=arguments.limit)
    if done.returncode != 0:
        return None, (done.stderr.strip().splitlines() or ["no reason given"])[0]
    result = json.load(open(path))
    metrics = result["metrics"]
    if "step_time" not in metrics:
        return None, "predicted not to fit"
    words = next(line for line in done.stdout.splitlines() if line.startswith("fullest tile:")).split()
    return {"seconds": metrics["step_time"]["value"], "launch": result["config"]["breakdown"]["launch"], "tile": float(words[2]) * UNITS[words[3]]}, ""


def agrees(ratio):
    return 0.8 <= ratio <= 1.25


def line(name, ratios):
    if not ratios:
        print(f"{name:14} no rows")
        return
    ordered = sorted(ratios)
    at = lambda share: ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)]
    inside = sum(map(agrees, ratios))
    print(f"{name:14} rows {len(ratios)}, median {at(0.5):.2f}, from {ordered[0]:.2f} to {ordered[-1]:.2f}, 0.8 to 1.25: {inside}")


def differences(rows, record):
    """What the record of figures says otherwise, a line each."""
    recorded = {(row[0].strip("`"), row[1]): row for row in record["rows"]}
    found = []
    for row in rows:
        name = (row["workload"], row["mode"])
        if name not in recorded:
            found.append(f"{name[0]} {name[1]}: not in the record")
            continue
        _, _, batch, cycles, ratio, tile, tile_ratio = recorded[name]
        tile_bytes = float(tile.split()[0]) * UNITS[tile.split()[1]]
        for what, now, then in (("micro-batch", row["batch"], float(batch)), ("cycles", row["cycles_executed"], float(cycles.replace(",", ""))),
                                ("cycles over predicted", row["cycles"], float(ratio)), ("fullest tile", row["tile_bytes"], tile_bytes),
                                ("tile over predicted", row["tile"], float(tile_ratio))):
            if abs(now - then) > 0.02 * abs(then):
                found.append(f"{name[0]} {name[1]}: {what} {now:.4g}, recorded {then:.4g}")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--machine", default="gc200")
    parser.add_argument("--precision", default="f32")
    parser.add_argument("--modes", default="infer,train")
    parser.add_argument("--workloads", default="")
    parser.add_argument("--limit", type=float, default=240)
    parser.add_argument("--out", default="")
    parser.add_argument("--against", default="", help="a record of bench/figures/: end with 1 where a row's cycles or tile, executed or "
                        "over predicted, are not those it has, within two hundredths")
    arguments = parser.parse_args()
    rows = []
    workloads, modes = [w for w in arguments.workloads.split(",") if w] or list(FORMS), arguments.modes.split(",")
    for workload in workloads:
        for mode in modes:
            with tempfile.TemporaryDirectory() as folder:
                batch = FORMS[workload]
                try:
                    done, why = executed(arguments, workload, mode, batch, folder)
                    plan, why_not = predicted(arguments, workload, mode, batch, folder)
                except subprocess.TimeoutExpired:
                    print(f"{workload:20} {mode:6} took longer than {arguments.limit:.0f} s", flush=True)
                    continue
                if not done or not plan:
                    print(f"{workload:20} {mode:6} {batch:4}   executed: {why or 'yes'}; predicted: {why_not or 'yes'}", flush=True)
                    continue
            cycles = (done["cycles"] / done["clock"] + plan["launch"]) / plan["seconds"]
            tile = done["tile"] / plan["tile"]
            rows.append({"workload": workload, "mode": mode, "batch": batch, "cycles": cycles, "tile": tile,
                         "cycles_executed": done["cycles"], "tile_bytes": done["tile"], "clock": done["clock"],
                         "predicted_seconds": plan["seconds"], "predicted_launch": plan["launch"], "predicted_tile": plan["tile"]})
            print(f"{workload:20} {mode:6} {batch:4} {done['cycles']:12.0f} cycles, {cycles:5.2f} of predicted; fullest tile "
                  f"{done['tile']:8.0f} B, {tile:5.2f} of predicted", flush=True)
    line("cycles", [row["cycles"] for row in rows])
    line("fullest tile", [row["tile"] for row in rows])
    if arguments.out:
        json.dump(rows, open(arguments.out, "w"), indent=1)
    if arguments.against:
        differing = differences(rows, json.load(open(arguments.against)))
        missing = len(workloads) * len(modes) - len(rows)
        print("\n".join(differing + [f"{missing} rows are missing"] * (missing > 0)) or "as recorded")
        sys.exit(bool(differing or missing))


if __name__ == "__main__":
    main()
