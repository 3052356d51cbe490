"""Tests of GoogleTest programs are listed each: a suite of one program does not hide that of the same name in another."""

import subprocess
import tempfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lines = []
        for program, tests in (('one', ['A', 'B']), ('two', ['A'])):
            file = folder / program
            file.write_text('#!/bin/sh\nprintf "Same.\\n' + ''.join(f'  {test}\\n' for test in tests) + 'Only.\\n  C\\n"\n')
            file.chmod(0o755)
            for variable, value in (('EXECUTABLE', file), ('PREFIX', program + '.'), ('COST', 1), ('TESTS_A_PROCESS', 25)):
                lines.append(f'set({variable} "{value}")')
            lines.append(f'include("{SOURCE}/cmake/test_groups.cmake")')
        (folder / 'CTestTestfile.cmake').write_text('\n'.join(lines) + '\n')
        listed = subprocess.run(['ctest', '-N'], cwd=folder, capture_output=True, text=True, check=True).stdout
    found = sorted(line.split(': ')[1].strip() for line in listed.splitlines() if 'Test ' in line and '#' in line)
    assert found == ['one.Only', 'one.Same', 'two.Only', 'two.Same'], listed


if __name__ == '__main__':
    main()
