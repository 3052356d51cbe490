"""`poprun`: starts a program several times, as instances that average their gradients.

    poprun --num-instances 2 --num-replicas 4 python train.py --epochs 3

starts two processes on this computer, each with two replicas of the model. Output passes through; when one instance
fails, the others are stopped, and the status is that of the one that failed.
"""

import argparse
import os
import signal
import socket
import subprocess
import sys
import threading

from . import _environment

# Options of Graphcore's poprun about machines and networks that do not exist here: taken, without effect. The number of
# values of each: 0 for switches, 1.
_WITHOUT_EFFECT = {
    "--host": 1, "--hosts": 1, "--mpi-global-args": 1, "--mpi-local-args": 1, "--vipu-server-host": 1,
    "--vipu-server-port": 1, "--vipu-partition": 1, "--vipu-cluster": 1, "--vipu-allocation": 1, "--update-partition": 1,
    "--remove-partition": 1, "--reset-partition": 1, "--numa-aware": 1, "--num-ilds": 1, "--instance-replica-ordering": 1,
    "--executable-cache-path": 1, "--vipu-server-timeout": 1, "--host-subnet": 1, "--mpi-network": 1,
    "--print-topology": 1, "--synchronize-replicas": 1, "--instances-per-host": 1,
}


def parser():
    """The command line."""
    made = argparse.ArgumentParser(
        "poprun", allow_abbrev=False, description=__doc__.split("\n\n")[0],
        usage="poprun [--num-instances N] [--num-replicas R] [--ipus-per-replica K] COMMAND [ARGUMENTS]",
        epilog="Each instance is a process on this computer and reads its part of the data "
               "(popdist.poptorch.Options tells poptorch.DataLoader). Options of Graphcore's poprun about hosts, "
               "partitions and MPI are taken without effect. Threads: each instance gets its share of the processors "
               "unless OMP_NUM_THREADS is set.")
    made.add_argument("--num-instances", "-n", type=int, default=1, metavar="N", help="processes to start (1)")
    made.add_argument("--num-replicas", type=int, metavar="R",
                      help="replicas of the model in all processes together, a multiple of N (N)")
    made.add_argument("--ipus-per-replica", type=int, default=1, metavar="K",
                      help="chips of a replica (1), which popdist.poptorch.Options is compared with")
    made.add_argument("--only-output-from-instance", type=int, metavar="I",
                      help="let only this instance write to the terminal")
    made.add_argument("-v", "-vv", "-vvv", "--verbose", action="count", default=0, help="say what is started")
    made.add_argument("command", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return made


def _without_ignored(arguments):
    """The arguments before the command without those that have no effect here; (arguments, ignored)."""
    kept, ignored = [], []
    rest = list(arguments)
    own = {"--num-instances", "-n", "--num-replicas", "--ipus-per-replica", "--only-output-from-instance"}
    while rest and rest[0].startswith("-"):
        name = rest[0].split("=")[0]
        if name in _WITHOUT_EFFECT:
            ignored.append(name)
            values = 0 if "=" in rest[0] else _WITHOUT_EFFECT[name]
            rest = rest[1 + values:]
        else:
            values = 1 if name in own and "=" not in rest[0] else 0
            kept += rest[:1 + values]
            rest = rest[1 + values:]
    return kept + rest, ignored


def _checked(arguments):
    made = parser()
    arguments, ignored = _without_ignored(arguments)
    options = made.parse_args(arguments)
    if options.num_replicas is None:
        options.num_replicas = options.num_instances
    for name in ("num_instances", "num_replicas", "ipus_per_replica"):
        if getattr(options, name) < 1:
            made.error(f"--{name.replace('_', '-')} must be at least 1")
    if options.num_replicas % options.num_instances:
        made.error(f"--num-replicas {options.num_replicas} is no multiple of --num-instances {options.num_instances}: each "
                   "process runs the same number of replicas")
    only = options.only_output_from_instance
    if only is not None and not 0 <= only < options.num_instances:
        made.error(f"there is no instance {only}: they are numbered 0 to {options.num_instances - 1}")
    if not options.command:
        made.error("a command is missing: poprun --num-instances 2 python train.py")
    return options, ignored


def _free_port():
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return bound.getsockname()[1]


def environment(options, instance, port):
    """The environment of one instance."""
    local = options.num_replicas // options.num_instances
    share = max(1, len(os.sched_getaffinity(0)) // options.num_instances)
    # Output goes through pipes, where Python would hold it back.
    return {"OMP_NUM_THREADS": str(share), "PYTHONUNBUFFERED": "1"} | dict(os.environ) | {
        _environment.TOTAL_REPLICAS: str(options.num_replicas), _environment.LOCAL_REPLICAS: str(local),
        _environment.IPUS_PER_REPLICA: str(options.ipus_per_replica),
        _environment.REPLICA_OFFSET: str(instance * local),
        _environment.INSTANCES: str(options.num_instances), _environment.INSTANCE: str(instance),
        _environment.LOCAL_INSTANCES: str(options.num_instances), _environment.LOCAL_INSTANCE: str(instance),
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}


def _relay(source, target, lock):
    """Writes what comes, whole lines at a time, so that those of several instances do not mix."""
    held = b""
    while piece := os.read(source.fileno(), 1 << 16):
        # Progress bars end their lines with a carriage return.
        end = max(piece.rfind(b"\n"), piece.rfind(b"\r")) + 1
        if end:
            _write(target, held + piece[:end], lock)
        held = piece[end:] if end else held + piece
    if held:
        _write(target, held + b"\n", lock)


def _write(target, text, lock):
    with lock:
        target.buffer.write(text)
        target.flush()


class _Instance:
    """A process and the threads that pass on what it writes."""

    _locks = {"stdout": threading.Lock(), "stderr": threading.Lock()}

    def __init__(self, command, variables, shown, several):
        out = subprocess.DEVNULL if not shown else subprocess.PIPE if several else None
        self.process = subprocess.Popen(command, env=variables, stdout=out, stderr=out)
        self._relays = []
        if out == subprocess.PIPE:
            for name in ("stdout", "stderr"):
                arguments = getattr(self.process, name), getattr(sys, name), self._locks[name]
                self._relays.append(threading.Thread(target=_relay, args=arguments, daemon=True))
                self._relays[-1].start()

    def wait(self):
        """The process's status, after all that it wrote was passed on."""
        status = self.process.wait()
        for relay in self._relays:
            # A grandchild may keep the pipe open for ever.
            relay.join(timeout=5)
        return status


def _start(options):
    port = _free_port()
    only = options.only_output_from_instance
    started = []
    try:
        for instance in range(options.num_instances):
            started.append(_Instance(options.command, environment(options, instance, port), only in (None, instance),
                                     options.num_instances > 1))
    except OSError as error:
        _stop(started)
        print(f"poprun: {options.command[0]} cannot be started: {error.strerror}", file=sys.stderr)
        raise SystemExit(2) from None
    return started


def _stop(instances):
    processes = [instance.process for instance in instances]
    for process in processes:
        if process.poll() is None:
            process.terminate()
    for process in processes:
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(instances):
    """The status of the first process that failed, else 0; stops the others as soon as one fails."""
    ended = threading.Condition()
    order = []

    def watch(number):
        instances[number].wait()
        with ended:
            order.append(number)
            ended.notify()

    for number in range(len(instances)):
        threading.Thread(target=watch, args=(number,), daemon=True).start()
    seen = 0
    while seen < len(instances):
        with ended:
            ended.wait_for(lambda: len(order) > seen)
            number = order[seen]
        seen += 1
        status = instances[number].process.returncode
        if status:
            print(f"poprun: instance {number} ended with {_words(status)}", file=sys.stderr)
            _stop(instances)
            return 128 - status if status < 0 else status
    return 0


def _words(status):
    return f"signal {signal.Signals(-status).name}" if status < 0 else f"status {status}"


def main(arguments=None):
    """Runs the command; returns its status (2 for a wrong call, 130 when stopped)."""
    options, ignored = _checked(sys.argv[1:] if arguments is None else arguments)
    if ignored:
        print(f"poprun: {', '.join(ignored)}: without effect on this computer", file=sys.stderr)
    if options.verbose:
        print(f"poprun: {options.num_instances} instances with {options.num_replicas // options.num_instances} replicas "
              f"each: {' '.join(options.command)}", file=sys.stderr)
    instances = _start(options)
    try:
        return _wait(instances)
    except KeyboardInterrupt:
        _stop(instances)
        return 130


if __name__ == "__main__":
    sys.exit(main())
