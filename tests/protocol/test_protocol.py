"""The Python side of the contenders' protocol answers as the C++ side does."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

PEERS = pathlib.Path(__file__).resolve().parents[2] / "bench" / "peers"
PROGRAM = """
import sys
sys.path.insert(0, %r)
import protocol
protocol.claim_output()
count = [0]
def step():
    count[0] += 1
    print("chatter of a library")
    if count[0] == 12:
        raise RuntimeError("no\\nmemory")
protocol.serve({"contender": "test"}, step)
""" % str(PEERS)


def talk(text, program=PROGRAM):
    done = subprocess.run([sys.executable, "-c", program], input=text, capture_output=True, text=True)
    return done.returncode, done.stdout.splitlines()


class Protocol(unittest.TestCase):
    def test_answers_every_line(self):
        code, lines = talk("run 3\nrun 2 2\nwarm 0\nrun 5\nrun 0\nrun x\nfly\n\nquit\nrun 1\n")
        self.assertEqual(code, 0)
        kind, _, rest = lines[0].partition(" ")
        self.assertEqual((kind, json.loads(rest)), ("ready", {"contender": "test", "protocol": 1}))
        self.assertEqual(len(lines[1].split()), 4)
        self.assertEqual(len(lines[2].split()), 3)
        self.assertEqual(lines[3], "done 3")
        self.assertEqual(lines[4], "error no memory")
        self.assertTrue(lines[5].startswith("error 0 is not"))
        self.assertTrue(lines[6].startswith("error "))
        self.assertEqual(lines[7:], ["error not a command: 'fly'", "error not a command: ''", "bye"])

    def test_ends_with_its_input(self):
        self.assertEqual(talk("")[1][-1], "bye")

    def test_a_missing_peer_says_so(self):
        code, lines = talk("", "import sys; sys.path.insert(0, %r); import protocol; protocol.absent('not\\nhere')" % str(PEERS))
        self.assertEqual((code, lines), (3, ["absent not here"]))

# Ends without a word at the step whose number it is told; 0: never.
MORTAL = """
import os, sys, time
sys.path.insert(0, %r)
import protocol
protocol.claim_output()
left = [int(sys.argv[1])]
def step():
    left[0] -= 1
    time.sleep(1e-4)
    if left[0] == 0:
        os._exit(9)
protocol.serve({"contender": "mortal"}, step)
""" % str(PEERS)


def contest(*steps, ours="0"):
    """Names of the contenders that are left of a row: peers that end at these steps, and ours."""
    sys.path.insert(0, str(PEERS))
    import compare
    import types
    program = lambda text: [sys.executable, "-c", MORTAL, str(text)]
    entries = [("peer %s" % text, program(text), "peer", "f32") for text in steps] + [("Superstep", program(ours), "Superstep", "f32")]
    compare.commands = lambda *_: entries
    arguments = types.SimpleNamespace(seconds=0.01, rounds=3, mode="train", model="mlp", in_turn=True)
    return [peer.name for peer in compare.contest(arguments, 1, 1)]


class Contest(unittest.TestCase):
    def test_goes_on_without_a_peer_that_ends(self):
        # Among the first three steps, while it warms up, and in a round.
        self.assertEqual(contest(2, 5, 150, 0), ["peer 0", "Superstep"])

    def test_is_nothing_without_ours(self):
        with self.assertRaises(RuntimeError):
            contest(0, ours="5")


# Stands for superstep_contender: whose step takes 20 ms over the threads that it is told.
OURS = """#!%s
import sys, time
sys.path.insert(0, %r)
import protocol
protocol.claim_output()
threads = int(sys.argv[sys.argv.index("--threads") + 1])
protocol.serve({"contender": "Superstep"}, lambda: time.sleep(2e-2 / threads))
""" % (sys.executable, str(PEERS))


def build_with_ours(folder):
    """A build folder whose contender is that one."""
    program = pathlib.Path(folder) / "bench" / "superstep_contender"
    program.parent.mkdir()
    program.write_text(OURS)
    program.chmod(0o755)
    return pathlib.Path(folder)


class OursAlone(unittest.TestCase):
    """The scripts that time nothing but ours, from start to table."""

    def lines_of(self, script, *words):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, PEERS.parent / script, "--build", build_with_ours(folder), "--rounds", "2",
                                   "--seconds", "0.02", *words], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.splitlines()

    def test_beside_a_neighbour(self):
        lines = self.lines_of("neighbour.py", "--models", "mlp:4,lstm:8", "--threads", "1")
        self.assertEqual([line.split()[:3] for line in lines[2:]], [["mlp", "4", "Superstep"], ["lstm", "8", "Superstep"]])

    def test_on_more_threads(self):
        lines = self.lines_of("scaling.py", "--models", "mlp", "--modes", "train", "--precisions", "f32", "--threads", "1,4")
        self.assertEqual(len(lines), 2)
        self.assertEqual(lines[1].split()[:4], ["mlp", "train", "f32", "64"])
        self.assertGreater(float(lines[1].split()[-1]), 1.3)


if __name__ == "__main__":
    unittest.main()
