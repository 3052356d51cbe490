// CANDLE's Uno benchmark (Pilot 1): how strongly a drug inhibits a tumour cell line, from the cell's gene
// expression and the drug's molecular descriptors.
//
// cell f32 [N, 942], drug f32 [N, 5270] -> auc f32 [N, 1]. With by=dose: uno/dose.h.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "superstep/baseline/chemistry/uno_ridge.h"
#include "superstep/baseline/regression.h"
#include "superstep/op/move/movement.h"
#include "superstep/workload/chemistry/uno/dose.h"
#include "superstep/workload/generated.h"
#include "superstep/workload/layers.h"
#include "superstep/workload/metrics.h"
#include "superstep/workload/pictures/pictures.h"

namespace superstep::workload {
namespace {

struct UnoLayout {
  std::int64_t width;  // of every hidden layer
  double dropped;      // share of its outputs, in training
};

Var uno_tower(Layers& layers, Var x, const std::string& name, int depth, const UnoLayout& layout) {
  for (int i = 1; i <= depth; ++i) {
    const std::string layer = fmt::format("{}{}", name, i);
    x = layers.dropout(layers.relu(layers.dense(x, layer, layout.width)), layer + ".dropout", layout.dropped);
  }
  return x;
}

bool by_dose(const Options& options) {
  static const std::string kinds[] = {"auc", "dose"};
  return options.choice("by", kinds) == 1;
}

graph::Graph build_uno(std::int64_t batch, const Options& options, std::uint64_t seed) {
  if (by_dose(options)) return build_uno_dose(batch, options, seed);
  const UnoLayout layout{options.integer("width", 1, 16384), options.number("dropout", 0, 0.9)};
  graph::Graph graph("uno");
  Builder b(graph);
  Layers layers(b, seed);
  const Var cell = b.input("cell", ElementType::f32, {batch, 942});
  const Var drug = b.input("drug", ElementType::f32, {batch, 5270});
  const Var both[] = {uno_tower(layers, cell, "cell", 3, layout), uno_tower(layers, drug, "drug", 3, layout)};
  const Var x = uno_tower(layers, op::concat(both, 1), "joint", 5, layout);
  b.output("auc", layers.dense(x, "out", 1));
  graph.set_data(graph.find_value("out.bias"),
                 Tensor::full(ElementType::f32, {1}, options.number("mean", -10, 10)));
  return graph;
}

// --- data: cells and drugs with the measured area under the dose response curve. Features are in two tables,
// which rows point into; columns are brought to mean 0 and variance 1 over their table, as published.

using baseline::UnoPart;
using baseline::UnoRows;
using FeatureTable = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr std::int64_t default_uno_rows = 200000;
constexpr std::int64_t most_fitted_rows = 20000;  // rows that regressions are fitted to
constexpr double uno_training_share = 0.8;
constexpr int uno_components = 24;  // of each table, that regressions see

// Columns that do not vary become 0.
FeatureTable standardised(const Eigen::MatrixXd& table) {
  FeatureTable z(table.rows(), table.cols());
  for (Eigen::Index c = 0; c < table.cols(); ++c) {
    const double mean = table.col(c).mean();
    const Eigen::ArrayXd from_mean = table.col(c).array() - mean;
    const double deviation = std::sqrt(from_mean.square().mean());
    const bool varies = deviation > 1e-6 * (1 + std::abs(mean));
    z.col(c) = (from_mean * (varies ? 1 / deviation : 0)).cast<float>();
  }
  return z;
}

Eigen::MatrixXd matrix_of(const Tensor& table) {
  return Eigen::Map<const FeatureTable>(table.as<float>().data(), table.shape()[0], table.shape()[1])
      .cast<double>();
}

std::vector<int> whole_numbers(const Tensor& values) {
  const auto numbers = values.as<std::int32_t>();
  return {numbers.begin(), numbers.end()};
}

std::vector<double> numbers(const Tensor& values) {
  const auto some = values.as<float>();
  return {some.begin(), some.end()};
}

UnoRows generated_rows(const TaskSettings& settings) {
  const auto generator = make_generator("uno");
  const auto tables = generator->shared_arrays(settings.seed);
  const Fields fields = generated_fields(*generator, settings, default_uno_rows);
  return {.cells = matrix_of(tables.at("cell_rnaseq")),
          .drugs = matrix_of(tables.at("drug_descriptors")),
          .cell = whole_numbers(fields.at("cell_index")),
          .drug = whole_numbers(fields.at("drug_index")),
          .auc = numbers(fields.at("AUC")),
          .auc_exact = numbers(fields.at("AUC_exact"))};
}

class UnoTask : public Task {
 public:
  UnoTask(UnoRows rows, std::int64_t limit, std::string source)
      : rows_(std::move(rows)),
        cells_(standardised(rows_.cells)),
        drugs_(standardised(rows_.drugs)),
        source_(std::move(source)),
        size_(static_cast<std::int64_t>(rows_.cell.size())) {
    if (limit > 0) size_ = std::min(size_, limit);
  }

  std::int64_t size() const override { return size_; }
  std::int64_t training_count() const override {
    return static_cast<std::int64_t>(uno_training_share * static_cast<double>(size_));
  }
  bool has_labels() const override { return !rows_.auc.empty(); }

  void fill(std::span<const std::int64_t> indices, std::uint64_t, bool,
            std::span<Tensor> tensors) const override {
    fill_features(cells_, rows_.cell, indices, "cell", tensors[0].as<float>());
    fill_features(drugs_, rows_.drug, indices, "drug", tensors[1].as<float>());
    if (tensors.size() < 3) return;
    for (std::size_t i = 0; i < indices.size(); ++i)
      tensors[2].as<float>()[i] = static_cast<float>(rows_.auc[static_cast<std::size_t>(indices[i])]);
  }

  void fill_inputs(std::span<const std::int64_t> indices, std::span<Tensor> inputs,
                   ThreadPool&) const override {
    fill(indices, 0, false, inputs);
  }

  std::vector<Metric> quality(std::span<const std::int64_t> indices,
                              std::span<const Tensor> outputs) const override {
    const baseline::RegressionScore found = baseline::score(truth(indices), numbers(outputs[0]));
    return {quality_metric("r2", found.r2), quality_metric("mse", found.rmse * found.rmse),
            quality_metric("mae", found.mae)};
  }

  std::vector<Metric> spread_quality(std::span<const std::int64_t> indices, std::span<const Tensor> mean,
                                     std::span<const Tensor> spread) const override {
    std::vector<double> errors = numbers(mean[0]);
    const std::vector<double> measured = truth(indices);
    for (std::size_t i = 0; i < errors.size(); ++i) errors[i] -= measured[i];
    return spread_metrics(errors, numbers(spread[0]));
  }

  double reference_seconds() const override { return 5; }

  References references(std::span<const std::int64_t> indices, ThreadPool&) const override {
    UnoPart known(static_cast<std::size_t>(std::min(training_count(), most_fitted_rows)));
    std::iota(known.begin(), known.end(), std::size_t{0});
    const UnoPart others(indices.begin(), indices.end());
    if (known.empty() || others.empty()) return {};
    const baseline::UnoMethods methods(rows_, uno_components);
    const std::vector<double> measured = truth(indices);
    const auto r2 = [&](const std::vector<double>& predicted) {
      return baseline::score(measured, predicted).r2;
    };
    References found{.floor = Reference{"ridge regression", r2(methods.additive(known, others))},
                     .conventional = Reference{"ridge with products", r2(methods.products(known, others))},
                     .limit = {},
                     .target = {}};
    if (rows_.auc_exact.empty()) return found;
    std::vector<double> exact;
    for (const std::size_t row : others) exact.push_back(rows_.auc_exact[row]);
    found.limit = Reference{"the noise of the measurements", r2(exact)};
    return found;
  }

  std::string present(const Predictions& found, ThreadPool&, page::Page& page) const override {
    present_regression(page,
                       {.quantity = "Area under the dose response curve",
                        .unit = "",
                        .truth = truth(found.indices),
                        .found = numbers(found.outputs[0]),
                        .samples = {found.indices.begin(), found.indices.end()},
                        .spread = found.spread.empty() ? std::vector<double>() : numbers(found.spread[0])});
    return {};
  }

  nlohmann::json describe() const override {
    return {{"source", source_},
            {"samples", size_},
            {"training", training_count()},
            {"cells", rows_.cells.rows()},
            {"drugs", rows_.drugs.rows()}};
  }

 private:
  std::vector<double> truth(std::span<const std::int64_t> indices) const {
    std::vector<double> values;
    for (const std::int64_t index : indices) values.push_back(rows_.auc[static_cast<std::size_t>(index)]);
    return values;
  }

  void fill_features(const FeatureTable& table, const std::vector<int>& row,
                     std::span<const std::int64_t> indices, const char* name, std::span<float> to) const {
    const auto width = static_cast<std::size_t>(table.cols());
    if (to.size() != width * indices.size())
      throw Error(ErrorCode::bad_file,
                  fmt::format("has {} features, the model takes {}", width, to.size() / indices.size()),
                  fmt::format("{}: table of '{}'", source_, name));
    for (std::size_t i = 0; i < indices.size(); ++i)
      std::copy_n(table.row(row[static_cast<std::size_t>(indices[i])]).data(), width, &to[i * width]);
  }

  UnoRows rows_;
  FeatureTable cells_, drugs_;  // standardised
  std::string source_;
  std::int64_t size_;
};

std::unique_ptr<Task> open_uno(const TaskSettings& settings, const Options& model) {
  if (by_dose(model)) return open_uno_dose(settings);
  if (settings.data.empty())
    return std::make_unique<UnoTask>(generated_rows(settings), 0, generated_source(settings));
  return std::make_unique<UnoTask>(baseline::read_uno(settings.data, settings.labels_required, false),
                                   settings.samples, settings.data.string());
}

}  // namespace

Workload uno() {
  return {
      .name = "uno",
      .summary = "response of tumour cells to drugs: a wide perceptron on two tables of features",
      .options = {{"by", "auc",
                   "auc: the area under a curve; dose: survival at single doses of one drug or two"},
                  {"width", "1000", "of every hidden layer"},
                  {"dropout", "0", "share of a hidden layer's outputs that training drops"},
                  {"mean", "0.75", "AUC that training begins at"}},
      .build = build_uno,
      .parameters = 16224001,
      .flops = 32459001,
      .inputs = {{"cell", ElementType::f32, {942}, "", "gene expression, standardized"},
                 {"drug", ElementType::f32, {5270}, "", "molecular descriptors, standardized"}},
      .outputs = {{"auc", ElementType::f32, {1}, "", "area under the dose response curve"}},
      .targets = {{"target", ElementType::f32, {1}, "", "area under the dose response curve"}},
      // Adam, larger batches, more rows in fewer epochs, and nothing dropped: without masks at inference,
      // layers that were trained under them give too little (a relu's mean rises with its noise).
      .training = {.batch = 128,
                   .epochs = 4,
                   .loss = {{transform::LossTerm{.kind = transform::LossKind::mse}}},
                   .optimizer = {.kind = transform::OptimizerKind::adam},
                   .learning_rate = 3e-4,
                   .schedule = {.kind = Schedule::Kind::cosine, .warm_up_share = 0.02}},
      // The rate comes down from the optimiser's own, 2e-3 (Kingma and Ba, section 7.1), over five epochs.
      .published = Recipe{.batch = 32,
                          .epochs = 50,
                          .loss = {{transform::LossTerm{.kind = transform::LossKind::mse}}},
                          .optimizer = {.kind = transform::OptimizerKind::adamax},
                          .learning_rate = 1e-4,
                          .schedule = {.kind = Schedule::Kind::plateau,
                                       .final_share = 0.1,
                                       .warm_up_epochs = 5,
                                       .warm_up_from = 2e-3,
                                       .warm_up_by_epoch = true,
                                       .factor = 0.5,
                                       .patience = 5,
                                       .monitor = "mse",
                                       .give_up = 10},
                          .passes = 30,
                          .model_options = {"dropout=0.1"},
                          .source = "CANDLE, Pilot 1 Uno, by AUC; the epsilon of Adamax is its paper's"},
      .by_default = RecipeName::quick,
      .open = open_uno,
      .metrics = {{"r2", "", true}, {"mse", ""}, {"mae", ""}},
      // The noise of the measurements allows about 0.8.
      .target = QualityTarget{.metric = "r2", .value = 0.75, .higher_is_better = true},
  };
}

}  // namespace superstep::workload
