"""Runs the program as a user's shell does, and judges how it behaved.

A command is kept as one line of shell, so that a failure can be repeated by pasting it.
"""
import os
import shlex
import signal
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Optional

DONE, FAILED, WRONG_CALL, STOPPED = 0, 1, 2, 130
MEBI = 1 << 20


@dataclass
class Outcome:
    code: int  # below 0: ended by that signal
    output: str
    errors: str
    seconds: float
    memory: int  # most that was resident, bytes
    asked_to_stop: bool = False  # it was still working when its patience was over, and was sent `ending`
    seconds_to_stop: float = 0
    killed: bool = False  # it did not stop when asked


@dataclass
class Attempt:
    """One thing that is tried: `action` returns what is wrong, or None."""
    subject: str
    name: str
    action: Callable[[], Optional[str]]
    command: str = ''


@dataclass
class Walk:
    """What all subjects share: the program, a folder to work in, and how much is asked of them."""
    program: Path
    source: Path
    folder: Path
    seed: int = 1
    count: int = 20
    short: bool = False
    only: str = ''
    patience: float = 2.0  # seconds from a signal to the end
    samples: dict = field(default_factory=dict)

    def fresh(self, name: str) -> Path:
        return Path(tempfile.mkdtemp(prefix=name + '-', dir=self.folder))

    def line(self, arguments: str, folder: Path, before: str = '', after: str = '', environment: str = '',
             setup: str = '') -> str:
        """`before` stands in front of the program's name (prlimit), `after` behind the arguments (> FILE)."""
        home = '' if 'SUPERSTEP_HOME' in environment else f'SUPERSTEP_HOME={shlex.quote(str(self.folder / "home"))} '
        return (f'cd {shlex.quote(str(folder))} && {setup}{home}{environment} exec {before} '
                f'{shlex.quote(str(self.program))} {arguments} {after}')


def patient(seconds: float) -> float:
    """Of an idle machine, made longer where more wants to run than there are processors: what others take is no fault."""
    return seconds * max(1.0, 1.5 * os.getloadavg()[0] / len(os.sched_getaffinity(0)))


def run(line: str, most_seconds: float = 60, ending: int = signal.SIGINT, grace: float = 10) -> Outcome:
    """Runs a line of shell. After `most_seconds` it is sent `ending`, and killed `grace` seconds later, or later on a
    busy machine."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        begun = time.monotonic()
        process = subprocess.Popen(['/bin/sh', '-c', line], stdin=subprocess.DEVNULL, stdout=output, stderr=errors,
                                   start_new_session=True, preexec_fn=hear_hangups if deaf_to_hangups() else None)
        stopped = threading.Event()
        state = {'asked': 0.0, 'killed': False}

        def watch():
            if stopped.wait(most_seconds):
                return
            state['asked'] = time.monotonic()
            send(process.pid, ending)
            if not stopped.wait(patient(grace)):
                state['killed'] = True
                send(process.pid, signal.SIGKILL)

        watcher = threading.Thread(target=watch)
        watcher.start()
        _, status, usage = os.wait4(process.pid, 0)
        ended = time.monotonic()
        stopped.set()
        watcher.join()
        process.returncode = code = os.waitstatus_to_exitcode(status)
        send(process.pid, signal.SIGKILL)  # what it may have started and left behind
        return Outcome(code, text_of(output), text_of(errors), ended - begun, usage.ru_maxrss * 1024,
                       state['asked'] > 0, ended - state['asked'] if state['asked'] else 0, state['killed'])


def deaf_to_hangups() -> bool:
    """As under nohup: programs inherit that, and what they make of a hangup could not be seen."""
    return signal.getsignal(signal.SIGHUP) == signal.SIG_IGN


def hear_hangups() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def send(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        pass


def text_of(file) -> str:
    file.seek(0)
    return file.read(8 * MEBI).decode('utf-8', 'replace')


def judged(outcome: Outcome, codes=(DONE, FAILED, WRONG_CALL), names: str = '', memory: int = 0,
           patience: float = 2.0, stopped=(STOPPED, DONE)) -> Optional[str]:
    """What is wrong with an outcome, in a line: a crash, a hang, words without sense, an unexpected code."""
    last = (outcome.errors.strip().splitlines() or [''])[-1][:160]
    if outcome.killed:
        return f'did not end {outcome.seconds_to_stop:.0f} s after it was asked to'
    if outcome.asked_to_stop:
        if outcome.code not in stopped:
            return f'asked to stop: ended with {outcome.code} ({last})'
        if outcome.seconds_to_stop > patient(patience):
            return f'asked to stop: took {outcome.seconds_to_stop:.1f} s'
        return None
    if outcome.code < 0 or outcome.code > 130:
        return f'ended by signal {-outcome.code if outcome.code < 0 else outcome.code - 128} ({last})'
    if 'internal error' in outcome.errors or 'terminate called' in outcome.errors:
        return last
    if outcome.code not in codes:
        return f'ended with {outcome.code} ({last})'
    if outcome.code in (FAILED, WRONG_CALL) and 'superstep: error: ' not in outcome.errors:
        return f'ended with {outcome.code} without an error ({last})'
    if names and outcome.code == FAILED and names not in outcome.errors:
        return f'the error does not name {names} ({last})'
    if memory and outcome.memory > memory:
        return f'took {outcome.memory / MEBI:.0f} MiB of memory'
    return None
