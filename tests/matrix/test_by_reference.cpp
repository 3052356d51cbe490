// Which operators a plan of the cpu target still runs by their definition, one element at a time: over random
// shapes, axes and values, forwards and backwards. The table below is to shrink; whoever adds to it says why.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "tests/matrix/built.h"
#include "tests/matrix/difference.h"
#include "tests/matrix/draw.h"

namespace superstep::matrix {
namespace {

// Operators of steps, and the forms that no kernel takes.
const std::map<std::string, std::string> by_definition = {
    {"Bernoulli", "draws as its definition says"},
    {"Dropout", "draws as its definition says"},
    {"Multinomial", "draws as its definition says"},
    {"RandomNormalLike", "draws as its definition says"},
    {"RandomUniformLike", "draws as its definition says"},
    {"BitCast", "bytes read as another type"},
    {"Clip", "limits of f32 that are no constants"},
    {"ConvInteger", "weights that are computed"},
    {"ConvTranspose", "results whose channels do not lie side by side"},
    {"DFT", "more than 256 numbers, whose sums are f64"},
    {"DequantizeLinear", "several zero points"},
    {"QuantizeLinear", "several scales or zero points"},
    {"Det", "matrices of a few rows"},
    {"LpPool", "neither a maximum nor an average"},
    {"Resize", "sizes that change nothing, or are empty"},
    {"TfIdfVectorizer", "counts of n-grams"},
    {"superstep.Adam", "an update that stands outside of a training step"},
    {"superstep.Adamax", "an update that stands outside of a training step"},
    {"superstep.RMSProp", "an update that stands outside of a training step"},
    {"superstep.Sgd", "an update that stands outside of a training step"},
    {"superstep.ConvWeightGradient", "channels that do not lie side by side"},
    {"superstep.KeptBoxes", "boxes are kept one after another"},
    {"superstep.MaxPoolGradient", "places that others read, too"},
    {"superstep.TriangularSolve", "matrices that are not dense in rows"},
};

// What every kernel said that was asked, by operator.
using Found = std::map<std::string, std::set<std::string>>;

void add_plan(const std::expected<Built, std::string>& built, Found& found) {
  if (!built) return;
  for (const target::PlanStep& step : run("cpu", *built).steps)
    if (step.kernel == target::reference_kernel)
      found[step.op].insert(step.refusals.begin(), step.refusals.end());
}

Found of_cases(const std::vector<Generator>& generators) {
  Found found;
  for (const Generator& generator : generators)
    for (const char* name : generator.operators)
      for (std::uint64_t seed = 1; seed <= static_cast<std::uint64_t>(cases_each(6)); ++seed) {
        Draw draw(seed + 9000 + own_seed(name));
        const Case item = generator.draw(draw, name);
        const bool floats = has_floats(item);
        add_plan(build(item, floats ? ElementType::f32 : item.inputs[0].type()), found);
        if (floats && item.smooth != Smooth::no) add_plan(build_gradient(item, ElementType::f32), found);
      }
  return found;
}

TEST(ByReference, NoOperatorsButThoseOfTheTable) {
  Found found;
  for (const auto generators : {elementwise_generators, product_generators, window_generators,
                                line_generators, index_generators, sequence_generators, other_generators})
    found.merge(of_cases(generators()));
  for (const auto& [op, refusals] : found) {
    std::string asked;
    for (const std::string& refusal : refusals) asked += "\n  " + refusal;
    EXPECT_TRUE(by_definition.contains(op))
        << op << " is run by its definition: give it a kernel, or a reason here" << asked;
  }
  for (const auto& [op, reason] : by_definition)
    EXPECT_TRUE(found.contains(op)) << op << " (" << reason
                                    << ") has a kernel for every case: take it out of this table";
}

}  // namespace
}  // namespace superstep::matrix
