"""The commands of a page, in their order, print what the page shows behind each."""

import subprocess


def blocks(page, commands):
    """Indented lines that begin with one of `commands`, each with the lines of code that follow it."""
    block = []
    for line in page.splitlines() + [""]:
        code = line[4:] if line.startswith("    ") and line.strip() else None
        if block and (code is None or code.startswith(commands)):
            yield block
            block = []
        if code is not None and (block or code.startswith(commands)):
            block.append(code)


def wrong_commands(page, commands, least, **more):
    """Runs them all (`more` as subprocess.run takes it) and says which printed something else; their number, one more
    where there were fewer than `least` commands."""
    tried = wrong = 0
    for command, *expected in blocks(page, commands):
        done = subprocess.run(command, shell=True, text=True, timeout=300, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, **more)
        tried += 1
        printed = done.stdout.splitlines()
        if done.returncode != 0 or [line.rstrip() for line in printed] != [line.rstrip() for line in expected]:
            wrong += 1
            print(f"{command}\nended with {done.returncode} and printed\n{done.stdout}the page has\n" +
                  "\n".join(expected))
    print(f"{tried} commands tried, {wrong} not as the page shows them")
    return wrong + (tried < least)
