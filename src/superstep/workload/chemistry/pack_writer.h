// Molecules as a pack of a batch.
#pragma once

#include <cstdint>
#include <span>

#include "superstep/base/tensor.h"
#include "superstep/physics/chemistry/molecule.h"

namespace superstep::workload {

// One pack of every input (x, edge_index, edge_attr where there are bonds, batch): row `row` of the tensors.
class PackWriter {
 public:
  PackWriter(std::span<Tensor> tensors, std::size_t row, bool with_bonds);
  void add(const data::Molecule& molecule);

 private:
  void add_edge(const data::Molecule& molecule, int number, bool back);

  std::span<float> x_;
  std::span<std::int64_t> edges_;
  std::span<float> bonds_;
  std::span<std::int64_t> batch_;
  std::int64_t atoms_ = 0, placed_edges_ = 0, molecules_ = 0;
};

}  // namespace superstep::workload
