"""Random affine nests through the translator: programs in C whose regions write arrays from each other with
offsets, strides, loops inside the body and time loops around them. On any number of tiles they must leave the
bits that gcc's programs leave; with one element withheld from each exchange of halos they must not."""

import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

PER_FILE = 12
HEAD = """#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static void fill(void *data, long bytes, int type, unsigned seed) {
  long count = type == 8 ? bytes / 8 : bytes / 4;
  for (long k = 0; k < count; k++) {
    seed = seed * 1664525u + 1013904223u;
    int value = (int)(seed >> 20) - 2048;
    if (type == 8) ((double *)data)[k] = value / 64.0;
    else if (type == 4) ((float *)data)[k] = value / 64.0f;
    else ((int *)data)[k] = value % 64;
  }
}
static void show(int number, const void *data, long bytes) {
  unsigned long hash = 1469598103934665603ul;
  for (long k = 0; k < bytes; k++) hash = (hash ^ ((const unsigned char *)data)[k]) * 1099511628211ul;
  printf("%d %016lx\\n", number, hash);
}
"""
TYPES = {"float": 4, "int": 0, "double": 8}


class Nest:
    """Arrays of one shape, each of a time step's regions writing one of them from the others."""

    def __init__(self, draw, number):
        self.draw, self.number = draw, number
        self.type = draw.choice(("float", "float", "int", "double"))
        self.rank = draw.randint(1, 3)
        room = {1: 900, 2: 40, 3: 14}[self.rank]
        self.extents = [draw.randint(9, room) for _ in range(self.rank)]
        self.arrays = [f"a{k}" for k in range(draw.randint(2, 3))]
        self.linear = draw.random() < 0.5
        self.steps = draw.randint(1, 4)
        self.regions = [self.region(k) for k in range(draw.randint(1, len(self.arrays)))]

    def element(self, array, subscripts):
        if not self.linear:
            return array + "".join(f"[{s}]" for s in subscripts)
        text = f"({subscripts[0]})"
        for subscript, extent in zip(subscripts[1:], range(1, self.rank)):
            text = f"({text}) * e{extent} + ({subscript})"
        return f"{array}[{text}]"

    def region(self, number):
        """Loops i0, i1 ... over the interior; `dealt` of them by the construct, the others in the body."""
        draw, margin = self.draw, 3
        target = self.arrays[number]
        others = [a for a in self.arrays if a != target]
        dealt = draw.randint(1, self.rank)
        own = [f"i{k}" for k in range(self.rank)]
        strides = [draw.choice((1, 1, 1, 2)) for _ in range(self.rank)]
        down = [draw.random() < 0.15 for _ in range(self.rank)]

        def reading():
            return self.element(draw.choice(others), [shifted(c, draw.randint(-3, 3)) for c in own])

        terms = [f"{draw.choice((1, 2, 3))} * {reading()}" for _ in range(draw.randint(1, 4))]
        if draw.random() < 0.4:
            terms.append(self.element(target, own))
        value = " + ".join(terms)
        half = {"float": "0.25f * ", "double": "0.25 * ", "int": ""}[self.type]
        inside = f"{self.element(target, own)} = {half}({value}){' % 64' if self.type == 'int' else ''};"
        if draw.random() < 0.3:  # an accumulation over a loop of its own
            far = [shifted(own[0], "k - 1")] + own[1:]
            inside += f"\n      for (long k = 0; k < {draw.randint(1, 3)}; k++) " \
                      f"{self.element(target, own)} += {self.element(draw.choice(others), far)};"
        text = f"#pragma omp target teams distribute parallel for collapse({dealt})\n"
        for k in range(self.rank):
            low, high, step = margin, f"e{k} - {margin}", strides[k]
            loop = f"for (long i{k} = {high} - 1; i{k} >= {low}; i{k} -= {step})" if down[k] else \
                f"for (long i{k} = {low}; i{k} < {high}; i{k} += {step})"
            text += "  " * (k + 2) + loop + "\n"
        return text + "      {\n      " + inside + "\n      }\n"

    def text(self):
        arguments = ", ".join(f"long e{k}" for k in range(self.rank))
        count = " * ".join(f"e{k}" for k in range(self.rank))
        inner = "".join(f"[e{k}]" for k in range(1, self.rank))
        body = f"static void nest{self.number}({arguments}) {{\n"
        body += f"  const long count = {count}, bytes = count * (long)sizeof({self.type});\n"
        for k, array in enumerate(self.arrays):
            kind = f"{self.type} *{array}" if self.linear or self.rank == 1 else f"{self.type} (*{array}){inner}"
            body += f"  {kind} = malloc(bytes);\n  fill({array}, bytes, {TYPES[self.type]}, {k + 1}u);\n"
        rows = "count" if self.linear else "e0"
        maps = ", ".join(f"{array}[0:{rows}]" for array in self.arrays)
        body += f"#pragma omp target data map(tofrom: {maps})\n  for (int step = 0; step < {self.steps}; step++) {{\n"
        body += "".join(self.regions) + "  }\n"
        body += "".join(f"  show({self.number}, {array}, bytes);\n  free({array});\n" for array in self.arrays)
        return body + "}\n"

    def call(self):
        return f"  nest{self.number}({', '.join(map(str, self.extents))});\n"


def shifted(counter, offset):
    return counter if offset == 0 else f"{counter} + {offset}" if isinstance(offset, str) or offset > 0 \
        else f"{counter} - {-offset}"


def must(words, **options):
    done = subprocess.run(words, capture_output=True, text=True, timeout=240, **options)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, words))} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def regions_of(report):
    return json.loads(report.read_text())["regions"]


def try_file(call, draw, folder):
    """Regions dealt, regions elsewhere, whether the control was seen."""
    nests = [Nest(draw, k) for k in range(PER_FILE)]
    source = folder / "nests.c"
    source.write_text(HEAD + "".join(nest.text() for nest in nests) + "int main(void) {\n" +
                      "".join(nest.call() for nest in nests) + "  return 0;\n}\n")
    must(["gcc", "-w", "-fopenmp", "-O2", "-ffp-contract=off", "-foffload=disable", source, "-o", folder / "host"])
    must([call.cc, source, "-o", folder / "tiles"])
    expected = must([folder / "host"], env=dict(os.environ, OMP_NUM_THREADS="1"))
    report = folder / "report.json"
    dealt = elsewhere = 0
    for tiles in (3, draw.randint(4, 60), draw.randint(61, 1472)):
        printed = must([folder / "tiles"], env=dict(os.environ, SUPERSTEP_OMP_OPTIONS=f"tiles={tiles}",
                                                    SUPERSTEP_OMP_REPORT=str(report)))
        if printed != expected:
            (call.keep / "nests.c").write_text(source.read_text())
            raise SystemExit(f"on {tiles} tiles:\n{printed}expected:\n{expected}({call.keep / 'nests.c'})")
        dealt += sum(1 for region in regions_of(report) if region["dealt"])
        elsewhere += sum(1 for region in regions_of(report) if not region["dealt"])
        for region in regions_of(report):
            if not region["dealt"]:
                print(f"not dealt: {region['reason']}")
    control = must([folder / "tiles"], env=dict(os.environ,
                                                SUPERSTEP_OMP_OPTIONS="tiles=24,withhold-halo-element"))
    return dealt, elsewhere, control != expected


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cc", required=True, help="the translator")
    parser.add_argument("--files", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=pathlib.Path, default=pathlib.Path("."), help="where a failing program goes")
    call = parser.parse_args()
    dealt = elsewhere = controls = 0
    for number in range(call.files):
        with tempfile.TemporaryDirectory() as folder:
            found = try_file(call, random.Random(call.seed * 1000 + number), pathlib.Path(folder))
        dealt, elsewhere, controls = dealt + found[0], elsewhere + found[1], controls + found[2]
    print(f"{call.files * PER_FILE} programs: {dealt} regions dealt, {elsewhere} not; "
          f"the control differs in {controls} of {call.files} files")
    # What is refused by the test of dependences is no failure, but a test of refusals only would be none.
    return 0 if controls == call.files and elsewhere * 10 <= dealt else 1


if __name__ == "__main__":
    sys.exit(main())
