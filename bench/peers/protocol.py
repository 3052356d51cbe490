"""The line protocol of the peers (README.md): answers commands on standard input until it ends."""

import json
import os
import sys
import time

OUTPUT = sys.stdout


def claim_output():
    """Keeps standard output for the protocol: what libraries print goes to standard error from here on."""
    global OUTPUT
    OUTPUT = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)


def say(line):
    OUTPUT.write(line + "\n")
    OUTPUT.flush()


def absent(reason):
    say("absent " + " ".join(str(reason).split()))
    sys.exit(3)


def fail(reason):
    say("error " + " ".join(str(reason).split()))
    sys.exit(1)


def timed(step, count):
    """Seconds of each of `count` calls."""
    clock = time.perf_counter
    times = []
    for _ in range(count):
        begin = clock()
        step()
        times.append(clock() - begin)
    return times


def timed_means(step, count, steps):
    """Means over `steps` calls in a row, `count` of them."""
    clock = time.perf_counter
    times = []
    for _ in range(count):
        begin = clock()
        for _ in range(steps):
            step()
        times.append((clock() - begin) / steps)
    return times


def warm(step, seconds):
    """Calls `step` for at least `seconds` and at least three times; how often."""
    end = time.perf_counter() + seconds
    steps = 0
    while steps < 3 or time.perf_counter() < end:
        step()
        steps += 1
    return steps


def positive(text):
    number = int(text)
    if number < 1:
        raise ValueError("%d is not a number of steps" % number)
    return number


def times_of(words, step):
    count, steps = positive(words[1]), positive(words[2]) if len(words) == 3 else 1
    times = timed(step, count) if steps == 1 else timed_means(step, count, steps)
    return "times " + " ".join("%.9g" % t for t in times)


def port(name, kind, extents):
    return "%s:%s:%s" % (name, kind, ",".join(map(str, extents)) if len(extents) else "scalar")


def saved(words, results):
    """Writes a result in f32."""
    array = results()[words[1]].astype("float32")
    array.tofile(words[2])
    return "done %d" % array.nbytes


def loaded(words, model):
    """Fills an input from a file."""
    import numpy
    for name, kind, extents in model.inputs():
        if name == words[1]:
            numpy_name = {"f": "float", "i": "int", "u": "uint"}.get(kind[0], "") + kind[1:] if kind != "bool" else kind
            array = numpy.fromfile(words[2], numpy_name).reshape(extents)
            model.load(name, array)
            return "done %d" % array.nbytes
    raise ValueError("no input '%s'" % words[1])


def answer(words, step, results=None, model=None):
    command, count = words[0] if words else "", len(words)
    if command == "run" and count in (2, 3):
        return times_of(words, step)
    if command == "warm" and count == 2:
        return "done %d" % warm(step, float(words[1]))
    if command == "outputs" and count == 1 and results:
        return "outputs " + " ".join(port(name, "f32", array.shape) for name, array in results().items())
    if command == "save" and count == 3 and results:
        return saved(words, results)
    if command == "inputs" and count == 1 and model:
        return "inputs " + " ".join(port(*one) for one in model.inputs())
    if command == "load" and count == 3 and model:
        return loaded(words, model)
    return "error not a command: '%s'" % " ".join(words)


def serve(description, step, results=None, model=None):
    """Says that it is ready, then times `step` on command; `results` gives the arrays of the last step by name, `model` takes inputs."""
    say("ready " + json.dumps(dict(description, protocol=1)))
    for line in sys.stdin:
        words = line.split()
        if words == ["quit"]:
            break
        try:
            say(answer(words, step, results, model))
        except Exception as error:  # the driver decides what a failure means
            say("error " + " ".join(str(error).split()))
    say("bye")
