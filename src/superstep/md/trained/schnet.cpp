// Trained schnet models (workload/chemistry/schnet): compiled once for the atoms at hand, one cluster a pack.
#include "superstep/workload/chemistry/schnet/schnet.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/md/trained/trained.h"
#include "superstep/run/model.h"

namespace superstep::md {
namespace {

// The same model with room for exactly these atoms: no parameter depends on the room.
run::TrainSettings with_room(run::TrainSettings settings, const workload::SchnetSizes& sizes,
                             std::int64_t atoms) {
  const std::int64_t edges =
      atoms * std::min<std::int64_t>(sizes.neighbours, std::max<std::int64_t>(1, atoms - 1));
  for (const auto& [name, value] :
       {std::pair("atoms", std::max<std::int64_t>(2, atoms)),
        std::pair("edges", std::max<std::int64_t>(2, edges)), std::pair("clusters", std::int64_t{1})})
    settings.model_options.push_back(fmt::format("{}={}", name, value));
  return settings;
}

class SchnetField final : public ForceField {
 public:
  SchnetField(const run::Weights& weights, const data::Configuration& start, int threads)
      : where_(weights.where), elements_(start.elements) {
    sizes_ = sizes_of(run::Model(weights.settings));
    if (!(sizes_.forces > 0))
      throw Error(ErrorCode::unsupported, "was trained without forces (forces=0)", where_);
    const run::Model model(with_room(weights.settings, sizes_, static_cast<std::int64_t>(elements_.size())));
    sizes_.pack = sizes_of(model).pack;
    const target::Target& target = target::find_target("cpu");
    plan_ = target.compile(model.inference(&target), {.batch = 1, .threads = threads});
    for (const std::string& name : plan_->state_names()) {
      const auto found = weights.states.find(name);
      if (found == weights.states.end())
        throw Error(ErrorCode::bad_file, fmt::format("has no parameter {}", name), where_);
      plan_->set_state(name, found->second);
    }
    for (const auto& port : plan_->inputs()) inputs_.emplace_back(port.type.element, port.type.shape);
    for (const auto& port : plan_->outputs()) outputs_.emplace_back(port.type.element, port.type.shape);
    fill_atoms();
  }

  nlohmann::json parameters() const override {
    return {{"model", "schnet"},
            {"weights", where_},
            {"cutoff_A", sizes_.cutoff},
            {"neighbours", sizes_.neighbours}};
  }
  double cutoff() const override { return 0; }  // it has lists of its own: the nearest
  bool takes_box() const override { return false; }
  bool gives_virial() const override { return false; }

  void evaluate(const Situation& situation, Evaluation& result) override {
    // About their middle: f32 has most digits near zero.
    std::vector<Cartesian> positions(situation.positions.begin(), situation.positions.end());
    Cartesian middle;
    for (const Cartesian& p : positions) middle += p * (1 / static_cast<double>(positions.size()));
    for (Cartesian& p : positions) p -= middle;
    const auto pos = inputs_[place("pos")].as<float>();
    for (std::size_t i = 0; i < positions.size(); ++i) {
      pos[3 * i] = static_cast<float>(positions[i].x);
      pos[3 * i + 1] = static_cast<float>(positions[i].y);
      pos[3 * i + 2] = static_cast<float>(positions[i].z);
    }
    const workload::NeighbourGraph graph =
        workload::nearest_neighbours(positions, sizes_.cutoff, sizes_.neighbours);
    const auto edges = inputs_[place("edge_index")].as<std::int64_t>();
    std::ranges::fill(edges, -1);
    std::ranges::copy(graph.source, edges.begin());
    std::ranges::copy(graph.target, edges.begin() + static_cast<std::ptrdiff_t>(sizes_.pack.edges));
    plan_->run(inputs_, outputs_);
    result.energy = outputs_[output("energy")].at(0);
    result.virial = {};
    result.forces.resize(positions.size());
    const auto forces = std::as_const(outputs_[output("forces")]).as<float>();
    for (std::size_t i = 0; i < positions.size(); ++i)
      result.forces[i] = {forces[3 * i], forces[3 * i + 1], forces[3 * i + 2]};
  }

 private:
  static workload::SchnetSizes sizes_of(const run::Model& model) {
    return workload::schnet_sizes(Options(model.workload().options, model.settings().model_options));
  }

  void fill_atoms() {
    const auto z = inputs_[place("z")].as<std::int64_t>(), batch = inputs_[place("batch")].as<std::int64_t>();
    std::ranges::fill(batch, -1);
    for (std::size_t i = 0; i < elements_.size(); ++i) {
      if (elements_[i] >= workload::embedded_elements)
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("atom {} has the atomic number {}: the model knows those below {}", i + 1,
                                elements_[i], workload::embedded_elements),
                    where_);
      z[i] = elements_[i], batch[i] = 0;
    }
  }

  static std::size_t named(std::span<const target::Executable::Port> ports, std::string_view name) {
    const auto found = std::ranges::find(ports, name, &target::Executable::Port::name);
    if (found == ports.end()) throw Error(ErrorCode::internal, fmt::format("schnet has no port '{}'", name));
    return static_cast<std::size_t>(found - ports.begin());
  }
  std::size_t place(std::string_view name) const { return named(plan_->inputs(), name); }
  std::size_t output(std::string_view name) const { return named(plan_->outputs(), name); }

  std::string where_;
  std::vector<int> elements_;
  workload::SchnetSizes sizes_;
  std::unique_ptr<target::Executable> plan_;
  std::vector<Tensor> inputs_, outputs_;
};

}  // namespace

std::unique_ptr<ForceField> open_schnet(const run::Weights& weights, data::Configuration& start,
                                        int threads) {
  return std::make_unique<SchnetField>(weights, start, threads);
}

}  // namespace superstep::md
