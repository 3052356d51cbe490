#!/usr/bin/env python3
"""PyTorch as a peer: times inference or a training step of a model on command (README.md)."""

import argparse
import json
import os
import pathlib
import sys

import environment
import protocol


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="braggnn", help="a name in models.py")
    parser.add_argument("--mode", default="infer", choices=["infer", "train"])
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--precision", default="f32", choices=["f32", "bf16"])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE",
                        help="fix a setting instead of trying what it can be, for example graph=eager")
    parser.add_argument("--compile", action="store_true", help="try torch.compile too, where there is one (slow)")
    parser.add_argument("--trial", type=float, default=0.3, help="seconds to time each set-up that is tried")
    parser.add_argument("--search", type=float, default=600, help="seconds after which no further set-up is tried")
    parser.add_argument("--remember", type=pathlib.Path, metavar="FILE",
                        help="JSON that keeps what was fastest: taken where it is there, written where it is not")
    return parser.parse_args()


ARGUMENTS = arguments()
ENVIRONMENT = environment.prepare(ARGUMENTS.threads)
protocol.claim_output()
try:
    import torch
except Exception as error:  # a library that cannot be loaded raises OSError
    protocol.absent("PyTorch cannot be imported by %s: %s" % (sys.executable, error))
import models
import torch_setups


def chosen_settings(texts):
    fixed = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            protocol.fail("--set takes NAME=VALUE, not '%s'" % text)
        fixed[name] = value
    return fixed


def key():
    """What a remembered set-up is for."""
    capability = torch_setups.capability()
    return " ".join(map(str, [torch.__version__, capability, ARGUMENTS.model, ARGUMENTS.mode, ARGUMENTS.precision, ARGUMENTS.batch,
                              ARGUMENTS.threads, "compile" if ARGUMENTS.compile else "plain"]))


def remembered():
    file = ARGUMENTS.remember
    return json.loads(file.read_text()) if file and file.exists() else {}


def remember(best):
    """Adds the set-up to the file, which another peer may have written meanwhile."""
    kept = remembered()
    kept[key()] = best.settings
    fresh = ARGUMENTS.remember.with_suffix(".%d" % os.getpid())
    fresh.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")
    fresh.replace(ARGUMENTS.remember)


def best_setup():
    known = remembered().get(key())
    best = torch_setups.search(ARGUMENTS, known or chosen_settings(ARGUMENTS.set))
    if ARGUMENTS.remember and not known and not ARGUMENTS.set:
        remember(best)
    return best


def main():
    if ARGUMENTS.model not in models.MODELS:
        protocol.fail("no model '%s'; there are: %s" % (ARGUMENTS.model, ", ".join(models.MODELS)))
    if ARGUMENTS.batch < 1 or ARGUMENTS.threads < 1:
        protocol.fail("batch and threads must be at least 1")
    torch.set_num_threads(ARGUMENTS.threads)
    torch.set_num_interop_threads(1)
    torch.set_flush_denormal(True)
    try:
        best = best_setup()
    except Exception as error:
        protocol.fail(error)
    name = "PyTorch " + torch.__version__.split("+")[0]
    results = lambda: {"all": best.result().numpy()}
    protocol.serve({
        "contender": name if ARGUMENTS.precision == "f32" else name + " " + ARGUMENTS.precision,
        "model": ARGUMENTS.model, "mode": ARGUMENTS.mode,
        "batch": ARGUMENTS.batch, "threads": ARGUMENTS.threads, "seed": ARGUMENTS.seed,
        "settings": best.settings, "tried": best.tried, "environment": ENVIRONMENT,
        "versions": {"torch": torch.__version__, "python": sys.version.split()[0],
                     "capability": torch_setups.capability()},
    }, best.step, results=results if ARGUMENTS.mode == "infer" else None)


if __name__ == "__main__":
    main()
