#!/usr/bin/env python3
"""How a step slows down when another process takes a processor.

Every contender steps alone, then beside processes that compute without pause, each pinned to a processor of
its own, in turn. With T threads on P processors and B of them taken, a fair scheduler leaves the step a
share of (T - taken / 2) / T, where taken = max(0, B - (P - T)) threads share their processor: what divides
its work by who is free slows down by the inverse of that share, what waits for the slowest thread doubles,
and what spins at barriers can do far worse.
"""

import argparse
import multiprocessing
import os
import pathlib
import signal
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "peers"))
import compare  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent / "build")
    parser.add_argument("--models", default="braggnn:64,cifar10-cnn:64,bert-small:8,lstm:8,ptychonn-64:8",
                        metavar="NAME:BATCH,...")
    parser.add_argument("--mode", default="train", choices=["train", "infer"])
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--busy", type=int, default=1, help="processes that take a processor each")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each round of each contender")
    parser.add_argument("--peers", action="store_true", help="PyTorch too, where it is installed")
    return parser.parse_args()


class Busy:
    """Processes that compute until they are let go of."""

    def __init__(self, count):
        processors = sorted(os.sched_getaffinity(0))[:count]
        self.processes = [multiprocessing.Process(target=spin, args=(p,), daemon=True) for p in processors]

    def __enter__(self):
        for process in self.processes:
            process.start()

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.join()


def spin(processor):
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.sched_setaffinity(0, {processor})
    while True:
        sum(range(10000))


def fair_slowdown(threads, busy):
    shared = max(0, busy - (len(os.sched_getaffinity(0)) - threads))
    return threads / (threads - min(shared, threads) / 2)


def contenders(arguments, model, batch):
    ours = "Superstep=%s --model %s --mode %s --batch {batch} --threads {threads}" % (
        arguments.build / "bench" / "superstep_contender", model, arguments.mode)
    settings = compare.parse(["--model", model, "--mode", arguments.mode, "--build", str(arguments.build), "--contender", ours])
    settings.peers = ["pytorch"] if arguments.peers else []
    return compare.start(compare.commands(settings, batch, arguments.threads))


def samples_of_round(peer):
    peer.samples = []
    peer.round()
    return peer.samples


def contest(arguments, model, batch):
    """Of each contender: its name, the median step alone and beside the busy processes, in seconds."""
    peers = contenders(arguments, model, batch)
    alone, beside = [[] for _ in peers], [[] for _ in peers]
    for peer in peers:
        peer.prepare(arguments.seconds)
    for _ in range(arguments.rounds):
        for i, peer in enumerate(peers):
            alone[i] += samples_of_round(peer)
            with Busy(arguments.busy):
                beside[i] += samples_of_round(peer)
    for peer in peers:
        peer.close()
    # A mean: beside others, the steps that were put off are what counts.
    return [(peer.ready["contender"], statistics.mean(a), statistics.mean(b))
            for peer, a, b in zip(peers, alone, beside)]


def main():
    arguments = parse()
    print("%s, %d threads on %d processors, %d taken: a fair slowdown is %.2f" % (
        arguments.mode, arguments.threads, len(os.sched_getaffinity(0)), arguments.busy,
        fair_slowdown(arguments.threads, arguments.busy)))
    print("%-20s %6s  %-24s %12s %12s %9s" % ("model", "batch", "contender", "alone us", "beside us", "slowdown"))
    for text in arguments.models.split(","):
        model, _, batch = text.partition(":")
        for name, alone, beside in contest(arguments, model, int(batch or 1)):
            print("%-20s %6s  %-24s %12.1f %12.1f %9.2f" % (model, batch, name, 1e6 * alone, 1e6 * beside, beside / alone),
                  flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
