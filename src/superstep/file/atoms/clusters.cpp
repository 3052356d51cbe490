#include "superstep/file/atoms/clusters.h"

#include <fmt/format.h>

#include <cmath>

#include "superstep/base/error.h"
#include "superstep/file/atoms/element.h"

namespace superstep::data {
namespace {

constexpr double one_place = 1e-3;  // A; chosen: no two nuclei of anything come within a hundred times that

[[noreturn]] void refuse(const std::string& place, const std::string& message, const std::string& hint = {}) {
  throw Error(ErrorCode::bad_file, message, place, hint);
}

}  // namespace

std::string atom_name(const Configuration& atoms, std::size_t atom) {
  return fmt::format("{} ({})", atom + 1, element_symbol(atoms.elements[atom]));
}

void require_cluster(const Configuration& atoms, const std::string& place) {
  const auto& positions = atoms.positions;
  if (atoms.elements.empty()) refuse(place, "has no atoms");
  if (atoms.cell)
    refuse(place, "has a periodic box: clusters are in open space",
           "leave Lattice away, or say pbc=\"F F F\"");
  for (std::size_t i = 0; i < positions.size(); ++i) {
    if (atoms.elements[i] < 1 || atoms.elements[i] > element_count)
      refuse(place, fmt::format("atom {} is of element {}: there is none", i + 1, atoms.elements[i]));
    if (!std::isfinite(norm(positions[i])))
      refuse(place, fmt::format("atom {} has coordinates that are not finite", atom_name(atoms, i)));
    for (std::size_t j = 0; j < i; ++j)
      if (norm(positions[i] - positions[j]) < one_place)
        refuse(place,
               fmt::format("atoms {} and {} are at one place", atom_name(atoms, j), atom_name(atoms, i)));
  }
}

void require_energy(const std::optional<double>& energy, const std::string& place) {
  if (!energy) refuse(place, "has no energy to learn from", "energy=... belongs into the second line, in eV");
  if (!std::isfinite(*energy)) refuse(place, "its energy is not finite");
}

}  // namespace superstep::data
