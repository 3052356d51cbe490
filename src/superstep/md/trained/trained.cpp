#include "superstep/md/trained/trained.h"

#include <nlohmann/json.hpp>

#include "superstep/run/serve/infer.h"
#include "superstep/run/serve/trained_forces.h"

namespace superstep::md {
namespace {

// Compiled once for the atoms at hand.
class TrainedField final : public ForceField {
 public:
  TrainedField(const run::Weights& weights, const data::Configuration& start, int threads)
      : model_(weights.settings.workload),
        where_(weights.where),
        atoms_{.elements = start.elements, .positions = {}, .cell = {}},
        forces_(weights, start.elements, threads) {}

  nlohmann::json parameters() const override {
    return {{"model", model_}, {"weights", where_}, {"cutoff_A", forces_.cutoff()}};
  }
  double cutoff() const override { return 0; }  // models find their neighbours themselves
  bool takes_box() const override { return forces_.takes_box(); }
  bool gives_virial() const override { return forces_.gives_virial(); }

  void evaluate(const Situation& situation, Evaluation& result) override {
    atoms_.positions.assign(situation.positions.begin(), situation.positions.end());
    atoms_.cell = situation.cell;
    data::Labels found = forces_.evaluate(atoms_);
    result.energy = found.energy.value();
    result.forces = std::move(found.forces);
    result.virial = found.virial.value_or(std::array<double, 9>{});
  }

 private:
  std::string model_, where_;
  data::Configuration atoms_;
  run::TrainedForces forces_;
};

}  // namespace

std::unique_ptr<ForceField> open_trained(const std::filesystem::path& run, const data::Configuration& start,
                                         int threads) {
  return std::make_unique<TrainedField>(run::load_weights(run), start, threads);
}

}  // namespace superstep::md
