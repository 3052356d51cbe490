#!/usr/bin/env python3
"""PyTorch as a peer: times inference or a training step of a model on command (README.md)."""

import argparse
import sys

import environment
import protocol


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="braggnn", help="a name in models.py")
    parser.add_argument("--mode", default="infer", choices=["infer", "train"])
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE",
                        help="fix a setting instead of trying what it can be, for example graph=eager")
    parser.add_argument("--compile", action="store_true", help="try torch.compile too, where there is one (slow)")
    parser.add_argument("--trial", type=float, default=0.3, help="seconds to time each set-up that is tried")
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


def main():
    if ARGUMENTS.model not in models.MODELS:
        protocol.fail("no model '%s'; there are: %s" % (ARGUMENTS.model, ", ".join(models.MODELS)))
    if ARGUMENTS.batch < 1 or ARGUMENTS.threads < 1:
        protocol.fail("batch and threads must be at least 1")
    torch.set_num_threads(ARGUMENTS.threads)
    torch.set_num_interop_threads(1)
    torch.set_flush_denormal(True)
    try:
        best = torch_setups.search(ARGUMENTS, chosen_settings(ARGUMENTS.set))
    except Exception as error:
        protocol.fail(error)
    protocol.serve({
        "contender": "PyTorch " + torch.__version__, "model": ARGUMENTS.model, "mode": ARGUMENTS.mode,
        "batch": ARGUMENTS.batch, "threads": ARGUMENTS.threads, "seed": ARGUMENTS.seed,
        "settings": best.settings, "tried": best.tried, "environment": ENVIRONMENT,
        "versions": {"torch": torch.__version__, "python": sys.version.split()[0],
                     "capability": torch_setups.capability()},
    }, best.step)


if __name__ == "__main__":
    main()
