#!/usr/bin/env python3
"""What a call from Python costs beyond the work: Superstep's beside its own calls in C++, and ONNX Runtime's run().

    call.py [--model mlp] [--batch 1] [--calls 20000] [--json FILE]

Rounds of all take turns on one thread. `c++` is the session called in a loop without Python; `overhead` of Superstep is the
difference of the medians. Of ONNX Runtime the whole call is given: its work is another. Needs the package `superstep`, and
`onnxruntime` for the comparison.
"""
import argparse
import json
import os
import pathlib
import statistics
import tempfile
import time

import numpy

import superstep

ROUNDS = 9


def calls_of(function, calls):
    """Median seconds of a call."""
    times = numpy.empty(calls)
    clock = time.perf_counter
    for i in range(calls):
        begin = clock()
        function()
        times[i] = clock() - begin
    return float(numpy.median(times))


def contenders(session, x, file):
    out = [numpy.empty(port.shape, port.dtype) for port in session.outputs]
    name = session.inputs[0].name
    found = {"c++": lambda n: float(numpy.median(session.time(x, calls=n))),
             "superstep m(x)": lambda n: calls_of(lambda: session(x), n),
             "superstep m(x, out=)": lambda n: calls_of(lambda: session(x, out=out), n),
             "superstep m.run({...})": lambda n: calls_of(lambda: session.run({name: x}), n)}
    try:
        import torch
    except ImportError:
        pass
    else:
        tensor = torch.from_numpy(x)
        found["superstep m(tensor)"] = lambda n: calls_of(lambda: session(tensor), n)
    try:
        import onnxruntime
    except ImportError:
        return found
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    peer = onnxruntime.InferenceSession(file, options, ["CPUExecutionProvider"])
    found["onnxruntime run()"] = lambda n: calls_of(lambda: peer.run(None, {name: x}), n)
    assert numpy.allclose(peer.run(None, {name: x})[0], session(x), atol=1e-4)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="mlp")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--calls", type=int, default=20000)
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "model.onnx")
        superstep.Model(arguments.model).write_onnx(file)
        session = superstep.load(arguments.model, batch=arguments.batch, threads=1)
        port = session.inputs[0]
        x = numpy.random.default_rng(1).random(port.shape).astype(port.dtype)
        found = contenders(session, x, file)
        rounds = {name: [] for name in found}
        for _ in range(ROUNDS):
            for name, timed in found.items():
                rounds[name].append(timed(arguments.calls // ROUNDS))
    medians = {name: statistics.median(times) for name, times in rounds.items()}
    load = os.getloadavg()[0]
    print(f"{arguments.model}, batch {arguments.batch}, one thread, load {load:.1f}, us per call")
    for name, seconds in medians.items():
        beyond = f"  overhead {1e6 * (seconds - medians['c++']):6.2f}" if name.startswith("superstep") else ""
        print(f"  {name:<24} {1e6 * seconds:8.2f}{beyond}")
    if arguments.json:
        arguments.json.write_text(json.dumps({"model": arguments.model, "batch": arguments.batch, "load": load, "seconds": medians}) + "\n")


if __name__ == "__main__":
    main()
