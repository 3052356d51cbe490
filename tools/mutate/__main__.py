"""Changes lines of a room at random, one at a time, and says which changes its tests do not notice.

    tools/mutate base                          20 mutations of base/, judged by tests/base
    tools/mutate run --tests run,lab,cli --count 50 --seed 3
    tools/mutate file --only hdf5 --list       the places, without trying them

A mutation exchanges an operator (< for <=, + for -, == for !=, && for ||), moves a number (n for n + 1), turns a truth or
a condition, or leaves a statement out. All that were drawn are compiled into one test program, each behind a switch
(switch.h), so that a mutation costs a run of the suites that reach its place and no compilation. The build folder and
the sources stay as they are. A mutation that changes nothing that can be seen survives rightly: look before you write
a test. Status: 0 where at least --goal of the mutations are killed, 1 where fewer are, 2 for a wrong call.
"""
import argparse
import json
import os
import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import sites  # noqa: E402
from build import Build, BuildError  # noqa: E402
from judge import judged, listened, suites_of  # noqa: E402

SOURCE = Path(__file__).resolve().parents[2]


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog='tools/mutate', description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('room', help='a folder below src/superstep: base, file, target/cpu/plan ...')
    parser.add_argument('--count', type=int, default=20, help='mutations drawn (default: 20)')
    parser.add_argument('--seed', type=int, default=1, help='of the draw (default: 1)')
    parser.add_argument('--tests', metavar='ROOM,...', help="tests that judge, folders of tests/ (default: the room's own)")
    parser.add_argument('--only', default='', metavar='TEXT', help='only files with this in their path')
    parser.add_argument('--build', type=Path, default=SOURCE / 'build', help='a folder where the tests are built (default: build)')
    parser.add_argument('--source', type=Path, default=SOURCE, help=argparse.SUPPRESS)
    parser.add_argument('--longest', type=float, default=60, metavar='SECONDS', help='suites that take longer do not judge (default: 60)')
    parser.add_argument('--goal', type=float, default=0.9, help='share that must be killed (default: 0.9)')
    parser.add_argument('--json', type=Path, metavar='FILE', help='every mutation and what became of it')
    parser.add_argument('--list', action='store_true', help='print the places that would be mutated')
    chosen = parser.parse_args()
    chosen.folder = chosen.source / 'src/superstep' / chosen.room
    if not chosen.folder.is_dir():
        parser.error(f'there is no room {chosen.room} in {chosen.source / "src/superstep"}')
    if chosen.count < 1:
        parser.error('--count must be at least 1')
    chosen.tests = (chosen.tests or chosen.room.split('/')[0]).split(',')
    for room in chosen.tests:
        if not (chosen.source / 'tests' / room).is_dir():
            parser.error(f'there are no tests/{room}; --tests names folders of tests/')
    return chosen


def drawn(build: Build, chosen) -> list:
    """`count` places: a file by its length in lines, then a place of it."""
    random_ = random.Random(f'{chosen.room} {chosen.seed}')
    files = [p for p in sorted(chosen.folder.rglob('*.cpp')) if chosen.only in str(p) and p.resolve() in build.units]
    if not files:
        raise BuildError(f'no compiled file of {chosen.folder} has "{chosen.only}" in its path')
    lines = [len(p.read_bytes().splitlines()) for p in files]
    picks = sorted(random_.choices(range(len(files)), weights=lines, k=chosen.count))
    chosen_sites = []
    for at in sorted(set(picks)):
        found = build.sites(files[at])
        chosen_sites += sorted(random_.sample(found, min(len(found), picks.count(at))), key=lambda s: (s.line, s.column))
    for number, site in enumerate(chosen_sites):
        site.number = number
    return chosen_sites


def program_target(room: str) -> str:
    return f'tests/{room}/test_{room}'


def prepared(build: Build, chosen, places: list):
    """(suites that judge, the places that compile)."""
    objects, kept = [], []
    unit_of = {path: build.units[(chosen.source / path).resolve()] for path in {p.path for p in places}}
    for unit in sorted(set(unit_of.values())):
        made, inside = build.compiled(unit, [p for p in places if unit_of[p.path] == unit])
        objects += [made] if made else []
        kept += inside
    print(f'{len(kept)} of {len(places)} mutations compile, in {len({p.path for p in kept})} files', flush=True)
    suites = []
    if 'cli' in chosen.tests:  # they start the program (tests/cli/program.h)
        os.environ['SUPERSTEP_PROGRAM'] = str(build.linked('superstep', objects))
    for room in chosen.tests:
        program = build.linked(program_target(room), [] if room == 'cli' else objects)
        heard, left_out = listened(suites_of(program, build.scratch), build.scratch, build.scratch, chosen.longest)
        suites += heard
        if left_out:
            print(f'tests/{room}: these do not pass without a mutation and judge nothing: {", ".join(left_out)}')
    return suites, kept


def tried(chosen, build: Build, places: list) -> list:
    suites, kept = prepared(build, chosen, places)
    start, results = time.monotonic(), []
    for done, site in enumerate(kept, 1):
        verdict = judged(site.number, suites, build.scratch)
        results.append((site, verdict))
        left = (time.monotonic() - start) / done * (len(kept) - done)
        if verdict.word != 'killed' or sys.stdout.isatty():
            print(f'{verdict.word:11} {site.place}: {site.before[:60]} -> {site.after[:60]}   ({done}/{len(kept)}, {left:.0f} s left)', flush=True)
    return results


def summed(chosen, results: list) -> int:
    count = {word: sum(v.word == word for _, v in results) for word in ('killed', 'survived', 'not reached')}
    share = count['killed'] / max(1, len(results))
    print(f'{chosen.room}: {count["killed"]} of {len(results)} killed ({100 * share:.0f} %), {count["survived"]} survived, '
          f'{count["not reached"]} not reached by {", ".join("tests/" + t for t in chosen.tests)}')
    if chosen.json:
        chosen.json.write_text(json.dumps({'room': chosen.room, 'seed': chosen.seed, 'tests': chosen.tests, **count, 'mutations': [
            {'place': s.place, 'kind': s.kind, 'before': s.before, 'after': s.after, 'verdict': v.word, 'by': v.by}
            for s, v in results]}, indent=1) + '\n')
    return 0 if share >= chosen.goal else 1


def main() -> int:
    chosen = options()
    if sites.cindex is None:
        print('tools/mutate: Python\'s clang module is missing: install python3-clang-19', file=sys.stderr)
        return 77
    with tempfile.TemporaryDirectory(prefix='mutate-') as scratch:
        try:
            build = Build(chosen.build.resolve(), chosen.source.resolve(), Path(scratch))
            places = drawn(build, chosen)
            if chosen.list:
                print('\n'.join(f'{s.place}: {s.kind}: {s.before[:70]} -> {s.after[:70]}' for s in places))
                return 0
            return summed(chosen, tried(chosen, build, places))
        except (BuildError, RuntimeError) as error:
            print(f'tools/mutate: {error}', file=sys.stderr)
            return 2


if __name__ == '__main__':
    sys.exit(main())
