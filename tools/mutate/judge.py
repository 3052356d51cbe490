"""Runs a test program's suites, and says which of them a mutation's place is reached by and which notice it."""
import os
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

BYTES = 1 << 16  # as in switch.cpp


@dataclass
class Suite:
    program: Path
    name: str
    seconds: float = 0.0
    reached: bytes = field(default=b'', repr=False)


@dataclass
class Verdict:
    word: str  # killed, survived, not reached
    by: str = ''


def suites_of(program: Path, folder: Path) -> list:
    listed = subprocess.run([str(program), '--gtest_list_tests'], capture_output=True, text=True, cwd=folder)
    return [Suite(program, line.split()[0]) for line in listed.stdout.splitlines()
            if line and not line.startswith(' ') and line.split()[0].endswith('.')]


def run_suite(suite: Suite, folder: Path, limit: float, **environment):
    """'passed', 'failed', 'died' (by a signal) or 'too long'."""
    surroundings = {**os.environ, 'OMP_WAIT_POLICY': 'passive', **environment}
    process = subprocess.Popen([str(suite.program), f'--gtest_filter={suite.name}*', '--gtest_brief=1', '--gtest_fail_fast'],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, cwd=folder,
                               env=surroundings, start_new_session=True)
    try:
        status = process.wait(limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.wait()
        return 'too long'
    return 'passed' if status == 0 else 'died' if status < 0 else 'failed'


def listened(suites: list, folder: Path, scratch: Path, longest: float) -> tuple:
    """Every suite once with all mutations off: (those that pass, with what they reach; names of those that do not)."""
    kept, left_out = [], []
    for suite in suites:
        file = scratch / 'reached'
        file.write_bytes(bytes(BYTES))
        start = time.monotonic()
        word = run_suite(suite, folder, longest, SUPERSTEP_MUTATIONS_REACHED=str(file))
        suite.seconds, suite.reached = time.monotonic() - start, file.read_bytes()
        if word == 'passed':
            kept.append(suite)
        else:
            left_out.append(f'{suite.name[:-1]} ({word})')
    return kept, left_out


def judged(number: int, suites: list, folder: Path) -> Verdict:
    """The quickest suites first: one that notices is enough."""
    reaching = sorted((s for s in suites if s.reached[number]), key=lambda s: s.seconds)
    if not reaching:
        return Verdict('not reached')
    for suite in reaching:
        word = run_suite(suite, folder, 10 + 5 * suite.seconds, SUPERSTEP_MUTATION=str(number))
        if word != 'passed':
            return Verdict('killed', f'{suite.name[:-1]} {word}')
    return Verdict('survived', f'{len(reaching)} suites pass')
