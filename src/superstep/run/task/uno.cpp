// Cells and drugs with the measured area under the dose response curve: features in two tables, which rows
// point into. Columns are brought to mean 0 and variance 1 over their table, as published.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "superstep/baseline/regression.h"
#include "superstep/baseline/uno_ridge.h"
#include "superstep/data/generator.h"
#include "superstep/run/task/pictures.h"
#include "superstep/run/task/table.h"
#include "superstep/run/task/tasks.h"

namespace superstep::run {
namespace {

using baseline::UnoPart;
using baseline::UnoRows;
using Features = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr std::int64_t default_samples = 50000;
constexpr std::int64_t most_fitted = 20000;  // rows that regressions are fitted to
constexpr double training_share = 0.8;
constexpr int components = 24;  // of each table, that regressions see

// Columns that do not vary become 0.
Features standardised(const Eigen::MatrixXd& table) {
  Features z(table.rows(), table.cols());
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
  return Eigen::Map<const Features>(table.as<float>().data(), table.shape()[0], table.shape()[1])
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
  const data::GeneratorEntry& entry = data::find_generator("uno");
  const auto generator = entry.make(Options(entry.options, {}));
  const std::int64_t count = settings.samples > 0 ? settings.samples : default_samples;
  const auto tables = generator->shared_arrays(settings.seed);
  UnoRows rows;
  rows.cells = matrix_of(tables.at("cell_rnaseq"));
  rows.drugs = matrix_of(tables.at("drug_descriptors"));
  const std::vector<Tensor> fields = data::generate_in_memory(
      *generator, settings.seed, 0, static_cast<std::uint64_t>(count), *settings.pool);
  for (std::size_t f = 0; f < fields.size(); ++f) {
    const std::string& name = generator->fields()[f].name;
    if (name == "cell_index") rows.cell = whole_numbers(fields[f]);
    if (name == "drug_index") rows.drug = whole_numbers(fields[f]);
    if (name == "AUC") rows.auc = numbers(fields[f]);
    if (name == "AUC_exact") rows.auc_exact = numbers(fields[f]);
  }
  return rows;
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
    return static_cast<std::int64_t>(training_share * static_cast<double>(size_));
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

  double reference_seconds() const override { return 5; }

  References references(std::span<const std::int64_t> indices, ThreadPool&) const override {
    UnoPart known(static_cast<std::size_t>(std::min(training_count(), most_fitted)));
    std::iota(known.begin(), known.end(), std::size_t{0});
    const UnoPart others(indices.begin(), indices.end());
    if (known.empty() || others.empty()) return {};
    const baseline::UnoMethods methods(rows_, components);
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
    present_regression(page, {.quantity = "Area under the dose response curve",
                              .unit = "",
                              .truth = truth(found.indices),
                              .found = numbers(found.outputs[0]),
                              .samples = {found.indices.begin(), found.indices.end()}});
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

  void fill_features(const Features& table, const std::vector<int>& row,
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
  Features cells_, drugs_;  // standardised
  std::string source_;
  std::int64_t size_;
};

}  // namespace

std::unique_ptr<Task> open_uno_task(const TaskSettings& settings, const Options&) {
  if (settings.data.empty())
    return std::make_unique<UnoTask>(generated_rows(settings), 0,
                                     fmt::format("generated, seed {}", settings.seed));
  return std::make_unique<UnoTask>(baseline::read_uno(settings.data, settings.labels_required),
                                   settings.samples, settings.data.string());
}

}  // namespace superstep::run
