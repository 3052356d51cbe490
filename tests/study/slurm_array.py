"""Tasks of a Slurm array share a search: a cluster of this computer alone runs them, one of them is canceled, the others end it."""

import json
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from slurm_cluster import asked, cluster, has_node, is_there, until  # noqa: E402

program = sys.argv[1]
# Long enough for each of three tasks to have a trial under way when one is canceled.
SEARCH = ("search mlp --samples 8000 --epochs 9 --set learning-rate=1e-4..1e-1:log --set batch=64,128 --trials 12 --threads 1 "
          "--out s")


def states(job):
    lines = asked(["squeue", "--noheader", "--array", "--states=all", "-j", job, "-o", "%K %T"]).stdout.split("\n")
    return dict(line.split() for line in lines if line.strip())


def array(folder):
    command = f"{program} {SEARCH}"
    job = asked(["sbatch", "--parsable", "--array=1-3", f"--chdir={folder}", f"--output={folder}/task-%a.txt", "--wrap", command])
    assert job.returncode == 0, job.stderr
    job = job.stdout.strip()
    until("three tasks at once", 300, lambda: list(states(job).values()).count("RUNNING") == 3)
    until("a trial of each", 300, lambda: len(list((folder / "s/trials").glob("*/run"))) >= 3)
    assert asked(["scancel", "--signal=KILL", "--full", f"{job}_2"]).returncode == 0
    until("the end", 500, lambda: not set(states(job).values()) & {"PENDING", "RUNNING", "COMPLETING"})
    return states(job)


def main():
    if not is_there():
        print("Slurm is not there: slurmctld, slurmd, slurm-client")
        return 77
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        os.environ["SUPERSTEP_HOME"] = str(folder / "home")
        with cluster(folder):
            try:
                has_node()
            except AssertionError as error:
                print(f"Slurm does not start here: {error}\n{(folder / 'slurmd.log').read_text()[-2000:]}")
                return 77
            ended = array(folder)
        report = json.loads((folder / "s/results.json").read_text())
    assert ended["1"] == ended["3"] == "COMPLETED" and ended["2"] != "COMPLETED", ended
    assert [t["trial"] for t in report["trials"]] == list(range(12)), report["trials"]
    assert report["over"] and all(t["qualities"] and t["state"] in ("done", "paused") for t in report["trials"]), report
    print("ok")
    return 0


if __name__ == "__main__":
    sys.exit(main())
