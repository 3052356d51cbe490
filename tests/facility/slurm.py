"""A workflow whose task is jobs of Slurm: its driver is killed, a job is requeued, and the next call waits for the jobs that are there."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from slurm_cluster import asked, cluster, has_node, is_there, until  # noqa: E402

program = sys.argv[1]
FACILITY = """name = "a cluster"
[site.here]
[partition.nodes]
at = "here"
devices = 3
runs = "slurm"
sbatch = ["--ntasks=1"]
[partition.cores]
at = "here"
devices = 2
"""
WORKFLOW = """name = "jobs"
[source.items]
at = "here"
bytes = "1 kB"
count = 3
[task.work]
from = ["items"]
seconds = "1 s"
as = "job"
on = ["nodes"]
run = 'echo $NUMBER >> started; while [ ! -e go ]; do sleep 0.1; done; echo $NUMBER > $OUT'
[task.all]
from = ["work"]
every = "end"
seconds = "1 s"
on = ["cores"]
run = 'cat $IN | sort > $OUT'
"""


def running():
    lines = asked(["squeue", "--noheader", "--states=RUNNING", "-o", "%A"]).stdout.split()
    return sorted(lines)


def started(folder):
    return len((folder / "started").read_text().split()) if (folder / "started").exists() else 0


def drive(folder):
    call = [program, "run", folder / "workflow.toml", "--on", folder / "facility.toml", "--out", folder / "ran"]
    return subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def killed_and_gone_on(folder):
    first = drive(folder)
    until("three jobs", 120, lambda: len(running()) == 3 and started(folder) == 3)
    first.send_signal(signal.SIGKILL)
    first.wait()
    jobs = running()
    assert asked(["scontrol", "requeue", jobs[0]]).returncode == 0
    until("the requeued job's second start", 200, lambda: started(folder) == 4)
    second = drive(folder)
    (folder / "go").touch()
    said, _ = second.communicate(timeout=200)
    assert second.returncode == 0, said
    assert started(folder) == 4, (folder / "started").read_text()  # none was handed in twice
    assert (folder / "ran/work/all/00000/out").read_text() == "0\n1\n2\n"


def failed(folder):
    """A job that fails ends the run, which says how."""
    (folder / "workflow.toml").write_text(WORKFLOW.replace("echo $NUMBER > $OUT", "exit 7"))
    out = subprocess.run([program, "run", folder / "workflow.toml", "--on", folder / "facility.toml", "--out", folder / "other"],
                         capture_output=True, text=True)
    assert out.returncode == 1 and "the command of work ended with 7" in out.stderr, out.stderr


def main():
    if not is_there():
        print("Slurm is not there: slurmctld, slurmd, slurm-client")
        return 77
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        os.environ["SUPERSTEP_HOME"] = str(folder / "home")
        (folder / "workflow.toml").write_text(WORKFLOW)
        (folder / "facility.toml").write_text(FACILITY)
        with cluster(folder):
            try:
                has_node()
            except AssertionError as error:
                print(f"Slurm does not start here: {error}")
                return 77
            killed_and_gone_on(folder)
            failed(folder)
    print("ok")
    return 0


sys.exit(main())
