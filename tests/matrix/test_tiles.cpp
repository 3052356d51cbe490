// Operators cut into parts over the tiles of small and large machines, against the reference evaluation: over
// random shapes, axes, strides and values, forwards and backwards, in f32 and f16.
#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "superstep/bsp/engine/engine.h"
#include "superstep/op/core/definition.h"
#include "superstep/target/ipu/ipu.h"
#include "superstep/target/ipu/lower/lowering.h"
#include "superstep/target/ipu/lower/prepare.h"
#include "tests/matrix/built.h"
#include "tests/matrix/difference.h"
#include "tests/matrix/draw.h"

namespace superstep::matrix {
namespace {

// What is known when a graph is compiled, so that no vertex ever makes it; and NonMaxSuppression, whose
// number of results must be known.
const std::set<std::string_view> made_when_compiled = {
    "Constant",       "Shape",           "Size",    "Range",  "HannWindow",       "HammingWindow",
    "BlackmanWindow", "MelWeightMatrix", "NonZero", "Unique", "NonMaxSuppression"};

// Those that cannot sensibly be cut; why_whole (target/ipu/cut/cut.h) says why.
// Identity and Transpose leave nothing to run.
const std::set<std::string_view> stay_whole = {"DynamicQuantizeLinear", "Identity", "Transpose",
                                               "superstep.StochasticDepth", "superstep.KeptBoxes"};

std::vector<Tensor> outputs_of(const graph::Graph& graph) {
  std::vector<Tensor> outputs;
  for (const graph::Output& output : graph.outputs())
    outputs.emplace_back(graph.type(output.value).element, graph.type(output.value).shape);
  return outputs;
}

struct TilesRun {
  std::vector<Tensor> outputs;
  std::vector<target::ipu::LoweredStep> steps;
};

TilesRun on_tiles(const graph::Graph& graph, std::span<const Tensor> inputs, std::uint32_t tiles,
                  int threads) {
  bsp::Device machine = target::ipu::device_of("gc200");
  machine.tiles_per_ipu = tiles;
  machine.bytes_per_tile = 64u << 20;
  auto lowered = target::ipu::lower(graph, machine, target::ipu::hardware_of("gc200"));
  const bsp::Program programs[] = {lowered.program};
  bsp::Engine engine(lowered.graph, programs, {.threads = threads});
  std::vector<Tensor> outputs = outputs_of(graph);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].element_count() > 0)
      engine.connect_stream_to_callback("in:" + graph.value(graph.inputs()[i]).name, [&, i](void* data) {
        std::memcpy(data, inputs[i].bytes(), inputs[i].byte_count());
      });
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].element_count() > 0)
      engine.connect_stream_to_callback("out:" + graph.outputs()[i].name, [&, i](void* data) {
        std::memcpy(outputs[i].bytes(), data, outputs[i].byte_count());
      });
  engine.run();
  return {std::move(outputs), std::move(lowered.steps)};
}

// Does a step of the operator have several vertices, or none since it is a view? Of an operator that was
// rewritten (prepare.h), does any step?
bool is_cut(const TilesRun& run, std::string_view op) {
  const auto of_op = [&](const target::ipu::LoweredStep& step) { return step.plan.op == op; };
  const bool rewritten = std::ranges::none_of(run.steps, of_op);
  return std::ranges::any_of(run.steps, [&](const target::ipu::LoweredStep& step) {
    return (rewritten || of_op(step)) && step.plan.kernel != "one vertex";
  });
}

bool same_bits(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  for (std::size_t i = 0; i < a.size(); ++i)
    if (std::memcmp(a[i].bytes(), b[i].bytes(), a[i].byte_count()) != 0) return false;
  return true;
}

// Runs on a machine of so many tiles and compares; the same bits again on two or three threads.
TilesRun compare(const Built& built, std::uint32_t tiles, double tolerance) {
  const graph::Graph graph = target::ipu::prepare_for_tiles(built.graph);
  const std::vector<Tensor> expected = run("reference", built).outputs;
  TilesRun actual = on_tiles(graph, built.inputs, tiles, 1);
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_EQ(difference(actual.outputs[i], expected[i], tolerance), "") << "output " << i;
  const int threads = tiles % 2 == 0 ? 2 : 3;
  EXPECT_TRUE(same_bits(actual.outputs, on_tiles(graph, built.inputs, tiles, threads).outputs))
      << "on " << threads << " threads";
  return actual;
}

// Whether the operator was cut.
bool check(const Case& item, std::uint64_t seed, std::uint32_t tiles, ElementType element, bool backward) {
  SCOPED_TRACE(item.op + " of seed " + std::to_string(seed) + ", " + item.name + ", on " +
               std::to_string(tiles) + " tiles in " + name_of(element) + (backward ? ", backwards" : ""));
  try {
    const auto built = backward ? build_gradient(item, element) : build(item, element);
    if (built) return is_cut(compare(*built, tiles, (backward ? 4 : 1) * tolerance(element)), item.op);
    ADD_FAILURE() << built.error();
  } catch (const Error& error) {
    ADD_FAILURE() << error.what();
  }
  return false;
}

std::vector<std::string_view> covered() {
  std::vector<std::string_view> names;
  for (const op::Definition& definition : op::all())
    if (definition.evaluate && !made_when_compiled.contains(definition.name))
      names.push_back(definition.name);
  return names;
}

class Tiles : public ::testing::TestWithParam<std::string_view> {};

TEST_P(Tiles, AreAsTheReference) {
  const Generator* generator = generator_of(GetParam());
  ASSERT_NE(generator, nullptr) << "draw cases of it: tests/matrix/draw.h";
  const std::string name(GetParam());
  bool cut = stay_whole.contains(GetParam());
  for (std::uint64_t seed = 1; seed <= static_cast<std::uint64_t>(cases_each(4)); ++seed) {
    Draw draw(seed + own_seed(name));
    const Case item = generator->draw(draw, name.c_str());
    const std::uint32_t tiles = draw.one_of({3u, 7u, 16u, 64u, 64u, 1472u});
    const ElementType element = !has_floats(item) ? item.inputs[0].type()
                                : seed % 3 == 0   ? ElementType::f16
                                                  : ElementType::f32;
    cut = check(item, seed, tiles, element, false) || cut;
    if (item.smooth != Smooth::no && has_floats(item)) check(item, seed, tiles, element, true);
  }
  EXPECT_TRUE(cut) << "none of the cases was cut: give the operator a rule, or name it in stay_whole";
}

INSTANTIATE_TEST_SUITE_P(Operators, Tiles, ::testing::ValuesIn(covered()), [](const auto& instance) {
  std::string name(instance.param);
  std::ranges::replace(name, '.', '_');
  return name;
});

// The control: a difference of some roundings is one.
TEST(TilesCheck, NoticesAnElementThatIsOff) {
  Tensor expected = op::test::random_tensor({3, 4}, 1).converted(ElementType::f32), off = expected.clone();
  EXPECT_EQ(difference(off, expected, tolerance(ElementType::f32)), "");
  off.set(5, off.at(5) + 1e-4 * largest(expected));
  EXPECT_NE(difference(off, expected, tolerance(ElementType::f32)), "");
}

}  // namespace
}  // namespace superstep::matrix
