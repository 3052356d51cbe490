// The graph networks of polymers: what must not change when a molecule is written otherwise or packed
// otherwise, what the adjacency of known graphs is, what is refused.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "superstep/base/random.h"
#include "superstep/op/core/evaluate.h"
#include "tests/contains.h"
#include "tests/workload/molecules.h"

namespace superstep::workload {
namespace {

using data::Molecule;

const std::vector<std::string> small = {"atoms=24", "edges=56", "polymers=4", "width=12"};

// Polymers one behind the other in one pack, as the model reads them.
struct Pack {
  Tensor x{ElementType::f32, {1, 24, data::atom_feature_count}};
  Tensor edges = Tensor::full(ElementType::i64, {1, 2, 56}, -1);
  Tensor bonds{ElementType::f32, {1, 56, data::bond_feature_count}};
  Tensor batch = Tensor::full(ElementType::i64, {1, 24}, -1);
  int atoms = 0, used = 0, polymers = 0;

  // Atom i of the molecule in place order[i] of the pack, behind the atoms that are there.
  void add(const Molecule& molecule, std::vector<int> order = {}) {
    if (order.empty()) {
      order.resize(static_cast<std::size_t>(molecule.atom_count()));
      std::iota(order.begin(), order.end(), 0);
    }
    const auto place = [&](int atom) { return atoms + order[static_cast<std::size_t>(atom)]; };
    for (int i = 0; i < molecule.atom_count(); ++i) {
      data::fill_atom_features(
          molecule, i,
          std::span<float, data::atom_feature_count>(
              x.as<float>().data() + place(i) * data::atom_feature_count, data::atom_feature_count));
      batch.set(place(i), polymers);
    }
    for (int b = molecule.bond_count() - 1; b >= 0; --b)  // in another order than the task writes them
      for (const bool back : {false, true}) {
        const data::Bond& bond = molecule.bond(b);
        edges.set(used, place(back ? bond.b : bond.a));
        edges.set(56 + used, place(back ? bond.a : bond.b));
        data::fill_bond_features(
            molecule, b,
            std::span<float, data::bond_feature_count>(
                bonds.as<float>().data() + used * data::bond_feature_count, data::bond_feature_count));
        ++used;
      }
    atoms += molecule.atom_count();
    ++polymers;
  }

  std::vector<Tensor> inputs(bool with_bonds) const {
    return with_bonds ? std::vector<Tensor>{x, edges, bonds, batch} : std::vector<Tensor>{x, edges, batch};
  }
};

Pack polymers(const std::vector<std::string>& smiles) {
  Pack pack;
  for (const std::string& each : smiles) pack.add(data::parse_smiles(each));
  return pack;
}

class PolymerNetwork : public ::testing::TestWithParam<const char*> {
 protected:
  bool with_bonds() const { return std::string(GetParam()) == "polymer-mpnn"; }
  graph::Graph model() const { return build_model(find_workload(GetParam()), 1, small); }
  // Tg_K [4] and contribution [24].
  std::vector<Tensor> run(const Pack& pack) const {
    return op::evaluate(model(), pack.inputs(with_bonds())).outputs;
  }
};

TEST_P(PolymerNetwork, DoesNotSeeHowAtomsAreNumbered) {
  const Molecule molecule = data::parse_smiles("*CC(*)(C)C(=O)OCc1ccccc1");
  Pack plain, turned;
  plain.add(molecule);
  std::vector<int> order(static_cast<std::size_t>(molecule.atom_count()));
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>((4 * i + 3) % order.size());
  turned.add(molecule, order);
  const auto a = run(plain), b = run(turned);
  EXPECT_NEAR(a[0].at(0), b[0].at(0), 1e-6 * a[0].at(0));
  for (std::size_t i = 0; i < order.size(); ++i)
    EXPECT_NEAR(a[1].at(static_cast<std::int64_t>(i)), b[1].at(order[i]), 1e-6);
}

TEST_P(PolymerNetwork, DoesNotSeeWhatIsInThePackBeside) {
  const double alone = run(polymers({"*CC(*)c1ccccc1"}))[0].at(0);
  const Tensor among = run(polymers({"*CO*", "*CC(*)c1ccccc1", "*CC(*)Cl"}))[0];
  EXPECT_NEAR(among.at(1), alone, 1e-6 * alone);
  EXPECT_GT(std::abs(among.at(0) - alone), 1e-4 * alone);
  // An empty place says what the network says of nothing.
  EXPECT_NEAR(among.at(3), run(Pack())[0].at(0), 1e-6);
}

// At first biases are zero: all that there is comes from atoms.
TEST_P(PolymerNetwork, SharesOfAtomsAddUpToTheLogarithm) {
  const Pack pack = polymers({"*CC(*)c1ccccc1", "*CC(*)(C)C(=O)OC"});
  const auto out = run(pack);
  const std::vector<double> sums = sums_of_shares(out[1], pack.batch, 2);
  for (std::int64_t polymer = 0; polymer < 2; ++polymer)
    EXPECT_NEAR(sums[static_cast<std::size_t>(polymer)], std::log(out[0].at(polymer)), 1e-5);
}

// Bonds are features of the message passing network alone.
TEST_P(PolymerNetwork, ReadsBondsIfItSaysSo) {
  Pack pack = polymers({"*CC(*)C=C"});
  const double before = run(pack)[0].at(0);
  pack.bonds = Tensor(ElementType::f32, pack.bonds.shape());
  EXPECT_EQ(std::abs(run(pack)[0].at(0) - before) > 1e-6, with_bonds());
}

INSTANTIATE_TEST_SUITE_P(Networks, PolymerNetwork, ::testing::Values("polymer-gcn", "polymer-mpnn"),
                         [](const auto& each) {
                           return std::string(each.param) == "polymer-gcn" ? "gcn" : "mpnn";
                         });

// The weights of the edges that the first layer adds over.
Tensor adjacency(const Pack& pack, bool self_loops) {
  std::vector<std::string> options = small;
  options.push_back(self_loops ? "self-loops=yes" : "self-loops=no");
  graph::Graph model = build_model(find_workload("polymer-gcn"), 1, options);
  for (const graph::Node& node : model.nodes())
    if (node.op == "superstep.SparseProduct") {
      model.add_output("weights", node.inputs[3]);
      break;
    }
  return op::evaluate(model, pack.inputs(false)).outputs.back();
}

// Every atom of a ring has two neighbours: 1 / sqrt(2 * 2), or with itself 1 / sqrt(3 * 3).
TEST(PolymerGcn, TheAdjacencyOfARingIsOneHalf) {
  const Pack ring = polymers({"C1CCCCC1"});
  const Tensor plain = adjacency(ring, false), looped = adjacency(ring, true);
  for (std::int64_t edge = 0; edge < 12; ++edge) {
    EXPECT_NEAR(plain.at(edge), 0.5, 1e-6);
    EXPECT_NEAR(looped.at(edge), 1.0 / 3, 1e-6);
  }
  for (std::int64_t edge = 12; edge < 56; ++edge) EXPECT_EQ(plain.at(edge), 0);
  for (std::int64_t atom = 0; atom < 24; ++atom)
    EXPECT_NEAR(looped.at(56 + atom), atom < 6 ? 1.0 / 3 : 0.0, 1e-6);
}

TEST(PolymerGcn, HasItsParametersWithOtherWidths) {
  const auto count = [](const char* name, std::vector<std::string> options) {
    return count_parameters(build_model(find_workload(name), 1, options));
  };
  EXPECT_EQ(count("polymer-gcn", {}), 63617);
  EXPECT_EQ(count("polymer-gcn", {"self-loops=no"}), 63617);
  // 36 * 8 + 8 + 2 * 8, 8 * 64 + 64, 64 + 1
  EXPECT_EQ(count("polymer-gcn", {"layers=1", "width=8"}), 312 + 576 + 65);
  // (3 * 36 + 6 + 1) * 8 + 2 * 8, and the same
  EXPECT_EQ(count("polymer-mpnn", {"layers=1", "width=8"}), 936 + 576 + 65);
}

// --- data

const OpenedTable table{"polymer-gcn", "polymers.csv"}, unlabelled{"polymer-gcn", "polymers.csv", {}, false};

TEST(PolymerData, MergesMeasurementsOfOnePolymer) {
  ThreadPool pool(1);
  // The same polymer written from either end, 200 K and 800 K; one that was never measured.
  const auto task = table.open("smiles,Tg_K\n*CC(*)c1ccccc1,200\n*C(c1ccccc1)C*,800\n*CO*,-3\n", pool);
  const auto about = task->describe();
  EXPECT_EQ(about.at("polymers"), 1);
  EXPECT_EQ(about.at("left_out"), 1);
  const std::vector<std::int64_t> all{0};
  std::vector<Tensor> outputs{Tensor::full(ElementType::f32, {1, 24}, 400),
                              Tensor(ElementType::f32, {1, 256})};
  EXPECT_NEAR(task->quality(all, outputs)[1].value, 0, 1e-3);  // the mean error beside sqrt(200 * 800)
}

TEST(PolymerData, NamesTheLineAndTheCharacterOfABadMolecule) {
  const std::string bad = table.refusal("smiles,Tg_K\n*CO*,220\n*CC(*c1ccccc1,373\n");
  EXPECT_TRUE(contains(bad, "polymers.csv, line 3")) << bad;
  EXPECT_TRUE(contains(bad, "*CC(*c1ccccc1")) << bad;
  EXPECT_TRUE(contains(table.refusal("smiles,Tg\n*CO*,220\n"), "Tg_K"));
  EXPECT_TRUE(contains(table.refusal("smiles,Tg_K\n*CO*,nan\n"), "has no polymer with a temperature"));
  const std::string large =
      OpenedTable{"polymer-gcn", "polymers.csv", {"atoms=8"}}.refusal("smiles,Tg_K\n*CC(*)c1ccccc1,373\n");
  EXPECT_TRUE(contains(large, "has 10 atoms and 10 bonds, there is room for 8 and 288")) << large;
}

TEST(PolymerData, NeedsNoTemperaturesToServe) {
  ThreadPool pool(1);
  const auto task = unlabelled.open("name,smiles\nacetal,*CO*\nstyrene,*CC(*)c1ccccc1\n", pool);
  EXPECT_EQ(task->size(), 1);
  EXPECT_EQ(task->training_count(), 0);
  EXPECT_FALSE(task->has_labels());
}

// Each polymer is held out in one fold, and learnt from in the other four.
TEST(PolymerData, FoldsShareThePolymers) {
  ThreadPool pool(2);
  const auto about = [&](int fold) {
    return open_task(find_workload("polymer-gcn"),
                     {.samples = 300, .model_options = {"fold=" + std::to_string(fold)}, .pool = &pool})
        ->describe();
  };
  std::int64_t held_out = 0, polymers = 0;
  for (int fold = 1; fold <= 5; ++fold) {
    const auto each = about(fold);
    polymers = each.at("polymers").get<std::int64_t>();
    held_out += polymers - each.at("training_polymers").get<std::int64_t>();
  }
  EXPECT_GT(polymers, 250);
  EXPECT_EQ(held_out, polymers);
}

// What the packing changes from epoch to epoch are places, not polymers.
TEST(PolymerData, AnEpochHasEveryPolymerOnce) {
  ThreadPool pool(2);
  const auto task =
      open_task(find_workload("polymer-gcn"),
                {.samples = 400, .model_options = {"atoms=64", "edges=144", "polymers=4"}, .pool = &pool});
  const auto temperatures = [&](std::uint64_t epoch, bool augment) {
    std::vector<double> all;
    std::vector<Tensor> tensors;
    for (const graph::ValueType& type : {graph::ValueType{ElementType::f32, {1, 64, 36}},
                                         {ElementType::i64, {1, 2, 144}},
                                         {ElementType::i64, {1, 64}},
                                         {ElementType::f32, {1, 4}},
                                         {ElementType::f32, {1, 4}}})
      tensors.emplace_back(type.element, type.shape);
    for (std::int64_t pack = 0; pack < task->training_count(); ++pack) {
      task->fill(std::span(&pack, 1), epoch, augment, tensors);
      for (std::int64_t i = 0; i < 4; ++i) all.push_back(tensors[3].at(i));
    }
    return all;
  };
  auto first = temperatures(1, true), second = temperatures(2, true), fixed = temperatures(3, false);
  EXPECT_NE(first, second);
  for (auto* each : {&first, &second, &fixed}) std::ranges::sort(*each);
  EXPECT_EQ(first, second);
  EXPECT_EQ(first, fixed);
}

}  // namespace
}  // namespace superstep::workload
