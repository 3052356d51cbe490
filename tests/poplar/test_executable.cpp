// Executables as files: what runs again, that bytes are the same every time, what is refused.
#include <cstdlib>

#include "superstep/poplar/executable/executable_file.h"
#include "tests/poplar/machine.h"

using namespace poplar;
using namespace poplar::program;

namespace {

std::string saved(const Executable& executable) {
  std::ostringstream out;
  executable.serialize(out);
  return out.str();
}

Executable loaded(const std::string& bytes) {
  std::istringstream in(bytes);
  return Executable::deserialize(in);
}

// Control flow, streams, prints, a copy that is staged: all that needs no codelet.
Executable without_codelets() {
  Machine machine;
  Tensor x = machine.counting({6}, "x"), y = machine.variable(INT, {6}, "y");
  Tensor flag = machine.graph.addConstant(BOOL, {}, true);
  machine.graph.setTileMapping(flag, 0);
  const DataStream in = machine.graph.addHostToDeviceFIFO("in", INT, 6),
                   out = machine.graph.addDeviceToHostFIFO("out", INT, 6);
  machine.graph.createHostRead("y", y);
  machine.graph.createHostWrite("x", x);
  Sequence program{
      Copy(in, x),
      Repeat(2, Copy(x.slice(0, 5), x.slice(1, 6))),
      Copy(x, y.reverse(0)),
      If(flag, PrintTensor("y", y, PrintTensorFmt(1000, 3, 75, 8, FloatFormat::Auto, ',')), Sequence()),
      Switch(y[0], {{1, Copy(y, out)}}),
      WriteUndef(x)};
  return compileGraph(machine.graph, program);
}

std::string run(Executable executable) {
  Engine engine(std::move(executable));
  std::ostringstream printed;
  engine.setPrintStream(printed);
  std::vector<int> in{1, 2, 3, 4, 5, 6}, out(6), y(6);
  engine.connectStream("in", in.data());
  engine.connectStream("out", out.data());
  engine.load(small_device());
  engine.run();
  engine.readTensor("y", y.data(), y.data() + 6);
  for (const std::vector<int>& list : {out, y}) {
    for (const int value : list) printed << value << " ";
    printed << "\n";
  }
  printed << engine.getExecutionProfile()["simulation"]["cycles"].asUint();
  return printed.str();
}

}  // namespace

TEST(PoplarExecutable, ItRunsAgainAsItDid) {
  const Executable executable = without_codelets();
  const std::string bytes = saved(executable), result = run(without_codelets());
  EXPECT_EQ(result.substr(0, 17), "y: [4,3,2,1,1,1]\n");
  EXPECT_EQ(run(loaded(bytes)), result);
  EXPECT_EQ(saved(loaded(bytes)), bytes);
  EXPECT_EQ(saved(without_codelets()), bytes);
}

TEST(PoplarExecutable, WhatIsDamagedOrOfAnotherVersionIsRefused) {
  const std::string bytes = saved(without_codelets());
  expect_throw<graph_object_load_error>([] { loaded(""); }, "no executable");
  expect_throw<graph_object_load_error>([] { loaded("something else\nand more"); }, "no executable");
  std::string other = bytes;
  other.replace(other.find(" 2 "), 3, " 3 ");
  expect_throw<graph_object_load_error>([&] { loaded(other); }, "version 3");
  expect_throw<graph_object_load_error>([&] { loaded(bytes.substr(0, bytes.size() - 1)); }, "damaged");
  for (std::size_t at = bytes.find('\n') + 1; at < bytes.size(); at += 97) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 4);
    expect_throw<graph_object_load_error>([&] { loaded(changed); }, "damaged");
  }
  EXPECT_THROW(Executable().serialize(std::cout), poplar_error);
}

// The content's name keeps accidents out; behind it every number is held to its range.
TEST(PoplarExecutable, EveryChangedByteIsRefusedOrHarmless) {
  const std::string bytes = core::bytes_of(*without_codelets().data());
  int refused = 0;
  for (std::size_t at = 0; at < bytes.size(); ++at)
    for (const int with : {0x01, 0x80, 0xff}) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(changed[at] ^ with);
      try {
        core::executable_of(changed);
      } catch (const poplar_error&) {
        ++refused;
      }
    }
  EXPECT_GT(refused, static_cast<int>(bytes.size()) / 2);
  for (std::size_t size = 0; size < bytes.size(); size += 7)
    EXPECT_THROW(core::executable_of(bytes.substr(0, size)), graph_object_load_error);
}

#ifdef POPC

TEST(PoplarExecutable, CodeletsAreInIt) {
  setenv("SUPERSTEP_POPC", POPC, 1);
  std::string bytes;
  {
    setenv("SUPERSTEP_HOME", POPLAR_TEST_HOME, 1);
    Machine machine;
    std::stringstream source(R"(
#include <poplar/Vertex.hpp>
struct Scale : public poplar::Vertex {
  poplar::InOut<poplar::Vector<int>> x;
  poplar::Vector<short> by;
  int more;
  void compute() { for (unsigned i = 0; i < x.size(); ++i) x[i] = x[i] * by[i] + more; }
};)");
    machine.graph.addCodelets(source);
    Tensor x = machine.counting({2, 3}, "x");
    ComputeSet set = machine.graph.addComputeSet("scale");
    for (unsigned i = 0; i < 2; ++i) {
      const VertexRef vertex =
          machine.graph.addVertex(set, "Scale", {{"x", i == 0 ? x[0] : x[1].reverse(0)}});
      machine.graph.setInitialValue(vertex["by"], std::vector<int>{1, 10, 100});
      machine.graph.setInitialValue(vertex["more"], 7);
      machine.graph.setTileMapping(vertex, i);
    }
    machine.graph.createHostRead("x", x);
    bytes = saved(compileGraph(machine.graph, Execute(set)));
  }
  // Where nothing was compiled before, and nothing can be.
  setenv("SUPERSTEP_HOME", POPLAR_TEST_HOME "/fresh", 1);
  setenv("SUPERSTEP_POPC", "/nowhere/popc", 1);
  Engine engine(loaded(bytes));
  engine.load(small_device());
  engine.run();
  std::vector<int> x(6);
  engine.readTensor("x", x.data(), x.data() + 6);
  EXPECT_EQ(x, (std::vector<int>{7, 17, 207, 307, 47, 12}));
  setenv("SUPERSTEP_POPC", POPC, 1);
  setenv("SUPERSTEP_HOME", POPLAR_TEST_HOME, 1);
}

#endif
