"""`python -m poptorch COMMAND`."""

import importlib
import sys

# Command, the module of this package that has its `main(arguments)`, what it does.
_COMMANDS = {"run": ("._run", "run a script, then tell what ran where, its cycles and its memory"),
             "data": ("._generated", "write a data set drawn here, where the real one cannot be downloaded")}


def _usage():
    lines = [f"  {name:8} {what}" for name, (_, what) in _COMMANDS.items()]
    return "usage: python -m poptorch COMMAND [ARGUMENTS]\n\n" + "\n".join(lines) + "\n\nCOMMAND --help says more."


def main(arguments):
    """Runs a command; status 2 for a wrong call, 130 when stopped."""
    if arguments and arguments[0] in ("-h", "--help"):
        print(_usage())
        return 0
    if not arguments or arguments[0] not in _COMMANDS:
        said = f"there is no command '{arguments[0]}'\n" if arguments else ""
        print(said + _usage(), file=sys.stderr)
        return 2
    module, _ = _COMMANDS[arguments[0]]
    try:
        return importlib.import_module(module, __package__).main(arguments[1:])
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
