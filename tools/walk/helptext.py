"""What `--help` says: commands, their options, the examples."""
import re
from dataclasses import dataclass
from harness import Walk, run


@dataclass
class Option:
    name: str  # "--samples"
    takes_value: bool
    kind: str = ''  # of the value, as the help names it: "FILE"


def help_of(walk: Walk, command: str = '') -> str:
    outcome = run(walk.line(f'{command} --help', walk.folder))
    if outcome.code != 0:
        raise RuntimeError(f'{command} --help ended with {outcome.code}: {outcome.errors}')
    return outcome.output


def section(text: str, title: str) -> list:
    """The lines of a part of the help: "Options:" up to the next empty line."""
    lines = text.splitlines()
    if title not in lines:
        return []
    found = []
    for line in lines[lines.index(title) + 1:]:
        if not line.strip():
            break
        found.append(line)
    return found


def commands_of(walk: Walk, command: str = '') -> list:
    """Names below a command: "train", "records list"; those of the program are in groups, each under its title."""
    names, text = [], help_of(walk, command)
    titles = [line for line in text.splitlines() if re.fullmatch(r'\S.*:', line)] if not command else ['Subcommands:']
    for title in titles:
        if title in ('Options:', 'Positionals:'):
            continue
        for line in section(text, title):
            match = re.match(r'  (\S+)', line)
            if match:
                names.append(f'{command} {match[1]}'.strip())
    return names


def all_commands(walk: Walk) -> list:
    """Every command that does work: groups are replaced by what is in them."""
    return [leaf for top in commands_of(walk) for leaf in (commands_of(walk, top) or [top])]


def options_of(walk: Walk, command: str) -> list:
    options = []
    for line in section(help_of(walk, command), 'Options:'):
        match = re.match(r'  (?:-\w,)?(--[\w-]+)( \S+)?', line)
        if match and match[1] not in ('--help', '--version'):
            options.append(Option(match[1], bool(match[2]), (match[2] or '').strip()))
    return options


def examples_of(walk: Walk, command: str) -> list:
    """The lines of the footer that begin with the program's name, remarks behind them cut off."""
    lines = [line.strip() for line in help_of(walk, command).splitlines()]
    return [re.split(r'\s{2,}', line)[0] for line in lines
            if line.startswith(('superstep ', 'mpirun ')) and not line.startswith('superstep [')]
