// What codelets include of a tile's compiler, where it has a meaning in plain C++.
#include <cmath>
#include <cstdlib>
#include <pvti/pvti.hpp>

#include "tests/poplar/machine.h"

using namespace poplar;
using namespace poplar::program;

#ifdef POPC

namespace {

struct One : Machine {
  One(const std::string& body, const Type& type, std::vector<float> inputs) {
    std::stringstream source(
        "#include <poplar/Vertex.hpp>\n#include <ipudef.h>\n#include <ipu_memory_intrinsics>\n"
        "#include <ipu_vector_math>\nusing namespace poplar;\n"
        "struct V : public Vertex {\n  Input<Vector<" +
        type.toString() + ", VectorLayout::SPAN, 8>> in;\n  Output<Vector<" + type.toString() +
        ", VectorLayout::SPAN, 8>> out;\n  bool compute() {\n" + body + "    return true;\n  }\n};\n");
    graph.addCodelets(source);
    set = graph.addComputeSet("set");
    Tensor in = variable(type, {inputs.size()}, "in"), whole = variable(type, {inputs.size()}, "out");
    graph.setInitialValue(in, ArrayRef<float>(inputs));
    graph.setTileMapping(graph.addVertex(set, "V", {{"in", in}, {"out", whole}}), 0);
    out = whole;
  }
  ComputeSet set;
  Tensor out;
};

}  // namespace

TEST(PoplarIntrinsics, PointersGoOnByTheirStep) {
  One m(R"(
    const float2* from = reinterpret_cast<const float2*>(&in[0]);
    float2* to = reinterpret_cast<float2*>(&out[0]);
    const float2 first = ipu::load_postinc(&from, 2);
    const float2 third = ipu::load_postinc(&from, -1);
    const float2 second = ipu::load_postinc(&from, 1);
    ipu::store_postinc(&to, third, 1);
    ipu::store_postinc(&to, first, 1);
    *to = second;
)",
        FLOAT, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(m.run<float>(Execute(m.set), m.out), (std::vector<float>{5, 6, 1, 2, 3, 4}));
}

TEST(PoplarIntrinsics, FunctionsAreOfNumbersAndOfVectors) {
  One m(R"(
    const float4 x = *reinterpret_cast<const float4*>(&in[0]);
    *reinterpret_cast<float4*>(&out[0]) = ipu::fabs(x);
    const float2 y = {in[4], in[5]};
    *reinterpret_cast<float2*>(&out[4]) = ipu::fmax(ipu::sqrt(y), ipu::rsqrt(y));
    out[6] = ipu::sigmoid(in[6]);
    out[7] = ipu::pow(in[7], in[7]);
)",
        FLOAT, {-1, 2, -3, 4, 0.25f, 16, 0, 3});
  EXPECT_EQ(m.run<float>(Execute(m.set), m.out), (std::vector<float>{1, 2, 3, 4, 2, 4, 0.5f, 27}));
}

TEST(PoplarIntrinsics, HalvesAreRoundedOnce) {
  One m(R"(
    const half4 x = *reinterpret_cast<const half4*>(&in[0]);
    *reinterpret_cast<half4*>(&out[0]) = ipu::exp(x);
    out[4] = ipu::exp(in[4]);
)",
        HALF, {0, 1, 2, -1, 3});
  std::vector<std::uint16_t> bits = m.run<std::uint16_t>(Execute(m.set), m.out);
  std::vector<float> values(bits.size());
  copyDeviceHalfToFloat(m.graph.getTarget(), bits.data(), values.data(), bits.size());
  const std::vector<float> wanted{1, std::exp(1.0f), std::exp(2.0f), std::exp(-1.0f), std::exp(3.0f)};
  for (std::size_t i = 0; i < wanted.size(); ++i)
    EXPECT_LE(std::abs(values[i] - wanted[i]), std::ldexp(wanted[i], -11)) << i;  // half a last place
}

#endif

TEST(PoplarIntrinsics, TracesAreLegal) {
  pvti::TraceChannel channel{"phases"};
  const pvti::Tracepoint scope(&channel, "all");
  pvti::Tracepoint::begin(&channel, "one");
  pvti::Tracepoint::end(&channel, "one");
  pvti::Tracepoint::event(&channel, "then");
  EXPECT_EQ(channel.name(), "phases");
}
