"""A test program in which mutations of some source files sleep: one compilation per unit, one link."""
import json
import re
import shlex
import subprocess
from pathlib import Path

from sites import rewritten, sites_of

HERE = Path(__file__).resolve().parent
TRIES = 12  # of compiling a file: each drops what the compiler refused


class BuildError(Exception):
    pass


class Build:
    """An ordinary build folder, read and left as it is; what is made goes to `scratch`."""

    def __init__(self, folder: Path, source: Path, scratch: Path):
        self.folder, self.source, self.scratch = folder, source, scratch
        listed = folder / 'compile_commands.json'
        if not listed.exists():
            raise BuildError(f'{listed} is missing: build first (make build)')
        self.commands = {Path(entry['file']).resolve(): entry for entry in json.loads(listed.read_text())}
        self.units = {}  # a source file -> the file that is compiled for it
        for path in self.commands:
            self.units[path] = path
            if path.name.startswith('unit_') and 'units_of_' in str(path.parent):
                for included in re.findall(r'^#include "(\.\./[^"]*\.cpp)"', path.read_text(), re.M):
                    self.units[(path.parent / included).resolve()] = path

    def arguments(self, unit: Path) -> list:
        return shlex.split(self.commands[unit]['command'])

    def reading_arguments(self, path: Path) -> list:
        """What Clang must know to read the file: where headers are, definitions, the language."""
        words, kept, at = self.arguments(self.units[path]), [f'-iquote{path.parent}'], 1
        while at < len(words):
            word = words[at]
            if word in ('-I', '-isystem', '-D', '-iquote'):
                kept += [word, words[at + 1]]
                at += 1
            elif word.startswith(('-I', '-D', '-isystem', '-std', '-m')):
                kept.append(word)
            at += 1
        return kept + ['-ferror-limit=0', '-w']

    def sites(self, path: Path) -> list:
        if path not in self.units:
            raise BuildError(f'{path} is compiled nowhere in {self.folder}')
        return sites_of(path, path.relative_to(self.source), self.reading_arguments(path))

    def compiled(self, unit: Path, places: list):
        """(object file of the unit, the places that are in it): those that the compiler refused are left out."""
        kept = list(places)
        for attempt in range(TRIES):
            if not kept:
                return None, []
            made, errors = self.attempt(unit, kept)
            if made:
                return made, kept
            refused = self.refused(errors)
            left = [s for s in kept if (self.mutated(s.path).name, s.line) not in refused]
            if len(left) == len(kept):  # the compiler names no place: halve
                left = kept[: len(kept) // 2]
            kept = left
        raise BuildError(f'{unit} does not compile with mutations in it:\n{errors[-4000:]}')

    def refused(self, errors: str) -> set:
        """(file, line) of every error in a mutated file, and of what instantiates a template that has one."""
        return {(name, int(line)) for name, line in
                re.findall(r'(mutated_[\w.]+\.cpp):(\d+):\d+: +(?:error|  required from)', errors)}

    def mutated(self, path: Path) -> Path:
        return self.scratch / ('mutated_' + str(path).replace('/', '_').replace('-', '_'))

    def attempt(self, unit: Path, places: list):
        changed = {}
        for path in sorted({p.path for p in places}):
            source, file = (self.source / path).resolve(), self.mutated(path)
            file.write_text('#line 1\n' + rewritten(source.read_bytes(), [p for p in places if p.path == path]))
            changed[source] = file
        start = self.scratch / (f'unit_{len(list(self.scratch.glob("unit_*.cpp")))}.cpp')
        if unit in changed:
            text = f'#include "{changed[unit]}"\n'
        else:
            text = re.sub(r'^#include "(\.\./[^"]*\.cpp)"', lambda m: self.included(unit, m.group(1), changed),
                          unit.read_text(), flags=re.M)
        start.write_text(f'#include "{HERE / "switch.h"}"\n' + text)
        words, made = self.arguments(unit), start.with_suffix('.o')
        words[words.index('-o') + 1] = str(made)
        words[words.index('-c') + 1] = str(start)
        words[1:1] = [f'-I{unit.parent}'] + [f'-iquote{source.parent}' for source in changed]
        run = subprocess.run(words + ['-w'], cwd=self.folder, capture_output=True, text=True)
        return (made if run.returncode == 0 else None), run.stderr

    def included(self, unit: Path, text: str, changed: dict) -> str:
        target = (unit.parent / text).resolve()
        return f'#include "{changed.get(target, target)}"'

    def linked(self, target: str, objects: list) -> Path:
        """The test program `target` with these objects in place of the libraries' own."""
        run = subprocess.run(['ninja', '-C', str(self.folder), '-t', 'commands', target], capture_output=True, text=True)
        if run.returncode != 0:
            raise BuildError(f'{self.folder} has no {target}: {run.stderr.strip()}')
        command = run.stdout.strip().splitlines()[-1]
        made = self.scratch / Path(target).name
        switch = self.scratch / 'switch.o'
        compiled = subprocess.run(['c++', '-std=c++23', '-O2', '-fPIC', '-c', str(HERE / 'switch.cpp'), '-o', str(switch)],
                                  capture_output=True, text=True)
        if compiled.returncode != 0:
            raise BuildError(compiled.stderr)
        added = ' '.join(shlex.quote(str(o)) for o in [switch, *objects])
        command = re.sub(r' -o (\S+)', lambda m: f' {added} -o {shlex.quote(str(made))}', command, count=1)
        linked = subprocess.run(command, shell=True, cwd=self.folder, capture_output=True, text=True)
        if linked.returncode != 0:
            raise BuildError(f'{target} does not link:\n{linked.stderr[-4000:]}')
        return made
