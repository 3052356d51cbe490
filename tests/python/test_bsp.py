"""The bulk-synchronous machine from Python."""
import shutil

import numpy
import pytest
from support import error_of

import superstep
from superstep import bsp

needs_compiler = pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler")

SCALE = """
struct Scale : Vertex {
  InOut<Vector<float>> data;
  float factor = 1;
  void fields(FieldList& list) { list("data", data)("factor", factor); }
  void compute() {
    for (float& x : data) x *= factor;
  }
  static PerfEstimate cycles(const VertexFields& f, const Device&) { return 20 + 2 * f.size("data"); }
};
"""


def scaled(factor=3.0, n=1472 * 8):
    graph = bsp.Graph("gc200")
    graph.add_codelets(SCALE)
    x = graph.add_variable("f32", (n,), "x", mapping="linear")
    graph.create_host_write("x", x)
    graph.create_host_read("x", x)
    scale = graph.add_compute_set("scale")
    for tile, share in graph.shares(x):
        graph.add_vertex(scale, "Scale", {"data": share}, tile=tile, factor=factor)
    return graph, x, scale


@needs_compiler
def test_the_program_of_the_page_of_the_library():
    graph, _, scale = scaled()
    engine = bsp.Engine(graph, [bsp.Execute(scale)])
    engine.write("x", numpy.full(1472 * 8, 2, numpy.float32))
    engine.run()
    assert (engine.read("x") == 6).all() and engine.cycles == 316
    assert engine.seconds == pytest.approx(316 / graph.clock_hz)
    profile = engine.profile()
    assert profile["schema"] == "superstep-bsp-profile/1" and "Execution" in engine.summary()
    assert engine.html().startswith("<!") and "<iframe" in engine._repr_html_()


@needs_compiler
def test_control_flow_and_views():
    graph, x, scale = scaled(2.0)
    halves = graph.add_variable("f32", (2, 1472 * 4), "halves", mapping="linear")
    graph.create_host_read("halves", halves)
    body = bsp.Sequence(bsp.Repeat(3, bsp.Execute(scale)), bsp.Copy(x.reshape(2, 1472 * 4).reverse(0), halves))
    engine = bsp.Engine(graph, [body], threads=2)
    values = numpy.arange(1472 * 8, dtype=numpy.float32)
    engine.write("x", values)
    engine.run()
    assert (engine.read("halves") == 8 * values.reshape(2, -1)[::-1]).all()
    assert x[3].shape == () and x[-4:].shape == (4,) and halves.T.shape == (1472 * 4, 2)
    assert bsp.concat([x[:2], x[5:6]]).shape == (3,) and halves[1, 2:4].shape == (2,)


@needs_compiler
def test_what_is_wrong_is_said():
    graph, x, scale = scaled()
    engine = bsp.Engine(graph, [bsp.Execute(scale)])
    with error_of(superstep.InvalidArgument, "'x'", "not f64"):
        engine.write("x", numpy.zeros(1472 * 8))
    with error_of(superstep.InvalidArgument, "nonesuch", "x"):
        engine.read("nonesuch")
    unmapped = graph.add_variable("f32", (4,), "lost")
    graph.add_vertex(scale, "Scale", {"data": unmapped}, tile=0, factor=1)
    with error_of(superstep.BadGraph, "lost"):
        bsp.Engine(graph, [bsp.Execute(scale)])
    with error_of(superstep.BadFile, "codelets:3", "error"):
        bsp.Graph("gc200").add_codelets("struct Bad : Vertex {\n  void fields(FieldList&) {}\n  void compute() { nonesuch(); }\n};\n")
    with error_of(superstep.InvalidArgument, "Vertex"):
        bsp.Graph("gc200").add_codelets("int x;")
    with error_of(superstep.InvalidArgument, "gc200"):
        bsp.Graph("gc20")
    with error_of(superstep.InvalidArgument, "f64"):
        graph.add_variable("f64", (2,))


def test_devices_and_constants():
    assert "gc200" in bsp.devices()
    graph = bsp.Graph("bow", ipus=2)
    assert graph.num_tiles == 2 * 1472 and graph.workers == 6
    constant = graph.add_constant(numpy.arange(6, dtype=numpy.int32).reshape(2, 3), "c")
    assert constant.shape == (2, 3) and constant.element == "i32"
    graph.set_tile_mapping(constant, 5)
    assert graph.tile_mapping(constant)[5] == [(0, 6)]
