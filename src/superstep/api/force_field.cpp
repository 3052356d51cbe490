#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/base/threads/processors.h"
#include "superstep/run/serve/trained_forces.h"
#include "superstep/superstep.h"

namespace superstep {
namespace {

data::Cell cell_of(const std::array<double, 9>& e) {
  if (!std::ranges::all_of(e, [](double x) { return std::isfinite(x); }))
    throw Error(ErrorCode::invalid_argument, "is not finite", "cell");
  const data::Cell cell{{e[0], e[1], e[2]}, {e[3], e[4], e[5]}, {e[6], e[7], e[8]}};
  if (cell.volume() == 0)
    throw Error(ErrorCode::invalid_argument, "a box without volume", "cell", "give none for open space");
  return cell;
}

}  // namespace

struct ForceField::Implementation {
  run::TrainedForces field;
  data::Configuration atoms;
};

ForceField::ForceField(const std::filesystem::path& run, const std::vector<int>& elements, int threads) {
  if (elements.empty()) throw Error(ErrorCode::invalid_argument, "there are no atoms", "elements");
  if (threads < 0) throw Error(ErrorCode::invalid_argument, "is below 0", "threads");
  implementation_ = std::make_unique<Implementation>(
      Implementation{.field = {run, elements, threads > 0 ? threads : default_threads()},
                     .atoms = {.elements = elements, .positions = {}, .cell = {}}});
}
ForceField::~ForceField() = default;
ForceField::ForceField(ForceField&&) noexcept = default;
ForceField& ForceField::operator=(ForceField&&) noexcept = default;

const std::vector<int>& ForceField::elements() const { return implementation_->atoms.elements; }
std::vector<int> ForceField::elements_it_knows() const { return implementation_->field.elements(); }
double ForceField::cutoff() const { return implementation_->field.cutoff(); }

Forces ForceField::evaluate(std::span<const double> positions,
                            const std::optional<std::array<double, 9>>& cell) {
  data::Configuration& atoms = implementation_->atoms;
  const std::size_t count = atoms.elements.size();
  if (positions.size() != 3 * count)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} coordinates, and {} atoms have {}", positions.size(), count, 3 * count),
                "positions");
  atoms.positions.resize(count);
  for (std::size_t i = 0; i < count; ++i)
    atoms.positions[i] = {positions[3 * i], positions[3 * i + 1], positions[3 * i + 2]};
  atoms.cell = cell ? std::optional(cell_of(*cell)) : std::nullopt;
  const data::Labels found = implementation_->field.evaluate(atoms);
  Forces answer{.energy = found.energy.value(), .forces = {}, .virial = found.virial};
  answer.forces.reserve(3 * count);
  for (const data::Cartesian& force : found.forces)
    answer.forces.insert(answer.forces.end(), {force.x, force.y, force.z});
  return answer;
}

}  // namespace superstep
