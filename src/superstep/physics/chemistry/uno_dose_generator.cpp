#include "superstep/physics/chemistry/uno_dose_generator.h"

#include <mutex>
#include <nlohmann/json.hpp>

#include "superstep/base/random.h"
#include "superstep/physics/chemistry/uno_tables.h"
#include "superstep/physics/sample_memory.h"

namespace superstep::data {
namespace {

constexpr std::uint32_t purpose_row = 200;

// What all rows of a seed share.
struct Tables {
  Tables(std::uint64_t seed_, const UnoDoseSettings& settings)
      : seed(seed_), response(seed_, settings.variance) {
    for (int i = 0; i < settings.cells; ++i) cells.push_back(make_cell(seed, static_cast<std::uint64_t>(i)));
    for (int i = 0; i < settings.drugs; ++i) drugs.push_back(make_drug(seed, static_cast<std::uint64_t>(i)));
  }
  std::uint64_t seed;
  UnoResponse response;
  std::vector<UnoCell> cells;
  std::vector<UnoDrug> drugs;
};

class UnoDoseGenerator final : public Generator {
 public:
  explicit UnoDoseGenerator(const UnoDoseSettings& settings) : settings_(settings) {}

  std::string_view name() const override { return "uno"; }
  int version() const override { return 1; }
  std::span<const Field> fields() const override {
    static const std::vector<Field> table{
        {"cell_index", ElementType::i32, {}, "", "row of cell_rnaseq: split by it for unseen cells"},
        {"drug1_index", ElementType::i32, {}, "", "row of drug_descriptors and drug_fingerprints"},
        {"drug2_index", ElementType::i32, {}, "", "of the second drug; -1 where there is one alone"},
        {"dose1", ElementType::f32, {}, "log10 mol/l", "of the first drug"},
        {"dose2", ElementType::f32, {}, "log10 mol/l", "of the second; the lowest where there is none"},
        {"growth", ElementType::f32, {}, "", "measured survival at these doses: the label"},
        {"growth_exact", ElementType::f32, {}, "", "the same without noise and offset"},
        {"noise_sd", ElementType::f32, {}, "", "standard deviation of the measurement"}};
    return table;
  }

  void sample(std::uint64_t seed, std::uint64_t index, std::span<std::byte* const> out) const override {
    const std::shared_ptr<const Tables> tables = tables_of(seed);
    RandomStream random(seed, index, purpose_row);
    const auto cell = random.below(tables->cells.size()), first = random.below(tables->drugs.size());
    const auto second = random.below(tables->drugs.size());
    const bool two = random.uniform() < 0.5;
    const double dose1 = random.uniform(lowest_uno_dose, highest_uno_dose);
    const double dose2 = random.uniform(lowest_uno_dose, highest_uno_dose);
    const auto survival = [&](std::uint64_t drug, double dose) {
      return viability(tables->response.curve(tables->cells[cell], tables->drugs[drug]), dose);
    };
    const double exact = survival(first, dose1) * (two ? survival(second, dose2) : 1);
    const double noise = random.uniform(settings_.noise_low, settings_.noise_high);
    const double offset = settings_.study_sd * uno_study_offset(static_cast<int>(random.below(uno_studies)));
    put(out[0], static_cast<std::int32_t>(cell));
    put(out[1], static_cast<std::int32_t>(first));
    put(out[2], two ? static_cast<std::int32_t>(second) : std::int32_t{-1});
    put(out[3], static_cast<float>(dose1));
    put(out[4], static_cast<float>(two ? dose2 : lowest_uno_dose));
    put(out[5], static_cast<float>(exact + offset + noise * random.normal()));
    put(out[6], static_cast<float>(exact));
    put(out[7], static_cast<float>(noise));
  }

  std::map<std::string, Tensor> shared_arrays(std::uint64_t seed) const override {
    const std::shared_ptr<const Tables> tables = tables_of(seed);
    return {{"cell_rnaseq",
             Tensor::from<float>({settings_.cells, gene_count}, expression_table(seed, tables->cells))},
            {"drug_descriptors",
             Tensor::from<float>({settings_.drugs, descriptor_count}, descriptor_table(seed, tables->drugs))},
            {"drug_fingerprints", Tensor::from<float>({settings_.drugs, fingerprint_count},
                                                      fingerprint_table(seed, tables->drugs))}};
  }

  nlohmann::json parameters() const override {
    return {{"by", "dose"},
            {"cells", settings_.cells},
            {"drugs", settings_.drugs},
            {"noise_sd", {settings_.noise_low, settings_.noise_high}},
            {"study_sd", settings_.study_sd},
            {"AUC_exact_variance", settings_.variance},
            {"log10_concentration", {lowest_uno_dose, highest_uno_dose}}};
  }

 private:
  std::shared_ptr<const Tables> tables_of(std::uint64_t seed) const {
    const std::lock_guard lock(mutex_);
    if (!tables_ || tables_->seed != seed) tables_ = std::make_shared<const Tables>(seed, settings_);
    return tables_;
  }

  UnoDoseSettings settings_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const Tables> tables_;
};

}  // namespace

std::unique_ptr<Generator> make_uno_dose_generator(const UnoDoseSettings& settings) {
  return std::make_unique<UnoDoseGenerator>(settings);
}

}  // namespace superstep::data
