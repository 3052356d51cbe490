"""Ranks that the launcher of another MPI started: refused with the cure, where each had trained by itself in silence.

    mpich.py PROGRAM [--launcher mpiexec.mpich]

Twice: by MPICH's own launcher where it is installed, and by what its launcher would put into the environment of each.
"""

import argparse
import os

from walk import done, walk
from shutil import which

TRAIN = ["train", "mlp", "--samples", "400", "--epochs", "1", "--threads", "1", "--out", "run"]
CURE = "srun --mpi=pmix"


def refused(said, processes):
    assert f"started {processes} processes" in said and CURE in said, said


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--launcher", default="mpiexec.mpich")
    arguments = parser.parse_args()
    program = os.path.abspath(arguments.program)
    with walk("ranks of another MPI") as home:
        told = dict(os.environ, PMI_SIZE="4", PMI_RANK="0", PMI_FD="3")
        refused(done([program, *TRAIN], code=1, cwd=home, env=told), 4)
        assert not (home / "run").exists(), "nothing is written by who is refused"
        if launcher := which(arguments.launcher):
            refused(done([launcher, "-n", "2", program, *TRAIN], code=1, cwd=home), 2)
            assert not (home / "run").exists()
            print(done([launcher, "-n", "1", program, *TRAIN], cwd=home).splitlines()[-1])
        else:
            print(f"note: there is no {arguments.launcher} here: its environment alone was tried")


if __name__ == "__main__":
    main()
