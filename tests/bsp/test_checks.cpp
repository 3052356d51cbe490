// What the compiler must refuse, with the names that a user needs.
#include "tests/bsp/support.h"

namespace superstep::bsp {
namespace {

void compile(const Graph& graph, const Program& program, const CompileOptions& options = {}) {
  const Program programs[] = {program};
  compile_graph(graph, programs, options);
}

void expect_bad(const Graph& graph, const Program& program, std::initializer_list<const char*> parts) {
  expect_error(
      ErrorCode::bad_graph, [&] { compile(graph, program); }, parts);
}

VertexRef add(Graph& graph, ComputeSet set, const Tensor& a, const Tensor& b, const Tensor& out,
              std::uint32_t tile = 0) {
  const VertexRef vertex = graph.add_vertex(set, "Add", {{"a", a}, {"b", b}, {"out", out}});
  graph.set_tile_mapping(vertex, tile);
  return vertex;
}

struct Checks : ::testing::Test {
  Graph graph = small_graph(4);
  Tensor a = mapped(graph, {8}, "a"), b = mapped(graph, {8}, "b"), out = mapped(graph, {8}, "out");
  ComputeSet set = graph.add_compute_set("step");
  void SetUp() override {
    graph.set_initial_value(a, 1);
    graph.set_initial_value(b, 1);
  }
};

TEST_F(Checks, TwoWritersOfOneElement) {
  add(graph, set, a.slice(0, 4), b.slice(0, 4), out.slice(0, 4));
  add(graph, set, a.slice(0, 5), b.slice(0, 5), out.slice(3, 8), 2);
  expect_bad(graph, Execute(set),
             {"compute set 'step'", "element 3 of 'out'", "vertex 0 (Add, tile 0) field 'out' writes it",
              "vertex 1 (Add, tile 2) field 'out' writes it"});
}

TEST_F(Checks, WritersSideBySideAreFine) {
  add(graph, set, a.slice(0, 4), b.slice(0, 4), out.slice(0, 4));
  add(graph, set, a.slice(4, 8), b.slice(0, 4), out.slice(4, 8), 2);
  EXPECT_NO_THROW(compile(graph, Execute(set)));
}

TEST_F(Checks, AReaderOfWhatAnotherWrites) {
  graph.set_initial_value(out, 0);
  add(graph, set, a.slice(0, 4), b.slice(0, 4), out.slice(0, 4));
  add(graph, set, out.slice(3, 4), b.slice(0, 1), out.slice(7, 8), 1);
  expect_bad(graph, Execute(set),
             {"element 3 of 'out'", "vertex 0", "writes it and vertex 1", "field 'a' reads it"});
}

TEST_F(Checks, AVertexReadingWhatItWrites) {
  add(graph, set, a, b, a);
  expect_bad(graph, Execute(set), {"element 0 of 'a'", "use one InOut field"});
}

TEST_F(Checks, InterleavedWritesDoNotClash) {
  add(graph, set, a.sub_sample(2, 0), b.sub_sample(2, 0), out.sub_sample(2, 0));
  add(graph, set, a.sub_sample(2, 0), b.sub_sample(2, 0), out.slice(1, 8).sub_sample(2, 0), 3);
  EXPECT_NO_THROW(compile(graph, Execute(set)));
}

TEST_F(Checks, UnmappedVariable) {
  const Tensor lost = graph.add_variable(Type::f32, {8}, "lost");
  graph.set_tile_mapping(lost.slice(0, 5), 1);
  add(graph, set, a, b, lost);
  expect_bad(graph, Execute(set),
             {"vertex 0 (Add) on tile 0, field 'out'", "element 5 of variable 'lost' [8] is on no tile"});
  expect_bad(graph, Copy(a, lost), {"program Copy", "element 5 of variable 'lost'"});
}

TEST_F(Checks, VertexWithoutTile) {
  graph.add_vertex(set, "Add", {{"a", a}, {"b", b}, {"out", out}});
  expect_bad(graph, Execute(set), {"compute set 'step', vertex 0 (Add)", "on no tile"});
}

TEST_F(Checks, UnconnectedField) {
  graph.set_tile_mapping(graph.add_vertex(set, "Add", {{"a", a}, {"out", out}}), 1);
  expect_bad(graph, Execute(set), {"field 'b' is not connected"});
}

TEST_F(Checks, ReadBeforeWritten) {
  add(graph, set, a, out, b);
  expect_bad(graph, Execute(set), {"field 'b'", "element 0 of 'out' [8]", "nothing has written before"});
  EXPECT_NO_THROW(compile(graph, Execute(set), {.allow_undefined_reads = true}));
  EXPECT_NO_THROW(compile(graph, Sequence{Copy(a, out), Execute(set)}));
  expect_bad(graph, Sequence{Copy(a.slice(0, 7), out.slice(0, 7)), Execute(set)}, {"element 7 of 'out'"});
  expect_bad(graph, Sequence{Copy(a, out), WriteUndef(out.slice(2, 3)), Execute(set)},
             {"element 2 of 'out'"});
}

TEST_F(Checks, DefinitionsFollowBranchesAndLoops) {
  const Tensor flag = mapped(graph, {}, "flag", 0, Type::boolean);
  graph.create_host_write("flag", flag);
  add(graph, set, a, out, b);
  expect_bad(graph, Sequence{If(flag, Copy(a, out)), Execute(set)}, {"'out'"});
  EXPECT_NO_THROW(compile(graph, Sequence{If(flag, Copy(a, out), Copy(b, out)), Execute(set)}));
  expect_bad(graph, Sequence{RepeatWhileTrue(Sequence(), flag, Copy(a, out)), Execute(set)}, {"'out'"});
  EXPECT_NO_THROW(compile(graph, Sequence{RepeatWhileTrue(Copy(a, out), flag, Sequence()), Execute(set)}));
  expect_bad(graph, Sequence{Repeat(0, Copy(a, out)), Execute(set)}, {"'out'"});
  EXPECT_NO_THROW(compile(graph, Sequence{Repeat(1, Copy(a, out)), Execute(set)}));
  // Another program of the engine may have run before.
  const Program both[] = {Execute(set), Copy(a, out)};
  EXPECT_NO_THROW(compile_graph(graph, both));
}

TEST_F(Checks, WrongTypesAndSizesAreRefusedAtOnce) {
  const Tensor halves = mapped(graph, {8}, "halves", 0, Type::f16);
  const VertexRef vertex = graph.add_vertex(set, "Add");
  const auto refused = [&](const std::function<void()>& act, std::initializer_list<const char*> parts) {
    expect_error(ErrorCode::invalid_argument, act, parts);
  };
  refused([&] { graph.connect(field(vertex, "a"), halves); },
          {"field 'a'", "halves[8] is half, the field float"});
  refused([&] { graph.connect(field(vertex, "c"), a); }, {"no field 'c'", "its fields are a, b, out"});
  refused([&] { graph.connect(field(vertex, "out"), a.broadcast(2, 0)); }, {"cannot be written"});
  refused([&] { graph.connect(field(vertex, "out"), graph.add_constant(Type::f32, {2}, 1)); },
          {"cannot be written"});
  refused([&] { graph.add_vertex(set, "Adds"); }, {"no such vertex class", "did you mean 'Add'"});
  refused([&] { graph.set_tile_mapping(a, 4); }, {"there is no tile 4: the graph has 4"});
  refused([&] { graph.set_tile_mapping(vertex, 9); }, {"there is no tile 9"});
  refused([&] { Copy(a, halves); }, {"float a[8] does not fit half halves[8]"});
  refused([&] { Copy(a, b.slice(0, 4)); }, {"does not fit"});
  refused([&] { If(a.slice(0, 1), Sequence()); }, {"must be bool or integer"});
  refused([&] { If(a, Sequence()); }, {"must have one element"});
  refused(
      [&] {
        graph.set_tile_mapping(a, TileMapping{{{0, 4}}});
      },
      {"the mapping has 4 elements, the tensor 8"});
  refused([&] { Graph(gc200_device(4), 3); }, {"3 replicas cannot share 4 chips"});
  refused([&] { gc200_device(3); }, {"links join pairs"});
  refused([&] { find_device("gc201"); }, {"did you mean 'gc200'"});
}

TEST_F(Checks, StreamsOfAnotherSize) {
  const DataStream stream = graph.add_host_to_device_fifo("in", Type::f32, 4);
  expect_bad(graph, Copy(stream, a), {"stream 'in' moves 4 float, tensor a[8]"});
  expect_bad(graph, Copy(a.slice(0, 4), stream), {"stream 'in' goes the other way"});
  const RemoteBuffer buffer = graph.add_remote_buffer("rows", Type::f32, 3, 2);
  expect_bad(graph, Copy(buffer, a), {"1 rows of remote buffer 'rows' are 3 float"});
}

TEST_F(Checks, ATileThatIsTooFull) {
  const Tensor big = mapped(graph, {200000}, "big", 2), small = mapped(graph, {100}, "small", 2);
  graph.set_initial_value(big, 0);
  graph.set_initial_value(small, 0);
  graph.create_host_read("big", big);
  graph.create_host_read("small", small);
  const auto attempt = [&](const CompileOptions& options) { compile(graph, Copy(a, out), options); };
  expect_error(
      ErrorCode::out_of_memory, [&] { attempt({}); },
      {"1 of 4 tiles are too full", "tile 2 needs", "800,000 B  variable 'big'", "variable 'small'"});
  EXPECT_NO_THROW(attempt({.allow_out_of_memory = true}));
}

TEST_F(Checks, RacesInAComputeSetThatNeverRunsDoNotMatter) {
  add(graph, set, a, b, a);
  EXPECT_NO_THROW(compile(graph, Copy(a, out)));
}

}  // namespace
}  // namespace superstep::bsp
