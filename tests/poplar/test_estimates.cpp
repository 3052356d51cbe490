// Estimators of cost: what they see of a vertex, and that its cycles are theirs.
#include <sstream>

#include "tests/poplar/machine.h"

using namespace poplar;
using namespace poplar::program;

#ifdef POPC

namespace {

const bool environment_is_set = [] {
  setenv("SUPERSTEP_POPC", POPC, 1);
  setenv("SUPERSTEP_HOME", POPLAR_TEST_HOME, 1);
  return true;
}();

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
  // Six workers share a tile; the copies that put its fields in order come on top.
  const std::uint64_t estimated = m.cycles();
  EXPECT_GE(estimated, 6000u);
  EXPECT_LT(estimated, 6500u);
  EXPECT_EQ(calls, 2);
  m.graph.setPerfEstimate(m.vertex, 2000);  // its own stands above
  EXPECT_EQ(m.cycles(), estimated + 6000);
  EXPECT_EQ(calls, 2);
}

TEST(PoplarEstimates, WithoutOneThereIsNone) {
  Estimated m;
  expect_throw<missing_perf_estimate>([&] { m.graph.getPerfEstimate(m.vertex); }, "registerPerfEstimator");
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
