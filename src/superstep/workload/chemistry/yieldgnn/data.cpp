// Reactions and their yields: tables, JSON, or generated ones.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "superstep/baseline/regression.h"
#include "superstep/baseline/trees.h"
#include "superstep/file/csv.h"
#include "superstep/workload/chemistry/yieldgnn/yieldgnn.h"
#include "superstep/workload/metrics.h"

namespace superstep::workload {
namespace {

constexpr int parts_of_ten = 10, held_out_parts = 3;  // 70:30

class YieldTask : public MoleculeTask {
 public:
  // The first `training` reactions are learnt from.
  YieldTask(std::vector<Reaction> reactions, std::size_t training, const YieldSizes& sizes,
            const TaskSettings& settings)
      : MoleculeTask({.things = "reactions", .inputs = 5}, rooms_of(reactions, sizes.pack, sizes.largest),
                     training, sizes.pack, settings),
        reactions_(std::move(reactions)) {}

  std::span<const Reaction> learnt_from() const { return std::span(reactions_).first(training_molecules()); }

  std::vector<Metric> quality(std::span<const std::int64_t> indices,
                              std::span<const Tensor> outputs) const override {
    const MoleculeAnswers all = answers(indices, outputs.first(1));
    const baseline::RegressionScore found = baseline::score(all.labels(), all.found);
    return {quality_metric("r2", found.r2), quality_metric("rmse", found.rmse, "%"),
            quality_metric("mae", found.mae, "%")};
  }

  double reference_seconds() const override { return 5; }

  References references(std::span<const std::int64_t> indices, ThreadPool& pool) const override {
    std::vector<const Reaction*> judged;
    for (const std::size_t i : numbers_in(indices)) judged.push_back(&reactions_[i]);
    if (judged.empty() || training_molecules() == 0 || !has_labels()) return {};
    std::vector<double> yields, exact;
    for (const Reaction* each : judged) yields.push_back(each->label), exact.push_back(each->exact);
    const auto r2 = [&](const std::vector<double>& found) { return baseline::score(yields, found).r2; };
    References found;
    found.floor = Reference{"the mean yield of the ligand", r2(ligand_means(judged))};
    found.conventional = Reference{"a random forest on descriptors", r2(forest(judged, pool.threads()))};
    if (std::ranges::none_of(exact, [](double yield) { return std::isnan(yield); }))
      found.limit = Reference{"the noise of the measurements", r2(exact)};
    return found;
  }

  std::string present(const Predictions& found, ThreadPool&, page::Page& page) const override {
    const MoleculeAnswers all = answers(found.indices, found.outputs);
    std::vector<const Reaction*> reactions;
    for (const std::int64_t i : all.numbers) reactions.push_back(&reactions_[static_cast<std::size_t>(i)]);
    return present_yields(all, reactions, page);
  }

  // What the network knows of a molecule it has learnt in the role that the molecule plays.
  std::vector<std::string> outside(const Task& training) const override {
    const auto* other = dynamic_cast<const YieldTask*>(&training);
    if (!other) return {};
    std::array<std::set<std::string>, data::role_count> known;
    for (const Reaction& each : other->learnt_from())
      for (std::size_t role = 0; role < known.size(); ++role) known[role].insert(each.of_role[role]);
    std::vector<std::string> notes;
    for (const Reaction& each : reactions_) {
      std::vector<std::string> strange;
      for (std::size_t role = 0; role < known.size(); ++role)
        if (!known[role].contains(each.of_role[role]))
          strange.push_back(
              fmt::format("{} '{}'", data::role_name(static_cast<data::Role>(role)), each.of_role[role]));
      if (!strange.empty())
        notes.push_back(
            fmt::format("{}: not in the training data: {}", each.place, fmt::join(strange, ", ")));
    }
    return notes;
  }

 private:
  const MoleculeSample& sample(std::size_t number) const override { return reactions_[number]; }

  void fill_more(std::span<const std::size_t> chosen, std::size_t row,
                 std::span<Tensor> tensors) const override {
    const auto descriptors = row_of<float>(tensors[4], row);
    std::ranges::fill(descriptors, 0.0f);
    for (std::size_t place = 0; place < chosen.size(); ++place)
      std::ranges::copy(reactions_[chosen[place]].descriptors,
                        descriptors.begin() + static_cast<std::ptrdiff_t>(place * reaction_descriptors));
  }

  std::vector<std::string> columns() const override {
    std::vector<std::string> header{"id", "smiles", "yield"};
    if (has_labels()) header.emplace_back("measured");
    return header;
  }
  void write_cells(data::CsvWriter& table, std::size_t number, double found) const override {
    table.cell(reactions_[number].id).cell(sample(number).smiles).cell(static_cast<float>(found));
    if (has_labels()) table.cell(sample(number).label);
  }

  std::vector<double> ligand_means(const std::vector<const Reaction*>& judged) const {
    constexpr auto ligand = static_cast<std::size_t>(data::Role::ligand);
    std::map<std::string, std::pair<double, double>> sums;
    double all = 0;
    for (const Reaction& each : learnt_from()) {
      auto& [sum, count] = sums[each.of_role[ligand]];
      sum += each.label, count += 1, all += each.label;
    }
    std::vector<double> means;
    for (const Reaction* each : judged) {
      const auto found = sums.find(each->of_role[ligand]);
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
    for (const Reaction& each : learnt_from()) yields.push_back(each.label);
    return baseline::fit_trees(
        rows(
            learnt_from(), [](const Reaction& each) -> const auto& { return each.descriptors; }),
        yields,
        rows(
            judged, [](const Reaction* each) -> const auto& { return each->descriptors; }),
        baseline::random_forest(threads));
  }

  std::vector<Reaction> reactions_;
};

}  // namespace

std::unique_ptr<Task> open_reactions(const TaskSettings& settings, const Options& model) {
  std::vector<Reaction> read = read_reactions(settings);
  const auto split = model.integer("split", 1, 1000);
  const bool learns = std::ranges::none_of(read, [](const Reaction& each) { return std::isnan(each.label); });
  const auto held_out = [&](const Reaction& each) {
    const std::string place = fmt::format("split {} of {}", split, fmt::join(each.of_role, "|"));
    if (settings.folds > 0) return baseline::fold_of(place, settings.folds) == settings.fold - 1;
    return baseline::fold_of(place, parts_of_ten) < held_out_parts;
  };
  const auto is_known = [&](const Reaction& each) { return learns && !held_out(each); };
  const std::size_t training = read.size() - std::ranges::stable_partition(read, is_known).size();
  return std::make_unique<YieldTask>(std::move(read), training, yield_sizes(model), settings);
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
