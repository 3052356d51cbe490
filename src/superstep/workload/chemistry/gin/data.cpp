// Molecules in packs: a table of SMILES and labels, or generated ones.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "superstep/baseline/in_file.h"
#include "superstep/baseline/ranking.h"
#include "superstep/file/csv.h"
#include "superstep/physics/chemistry/scaffold.h"
#include "superstep/physics/chemistry/smiles.h"
#include "superstep/physics/row_writer.h"
#include "superstep/workload/chemistry/domain.h"
#include "superstep/workload/chemistry/gin/gin.h"
#include "superstep/workload/chemistry/pack_writer.h"
#include "superstep/workload/generated.h"
#include "superstep/workload/metrics.h"
#include "superstep/workload/packed_samples.h"

namespace superstep::workload {
namespace {

constexpr std::int64_t default_molecules = 20000;

std::vector<baseline::MoleculeRow> generated_rows(const TaskSettings& settings) {
  const Fields fields = generated_fields(*make_generator("gin"), settings, default_molecules);
  const Tensor &letters = fields.at("smiles"), &active = fields.at("active"),
               &exact = fields.at("probability");
  const std::int64_t width = letters.shape()[1];
  std::vector<baseline::MoleculeRow> rows;
  for (std::int64_t i = 0; i < letters.shape()[0]; ++i) {
    std::string smiles(reinterpret_cast<const char*>(letters.bytes()) + i * width,
                       static_cast<std::size_t>(width));
    smiles.resize(std::min(smiles.size(), smiles.find('\0')));
    rows.push_back({std::move(smiles), active.at(i), exact.at(i), fmt::format("generated molecule {}", i)});
  }
  return rows;
}

DrawnMolecule read_molecule(const baseline::MoleculeRow& row, bool labelled) {
  try {
    DrawnMolecule read{row.smiles, row.place, {data::parse_smiles(row.smiles), {}, false}, row.exact};
    if (read.assayed.molecule.atom_count() == 0)
      throw Error(ErrorCode::invalid_argument, "a molecule without atoms");
    read.assayed.scaffold = data::scaffold_smiles(read.assayed.molecule);
    if (labelled) read.assayed.active = baseline::read_label(row);
    return read;
  } catch (const Error& error) {
    throw baseline::in_file(error, row.place);
  }
}

struct Molecules {
  std::vector<DrawnMolecule> all;
  bool labelled = false;
};

Molecules read_molecules(const TaskSettings& settings) {
  std::vector<baseline::MoleculeRow> rows =
      settings.data.empty()
          ? generated_rows(settings)
          : baseline::read_molecule_rows(settings.data, baseline::activity_columns, settings.labels_required);
  if (settings.samples > 0 && static_cast<std::int64_t>(rows.size()) > settings.samples)
    rows.resize(static_cast<std::size_t>(settings.samples));
  if (rows.empty()) throw Error(ErrorCode::bad_file, "has no molecules", settings.data.string());
  const bool labelled =
      std::ranges::any_of(rows, [](const baseline::MoleculeRow& row) { return !std::isnan(row.label); });
  if (!labelled && settings.labels_required)
    throw Error(ErrorCode::bad_file, "has no molecule with a label", settings.data.string());
  Molecules read{.all = {}, .labelled = labelled};
  for (const baseline::MoleculeRow& row : rows) read.all.push_back(read_molecule(row, labelled));
  return read;
}

std::vector<GraphSize> sizes_of(std::span<const DrawnMolecule> molecules, const PackCapacity& capacity) {
  std::vector<GraphSize> sizes;
  for (const DrawnMolecule& each : molecules) {
    const data::Molecule& molecule = each.assayed.molecule;
    const GraphSize size{molecule.atom_count(), 2 * molecule.bond_count()};
    if (size.nodes > capacity.nodes || size.edges > capacity.edges)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("has {} atoms and {} bonds, a pack has room for {} and {}", size.nodes,
                              size.edges / 2, capacity.nodes, capacity.edges / 2),
                  each.place, "build the model with more --set atoms=N and --set edges=N");
    sizes.push_back(size);
  }
  return sizes;
}

using MoleculeViews = std::vector<const DrawnMolecule*>;

std::vector<const baseline::AssayedMolecule*> assayed(std::span<const DrawnMolecule* const> chosen) {
  std::vector<const baseline::AssayedMolecule*> all;
  for (const DrawnMolecule* each : chosen) all.push_back(&each->assayed);
  return all;
}

// What is measured by ranks: a span of bool wants memory of its own.
class Labels {
 public:
  explicit Labels(std::span<const DrawnMolecule* const> chosen)
      : count_(chosen.size()), active_(std::make_unique<bool[]>(chosen.size())) {
    for (std::size_t i = 0; i < count_; ++i) active_[i] = chosen[i]->assayed.active;
  }
  std::span<const bool> get() const { return {active_.get(), count_}; }

 private:
  std::size_t count_;
  std::unique_ptr<bool[]> active_;
};

// The mean of log(1 + e^z) - y z.
double cross_entropy(std::span<const double> odds, std::span<const bool> active) {
  double sum = 0;
  for (std::size_t i = 0; i < odds.size(); ++i)
    sum += std::max(odds[i], 0.0) + std::log1p(std::exp(-std::abs(odds[i]))) - (active[i] ? odds[i] : 0);
  return sum / static_cast<double>(odds.size());
}

// Samples are packs: those of the molecules that training learns from, then those of the others.
class GinTask : public Task {
 public:
  static constexpr std::size_t inputs = 4;

  // The first `training` molecules are learnt from; `order`: where each of all stood in the file.
  GinTask(Molecules molecules, std::size_t training, std::vector<std::size_t> order,
          const PackCapacity& capacity, const TaskSettings& settings)
      : molecules_(std::move(molecules)),
        order_(std::move(order)),
        packs_(sizes_of(molecules_.all, capacity), training, capacity, settings.seed),
        source_(settings.data.empty() ? generated_source(settings) : settings.data.string()) {}

  std::int64_t size() const override { return packs_.size(); }
  std::int64_t training_count() const override { return packs_.training_count(); }
  bool has_labels() const override { return molecules_.labelled; }

  void fill(std::span<const std::int64_t> indices, std::uint64_t epoch, bool augment,
            std::span<Tensor> tensors) const override {
    for (std::size_t row = 0; row < indices.size(); ++row) {
      const auto chosen = augment ? packs_.shuffled(indices[row], epoch) : packs_.graphs(indices[row]);
      PackWriter pack(tensors, row, true);
      for (const std::size_t i : chosen) pack.add(molecules_.all[i].assayed.molecule);
      if (tensors.size() > inputs) fill_targets(chosen, row, tensors[inputs], tensors[inputs + 1]);
    }
  }

  void fill_inputs(std::span<const std::int64_t> indices, std::span<Tensor> tensors,
                   ThreadPool&) const override {
    fill(indices, 0, false, tensors);
  }

  std::vector<Metric> quality(std::span<const std::int64_t> indices,
                              std::span<const Tensor> outputs) const override {
    const ActivityPredictions all = predictions(indices, outputs.first(1));
    const Labels labels(all.molecules);
    return {quality_metric("roc_auc", baseline::area_under_roc(all.odds, labels.get())),
            quality_metric("average_precision", baseline::average_precision(all.odds, labels.get())),
            quality_metric("cross_entropy", cross_entropy(all.odds, labels.get()))};
  }

  double reference_seconds() const override { return 20; }

  References references(std::span<const std::int64_t> indices, ThreadPool& pool) const override {
    MoleculeViews judged;
    for (const std::int64_t pack : indices)
      for (const std::size_t i : packs_.graphs(pack)) judged.push_back(&molecules_.all[i]);
    if (judged.empty() || packs_.training_graphs() == 0 || !has_labels()) return {};
    MoleculeViews known;
    for (const DrawnMolecule& each : learnt_from()) known.push_back(&each);
    const Labels labels(judged);
    const auto area = [&](const std::vector<double>& scores) {
      return baseline::area_under_roc(scores, labels.get());
    };
    References found;
    found.floor = Reference{"ridge on element counts",
                            area(baseline::score_by_elements(assayed(known), assayed(judged)))};
    found.conventional =
        Reference{"boosted trees on fingerprints",
                  area(baseline::score_by_fingerprints(assayed(known), assayed(judged), pool.threads()))};
    std::vector<double> exact;
    for (const DrawnMolecule* each : judged) exact.push_back(each->probability);
    if (std::ranges::none_of(exact, [](double value) { return std::isnan(value); }))
      found.limit = Reference{"the noise of the assay", area(exact)};
    return found;
  }

  std::string present(const Predictions& found, ThreadPool&, page::Page& page) const override {
    return present_activity(predictions(found.indices, found.outputs), page);
  }

  // A row a molecule, in the order in which they came.
  bool has_table() const override { return true; }
  void write_table(const std::filesystem::path& path, std::span<const Tensor> outputs) const override {
    std::vector<std::int64_t> all(static_cast<std::size_t>(size()));
    std::iota(all.begin(), all.end(), std::int64_t{0});
    const ActivityPredictions found = predictions(all, outputs.first(1));
    std::vector<std::size_t> rows(molecules_.all.size());
    for (std::size_t i = 0; i < rows.size(); ++i)
      rows[order_[static_cast<std::size_t>(found.samples[i])]] = i;
    std::vector<std::string> header{"smiles", "probability"};
    if (has_labels()) header.push_back("active");
    data::CsvWriter table(path, header);
    for (const std::size_t i : rows) {
      table.cell(found.molecules[i]->smiles)
          .cell(data::number_text(static_cast<float>(probability_of(found.odds[i]))));
      if (has_labels()) table.cell(found.molecules[i]->assayed.active ? "1" : "0");
      table.end_row();
    }
    table.close();
  }

  bool knows_domain() const override { return true; }
  std::vector<std::string> outside(const Task& training) const override {
    const auto* other = dynamic_cast<const GinTask*>(&training);
    if (!other) return {};
    Domain domain;
    for (const DrawnMolecule& each : other->learnt_from()) domain.learn(each.assayed.molecule);
    std::vector<std::string> notes;
    for (const DrawnMolecule& each : molecules_.all)
      if (std::string words = domain.outside(each.assayed.molecule); !words.empty())
        notes.push_back(
            fmt::format("{}: '{}' is unlike what was learnt from: {}", each.place, each.smiles, words));
    return notes;
  }

  nlohmann::json describe() const override {
    return {{"source", source_},
            {"samples", size()},
            {"training", training_count()},
            {"molecules", molecules_.all.size()},
            {"training_molecules", packs_.training_graphs()},
            {"packing", packs_.describe("molecules", "atoms", "edges")}};
  }

 private:
  std::span<const DrawnMolecule> learnt_from() const {
    return std::span(molecules_.all).first(packs_.training_graphs());
  }

  void fill_targets(const std::vector<std::size_t>& chosen, std::size_t row, Tensor& active,
                    Tensor& weight) const {
    const auto labels = row_of<float>(active, row), weights = row_of<float>(weight, row);
    std::ranges::fill(labels, 0.0f);
    std::ranges::fill(weights, 0.0f);
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      labels[i] = molecules_.all[chosen[i]].assayed.active;
      weights[i] = static_cast<float>(packs_.places_a_graph());
    }
  }

  // `outputs`: log-odds, and the contributions of atoms where they are wanted.
  ActivityPredictions predictions(std::span<const std::int64_t> indices,
                                  std::span<const Tensor> outputs) const {
    ActivityPredictions all;
    for (std::size_t row = 0; row < indices.size(); ++row) {
      auto place = static_cast<std::int64_t>(row) * outputs[0].shape()[1];
      auto atom = outputs.size() > 1 ? static_cast<std::int64_t>(row) * outputs[1].shape()[1] : 0;
      for (const std::size_t i : packs_.graphs(indices[row])) {
        all.molecules.push_back(&molecules_.all[i]);
        all.samples.push_back(static_cast<std::int64_t>(i));
        all.odds.push_back(outputs[0].at(place++));
        if (outputs.size() < 2) continue;
        std::vector<double>& shares = all.shares.emplace_back();
        for (int k = 0; k < molecules_.all[i].assayed.molecule.atom_count(); ++k)
          shares.push_back(outputs[1].at(atom++));
      }
    }
    return all;
  }

  Molecules molecules_;
  std::vector<std::size_t> order_;
  PackedSamples packs_;
  std::string source_;
};

}  // namespace

double probability_of(double odds) { return 1 / (1 + std::exp(-odds)); }

std::unique_ptr<Task> open_molecules(const TaskSettings& settings, const Options& model) {
  Molecules read = read_molecules(settings);
  const int fold = static_cast<int>(model.integer("fold", 1, baseline::activity_folds)) - 1;
  Molecules sorted{.all = {}, .labelled = read.labelled};
  std::vector<std::size_t> order;
  std::size_t training = 0;
  std::vector<bool> held;
  for (const DrawnMolecule& each : read.all)
    held.push_back(!read.labelled || baseline::is_in_fold(each.assayed.scaffold, fold));
  for (const bool others : {false, true}) {
    for (std::size_t i = 0; i < read.all.size(); ++i)
      if (held[i] == others) sorted.all.push_back(std::move(read.all[i])), order.push_back(i);
    if (!others) training = sorted.all.size();
  }
  return std::make_unique<GinTask>(std::move(sorted), training, std::move(order), gin_sizes(model).pack,
                                   settings);
}

}  // namespace superstep::workload
