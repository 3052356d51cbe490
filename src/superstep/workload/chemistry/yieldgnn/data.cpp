// Reactions in packs: tables, JSON, or generated ones.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "superstep/baseline/regression.h"
#include "superstep/baseline/trees.h"
#include "superstep/file/csv.h"
#include "superstep/physics/chemistry/molecule_features.h"
#include "superstep/workload/chemistry/yieldgnn/yieldgnn.h"
#include "superstep/workload/generated.h"
#include "superstep/workload/metrics.h"
#include "superstep/workload/packed_samples.h"

namespace superstep::workload {
namespace {

constexpr int parts_of_ten = 10, held_out_parts = 3;  // 70:30

std::vector<GraphSize> sizes_of(std::span<const Reaction> reactions, const YieldSizes& sizes) {
  std::vector<GraphSize> result;
  for (const Reaction& reaction : reactions) {
    const std::int64_t atoms = reaction.molecules.atom_count(), edges = 2 * reaction.molecules.bond_count();
    if (atoms > sizes.largest || edges > sizes.pack.edges)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("has {} atoms and {} bonds, there is room for {} and {}", atoms, edges / 2,
                              sizes.largest, sizes.pack.edges / 2),
                  reaction.place, "build the model with more --set largest=N and --set edges=N");
    result.push_back({atoms, edges});
  }
  return result;
}

// One pack of the inputs x, edge_index, edge_attr, batch and desc.
class ReactionPack {
 public:
  ReactionPack(std::span<Tensor> tensors, std::size_t row)
      : x_(row_of<float>(tensors[0], row)),
        edges_(row_of<std::int64_t>(tensors[1], row)),
        bonds_(row_of<float>(tensors[2], row)),
        batch_(row_of<std::int64_t>(tensors[3], row)),
        descriptors_(row_of<float>(tensors[4], row)) {
    for (const auto& floats : {x_, bonds_, descriptors_}) std::ranges::fill(floats, 0.0f);
    std::ranges::fill(edges_, -1);
    std::ranges::fill(batch_, -1);
  }

  void add(const Reaction& reaction) {
    const data::Molecule& m = reaction.molecules;
    for (int bond = 0; bond < m.bond_count(); ++bond)
      for (const bool back : {false, true}) add_edge(m, bond, back);
    for (int i = 0; i < m.atom_count(); ++i, ++atoms_) {
      data::fill_atom_features(m, i, features<data::atom_feature_count>(x_, atoms_));
      batch_[atoms_] = static_cast<std::int64_t>(placed_);
    }
    std::ranges::copy(reaction.descriptors,
                      descriptors_.begin() + static_cast<std::ptrdiff_t>(placed_ * reaction_descriptors));
    ++placed_;
  }

 private:
  template <std::size_t width>
  static std::span<float, width> features(std::span<float> all, std::size_t row) {
    return std::span<float, width>(all.data() + row * width, width);
  }

  // Before the atoms of its reaction are counted.
  void add_edge(const data::Molecule& m, int number, bool back) {
    const data::Bond& bond = m.bond(number);
    const auto first = static_cast<std::int64_t>(atoms_);
    edges_[edges_placed_] = first + (back ? bond.b : bond.a);
    edges_[edges_.size() / 2 + edges_placed_] = first + (back ? bond.a : bond.b);
    data::fill_bond_features(m, number, features<data::bond_feature_count>(bonds_, edges_placed_++));
  }

  std::span<float> x_;
  std::span<std::int64_t> edges_;
  std::span<float> bonds_;
  std::span<std::int64_t> batch_;
  std::span<float> descriptors_;
  std::size_t atoms_ = 0, edges_placed_ = 0, placed_ = 0;
};

class YieldTask : public Task {
 public:
  static constexpr std::size_t inputs = 5;

  // The first `training` reactions are learnt from; `order`: where each of all stood in the file.
  YieldTask(std::vector<Reaction> reactions, std::size_t training, std::vector<std::size_t> order,
            const YieldSizes& sizes, const TaskSettings& settings)
      : reactions_(std::move(reactions)),
        order_(std::move(order)),
        packs_(sizes_of(reactions_, sizes), training, sizes.pack, settings.seed),
        source_(settings.data.empty() ? generated_source(settings) : settings.data.string()) {}

  std::int64_t size() const override { return packs_.size(); }
  std::int64_t training_count() const override { return packs_.training_count(); }
  bool has_labels() const override {
    return std::ranges::none_of(reactions_, [](const Reaction& each) { return std::isnan(each.yield); });
  }
  std::span<const Reaction> learnt_from() const {
    return std::span(reactions_).first(packs_.training_graphs());
  }

  void fill(std::span<const std::int64_t> indices, std::uint64_t epoch, bool augment,
            std::span<Tensor> tensors) const override {
    for (std::size_t row = 0; row < indices.size(); ++row) {
      const auto chosen = augment ? packs_.shuffled(indices[row], epoch) : packs_.graphs(indices[row]);
      ReactionPack pack(tensors, row);
      for (const std::size_t i : chosen) pack.add(reactions_[i]);
      if (tensors.size() > inputs) fill_targets(chosen, row, tensors[inputs], tensors[inputs + 1]);
    }
  }

  void fill_inputs(std::span<const std::int64_t> indices, std::span<Tensor> tensors,
                   ThreadPool&) const override {
    fill(indices, 0, false, tensors);
  }

  std::vector<Metric> quality(std::span<const std::int64_t> indices,
                              std::span<const Tensor> outputs) const override {
    const YieldPredictions all = predictions(indices, outputs.first(1));
    const baseline::RegressionScore found = baseline::score(measured(all), all.found);
    return {quality_metric("r2", found.r2), quality_metric("rmse", found.rmse, "%"),
            quality_metric("mae", found.mae, "%")};
  }

  double reference_seconds() const override { return 5; }

  References references(std::span<const std::int64_t> indices, ThreadPool& pool) const override {
    std::vector<const Reaction*> judged;
    for (const std::int64_t pack : indices)
      for (const std::size_t i : packs_.graphs(pack)) judged.push_back(&reactions_[i]);
    if (judged.empty() || packs_.training_graphs() == 0 || !has_labels()) return {};
    std::vector<double> yields, exact;
    for (const Reaction* each : judged) yields.push_back(each->yield), exact.push_back(each->exact);
    const auto r2 = [&](const std::vector<double>& found) { return baseline::score(yields, found).r2; };
    References found;
    found.floor = Reference{"the mean yield of the ligand", r2(ligand_means(judged))};
    found.conventional = Reference{"a random forest on descriptors", r2(forest(judged, pool.threads()))};
    if (std::ranges::none_of(exact, [](double yield) { return std::isnan(yield); }))
      found.limit = Reference{"the noise of the measurements", r2(exact)};
    return found;
  }

  std::string present(const Predictions& found, ThreadPool&, page::Page& page) const override {
    return present_yields(predictions(found.indices, found.outputs), page);
  }

  // A row a reaction, in the order in which they came.
  bool has_table() const override { return true; }
  void write_table(const std::filesystem::path& path, std::span<const Tensor> outputs) const override {
    std::vector<std::int64_t> all(static_cast<std::size_t>(size()));
    std::iota(all.begin(), all.end(), std::int64_t{0});
    const YieldPredictions found = predictions(all, outputs.first(1));
    std::vector<std::size_t> rows(reactions_.size());
    for (std::size_t i = 0; i < rows.size(); ++i)
      rows[order_[static_cast<std::size_t>(found.samples[i])]] = i;
    std::vector<std::string> header{"id", "smiles", "yield"};
    if (has_labels()) header.push_back("measured");
    data::CsvWriter table(path, header);
    for (const std::size_t i : rows) {
      const Reaction& reaction = *found.reactions[i];
      table.cell(reaction.id).cell(reaction.joined()).cell(static_cast<float>(found.found[i]));
      if (has_labels()) table.cell(reaction.yield);
      table.end_row();
    }
    table.close();
  }

  // What the network knows of a molecule it has learnt in the role that the molecule plays.
  bool knows_domain() const override { return true; }
  std::vector<std::string> outside(const Task& training) const override {
    const auto* other = dynamic_cast<const YieldTask*>(&training);
    if (!other) return {};
    std::array<std::set<std::string>, data::role_count> known;
    for (const Reaction& each : other->learnt_from())
      for (std::size_t role = 0; role < known.size(); ++role) known[role].insert(each.smiles[role]);
    std::vector<std::string> notes;
    for (const Reaction& each : reactions_) {
      std::vector<std::string> strange;
      for (std::size_t role = 0; role < known.size(); ++role)
        if (!known[role].contains(each.smiles[role]))
          strange.push_back(
              fmt::format("{} '{}'", data::role_name(static_cast<data::Role>(role)), each.smiles[role]));
      if (!strange.empty())
        notes.push_back(
            fmt::format("{}: not in the training data: {}", each.place, fmt::join(strange, ", ")));
    }
    return notes;
  }

  nlohmann::json describe() const override {
    return {{"source", source_},
            {"samples", size()},
            {"training", training_count()},
            {"reactions", reactions_.size()},
            {"training_reactions", packs_.training_graphs()},
            {"packing", packs_.describe("reactions", "atoms", "edges")}};
  }

 private:
  void fill_targets(const std::vector<std::size_t>& chosen, std::size_t row, Tensor& yield,
                    Tensor& weight) const {
    const auto yields = row_of<float>(yield, row), weights = row_of<float>(weight, row);
    std::ranges::fill(yields, 0.0f);
    std::ranges::fill(weights, 0.0f);
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      yields[i] = static_cast<float>(reactions_[chosen[i]].yield);
      weights[i] = static_cast<float>(packs_.places_a_graph());
    }
  }

  // `outputs`: yields, and the shares of atoms where they are wanted.
  YieldPredictions predictions(std::span<const std::int64_t> indices, std::span<const Tensor> outputs) const {
    YieldPredictions all;
    for (std::size_t row = 0; row < indices.size(); ++row) {
      auto place = static_cast<std::int64_t>(row) * outputs[0].shape()[1];
      auto atom = outputs.size() > 1 ? static_cast<std::int64_t>(row) * outputs[1].shape()[1] : 0;
      for (const std::size_t i : packs_.graphs(indices[row])) {
        all.reactions.push_back(&reactions_[i]);
        all.samples.push_back(static_cast<std::int64_t>(i));
        all.found.push_back(outputs[0].at(place++));
        if (outputs.size() < 2) continue;
        std::vector<double>& shares = all.shares.emplace_back();
        for (int k = 0; k < reactions_[i].molecules.atom_count(); ++k)
          shares.push_back(outputs[1].at(atom++));
      }
    }
    return all;
  }

  static std::vector<double> measured(const YieldPredictions& all) {
    std::vector<double> yields;
    for (const Reaction* each : all.reactions) yields.push_back(each->yield);
    return yields;
  }

  std::vector<double> ligand_means(const std::vector<const Reaction*>& judged) const {
    constexpr auto ligand = static_cast<std::size_t>(data::Role::ligand);
    std::map<std::string, std::pair<double, double>> sums;
    double all = 0;
    for (const Reaction& each : learnt_from()) {
      auto& [sum, count] = sums[each.smiles[ligand]];
      sum += each.yield, count += 1, all += each.yield;
    }
    std::vector<double> means;
    for (const Reaction* each : judged) {
      const auto found = sums.find(each->smiles[ligand]);
      means.push_back(found != sums.end() ? found->second.first / found->second.second
                                          : all / static_cast<double>(learnt_from().size()));
    }
    return means;
  }

  std::vector<double> forest(const std::vector<const Reaction*>& judged, int threads) const {
    const auto rows = [](const auto& reactions, const auto& descriptors) {
      baseline::TreeFeatures features(static_cast<Eigen::Index>(reactions.size()), reaction_descriptors);
      Eigen::Index row = 0;
      for (const auto& each : reactions)
        features.row(row++) =
            Eigen::Map<const Eigen::RowVectorXf>(descriptors(each).data(), reaction_descriptors);
      return features;
    };
    std::vector<double> yields;
    for (const Reaction& each : learnt_from()) yields.push_back(each.yield);
    return baseline::fit_trees(
        rows(
            learnt_from(), [](const Reaction& each) -> const auto& { return each.descriptors; }),
        yields,
        rows(
            judged, [](const Reaction* each) -> const auto& { return each->descriptors; }),
        baseline::random_forest(threads));
  }

  std::vector<Reaction> reactions_;
  std::vector<std::size_t> order_;
  PackedSamples packs_;
  std::string source_;
};

}  // namespace

std::unique_ptr<Task> open_reactions(const TaskSettings& settings, const Options& model) {
  std::vector<Reaction> read = read_reactions(settings);
  const auto split = model.integer("split", 1, 1000);
  const bool learns = std::ranges::none_of(read, [](const Reaction& each) { return std::isnan(each.yield); });
  const auto held_out = [&](const Reaction& each) {
    return !learns || baseline::fold_of(fmt::format("split {} of {}", split, fmt::join(each.smiles, "|")),
                                        parts_of_ten) < held_out_parts;
  };
  std::vector<Reaction> reactions;
  std::vector<std::size_t> order;
  std::size_t training = 0;
  std::vector<bool> others;
  for (const Reaction& each : read) others.push_back(held_out(each));
  for (const bool other : {false, true}) {
    for (std::size_t i = 0; i < read.size(); ++i)
      if (others[i] == other) reactions.push_back(std::move(read[i])), order.push_back(i);
    if (!other) training = reactions.size();
  }
  return std::make_unique<YieldTask>(std::move(reactions), training, std::move(order), yield_sizes(model),
                                     settings);
}

std::map<std::string, Tensor> fitted_standardisation(const Task& task, const Options&, ThreadPool&) {
  Tensor mean(ElementType::i64, {reaction_descriptors}), inverse(ElementType::i64, {reaction_descriptors});
  const auto* reactions = dynamic_cast<const YieldTask*>(&task);
  if (!reactions || reactions->learnt_from().empty())
    return {{descriptor_mean, mean}, {descriptor_inverse, inverse}};
  const auto count = static_cast<double>(reactions->learnt_from().size());
  for (std::size_t k = 0; k < reaction_descriptors; ++k) {
    double sum = 0, squares = 0;
    for (const Reaction& each : reactions->learnt_from()) sum += each.descriptors[k];
    for (const Reaction& each : reactions->learnt_from())
      squares += (each.descriptors[k] - sum / count) * (each.descriptors[k] - sum / count);
    const double deviation = std::sqrt(squares / count);
    mean.set(static_cast<std::int64_t>(k), std::round(millionths * sum / count));
    inverse.set(static_cast<std::int64_t>(k), deviation > 1e-6 ? std::round(millionths / deviation) : 0);
  }
  return {{descriptor_mean, mean}, {descriptor_inverse, inverse}};
}

}  // namespace superstep::workload
