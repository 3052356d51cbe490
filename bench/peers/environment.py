"""Environment variables that give the peers the kernels and the waiting that suit the machine."""

import os
import pathlib
import platform
import sys


def processor_flags():
    try:
        with open("/proc/cpuinfo") as info:
            for line in info:
                if line.startswith("flags"):
                    return set(line.split(":", 1)[1].split())
    except OSError:
        pass
    return set()


def processor_name():
    try:
        with open("/proc/cpuinfo") as info:
            for line in info:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or None


def vectors():
    """The library that has MKL take its widest kernels, where the processor is one that it would hold back on."""
    library = pathlib.Path(sys.prefix).parent / "vectors.so"
    try:
        with open("/proc/cpuinfo") as info:
            foreign = "GenuineIntel" not in info.read()
    except OSError:
        foreign = False
    return {"LD_PRELOAD": str(library)} if foreign and library.exists() else {}


def wanted(threads):
    values = {"OMP_WAIT_POLICY": "passive", "OMP_NUM_THREADS": str(threads)}
    if "avx512f" in processor_flags():
        values.update(OPENBLAS_CORETYPE="SkylakeX", ATEN_CPU_CAPABILITY="avx512")
    if threads > 1:
        # Threads wait awake for some tens of microseconds, then sleep: much faster between small operators
        # than sleeping at once, and no harm to whoever runs next.
        values["GOMP_SPINCOUNT"] = "20000"
    # Freed memory stays with the process: handing it back and faulting it in again costs large batches dearly.
    values["GLIBC_TUNABLES"] = "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=4294967296"
    values.update(vectors())
    return values


def prepare(threads):
    """Starts the program anew with what is wanted and not set: some of it is read before Python runs.

    Returns what is in force. A variable that is already set is left alone.
    """
    values = wanted(threads)
    missing = {name: value for name, value in values.items() if name not in os.environ}
    if missing:
        os.execve(sys.executable, [sys.executable] + sys.argv, dict(os.environ, **missing))
    return {name: os.environ[name] for name in sorted(values)}
