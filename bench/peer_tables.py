"""The tables of a run of bench/run.py: ours beside each peer, in f32 and in narrower types, with what was lost shown as lost."""

import math
import statistics

FAMILIES = [("openvino", "OpenVINO"), ("onnxruntime", "ONNX Runtime"), ("pytorch", "PyTorch"), ("jax", "JAX")]
COLUMNS = ["model", "mode", "batch", "threads", "floor", "Superstep", *(name for _, name in FAMILIES), "ratio", "of the floor"]
NARROW_COLUMNS = ["model", "mode", "batch", "threads", "type", "Superstep", "best peer", "its time", "ratio", "f32 over it", "differs",
                  "peer differs"]


def number(seconds):
    """Microseconds as the tables have them: 10.2, 1,627."""
    us = 1e6 * seconds
    return "%.1f" % us if us < 1000 else "{:,.0f}".format(us)


def ratio_text(ratio):
    """A loss stands out."""
    return "%.2f" % ratio if ratio >= 1 else "**%.2f**" % ratio


def family_of(result):
    return result.get("family") or result["contender"].split(" ")[0]


class Row:
    """What contenders did at one model, mode, batch and number of threads."""

    def __init__(self, contest, batch, threads):
        self.model, self.mode, self.batch, self.threads = contest["model"], contest["mode"], batch, threads
        self.results = [r for r in contest["results"] if (r["batch"], r["threads"]) == (batch, threads)]

    def of(self, family, precision="f32"):
        return next((r for r in self.results if family_of(r) == family and r.get("precision", "f32") == precision), None)

    def time(self, family, precision="f32"):
        found = self.of(family, precision)
        return found["metrics"]["step_time"]["value"] if found else None

    def best(self, precision="f32"):
        """The fastest peer's result; none where there is no peer."""
        peers = [r for r in self.results if family_of(r) != "Superstep" and r.get("precision", "f32") == precision]
        return min(peers, key=lambda r: r["metrics"]["step_time"]["value"], default=None)

    def ratio(self, precision="f32"):
        best, ours = self.best(precision), self.time("Superstep", precision)
        return best["metrics"]["step_time"]["value"] / ours if best and ours else None

    def head(self):
        return [self.model, self.mode, str(self.batch), str(self.threads)]


def all_rows(contests):
    for contest in contests:
        for threads, batch in sorted({(r["threads"], r["batch"]) for r in contest["results"]}):
            row = Row(contest, batch, threads)
            if row.of("Superstep"):
                yield row


def rows(contests, peak):
    """Cells of the table in f32."""
    for row in all_rows(contests):
        ours, ratio = row.time("Superstep"), row.ratio()
        floor = row.of("Superstep")["ready"]["flops"] / (peak["f32_fma"] * row.threads)
        times = [row.time(family) for family, _ in FAMILIES]
        yield [*row.head(), number(floor), number(ours), *("-" if t is None else number(t) for t in times),
               ratio_text(ratio) if ratio else "-", "%.0f %%" % (100 * floor / ours)]


def narrow_rows(contests):
    """Cells of the table of bf16 and int8: the best peer in the same type, and how far results are from f32's of the same program."""
    told = lambda result: "-" if not result or result.get("differs") is None else "%.1e" % result["differs"]
    for row in all_rows(contests):
        for precision in ("bf16", "int8"):
            ours, best, ratio = row.time("Superstep", precision), row.best(precision), row.ratio(precision)
            if ours:
                yield [*row.head(), precision, number(ours), best["contender"] if best else "-",
                       number(best["metrics"]["step_time"]["value"]) if best else "-", ratio_text(ratio) if ratio else "-",
                       ratio_text(row.time("Superstep") / ours), told(row.of("Superstep", precision)), told(best)]


def versions(contests):
    """The peers with their versions: "OpenVINO 2026.4.1"."""
    names = {family_of(r): r["contender"] for c in contests for r in c["results"] if r.get("precision", "f32") == "f32"}
    return [names[family] for family, _ in FAMILIES if family in names]


def means(contests):
    """A line a type, mode, kind of batch and number of threads: the geometric mean of the ratios and the least of them."""
    groups = {}
    for row in all_rows(contests):
        size = "training" if row.mode == "train" else "inference at batch 1" if row.batch == 1 else "inference at the larger batch"
        for precision in ("f32", "bf16", "int8"):
            ratio = row.ratio(precision)
            if ratio:
                groups.setdefault((precision, size, row.threads), []).append((ratio, row.model))
    for (precision, size, threads), values in sorted(groups.items(), key=lambda item: (item[0][0] != "f32", item[0])):
        mean = math.exp(statistics.mean(math.log(ratio) for ratio, _ in values))
        yield "%s, %s, %d thread%s: geometric mean of %d ratios %.2f, least %.2f (%s), %d below 1" % (
            precision, size, threads, "" if threads == 1 else "s", len(values), mean, *min(values), sum(r < 1 for r, _ in values))
