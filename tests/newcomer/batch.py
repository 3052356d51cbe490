"""A job of a batch system: the script of docs/install.md, under a Slurm that this computer runs for itself, and under its word alone.

    batch.py PROGRAM

Slurm's own programs (Debian: slurm-wlm) are used where they are installed; what Slurm puts into the environment of a job is tried anywhere.
"""

import json
import os
import pathlib
import re
import sys
import time

from walk import SOURCE, done, walk

sys.path.insert(0, str(SOURCE / "tests"))


def script_of_the_page():
    """As it is on the page, on little data."""
    page = (SOURCE / "docs/install.md").read_text()
    lines = re.search(r"^    #!/bin/bash\n(?:    .*\n)+", page, re.M)[0]
    text = "\n".join(line[4:] for line in lines.splitlines()) + "\n"
    return text.replace("--cpus-per-task=8 --mem=16G", "--cpus-per-task=2").replace("--epochs 20", "--epochs 2")


def told(home, program):
    """The environment of a task: as many threads as it may have, and the job's number in the record."""
    job = dict(os.environ, SLURM_JOB_ID="4711", SLURM_JOB_PARTITION="short", SLURM_JOB_NUM_NODES="1", SLURM_NTASKS="1",
               SLURM_PROCID="0", SLURM_CPUS_PER_TASK="1")
    done([program, "train", "mlp", "--samples", "400", "--epochs", "1", "--no-out", "--json", "told.json"], cwd=home, env=job)
    text = (home / "told.json").read_text()
    assert "4711" in text and "short" in text, text[:2000]
    json.loads(text)
    print("threads by Slurm's word:", re.search(r'"threads": ?"?(\d+)', text)[1])


def real(home, program):
    from slurm_cluster import NEEDED, cluster, where
    if missing := [name for name in NEEDED if where(name) is None]:
        return print(f"note: there is no {missing[0]} here: Slurm's environment alone was tried")
    os.environ["PATH"] = f"{pathlib.Path(program).parent}:{os.environ['PATH']}"
    (home / "job.sh").write_text(script_of_the_page())
    os.chmod(home / "job.sh", 0o755)
    done([program, "generate", "braggnn", "--samples", "1000", "--seed", "1", "--out", "peaks.h5"], cwd=home)
    (home / "slurm").mkdir()
    with cluster(home / "slurm"):
        until = time.monotonic() + 60
        while "idle" not in done([where("sinfo"), "-h", "-o", "%T"], code=0) and time.monotonic() < until:
            time.sleep(0.2)
        said = done([where("sbatch"), "--wait", "--parsable", "job.sh"], cwd=home)
        assert (home / "run/best.safetensors").exists(), f"job {said}" + (home / f"slurm-{said.split()[0]}.out").read_text()
        done([where("sbatch"), "--wait", "--parsable", "job.sh"], cwd=home)  # there is a run: it goes on with it
    print("two jobs of the page's script ended well, the second by --resume")


def main():
    program = os.path.abspath(sys.argv[1])
    with walk("a batch system") as home:
        told(home, program)
        real(home, program)


if __name__ == "__main__":
    main()
