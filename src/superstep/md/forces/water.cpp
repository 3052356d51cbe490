#include "superstep/md/forces/water.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "superstep/base/error.h"
#include "superstep/file/atoms/element.h"
#include "superstep/md/forces/atom_blocks.h"
#include "superstep/physics/materials/atomic_units.h"
#include "superstep/physics/materials/neighbor_list.h"

namespace superstep::md {
namespace {

constexpr double longest_bond = 1.35;  // A: between the bonds of a molecule and those to the next one

using Molecule = std::array<std::size_t, 3>;  // oxygen, hydrogen, hydrogen

void require_water(const data::Configuration& start) {
  for (std::size_t i = 0; i < start.elements.size(); ++i)
    if (start.elements[i] != 1 && start.elements[i] != 8)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("atom {} is {}: this potential knows water alone", i + 1,
                              data::element_symbol(start.elements[i])),
                  "spc-fw");
}

std::vector<Molecule> find_molecules(data::Configuration& start) {
  require_water(start);
  const std::size_t none = start.elements.size();
  std::vector<std::size_t> oxygen_of(none, none);
  std::vector<std::vector<std::size_t>> hydrogens(none);
  for (const auto& pair : data::neighbor_pairs(start.positions, start.cell, longest_bond)) {
    auto oxygen = static_cast<std::size_t>(pair.i), hydrogen = static_cast<std::size_t>(pair.j);
    Cartesian shift = pair.shift;
    if (start.elements[oxygen] == 1) std::swap(oxygen, hydrogen), shift = -shift;
    if (start.elements[oxygen] != 8 || start.elements[hydrogen] != 1) continue;
    if (oxygen_of[hydrogen] != none)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("hydrogen {} is bound to two oxygens, {} and {}", hydrogen + 1,
                              oxygen_of[hydrogen] + 1, oxygen + 1),
                  "spc-fw");
    oxygen_of[hydrogen] = oxygen;
    hydrogens[oxygen].push_back(hydrogen);
    start.positions[hydrogen] += shift;
  }
  for (std::size_t i = 0; i < none; ++i)
    if (start.elements[i] == 1 && oxygen_of[i] == none)
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("hydrogen {} is bound to no oxygen: none is nearer than {} A", i + 1, longest_bond),
          "spc-fw");
  std::vector<Molecule> molecules;
  for (std::size_t i = 0; i < none; ++i) {
    if (start.elements[i] != 8) continue;
    if (hydrogens[i].size() != 2)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("oxygen {} has {} hydrogens nearer than {} A, not two", i + 1,
                              hydrogens[i].size(), longest_bond),
                  "spc-fw");
    molecules.push_back({i, hydrogens[i][0], hydrogens[i][1]});
  }
  return molecules;
}

// Coefficients of powers of t in [-1, 1] that a function of t has, as far as they matter; none where the most
// terms there may be are too few. By way of Chebyshev's polynomials.
template <class F>
std::vector<double> polynomial_of(F function, int most) {
  const int nodes = 2 * most;
  constexpr double negligible = 1e-14;  // of the largest: rounding leaves some 1e-15 in each
  std::vector<double> chebyshev;
  double largest = 0;
  for (int k = 0; k < most; ++k) {
    double sum = 0;
    for (int j = 0; j < nodes; ++j) {
      const double angle = std::numbers::pi * (j + 0.5) / nodes;
      sum += function(std::cos(angle)) * std::cos(k * angle);
    }
    chebyshev.push_back((k == 0 ? 1.0 : 2.0) * sum / nodes);
    largest = std::max(largest, std::abs(chebyshev.back()));
  }
  while (!chebyshev.empty() && std::abs(chebyshev.back()) < negligible * largest) chebyshev.pop_back();
  if (static_cast<int>(chebyshev.size()) > most - 2) return {};
  std::vector<double> sum(chebyshev.size(), 0.0), one(chebyshev.size(), 0.0), two = one;
  one[0] = 1;  // T_0; `two` is the polynomial before it
  for (std::size_t k = 0; k < chebyshev.size(); ++k) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += chebyshev[k] * one[i];
    std::vector<double> next(one.size(), 0.0);
    for (std::size_t i = 0; i + 1 < one.size(); ++i) next[i + 1] = (k == 0 ? 1 : 2) * one[i];
    for (std::size_t i = 0; i < one.size(); ++i) next[i] -= k == 0 ? 0 : two[i];
    two = std::exchange(one, next);
  }
  return sum;
}

// erf(alpha r) / r, of r squared.
double erf_over_r(double alpha, double square) {
  const double r = std::sqrt(square);
  return r < 1e-6 ? 2 * alpha * std::numbers::inv_sqrtpi : std::erf(alpha * r) / r;
}

class BoxOfWater final : public ForceField {
 public:
  BoxOfWater(const WaterSettings& settings, std::vector<Molecule> molecules)
      : settings_(settings), molecules_(std::move(molecules)) {
    const double cutoff = settings.end.cutoff, alpha = settings.damping;
    const double ending = std::erfc(alpha * cutoff) / cutoff;
    const double f = -(ending / cutoff + 2 * alpha * std::numbers::inv_sqrtpi *
                                             std::exp(-alpha * alpha * cutoff * cutoff) / cutoff);
    const double e = ending - f * cutoff;
    const std::vector<double> smooth = polynomial_of(
        [&](double t) {
          return coulomb_ev_angstrom() * (-erf_over_r(alpha, cutoff * cutoff * (t + 1) / 2) - e);
        },
        ChargedPairs::most_terms);
    if (smooth.empty())
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("a damping of {} /A ends too sharply for a cutoff of {} A", alpha, cutoff),
                  "spc-fw", "their product should be 2 to 3");
    std::ranges::copy(smooth, pairs_.polynomial.begin());
    pairs_.terms = static_cast<int>(smooth.size());
    pairs_.coulomb = coulomb_ev_angstrom();
    pairs_.linear = -f * pairs_.coulomb;
    pairs_.oxygens = {settings.model.epsilon * data::ev_per_kcal_per_mol, settings.model.sigma};
    own_ = -(e / 2 + alpha * std::numbers::inv_sqrtpi) * pairs_.coulomb;
    for (const Molecule& molecule : molecules_) oxygens_.push_back(molecule[0]);
  }

  nlohmann::json parameters() const override {
    return {{"molecules", molecules_.size()},
            {"cutoff_A", settings_.end.cutoff},
            {"cutoff_start_A", settings_.end.start},
            {"coulomb", "damped shifted force"},
            {"damping_per_A", settings_.damping}};
  }
  double cutoff() const override { return settings_.end.cutoff; }
  bool takes_open_space() const override { return false; }

  std::vector<std::int32_t> molecules() const override {
    std::vector<std::int32_t> numbers(3 * molecules_.size());
    for (std::size_t k = 0; k < molecules_.size(); ++k)
      for (const std::size_t atom : molecules_[k]) numbers[atom] = static_cast<std::int32_t>(k);
    return numbers;
  }

  void evaluate(const Situation& situation, Evaluation& result) override {
    if (builds_ != situation.neighbours.builds()) spread_charges(situation.neighbours);
    blocks_.begin(situation, result);
    blocks_.each(situation, result, [&](const AtomRange& range) {
      add_charged(pairs_, settings_.end, range, charges_.data(), is_oxygen_.data());
    });
    for (const Molecule& molecule : molecules_) add_molecule(molecule, situation, result);
    blocks_.finish(result);
  }

 private:
  static double coulomb_ev_angstrom() { return data::coulomb_ev_angstrom; }
  double charge(bool oxygen) const {
    return oxygen ? settings_.model.oxygen_charge : -settings_.model.oxygen_charge / 2;
  }

  void spread_charges(const Neighbours& neighbours) {
    std::vector<bool> oxygen(3 * molecules_.size(), false);
    for (const std::size_t atom : oxygens_) oxygen[atom] = true;
    charges_.clear(), is_oxygen_.clear();
    for (const std::int32_t owner : neighbours.owners()) {
      charges_.push_back(charge(oxygen[static_cast<std::size_t>(owner)]));
      is_oxygen_.push_back(oxygen[static_cast<std::size_t>(owner)] ? 1 : 0);
    }
    builds_ = neighbours.builds();
  }

  // Bonds, the angle, and what screening charges do within the molecule.
  void add_molecule(const Molecule& molecule, const Situation& situation, Evaluation& result) {
    std::array<Cartesian, 3> sites, forces{};
    for (std::size_t a = 0; a < 3; ++a) sites[a] = situation.positions[molecule[a]];
    double energy = data::add_water_molecule(settings_.model, sites, forces);
    for (std::size_t a = 0; a < 3; ++a) {
      energy += own_ * charge(a == 0) * charge(a == 0);
      for (std::size_t b = a + 1; b < 3; ++b)
        energy += add_screening(charge(a == 0) * charge(false), sites[b] - sites[a], forces[a], forces[b]);
    }
    result.energy += energy;
    for (std::size_t a = 0; a < 3; ++a) {
      result.forces[molecule[a]] += forces[a];
      const Cartesian r = sites[a] - sites[0], f = forces[a];
      const double v[3] = {r.x, r.y, r.z}, w[3] = {f.x, f.y, f.z};
      for (std::size_t k = 0; k < 9; ++k) result.virial[k] += v[k / 3] * w[k % 3];
    }
  }

  double add_screening(double charges, const Cartesian& r, Cartesian& force_a, Cartesian& force_b) const {
    const double square = dot(r, r), distance = std::sqrt(square);
    const double scale = 2 / (settings_.end.cutoff * settings_.end.cutoff), t = scale * square - 1;
    double value = 0, slope = 0;
    for (int k = pairs_.terms - 1; k >= 0; --k) {
      slope = slope * t + value;
      value = value * t + pairs_.polynomial[static_cast<std::size_t>(k)];
    }
    const Cartesian force = charges * (pairs_.linear / distance + 2 * scale * slope) * r;
    force_a += force;
    force_b -= force;
    return charges * (pairs_.linear * distance + value);
  }

  WaterSettings settings_;
  std::vector<Molecule> molecules_;
  std::vector<std::size_t> oxygens_;
  ChargedPairs pairs_;
  double own_ = 0;  // energy of a charge and its screening, eV
  AtomBlocks blocks_;
  std::uint64_t builds_ = 0;
  std::vector<double> charges_, is_oxygen_;  // by place
};

// All pairs of molecules, one after the other.
class ClusterOfWater final : public ForceField {
 public:
  ClusterOfWater(const WaterSettings& settings, std::vector<Molecule> molecules)
      : model_(settings.model), molecules_(std::move(molecules)) {}
  nlohmann::json parameters() const override {
    return {{"molecules", molecules_.size()}, {"coulomb", "all pairs, no cutoff"}};
  }
  double cutoff() const override { return 0; }
  bool takes_box() const override { return false; }
  bool gives_virial() const override { return false; }

  void evaluate(const Situation& situation, Evaluation& result) override {
    std::vector<Cartesian> positions, forces(situation.positions.size());
    for (const Molecule& molecule : molecules_)
      for (const std::size_t atom : molecule) positions.push_back(situation.positions[atom]);
    result.energy = data::evaluate_water(model_, positions, forces);
    result.forces.resize(forces.size());
    result.virial = {};
    for (std::size_t k = 0; k < forces.size(); ++k) result.forces[molecules_[k / 3][k % 3]] = forces[k];
  }

 private:
  data::SpcFw model_;
  std::vector<Molecule> molecules_;
};

}  // namespace

std::unique_ptr<ForceField> make_water(const WaterSettings& settings, data::Configuration& start) {
  std::vector<Molecule> molecules = find_molecules(start);
  if (start.cell) return std::make_unique<BoxOfWater>(settings, std::move(molecules));
  return std::make_unique<ClusterOfWater>(settings, std::move(molecules));
}

}  // namespace superstep::md
