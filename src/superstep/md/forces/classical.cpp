#include "superstep/md/forces/classical.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/file/atoms/element.h"
#include "superstep/md/forces/atom_blocks.h"

namespace superstep::md {
namespace {

nlohmann::json ended(nlohmann::json parameters, const SmoothCutoff& end) {
  parameters["cutoff_A"] = end.cutoff;
  parameters["cutoff_start_A"] = end.start;
  return parameters;
}

template <class Pair, void (*add)(const Pair&, const SmoothCutoff&, const AtomRange&)>
class PairField final : public ForceField {
 public:
  PairField(const Pair& pair, const SmoothCutoff& end, nlohmann::json parameters)
      : pair_(pair), end_(end), parameters_(ended(std::move(parameters), end)) {}
  nlohmann::json parameters() const override { return parameters_; }
  double cutoff() const override { return end_.cutoff; }
  void evaluate(const Situation& situation, Evaluation& result) override {
    blocks_.begin(situation, result);
    blocks_.each(situation, result, [&](const AtomRange& range) { add(pair_, end_, range); });
    blocks_.finish(result);
  }

 private:
  Pair pair_;
  SmoothCutoff end_;
  nlohmann::json parameters_;
  AtomBlocks blocks_;
};

// The parameters of each atom's metal.
std::vector<const data::SuttonChen*> metals_of(const std::vector<int>& elements) {
  std::vector<const data::SuttonChen*> found;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const data::SuttonChen* own = nullptr;
    for (const data::SuttonChen& metal : data::sutton_chen_metals())
      if (metal.symbol == data::element_symbol(elements[i])) own = &metal;
    if (own == nullptr)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("atom {} is {}, of which there are no parameters of Sutton and Chen", i + 1,
                              data::element_symbol(elements[i])),
                  "sutton-chen", "there are those of Al, Ni, Cu, Pd, Ag, Pt and Au");
    found.push_back(own);
  }
  return found;
}

class MetalField final : public ForceField {
 public:
  MetalField(std::vector<const data::SuttonChen*> metals, const SmoothCutoff& end)
      : metals_(std::move(metals)), end_(end) {
    for (const data::SuttonChen* metal : metals_)
      if (metal != metals_[0]) mixed_ = true;
  }

  nlohmann::json parameters() const override {
    nlohmann::json all = ended({{"mixing", "Rafii-Tabar and Sutton"}}, end_);
    for (const data::SuttonChen* metal : metals_)
      all["metals"][metal->symbol] = {{"n", metal->n},
                                      {"m", metal->m},
                                      {"epsilon_eV", metal->epsilon},
                                      {"c", metal->c},
                                      {"a_A", metal->a}};
    return all;
  }

  double cutoff() const override { return end_.cutoff; }

  void evaluate(const Situation& situation, Evaluation& result) override {
    blocks_.begin(situation, result);
    if (metals_.empty()) return;
    const Neighbours& neighbours = situation.neighbours;
    if (mixed_ && builds_ != neighbours.builds()) spread_parameters(neighbours);
    densities_.resize(metals_.size());
    blocks_.each(situation, result, [&](const AtomRange& range) {
      mixed_ ? find_mixed_densities(mixture(), end_, range, densities_.data())
             : find_densities(*metals_[0], end_, range, densities_.data());
    });
    bind_atoms(neighbours);
    blocks_.each(situation, result, [&](const AtomRange& range) {
      mixed_ ? add_mixed_embedded(mixture(), end_, range, binding_.data())
             : add_embedded(*metals_[0], end_, range, binding_.data());
    });
    blocks_.finish(result);
  }

 private:
  MixedMetals mixture() const { return {log_epsilon_.data(), log_a_.data(), n_.data(), m_.data()}; }

  void spread_parameters(const Neighbours& neighbours) {
    log_epsilon_.clear(), log_a_.clear(), n_.clear(), m_.clear();
    for (const std::int32_t owner : neighbours.owners()) {
      const data::SuttonChen& metal = *metals_[static_cast<std::size_t>(owner)];
      log_epsilon_.push_back(std::log(metal.epsilon) / 2);
      log_a_.push_back(std::log(metal.a) / 2);
      n_.push_back(metal.n / 2.0);
      m_.push_back(metal.m / 2.0);
    }
    builds_ = neighbours.builds();
  }

  // Energies -eps c sqrt(density) of the atoms, and minus their slopes of all places.
  void bind_atoms(const Neighbours& neighbours) {
    binding_.resize(neighbours.owners().size());
    for (std::size_t i = 0; i < metals_.size(); ++i) {
      const double root = std::sqrt(densities_[i]), strength = metals_[i]->epsilon * metals_[i]->c;
      blocks_.energies()[i] -= strength * root;
      binding_[i] = root > 0 ? strength / (2 * root) : 0;
    }
    for (std::size_t place = metals_.size(); place < binding_.size(); ++place)
      binding_[place] = binding_[static_cast<std::size_t>(neighbours.owners()[place])];
  }

  std::vector<const data::SuttonChen*> metals_;  // by atom
  SmoothCutoff end_;
  bool mixed_ = false;
  AtomBlocks blocks_;
  std::vector<double> densities_, binding_;
  std::uint64_t builds_ = 0;
  std::vector<double> log_epsilon_, log_a_, n_, m_;  // halves, by place
};

}  // namespace

std::unique_ptr<ForceField> make_lennard_jones(const LennardJones& pair, const SmoothCutoff& end) {
  return std::make_unique<PairField<LennardJones, add_lennard_jones>>(
      pair, end, nlohmann::json{{"epsilon_eV", pair.epsilon}, {"sigma_A", pair.sigma}});
}

std::unique_ptr<ForceField> make_morse(const Morse& pair, const SmoothCutoff& end) {
  return std::make_unique<PairField<Morse, add_morse>>(
      pair, end, nlohmann::json{{"depth_eV", pair.depth}, {"alpha_per_A", pair.alpha}, {"r0_A", pair.r0}});
}

std::unique_ptr<ForceField> make_sutton_chen(const std::vector<int>& elements, const SmoothCutoff& end) {
  return std::make_unique<MetalField>(metals_of(elements), end);
}

}  // namespace superstep::md
