// What atoms do to each other: from positions to energy, forces and virial, in f64. Classical potentials and
// trained models stand behind one interface; the table of them is in forces/potentials.h.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "superstep/base/thread_pool.h"
#include "superstep/file/atoms/configuration.h"
#include "superstep/md/forces/neighbours.h"
#include "superstep/physics/materials/sutton_chen.h"

namespace superstep::md {

using data::Evaluation;

// Where the atoms are. Positions may have left the box; `neighbours` belong to them.
struct Situation {
  std::span<const Cartesian> positions;  // A
  const std::optional<Cell>& cell;
  const Neighbours& neighbours;
  ThreadPool& pool;
  bool with_virial = true;
};

class ForceField {
 public:
  virtual ~ForceField() = default;
  virtual nlohmann::json parameters() const = 0;
  // Up to where it wants neighbours, A.
  virtual double cutoff() const = 0;
  // A number for each atom where atoms of one molecule are no neighbours of each other, else none.
  virtual std::vector<std::int32_t> molecules() const { return {}; }
  // Energy (eV), forces (eV/A) and, where it is asked for, the virial (eV, -dE/d(strain)). The same bits on
  // any number of threads. Numbers that are not finite are the caller's to see.
  virtual void evaluate(const Situation& situation, Evaluation& result) = 0;
  // Does a periodic box make sense to it, and open space?
  virtual bool takes_box() const { return true; }
  virtual bool takes_open_space() const { return true; }
  virtual bool gives_virial() const { return true; }
};

}  // namespace superstep::md
