#include "superstep/physics/chemistry/uno_generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/random.h"
#include "superstep/file/hdf5/pytables.h"
#include "superstep/physics/chemistry/uno_dose_generator.h"
#include "superstep/physics/chemistry/uno_tables.h"
#include "superstep/physics/index_permutation.h"
#include "superstep/physics/ordered_samples.h"
#include "superstep/physics/row_writer.h"
#include "superstep/physics/sample_memory.h"

namespace superstep::data {
namespace {

constexpr std::uint32_t purpose_pairs = 100, purpose_measurement = 1000;
constexpr double lowest_dose = lowest_uno_dose, highest_dose = highest_uno_dose;

enum FileLayout { indexed, dense, pandas };

const std::vector<std::string> layout_names = {"indexed", "dense", "pandas"};

struct Settings {
  int cells, drugs, doses;
  FileLayout layout;
  double noise_low, noise_high, study_sd, variance;
};

// What all rows of a seed share.
struct Tables {
  Tables(std::uint64_t seed_, const Settings& settings) : seed(seed_), response(seed_, settings.variance) {
    for (int i = 0; i < settings.cells; ++i) cells.push_back(make_cell(seed, static_cast<std::uint64_t>(i)));
    for (int i = 0; i < settings.drugs; ++i) drugs.push_back(make_drug(seed, static_cast<std::uint64_t>(i)));
    expression = expression_table(seed, cells);
    descriptors = descriptor_table(seed, drugs);
  }
  std::uint64_t seed;
  UnoResponse response;
  std::vector<UnoCell> cells;
  std::vector<UnoDrug> drugs;
  std::vector<float> expression, descriptors;
};

struct Row {
  int cell, drug, study;
  HillCurve curve;
  double exact, noise_sd, measured;
  std::vector<double> viabilities;
};

std::vector<Field> fields_for(const Settings& settings) {
  std::vector<Field> fields = {
      {"cell_index", ElementType::i32, {}, "", "row of cell_rnaseq: split by it for unseen cells"},
      {"drug_index", ElementType::i32, {}, "", "row of drug_descriptors"},
      {"study", ElementType::i32, {}, "", "study 0 to 4 that measured the pair"},
      {"AUC", ElementType::f32, {}, "", "measured area under the dose response curve: the label"},
      {"AUC_exact", ElementType::f32, {}, "", "the same without noise and offset"},
      {"log10_EC50", ElementType::f32, {}, "log10 mol/l", "half-maximal concentration"},
      {"hill_slope", ElementType::f32, {}, "", "slope of the curve"},
      {"Einf", ElementType::f32, {}, "", "what survives any dose"},
      {"noise_sd", ElementType::f32, {}, "", "standard deviation of the measurement"},
  };
  if (settings.doses > 0)
    fields.push_back({"viability",
                      ElementType::f32,
                      {settings.doses},
                      "",
                      "measured survival at log10 concentrations from -10 to -4 in equal steps"});
  if (settings.layout == dense) {
    fields.push_back({"cell", ElementType::f32, {gene_count}, "", "gene expression of the cell line"});
    fields.push_back({"drug", ElementType::f32, {descriptor_count}, "", "descriptors of the drug"});
  }
  return fields;
}

std::string cell_name(const Row& row) { return fmt::format("CELL.{}", row.cell); }
std::string drug_name(const Row& row) { return fmt::format("DRUG.{}", row.drug); }

std::vector<std::string> numbered(const char* prefix, int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back(fmt::format("{}{}", prefix, i));
  return names;
}

// The three frames of one part of the data, written some hundred rows at a time.
class FrameSet {
 public:
  FrameSet(PandasWriter& file, const std::string& part, std::uint64_t rows)
      : file_(&file),
        genes_key_("x_" + part + "_0"),
        drugs_key_("x_" + part + "_1"),
        labels_key_("y_" + part) {
    const auto count = static_cast<std::int64_t>(rows);
    file.create(genes_key_, count, numbered("G", gene_count));
    file.create(drugs_key_, count, numbered("D", descriptor_count));
    file.create(labels_key_, count, {"AUC"}, {"Sample", "Drug1"});
  }

  void add(std::span<const float> genes, std::span<const float> descriptors, const Row& row) {
    genes_.insert(genes_.end(), genes.begin(), genes.end());
    descriptors_.insert(descriptors_.end(), descriptors.begin(), descriptors.end());
    auc_.push_back(static_cast<float>(row.measured));
    names_[0].push_back(cell_name(row));
    names_[1].push_back(drug_name(row));
    if (auc_.size() == 256) flush();
  }

  void flush() {
    if (auc_.empty()) return;
    file_->write_rows(genes_key_, written_, genes_);
    file_->write_rows(drugs_key_, written_, descriptors_);
    file_->write_rows(labels_key_, written_, auc_, names_);
    written_ += static_cast<std::int64_t>(auc_.size());
    for (auto* values : {&genes_, &descriptors_, &auc_}) values->clear();
    for (auto& column : names_) column.clear();
  }

 private:
  PandasWriter* file_;
  std::string genes_key_, drugs_key_, labels_key_;
  std::vector<float> genes_, descriptors_, auc_;
  std::vector<std::vector<std::string>> names_{2};
  std::int64_t written_ = 0;
};

class UnoGenerator final : public Generator {
 public:
  explicit UnoGenerator(const Settings& settings) : settings_(settings), fields_(fields_for(settings)) {}

  std::string_view name() const override { return "uno"; }
  int version() const override { return 1; }
  std::span<const Field> fields() const override { return fields_; }

  void sample(std::uint64_t seed, std::uint64_t index, std::span<std::byte* const> out) const override {
    const std::shared_ptr<const Tables> tables = tables_of(seed);
    const Row made = row(*tables, index);
    put<std::int32_t>(out[0], made.cell);
    put<std::int32_t>(out[1], made.drug);
    put<std::int32_t>(out[2], made.study);
    std::size_t field = 3;
    for (const double value : {made.measured, made.exact, made.curve.log10_ec50, made.curve.slope,
                               made.curve.floor, made.noise_sd})
      put(out[field++], static_cast<float>(value));
    if (settings_.doses > 0) put_all<float>(out[field++], made.viabilities);
    if (settings_.layout != dense) return;
    put_all<float>(out[field++], table_row(tables->expression, made.cell, gene_count));
    put_all<float>(out[field++], table_row(tables->descriptors, made.drug, descriptor_count));
  }

  std::map<std::string, Tensor> shared_arrays(std::uint64_t seed) const override {
    const std::shared_ptr<const Tables> tables = tables_of(seed);
    std::vector<std::int32_t> types;
    for (const UnoCell& cell : tables->cells) types.push_back(cell.tumour_type);
    return {
        {"cell_rnaseq", Tensor::from<float>({settings_.cells, gene_count}, tables->expression)},
        {"drug_descriptors", Tensor::from<float>({settings_.drugs, descriptor_count}, tables->descriptors)},
        {"cell_tumour_type", Tensor::from<std::int32_t>({settings_.cells}, types)}};
  }

  nlohmann::json parameters() const override {
    return {{"cells", settings_.cells},
            {"drugs", settings_.drugs},
            {"layout", layout_names[settings_.layout]},
            {"doses", settings_.doses},
            {"noise_sd", {settings_.noise_low, settings_.noise_high}},
            {"study_sd", settings_.study_sd},
            {"AUC_exact_variance", settings_.variance},
            {"log10_concentration", {lowest_dose, highest_dose}}};
  }

  void write(const WriteRequest& request) const override {
    if (!is_table_path(request.path))
      return settings_.layout == pandas ? write_pandas(request) : Generator::write(request);
    const std::shared_ptr<const Tables> tables = tables_of(request.seed);
    write_rows(request, {"Sample", "Drug1", "Study", "AUC"}, [&](std::uint64_t index) {
      const Row made = row(*tables, index);
      return std::vector<std::string>{cell_name(made), drug_name(made), fmt::format("STUDY.{}", made.study),
                                      number_text(static_cast<float>(made.measured))};
    });
  }

 private:
  static std::span<const float> table_row(const std::vector<float>& table, int row, int width) {
    return {table.data() + static_cast<std::size_t>(row) * static_cast<std::size_t>(width),
            static_cast<std::size_t>(width)};
  }

  // The frames that the public benchmark reads: x_train_0 (genes), x_train_1 (descriptors) and y_train, and
  // the same for val and test: 80, 10 and 10 per cent of the rows.
  void write_pandas(const WriteRequest& request) const {
    const std::shared_ptr<const Tables> tables = tables_of(request.seed);
    PandasWriter file(request.path);
    std::vector<FrameSet> sets;
    const std::uint64_t ends[] = {request.samples * 8 / 10, request.samples * 9 / 10, request.samples};
    for (const char* name : {"train", "val", "test"})
      sets.emplace_back(file, name, ends[sets.size()] - (sets.empty() ? 0 : ends[sets.size() - 1]));
    std::uint64_t index = 0;
    for_samples_in_order(
        request, [&](std::uint64_t i) { return row(*tables, i); },
        [&](const Row& made) {
          const std::size_t which = static_cast<std::size_t>(std::ranges::upper_bound(ends, index++) - ends);
          sets[which].add(table_row(tables->expression, made.cell, gene_count),
                          table_row(tables->descriptors, made.drug, descriptor_count), made);
        });
    for (FrameSet& set : sets) set.flush();
    file.close();
  }

  std::shared_ptr<const Tables> tables_of(std::uint64_t seed) const {
    const std::lock_guard lock(mutex_);
    if (!tables_ || tables_->seed != seed) tables_ = std::make_shared<const Tables>(seed, settings_);
    return tables_;
  }

  // Rows go through all pairs in shuffled order, then measure them again.
  Row row(const Tables& tables, std::uint64_t index) const {
    const std::uint64_t pairs = tables.cells.size() * tables.drugs.size();
    const std::uint64_t pair = IndexPermutation(tables.seed, pairs, purpose_pairs)(index % pairs);
    Row made;
    made.cell = static_cast<int>(pair / tables.drugs.size());
    made.drug = static_cast<int>(pair % tables.drugs.size());
    made.curve = tables.response.curve(tables.cells[static_cast<std::size_t>(made.cell)],
                                       tables.drugs[static_cast<std::size_t>(made.drug)]);
    made.exact = area_under_curve(made.curve, lowest_dose, highest_dose);
    RandomStream random(tables.seed, pair, purpose_measurement + static_cast<std::uint32_t>(index / pairs));
    made.study = static_cast<int>(random.below(uno_studies));
    made.noise_sd = random.uniform(settings_.noise_low, settings_.noise_high);
    const double offset = settings_.study_sd * uno_study_offset(made.study);
    made.measured = made.exact + offset + made.noise_sd * random.normal();
    for (int i = 0; i < settings_.doses; ++i)
      made.viabilities.push_back(viability(made.curve, dose(i)) + offset + made.noise_sd * random.normal());
    return made;
  }

  double dose(int place) const {
    return settings_.doses < 2 ? (lowest_dose + highest_dose) / 2
                               : lowest_dose + (highest_dose - lowest_dose) * place / (settings_.doses - 1);
  }

  Settings settings_;
  std::vector<Field> fields_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const Tables> tables_;
};

std::vector<OptionSpec> uno_options() {
  return {
      {"by", "auc", "auc: a row is a curve, by its area; dose: a row is one dose of one drug or two"},
      {"cells", "1000", "number of cell lines"},
      {"drugs", "530", "number of drugs"},
      {"layout", "indexed", "indexed: features in two tables; dense: in every row; pandas: frames"},
      {"doses", "0", "points of the measured dose response curve to store in each row"},
      {"noise-low", "0.03", "smallest standard deviation of a measurement"},
      {"noise-high", "0.05", "largest standard deviation of a measurement"},
      {"study-sd", "0.056", "standard deviation of the offsets of the five studies"},
      {"variance", "0.0192", "variance of the exact AUC over cells and drugs"},
  };
}

std::unique_ptr<Generator> make_uno_generator(const Options& options) {
  static const std::string kinds[] = {"auc", "dose"};
  const double low = options.number("noise-low", 0, 1);
  const Settings settings{static_cast<int>(options.integer("cells", 1, 1000000)),
                          static_cast<int>(options.integer("drugs", 1, 100000)),
                          static_cast<int>(options.integer("doses", 0, 1000)),
                          static_cast<FileLayout>(options.choice("layout", layout_names)),
                          low,
                          options.number("noise-high", low, 1),
                          options.number("study-sd", 0, 1),
                          options.number("variance", 0, 0.06)};
  if (options.choice("by", kinds) == 0) return std::make_unique<UnoGenerator>(settings);
  if (settings.layout != indexed || settings.doses > 0)
    throw Error(ErrorCode::invalid_argument, "rows of single doses have neither another layout nor curves",
                "by=dose", "leave layout and doses away");
  return make_uno_dose_generator({settings.cells, settings.drugs, settings.noise_low, settings.noise_high,
                                  settings.study_sd, settings.variance});
}

}  // namespace

GeneratorEntry uno_generator() {
  return {"uno", "response of tumour cell lines to drugs: expression, descriptors, AUC", uno_options(),
          make_uno_generator};
}

}  // namespace superstep::data
