// What callers with rules and exceptions of their own ask of the machine: which rule was broken, aliases
// within a vertex, printing of their own, mappings that are not whole.
#include "superstep/bsp/graph/rule_error.h"
#include "tests/bsp/support.h"

namespace superstep::bsp {
namespace {

CompileOptions with_aliases() {
  CompileOptions options;
  options.allow_vertex_aliases = true;
  return options;
}

void expect_rule(Rule rule, const std::function<void()>& act) {
  try {
    act();
    FAIL() << "no error";
  } catch (const RuleError& error) {
    EXPECT_EQ(error.rule(), rule) << error.what();
  }
}

struct Rules : ::testing::Test {
  Graph graph = small_graph(4);
  Tensor a = mapped(graph, {6}, "a"), b = mapped(graph, {6}, "b");
  ComputeSet set = graph.add_compute_set("step");

  void add(const Tensor& x, const Tensor& y, const Tensor& out, std::uint32_t tile = 0) {
    graph.set_tile_mapping(graph.add_vertex(set, "Add", {{"a", x}, {"b", y}, {"out", out}}), tile);
  }
  std::vector<float> run(const Program& program, const Tensor& shown) {
    graph.create_host_read("shown", shown);
    Engine engine(graph, std::vector<Program>{program}, {}, with_aliases());
    engine.load_and_run();
    return read(engine, "shown", static_cast<std::size_t>(shown.num_elements()));
  }
};

TEST_F(Rules, ErrorsSayWhichRuleWasBroken) {
  const std::vector<Program> execute{Execute(set)};
  const auto compile = [&] { compile_graph(graph, execute); };
  graph.set_tile_mapping(graph.add_vertex(set, "Add"), 0);
  expect_rule(Rule::connected, compile);
  expect_rule(Rule::mapped, [&] { graph.tile_mapping(graph.add_variable(Type::f32, {2}, "lost")); });
  const Tensor constant = graph.add_constant(Type::f32, {6}, 1);
  graph.set_tile_mapping(constant, 0);
  graph.set_initial_value(a, 1);
  expect_rule(Rule::writeable, [&] { compile_graph(graph, std::vector<Program>{Copy(a, constant)}); });
  expect_rule(Rule::written_first, [&] { compile_graph(graph, std::vector<Program>{Copy(b, a)}); });
  const DataStream in = graph.add_host_to_device_fifo("in", Type::f32, 5);
  expect_rule(Rule::transfer, [&] { compile_graph(graph, std::vector<Program>{Copy(in, a)}); });
}

TEST_F(Rules, AVertexMayReadWhatItWritesWhereThatIsAllowed) {
  graph.set_initial_value(a, 1);
  graph.set_initial_value(b, 0);
  add(a.slice(0, 5), b.slice(0, 5), b.slice(1, 6));
  expect_rule(Rule::no_race, [&] { compile_graph(graph, std::vector<Program>{Execute(set)}); });
  EXPECT_EQ(run(Execute(set), b), (std::vector<float>{0, 1, 2, 3, 4, 5}));  // one memory: sums run on
}

// Every element becomes the first plus one: the first itself, too, which the others see.
struct FirstPlusOne : Vertex {
  Input<Vector<float>> x;
  Output<Vector<float>> y;
  void fields(FieldList& list) { list("x", x)("y", y); }
  void compute() {
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = x[0] + 1;
  }
};

TEST_F(Rules, GatheredElementsOfAVertexAreOneMemory) {
  graph.set_initial_value(b, 2);
  graph.add_codelets({vertex_class<FirstPlusOne>("FirstPlusOne")});
  graph.set_tile_mapping(graph.add_vertex(set, "FirstPlusOne", {{"x", b.reverse(0)}, {"y", b.reverse(0)}}),
                         0);
  EXPECT_EQ(run(Execute(set), b), (std::vector<float>{4, 4, 4, 4, 4, 3}));
}

TEST_F(Rules, TwoVerticesMayNotAndNorMayTwoOutputs) {
  graph.set_initial_value(a, 1);
  graph.set_initial_value(b, 0);
  add(a, b, b);
  add(a, a, b, 1);
  expect_rule(Rule::no_race,
              [&] { compile_graph(graph, std::vector<Program>{Execute(set)}, with_aliases()); });
}

TEST_F(Rules, ATensorIsPrintedAsItsProgramWants) {
  graph.set_initial_value(a, 3);
  std::ostringstream out;
  EngineOptions options;
  options.print_to = &out;
  const auto count = [](std::ostream& to, const std::string& title, Type, const Shape& shape,
                        const std::byte*) { to << title << " has " << shape.element_count() << "\n"; };
  Engine engine(graph,
                std::vector<Program>{Sequence({PrintTensor(a, "a", count), PrintTensor(a.slice(0, 1), "a")})},
                options);
  engine.load_and_run();
  EXPECT_EQ(out.str(), "a has 6\na: [3.0000000]\n");
}

TEST_F(Rules, AMappingMayBeAskedForInPart) {
  const Tensor t = graph.add_variable(Type::f32, {4}, "t");
  graph.set_tile_mapping(t.slice(1, 3), 2);
  bool complete = true;
  const TileMapping mapping = graph.tile_mapping(t, complete);
  EXPECT_FALSE(complete);
  EXPECT_EQ(mapping[2], (std::vector<Interval>{{1, 3}}));
  const Tensor copy = graph.clone(t, "copy", CloneMethod::create_new_order);
  EXPECT_EQ(graph.tile_mapping(copy, complete), mapping);
  graph.set_tile_mapping(t, 0);
  graph.tile_mapping(t, complete);
  EXPECT_TRUE(complete);
}

}  // namespace
}  // namespace superstep::bsp
