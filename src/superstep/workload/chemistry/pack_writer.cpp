#include "superstep/workload/chemistry/pack_writer.h"

#include <algorithm>

#include "superstep/physics/chemistry/molecule_features.h"
#include "superstep/workload/packed_samples.h"

namespace superstep::workload {
namespace {

template <std::size_t width>
std::span<float, width> row_of_features(std::span<float> all, std::int64_t row) {
  return std::span<float, width>(all.data() + row * static_cast<std::int64_t>(width), width);
}

}  // namespace

PackWriter::PackWriter(std::span<Tensor> tensors, std::size_t row, bool with_bonds)
    : x_(row_of<float>(tensors[0], row)),
      edges_(row_of<std::int64_t>(tensors[1], row)),
      bonds_(with_bonds ? row_of<float>(tensors[2], row) : std::span<float>()),
      batch_(row_of<std::int64_t>(tensors[with_bonds ? 3 : 2], row)) {
  std::ranges::fill(x_, 0.0f);
  std::ranges::fill(bonds_, 0.0f);
  std::ranges::fill(edges_, -1);
  std::ranges::fill(batch_, -1);
}

void PackWriter::add(const data::Molecule& molecule) {
  for (int i = 0; i < molecule.atom_count(); ++i) {
    data::fill_atom_features(molecule, i, row_of_features<data::atom_feature_count>(x_, atoms_ + i));
    batch_[static_cast<std::size_t>(atoms_ + i)] = molecules_;
  }
  for (int i = 0; i < molecule.bond_count(); ++i)
    for (const bool back : {false, true}) add_edge(molecule, i, back);
  atoms_ += molecule.atom_count();
  ++molecules_;
}

void PackWriter::add_edge(const data::Molecule& molecule, int number, bool back) {
  const data::Bond& bond = molecule.bond(number);
  const std::size_t room = edges_.size() / 2, at = static_cast<std::size_t>(placed_edges_);
  edges_[at] = atoms_ + (back ? bond.b : bond.a);
  edges_[room + at] = atoms_ + (back ? bond.a : bond.b);
  if (!bonds_.empty())
    data::fill_bond_features(molecule, number,
                             row_of_features<data::bond_feature_count>(bonds_, placed_edges_));
  ++placed_edges_;
}

}  // namespace superstep::workload
