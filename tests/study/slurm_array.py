"""Tasks of a Slurm array share a search: a cluster of this computer alone runs them, one of them is canceled, the others end it."""

import contextlib
import getpass
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

program = sys.argv[1]
NEEDED = ("slurmctld", "slurmd", "sbatch", "scancel", "squeue", "sinfo")
# Long enough for each of three tasks to have a trial under way when one is canceled.
SEARCH = ("search mlp --samples 8000 --epochs 9 --set learning-rate=1e-4..1e-1:log --set batch=64,128 --trials 12 --threads 1 "
          "--out s")


def where(name):
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")


def free_ports(count):
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


# No authentication and no accounting: one user, one node, three tasks at a time.
def configuration(folder):
    controller, node = free_ports(2)
    host, user = socket.gethostname().split(".")[0], getpass.getuser()
    return f"""ClusterName=here
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={node}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/none
CredType=cred/none
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1
MinJobAge=3600
KillWait=2
NodeName={host} NodeAddr=127.0.0.1 CPUs=3 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP
"""


@contextlib.contextmanager
def cluster(folder):
    for name in ("state", "spool"):
        (folder / name).mkdir()
    (folder / "slurm.conf").write_text(configuration(folder))
    os.environ["SLURM_CONF"] = str(folder / "slurm.conf")
    started = []
    try:
        for name in ("slurmctld", "slurmd"):
            with open(folder / f"{name}.log", "w") as log:
                started.append(subprocess.Popen([where(name), "-D"], stdout=log, stderr=log))
        yield
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait(timeout=60)


def asked(command):
    return subprocess.run(command, capture_output=True, text=True)


def until(what, seconds, look):
    for _ in range(int(seconds / 0.2)):
        if look():
            return True
        time.sleep(0.2)
    raise AssertionError(f"{what}: not within {seconds} s")


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
    if not all(where(name) for name in NEEDED):
        print("Slurm is not there: slurmctld, slurmd, slurm-client")
        return 77
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        os.environ["SUPERSTEP_HOME"] = str(folder / "home")
        with cluster(folder):
            try:
                until("a node", 60, lambda: asked(["sinfo", "--noheader", "-o", "%T"]).stdout.strip() == "idle")
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
