"""A Python user on another distribution: the wheel is installed without root and the README's tour is run.

    wheel.py WHEEL [--root FOLDER | --suite trixie [--mirror URL]]

FOLDER is the root of a system that is there (it stays as it is); without it one is made by debootstrap, for which this has to be
root. Inside, everything is done by a user of their own, with no network: NumPy's wheel is fetched outside, for its interpreter.
Skipped (77) without a wheel, root, debootstrap or a mirror.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys

from walk import done, needed, python_of, skip, walk

USER = 1234


def made_root(suite, mirror, folder):
    (debootstrap,) = needed("debootstrap")
    made = subprocess.run([debootstrap, "--variant=minbase", "--include=python3,python3-venv", suite, folder, *mirror],
                          capture_output=True, text=True)
    if made.returncode != 0:
        skip(f"debootstrap made no {suite}: {made.stdout[-300:]}{made.stderr[-300:]}")


def numpy_for(root, folder):
    """NumPy's wheel for the interpreter inside."""
    version = done(["chroot", root, "python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]).strip()
    fetched = subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--only-binary=:all:", "--no-deps",
                              "--python-version", version, "--dest", folder, "numpy"], capture_output=True, text=True)
    if fetched.returncode != 0:
        skip(f"NumPy cannot be had: {fetched.stderr[-300:]}")
    return next(pathlib.Path(folder).glob("numpy-*.whl")), version


def apart(root):
    return ["unshare", "--net", "--mount", "--pid", "--fork", f"--mount-proc={root}/proc"]


def as_user(root, home, command):
    """Without root and without a network; /proc and /sys are there, by which programs find libraries and processors."""
    return done([*apart(root), "sh", "-c", 'mount --rbind /sys "$0/sys" && exec chroot "$@"', root, f"--userspec={USER}:{USER}", root, "/usr/bin/env", "-i", f"HOME=/{home}", "PATH=/usr/bin:/bin",
                 "sh", "-c", f"cd /{home} && {command}"])


def tour(root, wheel):
    home = pathlib.Path(root) / "home/newcomer"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    try:
        numpy, version = numpy_for(root, home)
        shutil.copy(wheel, home)
        (home / "tour.py").write_text(python_of("README.md") + """
assert y.shape == (8, 2) and np.isfinite(y).all(), y
superstep.generate("braggnn", samples=64, seed=1, out="peaks.h5")
run = superstep.train("braggnn", data="peaks.h5", epochs=1, batch=16, threads=1, out="run")
assert run.load(batch=1, threads=1)(np.zeros((1, 1, 11, 11), np.float32)).shape == (1, 2)
print("trained", run.steps, "steps")
""")
        done(["chown", "-R", f"{USER}:{USER}", home])
        inside = "home/newcomer"
        as_user(root, inside, f"python3 -m venv venv && venv/bin/pip install --no-index --find-links . {pathlib.Path(wheel).name} {numpy.name}")
        print(as_user(root, inside, "venv/bin/python tour.py").strip().splitlines()[-1])
        said = as_user(root, inside, "venv/bin/superstep info && venv/bin/superstep show peaks.h5")
        disk = done(["du", "-sm", home / "venv"]).split()[0]
        print(f"Python {version}, user {USER}: the environment takes {disk} MB; {said.splitlines()[0].strip()}")
    finally:
        shutil.rmtree(home, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("wheel", nargs="?")
    parser.add_argument("--root")
    parser.add_argument("--suite", default="trixie")
    parser.add_argument("--mirror")
    arguments = parser.parse_args()
    wheel = arguments.wheel and pathlib.Path(arguments.wheel)
    if not wheel or not wheel.is_file():
        skip("there is no wheel: make wheel")
    if os.geteuid() != 0:
        skip("a root folder is entered by root alone")
    needed("chroot", "unshare")
    if subprocess.run(["unshare", "--net", "--mount", "--pid", "--fork", "true"], capture_output=True).returncode != 0:
        skip("this system parts no processes off (unshare)")
    with walk(f"wheel on {arguments.root or arguments.suite}") as folder:
        root = arguments.root
        if not root:
            root = folder / "root"
            made_root(arguments.suite, [arguments.mirror] if arguments.mirror else [], root)
        tour(root, wheel)


if __name__ == "__main__":
    main()
