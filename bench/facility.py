#!/usr/bin/env python3
"""How near `superstep place` comes to what `superstep run` takes on this computer: ten small workflows of real commands.

    python3 bench/facility.py build/superstep [--json FILE]

First every task's command is run alone, three times: its median is the time that the workflow states. Then each workflow is
simulated and run, and the times to the end are compared; of workflows with two ways to place them, whether the better one
is the same. Commands burn processor time in Python, so that what they take is known and several fill the processors.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

BURN = "python3 -c 'import time; end = time.process_time() + {seconds}\nwhile time.process_time() < end: pass' && head -c {size} /dev/zero > \"$OUT\""

FACILITY = '''name = "this computer"
[site.here]
[site.there]
[link.line]
between = ["here", "there"]
rate = "20 MB/s"
latency = "5 ms"
[queue.q]
median = "500 ms"
p90 = "500 ms"
[partition.cores]
at = "here"
devices = 2
[partition.far]
at = "there"
devices = 2
queue = "q"
runs = "here"
'''

# Source (items, rate) and tasks: name, inputs, seconds of processor, bytes given, other keys.
WORKFLOWS = {
    'chain': ((6, '4 /s'), [('a', ['s'], .3, 1000, ''), ('b', ['a'], .2, 1000, ''), ('c', ['b'], .1, 1000, '')]),
    'fan': ((8, ''), [('a', ['s'], .4, 1000, ''), ('b', ['a'], .5, 10, 'every = "end"\nas = "service"')]),
    'too-fast': ((12, '10 /s'), [('a', ['s'], .4, 1000, 'copies = 1')]),
    'diamond': ((4, '2 /s'), [('a', ['s'], .2, 1000, ''), ('b', ['a'], .3, 1000, ''), ('c', ['a'], .1, 1000, ''), ('d', ['b', 'c'], .1, 10, '')]),
    'link': ((5, '2 /s'), [('a', ['s'], .1, 8_000_000, 'on = ["cores"]'), ('b', ['a'], .2, 1000, 'on = ["far"]\ncopies = 2')]),
    'queue': ((3, ''), [('a', ['s'], .3, 1000, 'on = ["far"]\nas = "job"'), ('b', ['a'], .2, 10, 'on = ["far"]\nas = "job"\nevery = "end"')]),
    'batches': ((20, '10 /s'), [('a', ['s'], .1, 1000, ''), ('b', ['a'], .4, 1000, 'every = 5')]),
    'ticks': ((16, '5 /s'), [('a', ['s'], .2, 1000, 'every = "700 ms"\nas = "service"')]),
    'weights': ((16, '5 /s'), [('train', ['s'], .6, 1000, 'every = 6\nas = "service"\ncopies = 1'), ('serve', ['s'], .1, 10, 'uses = ["train"]')]),
    'wide': ((5, ''), [('a', ['s'], .3, 1000, 'devices = 2'), ('b', ['s'], .2, 1000, ''), ('c', ['a', 'b'], .2, 10, 'every = "end"\nas = "service"')]),
}


def workflow_text(name, seconds_of):
    (count, rate), tasks = WORKFLOWS[name]
    text = f'name = "{name}"\n[source.s]\nat = "here"\ncount = {count}\n' + (f'rate = "{rate}"\n' if rate else '')
    for task, inputs, burn, size, more in tasks:
        command = BURN.format(seconds=burn, size=size)
        keys = more if 'on =' in more else more + '\non = ["cores"]'
        text += f"[task.{task}]\nfrom = {json.dumps(inputs)}\nseconds = \"{seconds_of[(name, task)]:.6f} s\"\nbytes = \"{size} B\"\nrun = '''{command}'''\n{keys}\n"
    return text


def alone(folder):
    """Median seconds of each command, alone."""
    seconds = {}
    for name, (_, tasks) in WORKFLOWS.items():
        for task, _, burn, size, _ in tasks:
            taken = []
            for _ in range(3):
                begun = time.monotonic()
                subprocess.run(['/bin/sh', '-c', f'OUT={folder}/out; export OUT; ' + BURN.format(seconds=burn, size=size)], check=True)
                taken.append(time.monotonic() - begun)
            seconds[(name, task)] = statistics.median(taken)
    return seconds


def metrics(file):
    return {name: metric['value'] for name, metric in json.loads(pathlib.Path(file).read_text())['metrics'].items()}


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument('program')
    arguments.add_argument('--json')
    chosen = arguments.parse_args()
    errors, rows = [], []
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / 'facility.toml').write_text(FACILITY)
        seconds = alone(folder)
        print(f'{"workflow":10} {"simulated":>10} {"run":>10} {"error":>8}')
        for name in WORKFLOWS:
            file, result = pathlib.Path(folder) / f'{name}.toml', f'{folder}/{name}.json'
            file.write_text(workflow_text(name, seconds))
            subprocess.run([chosen.program, 'run', file, '--on', f'{folder}/facility.toml', '--out', f'{folder}/{name}', '--json', result, '--quiet'],
                           check=True)
            found = metrics(result)
            simulated, ran = found['simulated_end_seconds'], found['end_seconds']
            errors.append(abs(simulated / ran - 1))
            rows.append({'workflow': name, 'simulated': simulated, 'run': ran})
            print(f'{name:10} {simulated:9.3f}s {ran:9.3f}s {100 * (simulated / ran - 1):+7.1f}%')
    print(f'median error {100 * statistics.median(errors):.1f} %, largest {100 * max(errors):.1f} %')
    if chosen.json:
        pathlib.Path(chosen.json).write_text(json.dumps(rows, indent=1) + '\n')


if __name__ == '__main__':
    sys.exit(main())
