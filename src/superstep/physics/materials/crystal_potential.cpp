#include "superstep/physics/materials/crystal_potential.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "superstep/base/error.h"
#include "superstep/base/text.h"

namespace superstep::data {
namespace {

// Adds a pair's energy and forces; `slope` is dE/dr.
void add_pair(Evaluation& result, int i, int j, const Cartesian& r, double distance, double energy,
              double slope) {
  result.energy += energy;
  const Cartesian force = slope / distance * r;  // on i
  result.forces[static_cast<std::size_t>(i)] += force;
  result.forces[static_cast<std::size_t>(j)] -= force;
  const double v[3] = {r.x, r.y, r.z};
  for (std::size_t row = 0; row < 3; ++row)
    for (std::size_t column = 0; column < 3; ++column)
      result.virial[3 * row + column] -= slope / distance * v[row] * v[column];
}

template <class F>
void for_near_pairs(double cutoff, std::span<const Cartesian> positions, std::span<const NeighborPair> pairs,
                    F use) {
  for (const auto& [i, j, shift] : pairs) {
    const Cartesian r =
        positions[static_cast<std::size_t>(j)] + shift - positions[static_cast<std::size_t>(i)];
    const double distance = norm(r);
    if (distance < cutoff) use(i, j, r, distance);
  }
}

class SuttonChenCrystal final : public CrystalPotential {
 public:
  explicit SuttonChenCrystal(const SuttonChen& metal) : metal_(metal) {}
  double lattice() const override { return metal_.a; }
  std::vector<std::string> symbols() const override { return {metal_.symbol}; }
  Evaluation evaluate(const SmoothCutoff& cutoff, std::span<const Cartesian> positions, std::span<const int>,
                      std::span<const NeighborPair> pairs) const override {
    return evaluate_sutton_chen(metal_, cutoff, positions, pairs);
  }
  nlohmann::json parameters() const override {
    return {{"metal", metal_.symbol}, {"potential", "Sutton-Chen"},   {"n", metal_.n},
            {"m", metal_.m},          {"epsilon_eV", metal_.epsilon}, {"c", metal_.c},
            {"a_A", metal_.a}};
  }

 private:
  SuttonChen metal_;
};

struct ValueAndSlope {
  double value, slope;
};

// 4 eps ((sigma/r)^12 - (sigma/r)^6).
struct LennardJonesArgon {
  static constexpr const char *name = "Lennard-Jones", *symbol = "Ar";
  static constexpr double epsilon = 0.0103, sigma = 3.405, low_kelvin = 10, high_kelvin = 80;  // eV, A, K
  // The sums over all neighbours of an fcc lattice are least at a nearest distance of 1.09017 sigma.
  static double lattice() { return std::numbers::sqrt2 * 1.09017 * sigma; }
  static ValueAndSlope pair(double r) {
    const double q = sigma / r, q6 = std::pow(q, 6);
    return {4 * epsilon * q6 * (q6 - 1), -24 * epsilon * q6 * (2 * q6 - 1) / r};
  }
  static nlohmann::json parameters() { return {{"epsilon_eV", epsilon}, {"sigma_A", sigma}}; }
};

// D (exp(-2 alpha (r - r0)) - 2 exp(-alpha (r - r0))).
struct MorseCopper {
  static constexpr const char *name = "Morse", *symbol = "Cu";
  static constexpr double depth = 0.3429, alpha = 1.3588, r0 = 2.866;  // eV, 1/A, A
  static constexpr double low_kelvin = 300, high_kelvin = 1200;
  static double lattice() { return 3.61; }  // measured; the parameters were fitted to it
  static ValueAndSlope pair(double r) {
    const double e = std::exp(-alpha * (r - r0));
    return {depth * e * (e - 2), -2 * alpha * depth * e * (e - 1)};
  }
  static nlohmann::json parameters() { return {{"depth_eV", depth}, {"alpha_per_A", alpha}, {"r0_A", r0}}; }
};

template <class Pair>
class PairCrystal final : public CrystalPotential {
 public:
  double lattice() const override { return Pair::lattice(); }
  std::vector<std::string> symbols() const override { return {Pair::symbol}; }
  double low_kelvin() const override { return Pair::low_kelvin; }
  double high_kelvin() const override { return Pair::high_kelvin; }
  Evaluation evaluate(const SmoothCutoff& cutoff, std::span<const Cartesian> positions, std::span<const int>,
                      std::span<const NeighborPair> pairs) const override {
    Evaluation result;
    result.forces.resize(positions.size());
    for_near_pairs(cutoff.cutoff, positions, pairs, [&](int i, int j, const Cartesian& r, double distance) {
      const auto [value, slope] = Pair::pair(distance);
      const double f = cutoff.value(distance);
      add_pair(result, i, j, r, distance, value * f, slope * f + value * cutoff.slope(distance));
    });
    return result;
  }
  nlohmann::json parameters() const override {
    nlohmann::json all = Pair::parameters();
    all["metal"] = Pair::symbol;
    all["potential"] = Pair::name;
    all["a_A"] = Pair::lattice();
    return all;
  }
};

// Between unlike atoms: the geometric mean of eps and a, the mean of n and m.
class SuttonChenAlloy final : public CrystalPotential {
 public:
  SuttonChenAlloy(const SuttonChen& first, const SuttonChen& second, double share)
      : metals_{first, second}, share_(share) {
    const SuttonChen mixed{
        "", 0, 0, std::sqrt(first.epsilon * second.epsilon), 0, std::sqrt(first.a * second.a)};
    for (int a = 0; a < 2; ++a)
      for (int b = 0; b < 2; ++b) {
        const SuttonChen& own = metals_[a];
        Mixed& pair = pairs_[a][b];
        pair = {a == b ? own.epsilon : mixed.epsilon, a == b ? own.a : mixed.a,
                (metals_[a].n + metals_[b].n) / 2.0, (metals_[a].m + metals_[b].m) / 2.0};
      }
  }
  double lattice() const override { return share_ * metals_[0].a + (1 - share_) * metals_[1].a; }  // Vegard
  std::vector<std::string> symbols() const override { return {metals_[0].symbol, metals_[1].symbol}; }
  std::vector<double> shares() const override { return {share_, 1 - share_}; }

  Evaluation evaluate(const SmoothCutoff& cutoff, std::span<const Cartesian> positions,
                      std::span<const int> types, std::span<const NeighborPair> pairs) const override {
    std::vector<double> density(positions.size(), 0.0), embedding_slope(positions.size());
    for_near_pairs(cutoff.cutoff, positions, pairs, [&](int i, int j, const Cartesian&, double distance) {
      const double rho = density_of(mixed(types, i, j), cutoff, distance).value;
      density[static_cast<std::size_t>(i)] += rho;
      density[static_cast<std::size_t>(j)] += rho;
    });
    Evaluation result;
    result.forces.resize(positions.size());
    for (std::size_t i = 0; i < density.size(); ++i) {
      const SuttonChen& own = metals_[types[i]];
      const double root = std::sqrt(density[i]);
      result.energy -= own.epsilon * own.c * root;
      embedding_slope[i] = root > 0 ? -own.epsilon * own.c / (2 * root) : 0;
    }
    for_near_pairs(cutoff.cutoff, positions, pairs, [&](int i, int j, const Cartesian& r, double distance) {
      const Mixed& pair = mixed(types, i, j);
      const double power = pair.epsilon * std::pow(pair.a / distance, pair.n), f = cutoff.value(distance);
      const double slope = power * (cutoff.slope(distance) - pair.n / distance * f);
      const double embedding =
          embedding_slope[static_cast<std::size_t>(i)] + embedding_slope[static_cast<std::size_t>(j)];
      add_pair(result, i, j, r, distance, power * f,
               slope + embedding * density_of(pair, cutoff, distance).slope);
    });
    return result;
  }
  nlohmann::json parameters() const override {
    return {{"metal", metals_[0].symbol + metals_[1].symbol},
            {"potential", "Sutton-Chen, pairs mixed by Rafii-Tabar and Sutton"},
            {"share_of_first", share_},
            {"a_A", lattice()}};
  }

 private:
  struct Mixed {
    double epsilon, a, n, m;
  };
  const Mixed& mixed(std::span<const int> types, int i, int j) const {
    return pairs_[types[static_cast<std::size_t>(i)]][types[static_cast<std::size_t>(j)]];
  }
  static ValueAndSlope density_of(const Mixed& pair, const SmoothCutoff& cutoff, double distance) {
    const double rho = std::pow(pair.a / distance, pair.m), f = cutoff.value(distance);
    return {rho * f, rho * (cutoff.slope(distance) - pair.m / distance * f)};
  }

  SuttonChen metals_[2];
  double share_;
  Mixed pairs_[2][2];
};

}  // namespace

std::unique_ptr<CrystalPotential> make_crystal_potential(std::string_view name, double nickel) {
  std::vector<std::string> known{"Ar", "Cu-Morse", "NiCu"};
  if (name == known[0]) return std::make_unique<PairCrystal<LennardJonesArgon>>();
  if (name == known[1]) return std::make_unique<PairCrystal<MorseCopper>>();
  if (name == known[2])
    return std::make_unique<SuttonChenAlloy>(find_sutton_chen("Ni"), find_sutton_chen("Cu"), nickel);
  for (const SuttonChen& metal : sutton_chen_metals()) {
    if (metal.symbol == name) return std::make_unique<SuttonChenCrystal>(metal);
    known.push_back(metal.symbol);
  }
  throw Error(ErrorCode::invalid_argument, "no potential for this material", std::string(name),
              unknown_name_hint(name, known));
}

}  // namespace superstep::data
