"""A run whose driver is killed again and again, at random moments: every item is given once, in the end as by a run that nobody killed."""

import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

program = sys.argv[1]
FACILITY = """name = "here"
[site.here]
[partition.cores]
at = "here"
devices = 3
[partition.elsewhere]
at = "here"
devices = 2
machine = "t4"
"""
# A task with commands, one that is emulated, one by groups, one by time and one at the end.
WORKFLOW = """name = "kills"
[source.items]
at = "here"
rate = "40 /s"
bytes = "10 B"
count = 30
[task.one]
from = ["items"]
seconds = "10 ms"
on = ["cores"]
run = 'sleep 0.0$((NUMBER % 6)); basename $IN > $OUT'
[task.pause]
from = ["one"]
seconds = "20 ms"
bytes = "5 B"
on = ["elsewhere"]
[task.groups]
from = ["one"]
every = 4
seconds = "10 ms"
on = ["cores"]
run = 'sleep 0.02; cat $IN > $OUT'
[task.all]
from = ["groups"]
every = "end"
as = "service"
seconds = "10 ms"
on = ["cores"]
run = 'cat $IN | sort > $OUT'
[task.counted]
from = ["pause"]
every = "end"
as = "service"
seconds = "10 ms"
on = ["cores"]
run = 'echo $IN | wc -w > $OUT'
"""


def result(folder, task):
    """What the last firing of a task gave, of those that are done."""
    done = sorted(path.parent for path in (folder / "work" / task).glob("*/done.json"))
    assert len(done) == 1, done
    return (done[0] / "out").read_text()


def main():
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    draw, kills = random.Random(seed), 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "workflow.toml").write_text(WORKFLOW)
        (folder / "facility.toml").write_text(FACILITY)
        call = [program, "run", folder / "workflow.toml", "--on", folder / "facility.toml", "--out", folder / "ran", "--quiet"]
        for attempt in range(60):
            driver = subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            time.sleep(draw.uniform(0.01, 0.15 + 0.02 * attempt))
            if driver.poll() is None:
                driver.send_signal(signal.SIGKILL)
                kills += 1
            said, _ = driver.communicate()
            assert driver.returncode in (0, -signal.SIGKILL), f"seed {seed}, call {attempt}: {driver.returncode}: {said}"
            if driver.returncode == 0:
                break
        else:
            subprocess.run(call, check=True)
        expected = "".join(f"{number:05}\n" for number in range(30))
        assert result(folder / "ran", "all") == expected, result(folder / "ran", "all")
        assert result(folder / "ran", "counted").strip() == "30", result(folder / "ran", "counted")
    print(f"{kills} kills, seed {seed}: every item once")
    assert kills > 0
    return 0


sys.exit(main())
