// The sums of a force field over atoms, shared by threads: blocks of atoms, added up in their order, so that
// the bits are the same on any number of threads.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "superstep/md/forces/force_field.h"
#include "superstep/md/forces/pair_loops.h"

namespace superstep::md {

class AtomBlocks {
 public:
  static constexpr std::int64_t block = 32;  // atoms: some tens of microseconds of work

  // Forces of `result` are zero and its sums empty, for the atoms of the situation.
  void begin(const Situation& situation, Evaluation& result) {
    count_ = static_cast<std::int64_t>(situation.positions.size());
    result.energy = 0;
    result.virial = {};
    result.forces.assign(situation.positions.size(), {});
    energies_.assign(situation.positions.size(), 0.0);
    virials_.assign(static_cast<std::size_t>(blocks()), {});
  }

  // `work`(range) for every block of atoms.
  template <class Work>
  void each(const Situation& situation, Evaluation& result, const Work& work) {
    situation.pool.parallel_for(blocks(), [&](std::int64_t item, int) {
      work(AtomRange{situation.neighbours, static_cast<std::size_t>(item * block),
                     static_cast<std::size_t>(std::min(count_, (item + 1) * block)), energies_.data(),
                     result.forces.data(),
                     situation.with_virial ? virials_[static_cast<std::size_t>(item)].data() : nullptr});
    });
  }

  void finish(Evaluation& result) const {
    for (const double energy : energies_) result.energy += energy;
    std::array<double, 6> sum{};
    for (const auto& each : virials_)
      for (std::size_t k = 0; k < 6; ++k) sum[k] += each[k];
    const std::array<std::size_t, 9> places{0, 5, 4, 5, 1, 3, 4, 3, 2};
    for (std::size_t k = 0; k < 9; ++k) result.virial[k] += sum[places[k]];
  }

  std::vector<double>& energies() { return energies_; }

 private:
  std::int64_t blocks() const { return (count_ + block - 1) / block; }

  std::int64_t count_ = 0;
  std::vector<double> energies_;
  std::vector<std::array<double, 6>> virials_;
};

}  // namespace superstep::md
