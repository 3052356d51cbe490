// What a vertex holds before a graph has put anything into it.
#include <cstdlib>

#include "tests/poplar/machine.h"

using namespace poplar;
using namespace poplar::program;
using Values = std::vector<int>;

#ifdef POPC

namespace {

// One vertex whose output is of three elements.
struct Begun : Machine {
  Begun(const std::string& code, const char* type) {
    std::stringstream source("#include <poplar/Vertex.hpp>\nusing namespace poplar;\n" + code);
    graph.addCodelets(source);
    set = graph.addComputeSet("set");
    out = variable(INT, {3}, "out");
    vertex = graph.addVertex(set, type, {{"out", out}});
    graph.setTileMapping(vertex, 1);
  }
  Values values() { return run(Execute(set), out); }

  ComputeSet set;
  Tensor out;
  VertexRef vertex;
};

const char* const defaults = R"(
struct Defaults : public Vertex {
  Output<Vector<int>> out;
  const unsigned short small = 65535;
  float number = 2.5f;
  bool flag = true;
  bool compute() {
    out[0] = small;
    out[1] = static_cast<int>(4 * number);
    out[2] = flag;
    return true;
  }
};)";

// What is written below once for each way to have a constructor.
std::string with(const std::string& members, const std::string& base = "Vertex",
                 const std::string& before = {}) {
  return before + "struct Made : public " + base + " {\n  Output<Vector<int>> out;\n" + members + R"(
    bool compute() {
      out[0] = a;
      out[1] = b;
      out[2] = 3;
      return true;
    }
  };)";
}

}  // namespace

TEST(PoplarConstructors, InitialisersOfMembersHold) {
  EXPECT_EQ(Begun(defaults, "Defaults").values(), (Values{65535, 10, 1}));
}

TEST(PoplarConstructors, WhatAGraphSaysStandsAboveThem) {
  Begun m(defaults, "Defaults");
  m.graph.setInitialValue(m.vertex["number"], -1);
  m.graph.setInitialValue(m.vertex["flag"], false);
  EXPECT_EQ(m.values(), (Values{65535, -4, 0}));
}

TEST(PoplarConstructors, ADefinedOneRuns) {
  EXPECT_EQ(Begun(with("int a, b;\nMade() : a(7) { b = a + 1; }"), "Made").values(), (Values{7, 8, 3}));
  EXPECT_EQ(Begun(with("int a, b;\nMade();") + "\nMade::Made() : a(9), b(-9) {}", "Made").values(),
            (Values{9, -9, 3}));
  EXPECT_EQ(Begun(with("int a = 1, b = 2;\nprivate: Made() = default; public:"), "Made").values(),
            (Values{1, 2, 3}));
}

TEST(PoplarConstructors, WhatItLeavesAloneIsZero) {
  EXPECT_EQ(Begun(with("int a, b;\nMade() { b = 5; }"), "Made").values(), (Values{0, 5, 3}));
}

// Sources declare constructors for the compiler's sake and define them nowhere.
TEST(PoplarConstructors, WithoutADefinitionAllIsZero) {
  EXPECT_EQ(Begun(with("int a = 4; const int b;\nMade();"), "Made").values(), (Values{0, 0, 3}));
  EXPECT_EQ(
      Begun(with("int a = 4, b = 5;", "Base", "struct Base : public Vertex { Base(); };\n"), "Made").values(),
      (Values{0, 0, 3}));
  EXPECT_EQ(Begun(with("int a = 4; const int b;"), "Made").values(),
            (Values{0, 0, 3}));  // C++ cannot make one
}

TEST(PoplarConstructors, BasesAndTemplatesHaveTheirs) {
  EXPECT_EQ(
      Begun(with("int b = 6;", "Base", "struct Base : public Vertex { int a = 5; };\n"), "Made").values(),
      (Values{5, 6, 3}));
  const char* const code = R"(
    template <class T, int N>
    struct Made : public MultiVertex {
      Output<Vector<T>> out;
      const T a;
      T b = T(N) + 1;
      Made();
      bool compute(unsigned worker) {
        if (worker == 0) {
          out[0] = a;
          out[1] = b;
          out[2] = T(numWorkers());
        }
        return true;
      }
    };
    template <class T, int N> Made<T, N>::Made() : a(T(N)) {}
    template class Made<int, 40>;)";
  EXPECT_EQ(Begun(code, "Made<int,40>").values(), (Values{40, 41, 6}));
}

TEST(PoplarConstructors, AnEstimatorSeesThem) {
  Begun m(defaults, "Defaults");
  float seen = 0;
  m.graph.registerPerfEstimator("Defaults", [&](const VertexIntrospector& vertex, const Target& target) {
    seen = vertex.getFieldInfo("number").getInitialValue<float>(target);
    return VertexPerfEstimate(100);
  });
  EXPECT_EQ(m.graph.getPerfEstimate(m.vertex).cycles, 100u);
  EXPECT_EQ(seen, 2.5f);
}

TEST(PoplarConstructors, AnExecutableOnDiskKeepsThem) {
  Begun m(defaults, "Defaults");
  m.graph.createHostRead("out", m.out);
  std::stringstream file;
  compileGraph(m.graph, {Execute(m.set)}).serialize(file);
  Engine engine(Executable::deserialize(file));
  engine.loadAndRun(m.device);
  Values values(3);
  engine.readTensor("out", values.data(), values.data() + 3);
  EXPECT_EQ(values, (Values{65535, 10, 1}));
}

#endif
