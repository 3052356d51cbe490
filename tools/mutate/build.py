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

    def compiled(self, path: Path, sites: list):
        """(object file, the sites that are in it): those that the compiler refused are left out."""
        kept, refused = list(sites), ''
        for attempt in range(TRIES):
            if not kept:
                return None, []
            made, errors = self.attempt(path, kept)
            if made:
                return made, kept
            lines = {int(n) for n in re.findall(rf'{re.escape(self.mutated(path).name)}:(\d+):\d+: error', errors)}
            lines |= {int(n) for n in re.findall(rf'{re.escape(self.mutated(path).name)}:(\d+):\d+:   required from here', errors)}
            left = [s for s in kept if s.line not in lines]
            if len(left) == len(kept):  # it says nothing of the file: halve
                left, refused = kept[: len(kept) // 2], errors
            kept = left
        raise BuildError(f'{path} does not compile with mutations in it:\n{refused or errors}')

    def mutated(self, path: Path) -> Path:
        return self.scratch / ('mutated_' + str(path.relative_to(self.source)).replace('/', '_'))

    def attempt(self, path: Path, sites: list):
        file, unit = self.mutated(path), self.units[path]
        # The numbering of lines stays the source's: the switch is included on the command line of the unit.
        file.write_text(rewritten(path.read_bytes(), sites))
        start = file
        if unit != path:
            start = file.with_name('unit_' + file.name)
            text = unit.read_text()
            changed = re.sub(r'^#include "(\.\./[^"]*\.cpp)"', lambda m: self.included(unit, m.group(1), path, file), text, flags=re.M)
            start.write_text('#include "' + str(HERE / 'switch.h') + '"\n' + changed)
        else:
            file.write_text('#include "' + str(HERE / 'switch.h') + '"\n#line 1\n' + file.read_text())
        words = self.arguments(unit)
        made = file.with_suffix('.o')
        words[words.index('-o') + 1] = str(made)
        words[words.index('-c') + 1] = str(start)
        words[1:1] = [f'-iquote{path.parent}', f'-I{unit.parent}']
        run = subprocess.run(words + ['-w'], cwd=self.folder, capture_output=True, text=True)
        return (made if run.returncode == 0 else None), run.stderr

    def included(self, unit: Path, text: str, path: Path, file: Path) -> str:
        target = (unit.parent / text).resolve()
        return f'#include "{file if target == path else target}"'

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
