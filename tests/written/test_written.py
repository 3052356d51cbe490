"""A file whose shapes contradict each other, one with an attribute that there is not and one that is cut short are found; one that
is broken on purpose is counted apart."""
import io
import contextlib
import pathlib
import tempfile
import unittest
import unittest.mock

import onnx
from onnx import TensorProto, helper

import written
from keep_written import keep_written


def model(shape=(2, 3), attributes=None, opset=17):
    def port(name, extents):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, extents)
    nodes = [helper.make_node("Relu", ["x"], ["h"]), helper.make_node("Softmax", ["h"], ["y"], **(attributes or {"axis": 1}))]
    graph = helper.make_graph(nodes, "g", [port("x", (2, 3))], [port("y", (2, 3))], value_info=[port("h", shape)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8).SerializeToString()


class Written(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def judged(self, data):
        """How many are wrong, and what was said."""
        (self.folder / "m.onnx").write_bytes(data)
        (self.folder / "m.txt").write_text("Suite.Test: model.onnx\n")
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            wrong = written.report(self.folder, [written.check(path) for path in sorted(self.folder.glob("*.onnx"))])
        return wrong, said.getvalue()

    def test_a_right_file_is_right(self):
        self.assertEqual(self.judged(model())[0], 0)

    def test_shapes_that_contradict_are_found(self):
        wrong, said = self.judged(model(shape=(2, 4)))
        self.assertGreaterEqual(wrong, 1, said)
        self.assertIn("Suite.Test: model.onnx", said)
        self.assertIn("onnx.checker", said)

    def test_an_attribute_that_there_is_not_is_found(self):
        self.assertGreaterEqual(self.judged(model(attributes={"axes": 1}))[0], 1)

    def test_a_cut_file_is_found(self):
        self.assertGreaterEqual(self.judged(model()[:-9])[0], 1)

    def test_what_is_broken_on_purpose_is_counted_apart(self):
        with tempfile.TemporaryDirectory() as other, unittest.mock.patch.dict("os.environ", SUPERSTEP_KEEP_WRITTEN=str(self.folder)):
            (pathlib.Path(other) / "broken.onnx").write_bytes(b"no model")
            (pathlib.Path(other) / "right.onnx").write_bytes(model())
            keep_written(other, "here")
            keep_written(other, "here")
        wrong, said = self.judged(model())
        self.assertEqual((wrong, len(list(self.folder.glob("*.onnx")))), (0, 2))
        self.assertIn("1 more are broken", said)


if __name__ == "__main__":
    unittest.main()
