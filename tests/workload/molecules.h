// What tests of networks of molecules share: molecules as inputs, tables as tasks, what must hold of what
// atoms add.
#pragma once

#include <gtest/gtest.h>

#include <fstream>

#include "superstep/physics/chemistry/molecule_features.h"
#include "superstep/physics/chemistry/smiles.h"
#include "superstep/workload/chemistry/pack_writer.h"
#include "superstep/workload/task.h"
#include "tests/scratch.h"

namespace superstep::workload {

// One pack of molecules as the first inputs of a model: x, edge_index, edge_attr where it has bonds, batch.
inline std::vector<Tensor> pack_of(const std::vector<std::string>& smiles, std::int64_t atoms,
                                   std::int64_t edges, bool with_bonds = true) {
  std::vector<Tensor> inputs{Tensor(ElementType::f32, {1, atoms, data::atom_feature_count}),
                             Tensor(ElementType::i64, {1, 2, edges})};
  if (with_bonds) inputs.emplace_back(ElementType::f32, Shape{1, edges, data::bond_feature_count});
  inputs.emplace_back(ElementType::i64, Shape{1, atoms});
  PackWriter pack(inputs, 0, with_bonds);
  for (const std::string& each : smiles) pack.add(data::parse_smiles(each));
  return inputs;
}

// What the atoms of each molecule add, summed; padding adds nothing.
inline std::vector<double> sums_of_shares(const Tensor& shares, const Tensor& batch, std::size_t molecules) {
  std::vector<double> sums(molecules);
  for (std::int64_t atom = 0; atom < batch.element_count(); ++atom)
    if (const double molecule = batch.at(atom); molecule >= 0)
      sums[static_cast<std::size_t>(molecule)] += shares.at(atom);
    else
      EXPECT_EQ(shares.at(atom), 0) << "atom " << atom;
  return sums;
}

// A file of this text, opened for a workload.
struct OpenedTable {
  const char *workload, *name;
  std::vector<std::string> options = {};
  bool labels = true;

  std::unique_ptr<Task> open(const std::string& text, ThreadPool& pool) const {
    const ScratchFolder folder;
    std::ofstream(folder / name) << text;
    return open_task(
        find_workload(workload),
        {.data = folder / name, .model_options = options, .labels_required = labels, .pool = &pool});
  }
  // What the error says, "opened" where there is none.
  std::string refusal(const std::string& text) const {
    ThreadPool pool(1);
    try {
      open(text, pool);
      return "opened";
    } catch (const Error& error) {
      return error.what();
    }
  }
};

}  // namespace superstep::workload
