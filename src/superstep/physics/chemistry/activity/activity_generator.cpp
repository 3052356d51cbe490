#include "superstep/physics/chemistry/activity/activity_generator.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "superstep/base/random.h"
#include "superstep/physics/chemistry/activity/binding.h"
#include "superstep/physics/chemistry/activity/drug_grammar.h"
#include "superstep/physics/chemistry/smiles.h"
#include "superstep/physics/row_writer.h"
#include "superstep/physics/sample_memory.h"

namespace superstep::data {
namespace {

constexpr int smiles_capacity = 192;
constexpr std::uint32_t purpose_molecule = 1, purpose_assay = 2;

struct Assay {
  double noise_sd, threshold;
};

struct Measured {
  std::string smiles;
  int atoms = 0;
  double exact = 0, measured = 0, probability = 0;
  bool active = false;
};

class ActivityGenerator : public Generator {
 public:
  explicit ActivityGenerator(const Assay& assay) : assay_(assay) {}

  std::string_view name() const override { return "gin"; }
  int version() const override { return 1; }
  std::span<const Field> fields() const override {
    static const std::vector<Field> fields = {
        {"smiles", ElementType::u8, {smiles_capacity}, "", "the molecule, ASCII padded with 0"},
        {"active", ElementType::u8, {}, "", "1: it was measured to bind: the label"},
        {"exponent", ElementType::f32, {}, "", "-log10 of the concentration measured, mol/l"},
        {"exact_exponent", ElementType::f32, {}, "", "the same without noise"},
        {"probability", ElementType::f32, {}, "", "that an assay finds it active"},
        {"atom_count", ElementType::i32, {}, "", "atoms but hydrogens"}};
    return fields;
  }

  void sample(std::uint64_t seed, std::uint64_t index, std::span<std::byte* const> out) const override {
    const Measured made = measure(seed, index);
    put_all<std::uint8_t>(out[0], made.smiles);
    put<std::uint8_t>(out[1], made.active);
    std::size_t field = 2;
    for (const double value : {made.measured, made.exact, made.probability})
      put(out[field++], static_cast<float>(value));
    put<std::int32_t>(out[field], made.atoms);
  }

  nlohmann::json parameters() const override {
    return {{"noise_sd", assay_.noise_sd}, {"threshold", assay_.threshold}};
  }

  void write(const WriteRequest& request) const override {
    if (!is_table_path(request.path)) return Generator::write(request);
    write_rows(request, {"smiles", "active", "exponent", "exact_exponent", "probability"},
               [&](std::uint64_t index) { return row(measure(request.seed, index)); });
  }

 private:
  static std::vector<std::string> row(const Measured& made) {
    const auto text = [](double value) { return number_text(static_cast<float>(value)); };
    return {made.smiles, made.active ? "1" : "0", text(made.measured), text(made.exact),
            text(made.probability)};
  }

  Measured measure(std::uint64_t seed, std::uint64_t index) const {
    Measured made;
    RandomStream grammar(seed, index, purpose_molecule), assay(seed, index, purpose_assay);
    made.smiles = draw_drug(grammar);
    const Molecule molecule = parse_smiles(made.smiles);
    made.atoms = molecule.atom_count();
    made.exact = binding_exponent(molecule);
    made.measured = made.exact + assay_.noise_sd * assay.normal();
    made.active = made.measured > assay_.threshold;
    const double above = made.exact - assay_.threshold;
    made.probability = assay_.noise_sd > 0 ? 0.5 * std::erfc(-above / (assay_.noise_sd * std::numbers::sqrt2))
                                           : static_cast<double>(above > 0);
    return made;
  }

  Assay assay_;
};

std::unique_ptr<Generator> make(const Options& options) {
  return std::make_unique<ActivityGenerator>(
      Assay{options.number("noise", 0, 10), options.number("threshold", -20, 20)});
}

}  // namespace

GeneratorEntry gin_generator() {
  return {"gin",
          "molecules like drugs, and whether an assay finds that they bind",
          {{"noise", "0.3", "standard deviation of the measured exponent (a factor of two in concentration)"},
           {"threshold", "7", "exponent above which a molecule is active: 7 is 0.1 micromol/l"}},
          make};
}

}  // namespace superstep::data
