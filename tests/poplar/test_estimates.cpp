// Estimators of cost: what they see of a vertex, and that its cycles are theirs.
#include <sstream>

#include "tests/poplar/machine.h"

using namespace poplar;
using namespace poplar::program;

#ifdef POPC

namespace {

const char* const lists = R"(
#include <poplar/Vertex.hpp>
using namespace poplar;
template <class T>
struct Lists : public Vertex {
  Input<Vector<T, VectorLayout::COMPACT_PTR, 8>> in;
  Vector<Input<Vector<T, VectorLayout::ONE_PTR>>, VectorLayout::SHORT_SPAN> parts;
  Output<VectorList<T, VectorListLayout::COMPACT_DELTAN>> out;
  Vector<Vector<unsigned short>> work;
  unsigned short number;
  void compute() {
    for (unsigned i = 0; i < out.size(); ++i) out[i][0] = in[i] + T(work[i][work[i].size() - 1] * number);
  }
};
template class Lists<float>;
)";

struct Estimated : Machine {
  Estimated() {
    std::stringstream source(lists);
    graph.addCodelets(source);
    set = graph.addComputeSet("set");
    vertex = graph.addVertex(set, "Lists<float>");
    graph.setTileMapping(vertex, 1);
    in = variable(FLOAT, {2}, "in");
    graph.setInitialValue(in, ArrayRef<float>{10, 20});
    out = variable(FLOAT, {2, 3}, "out");
    graph.connect(vertex["in"], in);
    graph.connect(vertex["parts"], ArrayRef<Tensor>{in, in.slice(0, 1), in});
    graph.connect(vertex["out"], out);
    graph.setFieldSize(vertex["work"], 2);
    graph.setInitialValue(vertex["work"][0], std::vector<unsigned>{1, 2});
    graph.setInitialValue(vertex["work"][1], std::vector<int>{3, 4, 5});
    graph.setInitialValue(vertex["number"], 100);
  }
  std::uint64_t cycles() {
    Engine engine(graph, Execute(set));
    engine.loadAndRun(device);
    const ProfileValue profile = engine.getExecutionProfile();
    for (const ProfileValue& step : profile["simulation"]["steps"].asVector())
      if (step["type"] == "OnTileExecute") return step["computeCycles"].asUint();
    return 0;
  }
  ComputeSet set;
  VertexRef vertex;
  Tensor in, out;
};

}  // namespace

TEST(PoplarEstimates, VectorsOfAVertexsOwnAreRead) {
  Estimated m;
  EXPECT_EQ(m.run<float>(Execute(m.set), concat(m.out[0].slice(0, 1), m.out[1].slice(0, 1))),
            (std::vector<float>{210, 520}));
  EXPECT_EQ(m.graph.getFieldSize(m.vertex["work"]), 2u);
  EXPECT_EQ(m.graph.getFieldSize(m.vertex["work"][1]), 3u);
  expect_throw<overflow_error>([&] { m.graph.setInitialValue(m.vertex["work"][0], std::vector<int>{70000}); },
                               "70000");
}

TEST(PoplarEstimates, AnEstimatorSeesSizesValuesAndLayouts) {
  Estimated m;
  int calls = 0;
  m.graph.registerPerfEstimator(
      "Lists< float >", [&](const VertexIntrospector& vertex, const Target& target) {
        ++calls;
        const FieldData in = vertex.getFieldInfo("in"), parts = vertex.getFieldInfo("parts"),
                        out = vertex.getFieldInfo("out");
        EXPECT_EQ(in.size(), 2u);
        EXPECT_EQ(in.rank(), 1u);
        EXPECT_EQ(in[1].size(), 1u);
        EXPECT_THROW(in.getSizeAtIndex(2), no_size_specified);
        EXPECT_EQ(in.getProfilerVectorLayout(0), layout::Vector::OnePtr);
        EXPECT_EQ(parts.rank(), 2u);
        EXPECT_EQ(parts.size(), 3u);
        EXPECT_EQ(parts[1].size(), 1u);
        EXPECT_EQ(parts.getProfilerVectorLayout(0), layout::Vector::ShortSpan);
        EXPECT_EQ(parts.getProfilerVectorLayout(1), layout::Vector::OnePtr);
        EXPECT_EQ(out.getProfilerVectorListLayout(), layout::VectorList::DeltaNElements);
        EXPECT_EQ(out.getSizeAtIndex(1), 3u);
        EXPECT_EQ(vertex.getFieldInfo("number").getInitialValue<unsigned>(target), 100u);
        EXPECT_EQ(in.getInitialValues<float>(target), (std::vector<float>{10, 20}));
        const auto work = vertex.getFieldInfo("work").getInitialValues<std::vector<unsigned short>>(target);
        EXPECT_EQ(work[1], (std::vector<unsigned short>{3, 4, 5}));
        EXPECT_THROW(out.getInitialValues<float>(target), poplar_error);
        EXPECT_THROW(vertex.getFieldInfo("nothing"), unknown_field);
        return VertexPerfEstimate(1000, 7);
      });
  EXPECT_EQ(m.graph.getPerfEstimate(m.vertex).flops, 7u);
  EXPECT_EQ(m.graph.getCycleEstimate(m.vertex), 1000u);
  // Six workers share a tile; the copies that put its fields in order come on top.
  const std::uint64_t estimated = m.cycles();
  EXPECT_GE(estimated, 6000u);
  EXPECT_LT(estimated, 6500u);
  EXPECT_EQ(calls, 3);
  m.graph.setPerfEstimate(m.vertex, 2000);  // its own stands above
  EXPECT_EQ(m.cycles(), estimated + 6000);
  m.graph.setCycleEstimate(m.vertex, 3000);
  EXPECT_EQ(m.cycles(), estimated + 12000);
  EXPECT_EQ(calls, 3);
}

TEST(PoplarEstimates, AnEmptyVectorHoldsWhatIsKnown) {
  std::stringstream source(
      "#include <poplar/Vertex.hpp>\nstruct Work : poplar::Vertex {\n"
      "  poplar::Input<poplar::VectorList<unsigned short, poplar::VectorListLayout::DELTAN>> work;\n"
      "  bool compute() { return true; }\n};\n");
  Machine m;
  m.graph.addCodelets(source);
  const Tensor constant = m.graph.addConstant<unsigned short>(UNSIGNED_SHORT, {3}, {1, 2, 3});
  m.graph.setTileMapping(constant, 0);
  VertexRef vertex = m.graph.addVertex(m.graph.addComputeSet("set"), "Work");
  m.graph.connect(vertex["work"], ArrayRef<Tensor>{constant, constant.slice(0, 0), constant.slice(2, 3)});
  using Lists = std::vector<std::vector<unsigned short>>;
  Lists seen;
  m.graph.registerPerfEstimator("Work", [&](const VertexIntrospector& introspector, const Target& target) {
    seen = introspector.getFieldInfo("work").getInitialValues<std::vector<unsigned short>>(target);
    return VertexPerfEstimate(1);
  });
  EXPECT_EQ(m.graph.getPerfEstimate(vertex).cycles, 1u);
  EXPECT_EQ(seen, (Lists{{1, 2, 3}, {}, {3}}));
  m.graph.registerPerfEstimator("Work", [&](const VertexIntrospector& introspector, const Target& target) {
    return VertexPerfEstimate(introspector.getFieldInfo("work").getInitialValue<unsigned>(target));
  });
  EXPECT_EQ(m.graph.getPerfEstimate(vertex).cycles, 1u);
  VertexRef empty = m.graph.addVertex(m.graph.addComputeSet("other"), "Work");
  m.graph.connect(empty["work"], ArrayRef<Tensor>{constant.slice(0, 0)});
  expect_throw<poplar_error>([&] { m.graph.getPerfEstimate(empty); }, "field 'work' is empty");
}

TEST(PoplarEstimates, WithoutOneThereIsNone) {
  Estimated m;
  expect_throw<missing_perf_estimate>([&] { m.graph.getPerfEstimate(m.vertex); }, "registerPerfEstimator");
}

namespace {

// Cycles of the compute set of one vertex with vectors of n elements, and what the summary says of them.
struct Counted : Machine {
  Counted(const std::string& code, std::size_t n) : Machine(4) {
    std::stringstream source("#include <poplar/Vertex.hpp>\nusing namespace poplar;\n" + code);
    graph.addCodelets(source);
    ComputeSet set = graph.addComputeSet("set");
    Tensor in = graph.addVariable(FLOAT, {n}, "in"), out = graph.addVariable(FLOAT, {n}, "out");
    graph.setTileMapping(in, 0);
    graph.setTileMapping(out, 0);
    graph.setInitialValue(in, 1.5f);
    graph.setTileMapping(graph.addVertex(set, "Counted", {{"in", in}, {"out", out}}), 0);
    Engine engine(graph, Execute(set));
    engine.loadAndRun(device);
    std::ostringstream text;
    engine.printProfileSummary(text);
    summary = text.str();
    const ProfileValue profile = engine.getExecutionProfile();
    for (const ProfileValue& step : profile["simulation"]["steps"].asVector())
      if (step["type"] == "OnTileExecute") cycles = static_cast<double>(step["computeCycles"].asUint());
  }
  std::string summary;
  double cycles = 0;
};

std::string loop(const std::string& body, const std::string& base = "Vertex",
                 const std::string& worker = {}) {
  return "struct Counted : public " + base +
         " {\n  Input<Vector<float>> in;\n  Output<Vector<float>> out;\n  bool compute(" + worker + ") {\n" +
         body + "\n    return true;\n  }\n};\n";
}

const char* const once = "for (unsigned i = 0; i < in.size(); ++i) out[i] = in[i] + 1;";

// Of a worker's thread.
double an_element(const std::string& body) {
  return (Counted(loop(body), 3000).cycles - Counted(loop(body), 1000).cycles) / (6 * 2000);
}

}  // namespace

TEST(PoplarEstimates, WithoutAnEstimatorInstructionsAreCounted) {
  const double simple = an_element(once);
  EXPECT_GE(simple, 3);  // a load, an addition, a store
  EXPECT_LE(simple, 6);  // and what closes the loop
  EXPECT_EQ(an_element("for (unsigned i = 0; i < in.size(); ++i) out[i] = in[i] * in[i] * in[i] + 1;"),
            simple + 2);
  EXPECT_GE(an_element("for (unsigned i = 0; i < in.size(); ++i) out[i] = 1 / in[i] + 1;"), simple + 3);
  // No loop, no cost of elements.
  EXPECT_EQ(an_element("out[0] = in[0] + 1;"), 0);
  EXPECT_LE(Counted(loop("out[0] = in[0] + 1;"), 1000).cycles, 6 * 20);
}

TEST(PoplarEstimates, TurnsOfTwoElementsAreHalfAsMany) {
  const char* const pairs = R"(
    const float2* from = reinterpret_cast<const float2*>(&in[0]);
    float2* to = reinterpret_cast<float2*>(&out[0]);
    const unsigned pairs = in.size() / 2;
    for (unsigned i = 0; i < pairs; ++i) to[i] = from[i] + 1.0f;)";
  const std::string vectors = "#include <ipudef.h>\n" + loop(pairs);
  const double each = (Counted(vectors, 3000).cycles - Counted(vectors, 1000).cycles) / (6 * 2000);
  EXPECT_EQ(2 * each, an_element(once));
}

TEST(PoplarEstimates, LoopsOfAKnownNumberOfTurnsAreCountedOut) {
  EXPECT_GE(an_element("for (unsigned i = 0; i < in.size(); ++i) {\n  float x = in[i];\n"
                       "  for (int k = 0; k < 100; ++k) x = x * x + 1;\n  out[i] = x;\n}"),
            200);
}

TEST(PoplarEstimates, WorkersShareTheElementsOfAMultiVertex) {
  const double of_a_worker = Counted(loop(once), 6000).cycles;
  const double shared =
      Counted(loop("for (unsigned i = worker; i < in.size(); i += numWorkers()) out[i] = in[i] + 1;",
                   "MultiVertex", "unsigned worker"),
              6000)
          .cycles;
  EXPECT_GT(shared, of_a_worker / 8);
  EXPECT_LT(shared, of_a_worker / 4);
  EXPECT_EQ(Counted(loop(once, "SupervisorVertex"), 6000).cycles, of_a_worker);
}

TEST(PoplarEstimates, ASummarySaysWhichAreCounted) {
  const std::string said = Counted(loop(once), 100).summary;
  EXPECT_NE(said.find("Counted (1 instances): "), std::string::npos) << said;
  EXPECT_NE(said.find("* no cost function: an estimate from the instructions of its code"), std::string::npos)
      << said;
  EXPECT_EQ(said.find("stand-in"), std::string::npos) << said;
}

TEST(PoplarEstimates, WhatFieldsCanHold) {
  Estimated m;
  const char* const type = "Lists<float>";
  EXPECT_EQ(m.graph.getMaxFieldDim(type, "parts", 0), 2047u);
  EXPECT_EQ(m.graph.getMaxFieldDim(type, "parts", 1), 4294967295u);
  EXPECT_EQ(m.graph.getMaxFieldDim(type, "in", 0), 4294967295u);
  EXPECT_EQ(m.graph.getMaxFieldDim(type, "out", 1), 4095u);
  EXPECT_EQ(m.graph.getMaxVertexFieldValue(type, "number"), 65535u);
  expect_throw<index_error>([&] { m.graph.getMaxFieldDim(type, "number", 0); }, "0 dimensions");
  expect_throw<unknown_field>([&] { m.graph.getMaxFieldDim(type, "none", 0); }, "none");
  expect_throw<unknown_vertex_type>([&] { m.graph.getMaxVertexFieldValue("No", "number"); }, "No");
  expect_throw<type_error>([&] { m.graph.getMaxVertexFieldValue(type, "in"); }, "float");
}

#endif
