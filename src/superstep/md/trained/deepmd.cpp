// Trained deepmd models (workload/chemistry/deepmd): compiled once for the atoms at hand, in a box or open
// space.
#include <nlohmann/json.hpp>

#include "superstep/md/trained/trained.h"
#include "superstep/run/serve/trained_forces.h"

namespace superstep::md {
namespace {

class DeepmdField final : public ForceField {
 public:
  DeepmdField(const run::Weights& weights, const data::Configuration& start, int threads)
      : where_(weights.where),
        atoms_{.elements = start.elements, .positions = {}, .cell = {}},
        forces_(weights, start.elements, threads) {}

  nlohmann::json parameters() const override {
    return {{"model", "deepmd"}, {"weights", where_}, {"cutoff_A", forces_.cutoff()}};
  }
  double cutoff() const override { return 0; }  // it makes lists of its own, by kinds of neighbours

  void evaluate(const Situation& situation, Evaluation& result) override {
    atoms_.positions.assign(situation.positions.begin(), situation.positions.end());
    atoms_.cell = situation.cell;
    data::Labels found = forces_.evaluate(atoms_);
    result.energy = found.energy.value();
    result.forces = std::move(found.forces);
    result.virial = found.virial.value_or(std::array<double, 9>{});
  }

 private:
  std::string where_;
  data::Configuration atoms_;
  run::TrainedForces forces_;
};

}  // namespace

std::unique_ptr<ForceField> open_deepmd(const run::Weights& weights, data::Configuration& start,
                                        int threads) {
  return std::make_unique<DeepmdField>(weights, start, threads);
}

}  // namespace superstep::md
