#!/usr/bin/env python3
"""The page of what time_models.py measured: means, the list, losses and refusals; and, where training.json lies beside the
results, of what train_models.py did.

    page.py bench/models/results.json docs/model-files.md
    page.py bench/models/python.json docs/python.md        the section of what from_python.py made
"""

import json
import math
import pathlib
import sys

ENGINES = ["superstep", "onnxruntime", "openvino"]
TITLES = {"superstep": "Superstep", "onnxruntime": "ONNX Runtime", "openvino": "OpenVINO"}


def ratio_of(found):
    """Times that ours is faster than the fastest peer; None where either did not run."""
    ours = found.get("superstep", {}).get("seconds")
    peers = [found[name]["seconds"] for name in ENGINES[1:] if "seconds" in found.get(name, {})]
    return min(peers) / ours if ours and peers else None


def memory_of(found):
    """Our peak memory as a share of ONNX Runtime's."""
    ours, peer = found.get("superstep", {}).get("memory"), found.get("onnxruntime", {}).get("memory")
    return ours / peer if ours and peer else None


def mean(values):
    values = [v for v in values if v]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def summary(rows):
    ratios = [ratio_of(row["engines"]) for row in rows]
    known = [r for r in ratios if r]
    return {"files": len(rows), "measured": len(known), "mean": mean(known), "wins": sum(r >= 1 for r in known),
            "worst": min(known, default=float("nan")), "memory": mean(memory_of(row["engines"]) for row in rows),
            "refused": sum("failure" in row["engines"].get("superstep", {}) for row in rows)}


def summary_line(rows):
    s = summary(rows)
    return ("%(measured)d of %(files)d measured, geometric mean of best peer / Superstep %(mean).3f, %(wins)d at least as fast, "
            "worst %(worst).3f, memory / ONNX Runtime's %(memory).2f, refused %(refused)d" % s)


def micro(found, engine):
    one = found.get(engine, {})
    return "%.0f" % (1e6 * one["seconds"]) if "seconds" in one else "refused"


def error(found):
    value = found.get("superstep", {}).get("error")
    return "-" if value is None else "%.0e" % value


def table(rows):
    lines = ["| file | threads | %s | best peer / Superstep | error | memory |" % " | ".join(TITLES[e] + ", us" for e in ENGINES),
             "|---|---|---|---|---|---|---|---|"]
    for row in rows:
        found, ratio, memory = row["engines"], ratio_of(row["engines"]), memory_of(row["engines"])
        told = "-" if ratio is None else "%.2f" % ratio if ratio >= 1 else "**%.2f**" % ratio
        lines.append("| %s.%s | %d | %s | %s | %s | %s |" % (
            row["name"], row["exporter"], row["threads"], " | ".join(micro(found, e) for e in ENGINES), told, error(found),
            "-" if memory is None else "%.2f" % memory))
    return lines


def means(rows):
    lines = ["| files | measured | geometric mean | at least as fast | worst | memory |", "|---|---|---|---|---|---|"]
    families = list(dict.fromkeys(row["family"] for row in rows))
    threads = sorted({row["threads"] for row in rows})
    groups = [("all", rows)] + [("%d threads" % t if t > 1 else "1 thread", [r for r in rows if r["threads"] == t]) for t in threads]
    groups += [(f, [r for r in rows if r["family"] == f]) for f in families]
    for title, group in groups:
        s = summary(group)
        lines.append("| %s | %d of %d | %.2f | %d | %.2f | %.2f |" % (title, s["measured"], s["files"], s["mean"], s["wins"], s["worst"],
                                                                     s["memory"]))
    return lines


def refusals(rows):
    reasons = {}
    for row in rows:
        for engine in ENGINES:
            failure = row["engines"].get(engine, {}).get("failure")
            if failure:
                reasons.setdefault("%s.%s" % (row["name"], row["exporter"]), {})[TITLES[engine]] = failure[:160]
    lines = ["| file | refused by | reason |", "|---|---|---|"]
    return lines + ["| %s | %s | %s |" % (name, engine, text.replace("|", "/").replace("<", "&lt;"))
                    for name, found in reasons.items() for engine, text in found.items()] if reasons else ["None."]


def told_difference(found, prefix):
    return ", ".join("%.0e" % found[prefix + key] for key in ("loss", "parameters", "moves"))


def training_table(rows):
    lines = ["| model | batch | optimizer | Superstep: loss, parameters, moves | PyTorch in f32 | Superstep, us | PyTorch, us | its set-up | gain |",
             "|---|---|---|---|---|---|---|---|---|"]
    for row in rows:
        if "failure" in row:
            lines.append("| %s | - | - | %s | | | | | |" % (row["name"], row["failure"][:160].replace("|", "/").replace("<", "&lt;")))
        times = row.get("seconds", {})
        for kind, found in row["optimizers"].items():
            front = "| %s%s | %d | %s | " % (row["name"], "*" if "added" in row else "", row["batch"], kind)
            if "failure" in found:
                lines.append(front + found["failure"][:160].replace("|", "/").replace("<", "&lt;") + " | | | | | |")
                continue
            best = min((s, name) for name, s in times.items() if name != "Superstep") if times and kind == row["timed"] else None
            timed = "%.0f | %.0f | %s | %.2f |" % (1e6 * times["Superstep"], 1e6 * best[0], best[1], best[0] / times["Superstep"]) \
                if best else "- | - | - | - |"
            lines.append(front + "%s | %s | %s" % (told_difference(found, ""), told_difference(found, "peer_"), timed))
    return lines


def training_gain(row):
    peers = [s for name, s in row.get("seconds", {}).items() if name != "Superstep"]
    return min(peers) / row["seconds"]["Superstep"] if peers else None


def setups_text(rows):
    """Which set-ups of PyTorch were timed."""
    names = sorted({name for row in rows for name in row.get("seconds", {})} - {"Superstep"})
    if not names:
        return "No times were taken."
    compiled = "" if any(name.startswith("compile") for name in names) else "; torch.compile was left out"
    return "Times are of one optimizer; the fastest of PyTorch's set-ups counts (%s%s)." % ("; ".join(names), compiled)


def training_text(data):
    """The section of train_models.py's results."""
    rows = data["rows"]
    gains, loads = [g for g in map(training_gain, rows) if g], [row["load"] for row in rows]
    return ["## Training steps", "",
            "By `train_models.py`, whose head says how: %d steps in each optimizer from the same weights, against PyTorch %s in f64. `loss` is the" % (
                data["steps"], data["torch"]),
            "largest relative difference of a loss, `parameters` the length of the difference of all parameters as a share of their length, `moves`",
            "as a share of what they moved by; beside it the same of PyTorch in f32. %s" % setups_text(rows), "",
            "Measured on %s (%s), %d thread, while other work had a load of %.1f to %.1f. %s" % (
                data["machine"], data["created"][:10], rows[0]["threads"], min(loads), max(loads),
                "Geometric mean of the gain of %d models: %.2f; worst %.2f." % (len(gains), mean(gains), min(gains)) if gains else ""),
            "", *training_table(rows), "", *added_text(rows)]


def added_text(rows):
    """Which parameters had to be named."""
    told = ["%s %s" % (row["name"], ", ".join("`%s`" % name for name in row["added"])) for row in rows if "added" in row]
    return ["\\* with `--train` for parameters whose graph does not show that they are weights: %s." % "; ".join(told), ""] if told else []


# What superstep.torch says of itself in docs/python.md.
SERVED, TRAINED = 1e-3, 1e-4


def is_served(row):
    return row.get("serving", {}).get("error", math.inf) <= SERVED


def is_trained(row):
    """As near to PyTorch in f64 as asked for, or no further than four times as far as PyTorch in f32 is."""
    found = row.get("training", {})
    return all(found.get(name, math.inf) <= max(TRAINED, 4 * found.get("peer_" + name, 0.0)) for name in ("loss", "parameters"))


def python_exceptions(rows):
    """(architecture, what of it, what came of it) of all that is not as it should be."""
    for row in rows:
        if "failure" in row:
            yield row["name"], "both", row["failure"]
        for kind, fine in (("serving", is_served), ("training", is_trained)):
            found = row.get(kind)
            if found and "failure" in found:
                yield row["name"], kind, found["failure"]
            elif found and not fine(row):
                yield row["name"], kind, ", ".join(f"{name} {value:.0e}" for name, value in found.items() if name != "seconds")


def python_text(data):
    """The section of from_python.py's results."""
    rows = data["rows"]
    served, trained = [r for r in rows if "error" in r.get("serving", {})], [r for r in rows if "loss" in r.get("training", {})]
    told = [f"| {name} | {kind} | {reason[:300].replace('|', '/').replace('<', '&lt;')} |" for name, kind, reason in python_exceptions(rows)]
    return ["### Architectures", "",
            f"`bench/models/from_python.py` takes the {len(rows)} networks of `bench/models/architectures` through both functions, beside PyTorch",
            f"{data['torch']}: {len(served)} are compiled, {sum(map(is_served, served))} of them within {SERVED:g} of PyTorch's outputs; {len(trained)} are trained for "
            f"{data['steps']} steps of SGD,", f"{sum(map(is_trained, trained))} of them with losses and parameters within {TRAINED:g} of PyTorch in f64 (or four times as far from it as PyTorch",
            "in f32 is). The others:", "", *(["| network | what | what is said, or the differences |", "|---|---|---|", *told] if told else ["None."]), ""]


def text(data, training=None):
    rows = sorted(data["rows"], key=lambda row: ratio_of(row["engines"]) or 0)
    loads = [row["load"] for row in rows]
    names = len({row["name"] for row in rows})
    return "\n".join([
        "# Files of other people beside other engines", "",
        "Written by `bench/models/page.py`; how `time_models.py` measures is said there, and what the files are in",
        "`bench/models/architectures`: %d networks with random weights, each exported by both exporters of PyTorch, in f32." % names,
        "Times are microseconds per run; `best peer / Superstep` above 1 is a gain, below 1 a loss (in bold); `error` is the",
        "largest difference from PyTorch's results as a share of the largest; `memory` is the growth of the process as a share of",
        "ONNX Runtime's.", "",
        "Measured on %s (%s), while other work had a load of %.1f to %.1f." % (data["machine"], data["created"][:10], min(loads), max(loads)),
        "", "## Means", "", *means(rows), "", *(training_text(training) if training else []),
        "## Refused", "", *refusals(rows), "", "## Every file, the worst first", "", *table(rows), ""])


def with_section(page, section):
    """A page with its section of this title anew."""
    begin = page.index(section[0] + "\n")
    end = page.index("\n## ", begin) + 1
    return page[:begin] + "\n".join(section) + "\n" + page[end:]


def main(results, file):
    data = json.loads(results.read_text())
    if data["schema"].startswith("superstep-from-python"):
        file.write_text(with_section(file.read_text(), python_text(data)))
        return
    training = results.with_name("training.json")
    file.write_text(text(data, json.loads(training.read_text()) if training.exists() else None))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*map(pathlib.Path, sys.argv[1:]))
