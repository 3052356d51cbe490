// The network of yields: pairs of atoms, what must not change its answers, what is read and what is refused.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "superstep/op/core/evaluate.h"
#include "superstep/physics/generator.h"
#include "superstep/workload/chemistry/yieldgnn/yieldgnn.h"
#include "tests/contains.h"
#include "tests/workload/molecules.h"

namespace superstep::workload {
namespace {

const std::vector<std::string> small = {"atoms=32", "edges=72", "reactions=3", "largest=20", "width=8"};
constexpr std::int64_t atoms = 32;

std::vector<Tensor> inputs_of(const Task& task, const graph::Graph& model, ThreadPool& pool) {
  std::vector<Tensor> inputs;
  for (const graph::ValueId id : model.inputs())
    inputs.emplace_back(model.type(id).element, model.type(id).shape);
  std::vector<std::int64_t> all(static_cast<std::size_t>(task.size()));
  std::iota(all.begin(), all.end(), std::int64_t{0});
  task.fill_inputs(all, inputs, pool);
  return inputs;
}

// What the untrained network says of reactions that are all in one pack: yield [1, 3], contribution [1, 32],
// and the pairs that it attends to.
struct Answer {
  std::vector<Tensor> inputs, outputs;
  Tensor first, second;
};
Answer run(const std::string& text, const char* name = "in.csv") {
  ThreadPool pool(1);
  const auto task = OpenedTable{"yieldgnn", name, small, false}.open(text, pool);
  graph::Graph model = build_model(find_workload("yieldgnn"), task->size(), small);
  const std::size_t outputs = model.outputs().size();
  for (const graph::Node& node : model.nodes())
    if (node.op == "superstep.SparseProduct") {
      model.add_output("first", node.inputs[2]);
      model.add_output("second", node.inputs[1]);
      break;
    }
  Answer result{.inputs = inputs_of(*task, model, pool), .outputs = {}, .first = {}, .second = {}};
  result.outputs = op::evaluate(model, result.inputs).outputs;
  result.first = result.outputs[outputs], result.second = result.outputs[outputs + 1];
  return result;
}

const std::string header = "id,reactant_smiles,solvent_smiles,base_smiles\n";

// The part of the yield that comes from the graph, of each reaction.
std::vector<double> graph_shares(const Answer& found) {
  return sums_of_shares(found.outputs[1], found.inputs[3], 3);
}

TEST(Yieldgnn, HasItsParameters) {
  EXPECT_EQ(count_parameters(build_model(find_workload("yieldgnn"), 1)), 331286);
  EXPECT_EQ(count_parameters(build_model(find_workload("yieldgnn"), 1, std::vector<std::string>{"atoms=64"})),
            331286);
  // With a layer behind the descriptors: 280 * 16 + 16 and 16 + 1 in place of 280 + 1.
  EXPECT_EQ(count_parameters(build_model(find_workload("yieldgnn"), 1, std::vector<std::string>{"chem=16"})),
            331286 + 4496 + 17 - 281);
}

// Every pair of atoms of one reaction once, and no other.
TEST(Yieldgnn, AttendsToAllPairsOfOneReaction) {
  const Answer found = run(header + "a,Clc1ccccc1.OB(O)C,CO,[F-]\nb,CBr,C,\nc,Br,,\n");
  const Tensor& batch = found.inputs[3];
  std::set<std::pair<std::int64_t, std::int64_t>> pairs, expected;
  for (std::int64_t p = 0; p < found.first.element_count(); ++p) {
    const auto i = static_cast<std::int64_t>(found.first.at(p)),
               j = static_cast<std::int64_t>(found.second.at(p));
    ASSERT_EQ(i < 0, j < 0);
    if (i < 0) continue;
    EXPECT_TRUE(pairs.emplace(i, j).second) << "twice: " << i << " " << j;
  }
  for (std::int64_t i = 0; i < atoms; ++i)
    for (std::int64_t j = i; j < atoms; ++j)
      if (batch.at(i) >= 0 && batch.at(i) == batch.at(j)) expected.emplace(i, j);
  EXPECT_EQ(expected.size(), 14u * 15 / 2 + 3 * 4 / 2 + 1);
  EXPECT_EQ(pairs, expected);
}

TEST(Yieldgnn, DoesNotSeeTheOrderOfMolecules) {
  const Answer found = run(header + "a,Clc1ccccc1.OB(O)C,CO,[F-]\nb,OB(O)C.Clc1ccccc1,[F-],CO\nc,CBr,C,\n");
  const std::vector<double> shares = graph_shares(found);
  EXPECT_NEAR(shares[0], shares[1], 1e-6 * std::max(1.0, std::abs(shares[0])));
  EXPECT_GT(std::abs(shares[0] - shares[2]), 1e-4);
  // Descriptors have roles.
  EXPECT_EQ(found.outputs[0].shape(), (Shape{1, 3}));
}

TEST(Yieldgnn, DoesNotSeeWhatIsInThePackBeside) {
  const Answer alone = run(header + "a,Clc1ccccc1.OB(O)C,CO,[F-]\n"),
               among = run(header + "a,Clc1ccccc1.OB(O)C,CO,[F-]\nb,CCBr,C,\nc,CI,,\n");
  EXPECT_NEAR(graph_shares(alone)[0], graph_shares(among)[0], 1e-6 * std::abs(graph_shares(alone)[0]) + 1e-7);
}

// A single atom without bonds: nothing is heard, a_11 local_1 is zero, and the score that of its bias.
TEST(Yieldgnn, AnAtomAloneHearsItself) {
  const Answer found = run(header + "a,Br,,\n");
  EXPECT_EQ(found.first.at(0), 0);
  EXPECT_EQ(found.second.at(0), 0);
  EXPECT_EQ(found.first.at(1), -1);
}

TEST(YieldData, StandardisesByWhatTrainingHas) {
  ThreadPool pool(2);
  const auto task = open_task(find_workload("yieldgnn"), {.samples = 300, .pool = &pool});
  const std::vector<std::string> none;
  const auto fitted = fitted_standardisation(*task, Options(yield_options(), none), pool);
  const Tensor &mean = fitted.at(descriptor_mean), &inverse = fitted.at(descriptor_inverse);
  // The molar mass of the solvent: of four solvents, in g/mol.
  const std::int64_t mass = 4 * data::role_descriptor_count + 6;
  EXPECT_NEAR(mean.at(mass) / millionths, (41.05 + 72.11 + 73.09 + 32.04) / 4, 4);
  EXPECT_NEAR(millionths / inverse.at(mass), 18, 3);
  // No solvent has a seventh atom: what never varies has no weight.
  EXPECT_EQ(inverse.at(mass + 2 + 2 * 6), 0);
}

TEST(YieldData, SplitsDifferAndEachIsSeventyToThirty) {
  ThreadPool pool(2);
  const auto known = [&](const char* split) {
    const auto task =
        open_task(find_workload("yieldgnn"), {.samples = 1000, .model_options = {split}, .pool = &pool});
    return task->describe().at("training_reactions").get<int>();
  };
  EXPECT_NEAR(known("split=1"), 700, 50);
  EXPECT_NE(known("split=1"), known("split=2"));
}

const OpenedTable table{"yieldgnn", "yields.csv"}, list{"yieldgnn", "in.json"};

TEST(YieldData, NamesTheLineAndTheCharacter) {
  const std::string with_yield = "yield,reactant_smiles,solvent_smiles,base_smiles\n";
  EXPECT_EQ(table.refusal(with_yield + "50,CBr.OB(O)C,CO,[F-]\n"), "opened");
  const std::string bad = table.refusal(with_yield + "50,CBr.OB(O)C,CO,[F-]\n60,CBr.OBQ,CO,\n");
  EXPECT_TRUE(contains(bad, "yields.csv, line 3")) << bad;
  EXPECT_TRUE(contains(bad, "character 3")) << bad;
  EXPECT_TRUE(
      contains(table.refusal(with_yield + "150,CBr,CO,\n"), "a yield of 150 is not between 0 and 100"));
  EXPECT_TRUE(contains(table.refusal(with_yield + ",CBr,CO,\n"), "has no yield to learn from"));
  EXPECT_TRUE(contains(table.refusal(with_yield + "5,,CO,\n"), "has no reactant"));
  EXPECT_TRUE(contains(table.refusal("yield,smiles\n1,C\n"), "reactant_smiles"));
  EXPECT_TRUE(
      contains(OpenedTable{"yieldgnn", "yields.csv", {"largest=3"}}.refusal(with_yield + "5,CCCCBr,CO,\n"),
               "has 7 atoms and 5 bonds, there is room for 3 and 280"));
}

TEST(YieldData, ReadsJsonWithItsDescriptors) {
  const std::string text =
      R"([{"id": 7, "yield": 40, "reactants": [{"category": "nucleophile", "smiles": "OB(O)C"},
          {"category": "electrophile", "smiles": "CBr", "HOMO_energy": -9.5,
           "atoms": [{"nmr_shift": 1, "partial_charge": 2}, {"nmr_shift": 3, "partial_charge": 4}]}],
          "base": {"smiles": ""}, "solvent": {"smiles": "CO"}}])";
  ThreadPool pool(1);
  const auto task = OpenedTable{"yieldgnn", "in.json", {}, false}.open(text, pool);
  const graph::Graph model = build_model(find_workload("yieldgnn"), 1);
  const Tensor desc = inputs_of(*task, model, pool)[4];
  EXPECT_FLOAT_EQ(static_cast<float>(desc.at(0)), -9.5f);  // of the electrophile, which came second
  EXPECT_EQ(desc.at(8), 4);                                // by falling charge
  EXPECT_EQ(desc.at(9), 3);
  EXPECT_EQ(desc.at(10), 2);
  EXPECT_TRUE(contains(list.refusal("{}"), "is no JSON list"));
  EXPECT_TRUE(contains(list.refusal("[{}]"), "in.json, reaction 1"));
  EXPECT_TRUE(contains(list.refusal(R"([{"reactants": [{"smiles": "CBr", "atoms": [{}]}]}])"),
                       "1 atoms are described, 'CBr' has 2"));
}

// The three forms of one file hold the same reactions.
TEST(YieldData, FormsOfAFileAgree) {
  const ScratchFolder folder;
  ThreadPool pool(2);
  const data::GeneratorEntry& entry = data::find_generator("yieldgnn");
  const std::vector<std::string> none;
  const graph::Graph model = build_model(find_workload("yieldgnn"), 12);
  std::vector<std::vector<Tensor>> read;
  for (const char* name : {"y.h5", "y.csv", "y.json"}) {
    entry.make(Options(entry.options, none))->write({folder / name, 1, 40, &pool});
    const auto task = open_task(find_workload("yieldgnn"), {.data = folder / name, .pool = &pool});
    ASSERT_GE(task->size(), 12);
    std::vector<std::int64_t> twelve(12);
    std::iota(twelve.begin(), twelve.end(), std::int64_t{0});
    auto& inputs = read.emplace_back();
    for (const graph::ValueId id : model.inputs())
      inputs.emplace_back(model.type(id).element, model.type(id).shape);
    task->fill_inputs(twelve, inputs, pool);
  }
  for (const std::size_t other : {1u, 2u})
    for (std::size_t t = 0; t < read[0].size(); ++t)
      for (std::int64_t i = 0; i < read[0][t].element_count(); ++i)
        ASSERT_NEAR(read[0][t].at(i), read[other][t].at(i), 1e-4) << other << " " << t << " " << i;
}

}  // namespace
}  // namespace superstep::workload
