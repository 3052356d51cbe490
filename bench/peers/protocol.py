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


def answer(words, step):
    command = words[0] if words else ""
    if command == "run" and len(words) in (2, 3):
        count, steps = positive(words[1]), positive(words[2]) if len(words) == 3 else 1
        times = timed(step, count) if steps == 1 else timed_means(step, count, steps)
        return "times " + " ".join("%.9g" % t for t in times)
    if command == "warm" and len(words) == 2:
        return "done %d" % warm(step, float(words[1]))
    return "error not a command: '%s'" % " ".join(words)


def serve(description, step):
    """Says that it is ready, then times `step` on command."""
    say("ready " + json.dumps(dict(description, protocol=1)))
    for line in sys.stdin:
        words = line.split()
        if words == ["quit"]:
            break
        try:
            say(answer(words, step))
        except Exception as error:  # the driver decides what a failure means
            say("error " + " ".join(str(error).split()))
    say("bye")
