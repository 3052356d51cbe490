"""What tools/mutate changes in a source: each change compiles, is asleep until it is chosen, and is then seen."""
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / 'tools/mutate'
sys.path.insert(0, str(TOOL))

import judge  # noqa: E402
import sites  # noqa: E402

SAMPLE = r'''
#include <cstdio>
#include <array>
#define TWICE(x) ((x) * 2)
namespace {
constexpr int four = 2 + 2;
template <int n> int filled() { return n; }
bool even(int n) { return n % 2 == 0; }
bool is_even(int n) { return even(n); }
double hertz(double mega) { return mega * 1e6; }
int counted(int from, int to) {
  std::array<int, 3> room{1, 2, 3};
  int total = filled<four>() - 4;
  for (int i = from; i < to; ++i) total += room[i % 3];
  if (from > 2 && !(to >= 9)) total = -total;
  if (is_even(from)) total += TWICE(from);
  switch (to) { case 5: std::puts("five"); break; default: break; }
  return total;
}
}
int main() {
  std::printf("%g\n", hertz(2.0));
  for (int a = 0; a < 5; ++a) for (int b = 0; b < 12; ++b) std::printf("%d ", counted(a, b));
  bool last = true;
  const int known = 7;
  std::printf("%d %d\n", last, known);
}
'''


@unittest.skipIf(sites.cindex is None, 'python3-clang-19 is not installed')
class Mutations(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = Path(cls.scratch.name)
        cls.source = cls.folder / 'sample.cpp'
        cls.source.write_text(SAMPLE)
        cls.found = sites.sites_of(cls.source, Path('sample.cpp'), ['-std=c++23'])
        for number, site in enumerate(cls.found):
            site.number = number
        changed = cls.folder / 'changed.cpp'
        changed.write_text(f'#include "{TOOL}/switch.h"\n' + sites.rewritten(cls.source.read_bytes(), cls.found))
        cls.program = cls.folder / 'changed'
        built = subprocess.run(['c++', '-std=c++23', '-w', str(changed), str(TOOL / 'switch.cpp'), '-o', str(cls.program)],
                               capture_output=True, text=True)
        cls.errors = built.stderr

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def said(self, **environment):
        run = subprocess.run([str(self.program)], capture_output=True, timeout=20, env={**os.environ, **environment})
        return run.returncode, run.stdout

    def test_every_kind_is_found_and_what_is_known_while_compiling_is_left_alone(self):
        kinds = {site.kind for site in self.found}
        self.assertEqual(kinds, {'comparison', 'equality', 'logic', 'negation', 'arithmetic', 'accumulation', 'integer',
                                 'number', 'truth', 'statement', 'condition', 'answer'})
        lines = SAMPLE.splitlines()
        for site in self.found:
            self.assertNotIn('constexpr', lines[site.line - 1])
            self.assertNotIn('#define', lines[site.line - 1])
            self.assertNotIn('const int', lines[site.line - 1])

    def test_asleep_they_change_nothing_and_chosen_each_is_seen(self):
        self.assertEqual(self.errors, '')
        plain = self.said()
        self.assertEqual(plain, self.said(SUPERSTEP_MUTATION='9999'))
        self.assertIn(b'2e+06', plain[1])
        unseen = [f'{s.place} {s.before} -> {s.after}' for s in self.found if self.said(SUPERSTEP_MUTATION=str(s.number)) == plain]
        self.assertEqual(unseen, [])

    def test_what_was_reached_is_written_down(self):
        file = self.folder / 'reached'
        file.write_bytes(bytes(judge.BYTES))
        self.said(SUPERSTEP_MUTATIONS_REACHED=str(file))
        reached = file.read_bytes()
        self.assertEqual([s.place for s in self.found if not reached[s.number]], [])
        self.assertEqual(sum(reached), len(self.found))

    def test_a_program_whose_tests_miss_something_is_told_from_one_whose_tests_do_not(self):
        program = self.folder / 'tests'
        program.write_text('#!/bin/sh\n[ "$1" = --gtest_list_tests ] && { echo Suite.; echo "  test"; exit; }\n'
                           '[ "$SUPERSTEP_MUTATION" = 3 ] && exit 1\nexit 0\n')
        program.chmod(0o755)
        suites, left_out = judge.listened(judge.suites_of(program, self.folder), self.folder, self.folder, 10)
        self.assertEqual((len(suites), left_out), (1, []))
        suites[0].reached = bytes([1] * 5 + [0])
        words = [judge.judged(n, suites, self.folder).word for n in (2, 3, 5)]
        self.assertEqual(words, ['survived', 'killed', 'not reached'])


if __name__ == '__main__':
    unittest.main()
