"""A Slurm cluster of this computer alone, for tests: one node of three processors, no authentication, no accounting."""

import contextlib
import getpass
import os
import shutil
import socket
import subprocess
import time

NEEDED = ("slurmctld", "slurmd", "sbatch", "scancel", "scontrol", "squeue", "sinfo")


def is_there():
    return all(where(name) for name in NEEDED)


def has_node():
    """Whether its node is ready within a minute: raises AssertionError where not."""
    return until("a node", 60, lambda: asked(["sinfo", "--noheader", "-o", "%T"]).stdout.strip() == "idle")


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
