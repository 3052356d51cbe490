#include "superstep/physics/chemistry/polymer_generator.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "superstep/base/random.h"
#include "superstep/physics/chemistry/molecule_features.h"
#include "superstep/physics/chemistry/polymer_grammar.h"
#include "superstep/physics/chemistry/polymer_groups.h"
#include "superstep/physics/chemistry/smiles.h"
#include "superstep/physics/index_permutation.h"
#include "superstep/physics/row_writer.h"
#include "superstep/physics/sample_memory.h"

namespace superstep::data {
namespace {

// Corrections to sum Yg, K kg/mol, so that poly(n-butyl acrylate) falls to 219 K and the isophthalates below
// the terephthalates.
constexpr double side_methylene_correction = -1.4, ordered_side_methylene_correction = 1.3,
                 meta_correction = -4.0;
constexpr int disordered_side_methylenes = 9;

constexpr int atom_capacity = 64, edge_capacity = 144, smiles_capacity = 128;
constexpr std::uint32_t purpose_shuffle = 1, purpose_measurement = 2;

struct Settings {
  double fox_flory, noise_low, noise_high, outlier_fraction, outlier_sd;
};

struct Measurement {
  std::uint64_t unit;
  std::string smiles;
  int family;
  Molecule molecule;
  double exact, infinite, molar_mass, noise_sd, measured;
  bool outlier;
};

const std::vector<Field>& polymer_fields() {
  static const std::vector<Field> fields = {
      {"x",
       ElementType::f32,
       {atom_capacity, atom_feature_count},
       "",
       "atom features, rows beyond atom_count are 0"},
      {"edge_index",
       ElementType::i32,
       {2, edge_capacity},
       "",
       "source and target atom of each edge, both directions"},
      {"edge_attr", ElementType::f32, {edge_capacity, bond_feature_count}, "", "bond features of each edge"},
      {"atom_count", ElementType::i32, {}, "", "rows of x that are used"},
      {"edge_count", ElementType::i32, {}, "", "edges that are used"},
      {"Tg_K", ElementType::f32, {}, "K", "measured glass transition temperature: the label"},
      {"Tg_exact_K", ElementType::f32, {}, "K", "glass transition temperature without noise, at this Mn"},
      {"Tg_infinite_K", ElementType::f32, {}, "K", "the same for an infinitely long chain"},
      {"Mn", ElementType::f32, {}, "g/mol", "number-average molar mass"},
      {"noise_sd_K", ElementType::f32, {}, "K", "standard deviation of the measurement"},
      {"outlier", ElementType::u8, {}, "", "1: a gross error was added"},
      {"family", ElementType::i32, {}, "", "family of the grammar, see the parameters"},
      {"unit", ElementType::i32, {}, "", "number of the repeat unit: split by it"},
      {"smiles", ElementType::u8, {smiles_capacity}, "", "repeat unit, ASCII padded with 0"},
  };
  return fields;
}

class PolymerGenerator : public Generator {
 public:
  PolymerGenerator(std::string name, const Settings& settings)
      : name_(std::move(name)), settings_(settings) {}

  std::string_view name() const override { return name_; }
  int version() const override { return 1; }
  std::span<const Field> fields() const override { return polymer_fields(); }

  void sample(std::uint64_t seed, std::uint64_t index, std::span<std::byte* const> out) const override {
    const Measurement made = measure(seed, index);
    fill_graph(made.molecule,
               {elements<float>(out[0], atom_capacity * atom_feature_count),
                elements<std::int32_t>(out[1], 2 * edge_capacity),
                elements<float>(out[2], edge_capacity * bond_feature_count), atom_capacity, edge_capacity});
    put<std::int32_t>(out[3], made.molecule.atom_count());
    put<std::int32_t>(out[4], 2 * made.molecule.bond_count());
    std::size_t field = 5;
    for (const double value : {made.measured, made.exact, made.infinite, made.molar_mass, made.noise_sd})
      put(out[field++], static_cast<float>(value));
    put<std::uint8_t>(out[field++], made.outlier);
    put<std::int32_t>(out[field++], made.family);
    put(out[field++], static_cast<std::int32_t>(made.unit));
    put_all<std::uint8_t>(out[field], made.smiles);
  }

  nlohmann::json parameters() const override {
    nlohmann::json families = nlohmann::json::array();
    for (const PolymerFamily& family : polymer_families()) families.push_back(family.name);
    return {{"fox_flory_K_g_per_mol", settings_.fox_flory}, {"noise_low_K", settings_.noise_low},
            {"noise_high_K", settings_.noise_high},         {"outlier_fraction", settings_.outlier_fraction},
            {"outlier_sd_K", settings_.outlier_sd},         {"families", families},
            {"repeat_units", repeat_unit_count()}};
  }

  // .csv and .tsv hold the SMILES and the label; anything else is HDF5.
  void write(const WriteRequest& request) const override {
    if (!is_table_path(request.path)) return Generator::write(request);
    write_rows(request, {"smiles", "Tg_K", "Tg_exact_K", "Mn", "noise_sd_K", "outlier", "family", "unit"},
               [&](std::uint64_t index) { return row(measure(request.seed, index)); });
  }

 private:
  static std::vector<std::string> row(const Measurement& made) {
    const auto text = [](double value) { return number_text(static_cast<float>(value)); };
    return {made.smiles,
            text(made.measured),
            text(made.exact),
            text(made.molar_mass),
            text(made.noise_sd),
            made.outlier ? "1" : "0",
            polymer_families()[static_cast<std::size_t>(made.family)].name,
            std::to_string(made.unit)};
  }

  Measurement measure(std::uint64_t seed, std::uint64_t index) const {
    Measurement made;
    const std::uint64_t units = repeat_unit_count();
    made.unit = IndexPermutation(seed, units, purpose_shuffle)(index % units);
    RepeatUnit unit = repeat_unit(made.unit);
    made.molecule = parse_smiles(unit.smiles);
    made.smiles = std::move(unit.smiles);
    made.family = unit.family;
    made.infinite = infinite_glass_transition(made.molecule);
    RandomStream random(seed, index, purpose_measurement);
    made.molar_mass = std::pow(10.0, random.uniform(4, 6));
    made.exact = made.infinite - settings_.fox_flory / made.molar_mass;
    made.noise_sd = random.uniform(settings_.noise_low, settings_.noise_high);
    made.outlier = random.uniform() < settings_.outlier_fraction;
    made.measured = made.exact + made.noise_sd * random.normal();
    if (made.outlier) made.measured += settings_.outlier_sd * random.normal();
    return made;
  }

  std::string name_;
  Settings settings_;
};

std::vector<OptionSpec> polymer_options() {
  return {
      {"fox-flory", "1e5", "K of Tg = Tg(infinite) - K/Mn, K g/mol (polystyrene 1e5)"},
      {"noise-low", "15", "smallest standard deviation of a measurement, K"},
      {"noise-high", "25", "largest standard deviation of a measurement, K"},
      {"outliers", "0.03", "fraction of measurements with a gross error"},
      {"outlier-sd", "100", "standard deviation of a gross error, K"},
  };
}

std::unique_ptr<Generator> make(const char* name, const Options& options) {
  const double low = options.number("noise-low", 0, 1000);
  return std::make_unique<PolymerGenerator>(
      name, Settings{options.number("fox-flory", 0, 1e6), low, options.number("noise-high", low, 1000),
                     options.number("outliers", 0, 1), options.number("outlier-sd", 0, 1000)});
}

}  // namespace

double infinite_glass_transition(const Molecule& repeat_unit) {
  static const std::string meta_ring = canonical_smiles(parse_smiles("*c1cccc(*)c1"));
  constexpr double grams_per_kilogram = 1000;
  const GroupCounts groups = count_groups(repeat_unit);
  const auto count = [&](const std::string& group) {
    const auto found = groups.find(group);
    return found == groups.end() ? 0 : found->second;
  };
  const int side = count(side_methylene), ordered = std::max(0, side - disordered_side_methylenes);
  const double correction = side_methylene_correction * (side - ordered) +
                            ordered_side_methylene_correction * ordered + meta_correction * count(meta_ring);
  const double weight = molecular_weight(repeat_unit);
  return additive_glass_transition(groups, weight) + correction * grams_per_kilogram / weight;
}

GeneratorEntry polymer_gcn_generator() {
  return {"polymer-gcn", "polymer repeat units and their glass transition temperature", polymer_options(),
          [](const Options& options) { return make("polymer-gcn", options); }};
}

GeneratorEntry polymer_mpnn_generator() {
  return {"polymer-mpnn", "the same polymers, for the network that reads their bonds", polymer_options(),
          [](const Options& options) { return make("polymer-mpnn", options); }};
}

}  // namespace superstep::data
