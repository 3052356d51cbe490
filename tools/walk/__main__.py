"""A walk through the program as users, operators and bad luck take it: counts what was tried and what passed.

    python3 tools/walk                              everything, some minutes to an hour
    python3 tools/walk --subject kills --count 50
    python3 tools/walk --short                      a minute of everything, as ctest runs it
"""
import argparse
import os
import shutil
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / 'tests/written')]

import samples  # noqa: E402
from harness import Walk  # noqa: E402
from keep_written import keep_written  # noqa: E402
from subjects import commands, damage, disks, doors, files, kills, signals, surroundings, threads, values  # noqa: E402

SUBJECTS = {
    'kills': (kills, 'SIGKILL at random moments, then --resume: the weights of a run never stopped'),
    'signals': (signals, 'INT, TERM, HUP, USR1, XCPU: 130, at once'),
    'damage': (damage, 'damaged files of every kind that is read'),
    'files': (files, 'pipes, devices, sockets, folders, sparse files and bombs for every option that takes a file'),
    'disks': (disks, 'full disks and outputs that cannot be written'),
    'surroundings': (surroundings, 'odd environments and tight limits'),
    'values': (values, 'extreme values of every option of every command'),
    'doors': (doors, 'hostile frames at a server: answers, memory and counts as before'),
    'threads': (threads, '1 to 64 threads, with the results of one'),
    'commands': (commands, 'every command of README.md, docs/*.md and --help'),
}


def options() -> argparse.Namespace:
    source = Path(__file__).resolve().parents[2]
    parser = argparse.ArgumentParser(prog='tools/walk', description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--subject', action='append', choices=SUBJECTS, help='only this one; may be repeated')
    parser.add_argument('--only', default='', metavar='TEXT', help='only attempts with this in their name')
    parser.add_argument('--seed', type=int, default=1, help='of moments, mutations and draws (default: 1)')
    parser.add_argument('--count', type=int, default=20, help='draws of what is random (default: 20)')
    parser.add_argument('--program', type=Path, default=source / 'build/superstep')
    parser.add_argument('--jobs', type=int, default=1, help='attempts at a time (default: 1; signals and disks want 1)')
    parser.add_argument('--patience', type=float, default=2.0, help='seconds from a signal to the end (default: 2)')
    parser.add_argument('--short', action='store_true', help='few attempts of each subject')
    parser.add_argument('--keep', action='store_true', help='keep the folder that was worked in')
    parser.add_argument('--list', action='store_true', help='print what would be tried')
    chosen = parser.parse_args()
    chosen.source = source
    return chosen


def tried(attempt):
    try:
        return attempt, attempt.action()
    except Exception as error:  # a fault of the walk is a failure too: nothing passes by accident
        return attempt, f'the walk itself: {type(error).__name__}: {error}'


def walk_through(subject, attempts, jobs):
    begun, failures = time.monotonic(), []
    with ThreadPoolExecutor(jobs) as pool:
        for attempt, wrong in pool.map(tried, attempts):
            if wrong:
                failures.append((attempt, wrong))
                print(f'FAILED {subject}: {attempt.name}: {wrong}', flush=True)
    return len(attempts), failures, time.monotonic() - begun


def print_table(rows):
    width = max(len(row[0]) for row in rows)
    print(f'\n{"subject":{width}}  tried  passed  seconds')
    print('-' * (width + 24))
    for name, count, failures, seconds in rows:
        print(f'{name:{width}}  {count:5}  {count - len(failures):6}  {seconds:7.0f}')
    total, failed = sum(row[1] for row in rows), sum(len(row[2]) for row in rows)
    print(f'{"all":{width}}  {total:5}  {total - failed:6}  {sum(row[3] for row in rows):7.0f}')


def print_failures(rows):
    for name, _, failures, _ in rows:
        for attempt, wrong in failures:
            print(f'\n{name}: {attempt.name}\n  {wrong}')
            if attempt.command:
                print(f'  {attempt.command}')


def main() -> int:
    chosen = options()
    if not os.access(chosen.program, os.X_OK):
        print(f'there is no program at {chosen.program}: build it, or say --program FILE', file=sys.stderr)
        return 2
    folder = Path(tempfile.mkdtemp(prefix='superstep-walk-'))
    folder.chmod(0o755)
    walk = Walk(chosen.program.resolve(), chosen.source, folder, chosen.seed, chosen.count, chosen.short, chosen.only,
                chosen.patience)
    rows = []
    try:
        samples.make(walk)
        for name in chosen.subject or SUBJECTS:
            attempts = [each for each in SUBJECTS[name][0].attempts(walk) if chosen.only in each.name]
            if chosen.list:
                for attempt in attempts:
                    print(f'{name}: {attempt.name}')
                continue
            rows.append((name, *walk_through(name, attempts, chosen.jobs)))
    finally:
        keep_written(folder, 'tools/walk')
        if not chosen.keep:
            shutil.rmtree(folder, ignore_errors=True)
    if chosen.list:
        return 0
    print_table(rows)
    print_failures(rows)
    return 1 if any(row[2] for row in rows) else 0


if __name__ == '__main__':
    sys.exit(main())
