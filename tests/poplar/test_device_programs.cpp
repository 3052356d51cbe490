// Programs that ask vertices, the host or the device: exit statuses, functions of the host, cycles, replicas.
#include <cmath>
#include <nlohmann/json.hpp>
#include <poplar/CSRFunctions.hpp>
#include <poplar/CycleCount.hpp>
#include <poplar/RandomSeed.hpp>

#include "tests/poplar/machine.h"

using namespace poplar;
using namespace poplar::program;
using Values = std::vector<int>;

#ifdef POPC

namespace {

const char* const statuses = R"(
#include <poplar/Vertex.hpp>
using namespace poplar;
struct Positive : public Vertex {
  Input<int> x;
  bool compute() { return *x > 0; }
};
struct AllOfFive : public MultiVertex {
  Input<Vector<int>> x;
  bool compute(unsigned worker) { return worker >= x.size() || x[worker] > 0; }
};
struct Says : public Vertex {
  Output<int> x;
  void compute() { *x = 5; }
};
)";

struct Statuses : Machine {
  Statuses() {
    std::stringstream source(statuses);
    graph.addCodelets(source);
  }
  VertexRef add(ComputeSet set, const char* type, const Tensor& x, unsigned tile) {
    const VertexRef vertex = graph.addVertex(set, type, {{"x", x}});
    graph.setTileMapping(vertex, tile);
    return vertex;
  }
};

}  // namespace

TEST(PoplarDevicePrograms, AStatusIsTrueWhereEveryVertexSaysSo) {
  for (const int last : {4, 0}) {
    Statuses m;
    Tensor x = m.variable(INT, {3}, "x"), status = m.variable(BOOL, {}, "status"),
           said = m.variable(INT, {1}, "said");
    m.graph.setInitialValue(x, ArrayRef<int>{1, 2, last});
    ComputeSet set = m.graph.addComputeSet("set"), other = m.graph.addComputeSet("other");
    for (unsigned i = 0; i < 3; ++i) m.add(set, "Positive", x[i], i);
    m.add(set, "AllOfFive", x, 3);
    m.add(other, "Says", said, 0);
    EXPECT_EQ(m.run<std::uint8_t>(Execute(set, status), status)[0], last > 0 ? 1 : 0);
    // What returns nothing is true; INT takes it too.
    EXPECT_EQ(m.run<int>(Execute(other, said.reshape({})), said), Values{1});
    expect_throw<type_error>([&] { Execute(set, m.variable(FLOAT, {1})); }, "float");
  }
}

TEST(PoplarDevicePrograms, ACountHasTheCyclesOfWhatItIsAround) {
  Machine machine;
  Tensor a = machine.variable(FLOAT, {1000}, "a"), b = machine.variable(FLOAT, {1000}, "b");
  machine.graph.setInitialValue(a, 1.0f);
  const auto counted = [&](unsigned times) {
    Sequence sequence{Repeat(times, Copy(a, b.reverse(0)))};
    Tensor count = cycleCount(machine.graph, sequence, 2);
    const auto halves = machine.run<unsigned>(sequence, count);
    return halves[0] + (std::uint64_t{halves[1]} << 32);
  };
  const std::uint64_t none = counted(0), one = counted(1), nine = counted(9);
  EXPECT_GT(one, none);
  EXPECT_EQ(nine - none, 9 * (one - none));
  Sequence copy{Copy(a, b.reverse(0))};
  Engine engine(machine.graph, copy);
  engine.loadAndRun(machine.device);
  EXPECT_EQ(one - none, engine.getProfile()["executionProfile"]["simulation"]["cycles"].asUint());
}

TEST(PoplarDevicePrograms, AFunctionOfTheHostIsCalledByPrograms) {
  Machine machine;
  Tensor x = machine.counting({3}, "x"), y = machine.variable(FLOAT, {2}, "y");
  const HostFunction function = machine.graph.addHostFunction("f", {{INT, 3}}, {{FLOAT, 2}});
  const HostFunction clock = machine.graph.addHostFunction("clock", {}, {{INT, 3}});
  machine.graph.createHostRead("y", y);
  Engine engine(machine.graph, Sequence{Call(clock, {}, {x}), Call(function, {x}, {y})});
  int calls = 0;
  engine.connectHostFunction("clock", 0, [&](ArrayRef<const void*> in, ArrayRef<void*> out) {
    EXPECT_TRUE(in.empty());
    for (int i = 0; i < 3; ++i) static_cast<int*>(out[0])[i] = 10 * ++calls;
  });
  engine.connectHostFunction("f", 0, [](ArrayRef<const void*> in, ArrayRef<void*> out) {
    const int* from = static_cast<const int*>(in[0]);
    static_cast<float*>(out[0])[0] = static_cast<float>(from[0] + from[2]) / 8;
    static_cast<float*>(out[0])[1] = static_cast<float>(from[1]);
  });
  engine.load(machine.device);
  engine.run();
  engine.run();
  float values[2];
  engine.readTensor("y", values, values + 2);
  EXPECT_EQ(values[0], 12.5f);
  EXPECT_EQ(values[1], 50.0f);
  expect_throw<control_program_error>([&] { Call(function, {x, x}, {y}); }, "1 inputs");
  expect_throw<stream_connection_error>([&] { engine.connectHostFunction("g", 0, {}); }, "'g'");
  expect_throw<poplar_error>([&] { machine.graph.addHostFunction("n", {}, {}); }, "takes nothing");
}

TEST(PoplarDevicePrograms, AnAbortStopsAndABlockIsItsContent) {
  Machine machine;
  Tensor x = machine.counting({2}, "x");
  EXPECT_EQ(machine.run(Block(Copy(x[0], x[1]), "block"), x), (Values{0, 0}));
  Engine engine(machine.graph, {Abort("enough"), Switch::switchWithBoundsChecking(x[1], {{0, Sequence()}})});
  engine.load(machine.device);
  expect_throw<application_runtime_error>([&] { engine.run(0); }, "enough");
  std::ostringstream shown;
  engine.setPrintStream(shown);
  expect_throw<application_runtime_error>([&] { engine.run(1); }, "no case");
}

TEST(PoplarDevicePrograms, AReplicaKnowsItsNumber) {
  Device device = small_device(2, 4);
  Graph graph(device, replication_factor(4));
  Tensor index = graph.addReplicationIndexConstant("index"), x = graph.addVariable(UNSIGNED_INT, {}, "x");
  graph.setTileMapping(index, 1);
  graph.setTileMapping(x, 1);
  graph.createHostRead("x", x);
  Engine engine(graph, Copy(index, x));
  engine.loadAndRun(device);
  unsigned values[4];
  engine.readTensor("x", values, values + 4);
  for (unsigned i = 0; i < 4; ++i) EXPECT_EQ(values[i], i);
  EXPECT_EQ(graph.getNonReplicatedTensor(x).shape(), (std::vector<std::size_t>{1}));
  EXPECT_EQ(graph.createReplicatedGraph(1).getTarget().getNumTiles(), graph.getTarget().getNumTiles());
}

TEST(PoplarDevicePrograms, RegistersAndSeedsAreLegalAndChangeNothing) {
  Machine machine;
  Tensor x = machine.counting({2}, "x");
  Sequence sequence;
  setFloatingPointBehaviour(machine.graph, sequence, {true, true, true, false, true}, "set");
  const Tensor before =
      getAndModifyFloatingPointBehaviour(machine.graph, sequence, {}, {false, false, false, false, false});
  setFloatingPointBehaviour(machine.graph, sequence, before);
  setStochasticRounding(machine.graph, sequence, false);
  const Tensor seeds = getHwSeeds(machine.graph, sequence);
  EXPECT_EQ(seeds.shape(), (std::vector<std::size_t>{4, 6, 4}));
  setHwSeeds(machine.graph, seeds, sequence);
  EXPECT_EQ(machine.run(sequence, x), (Values{0, 1}));
  expect_throw<type_error>([&] { setHwSeeds(machine.graph, x, sequence); }, "int");
}

TEST(PoplarDevicePrograms, HalvesAreRoundedOnce) {
  const Target target;
  const double above =
      1 + std::ldexp(1.0, -11) + std::ldexp(1.0, -40);  // just above the tie of 1 and 1 + 2^-10
  const double doubles[] = {above, -above, 1 + std::ldexp(1.0, -11), 65519.999, 65520, std::ldexp(1.0, -25),
                            NAN,   0.1};
  std::uint16_t bits[8];
  copyDoubleToDeviceHalf(target, doubles, bits, 8);
  const std::uint16_t wanted[] = {0x3c01, 0xbc01, 0x3c00, 0x7bff, 0x7c00, 0x0000};
  for (int i = 0; i < 6; ++i) EXPECT_EQ(bits[i], wanted[i]) << i;
  double back[8];
  copyDeviceHalfToDouble(target, bits, back, 8);
  EXPECT_TRUE(std::isnan(back[6]));
  EXPECT_NEAR(back[7], 0.1, 5e-5);
  const float floats[] = {0.5f, -2.0f};
  copyFloatToDeviceHalf(target, floats, bits, 2);
  float again[2];
  copyDeviceHalfToFloat(target, bits, again, 2);
  EXPECT_EQ(again[0], 0.5f);
  EXPECT_EQ(again[1], -2.0f);
  Machine machine;
  Tensor constant = machine.graph.addConstantHalf(HALF, {2}, std::uint16_t{0x3c00});
  machine.graph.setTileMapping(constant, 0);
  EXPECT_EQ(machine.run<std::uint16_t>(Sequence(), constant), (std::vector<std::uint16_t>{0x3c00, 0x3c00}));
}

TEST(PoplarDevicePrograms, GraphsAreWrittenForGraphviz) {
  Statuses m;
  Tensor x = m.variable(INT, {1}, "x \"y\"");
  ComputeSet set = m.graph.addComputeSet("the set");
  m.add(set, "Says", x, 0);
  std::ostringstream sets, vertices;
  m.graph.outputComputeGraph(sets, {Repeat(2, Execute(set))});
  m.graph.outputVertexGraph(vertices, {Execute(set)});
  EXPECT_EQ(sets.str(),
            "digraph {\n  set0 [shape=box, label=\"the set\"];\n  variable0 [label=\"x \\\"y\\\"\"];\n  set0 "
            "-> variable0;\n}\n");
  EXPECT_NE(vertices.str().find("vertex0 [shape=box, label=\"Says\"]"), std::string::npos);
  std::ostringstream text;
  m.graph.serialize(text, SerializationFormat::Binary);
  const auto graph = nlohmann::json::parse(text.str());
  EXPECT_EQ(graph["variables"][0]["name"], "x \"y\"");
  EXPECT_EQ(graph["variables"][0]["tiles"][0][2], 0);
  EXPECT_EQ(graph["computeSets"][0]["name"], "the set");
  EXPECT_EQ(graph["computeSets"][0]["vertices"][0], (nlohmann::json{{"type", "Says"}, {"tile", 0}}));
}

#endif
