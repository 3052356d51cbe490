#include "superstep/data/uno_generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "superstep/base/random.h"
#include "superstep/data/index_permutation.h"
#include "superstep/data/row_writer.h"
#include "superstep/data/sample_memory.h"
#include "superstep/data/uno_tables.h"

namespace superstep::data {
namespace {

constexpr std::uint32_t purpose_pairs = 100, purpose_measurement = 1000;
constexpr int studies = 5;
constexpr double lowest_dose = -10, highest_dose = -4;  // log10 mol/l

struct Settings {
  int cells, drugs, doses;
  bool dense;
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

// Offsets of equal steps with the standard deviation 1.
double study_offset(int study) { return (study - 2) / std::sqrt(2.0); }

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
  if (settings.dense) {
    fields.push_back({"cell", ElementType::f32, {gene_count}, "", "gene expression of the cell line"});
    fields.push_back({"drug", ElementType::f32, {descriptor_count}, "", "descriptors of the drug"});
  }
  return fields;
}

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
    if (!settings_.dense) return;
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
            {"layout", settings_.dense ? "dense" : "indexed"},
            {"doses", settings_.doses},
            {"noise_sd", {settings_.noise_low, settings_.noise_high}},
            {"study_sd", settings_.study_sd},
            {"AUC_exact_variance", settings_.variance},
            {"log10_concentration", {lowest_dose, highest_dose}}};
  }

  void write(const WriteRequest& request) const override {
    if (!is_table_path(request.path)) return Generator::write(request);
    const std::shared_ptr<const Tables> tables = tables_of(request.seed);
    write_rows(request, {"Sample", "Drug1", "Study", "AUC"}, [&](std::uint64_t index) {
      const Row made = row(*tables, index);
      return std::vector<std::string>{fmt::format("CELL.{}", made.cell), fmt::format("DRUG.{}", made.drug),
                                      fmt::format("STUDY.{}", made.study),
                                      number_text(static_cast<float>(made.measured))};
    });
  }

 private:
  static std::span<const float> table_row(const std::vector<float>& table, int row, int width) {
    return {table.data() + static_cast<std::size_t>(row) * static_cast<std::size_t>(width),
            static_cast<std::size_t>(width)};
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
    made.study = static_cast<int>(random.below(studies));
    made.noise_sd = random.uniform(settings_.noise_low, settings_.noise_high);
    const double offset = settings_.study_sd * study_offset(made.study);
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
      {"cells", "1000", "number of cell lines"},
      {"drugs", "530", "number of drugs"},
      {"layout", "indexed", "indexed: features in two tables; dense: features in every row"},
      {"doses", "0", "points of the measured dose response curve to store in each row"},
      {"noise-low", "0.03", "smallest standard deviation of a measurement"},
      {"noise-high", "0.05", "largest standard deviation of a measurement"},
      {"study-sd", "0.056", "standard deviation of the offsets of the five studies"},
      {"variance", "0.0192", "variance of the exact AUC over cells and drugs"},
  };
}

std::unique_ptr<Generator> make_uno_generator(const Options& options) {
  const std::vector<std::string> layouts = {"indexed", "dense"};
  const double low = options.number("noise-low", 0, 1);
  return std::make_unique<UnoGenerator>(
      Settings{static_cast<int>(options.integer("cells", 1, 1000000)),
               static_cast<int>(options.integer("drugs", 1, 100000)),
               static_cast<int>(options.integer("doses", 0, 1000)), options.choice("layout", layouts) == 1,
               low, options.number("noise-high", low, 1), options.number("study-sd", 0, 1),
               options.number("variance", 0, 0.06)});
}

}  // namespace

GeneratorEntry uno_generator() {
  return {"uno", "response of tumour cell lines to drugs: expression, descriptors, AUC", uno_options(),
          make_uno_generator};
}

}  // namespace superstep::data
