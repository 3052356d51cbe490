#include "superstep/physics/chemistry/yield_generator.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "superstep/base/random.h"
#include "superstep/file/streamed_file.h"
#include "superstep/physics/chemistry/molecule_descriptors.h"
#include "superstep/physics/chemistry/molecule_features.h"
#include "superstep/physics/chemistry/smiles.h"
#include "superstep/physics/chemistry/yield_reactions.h"
#include "superstep/physics/index_permutation.h"
#include "superstep/physics/ordered_samples.h"
#include "superstep/physics/row_writer.h"
#include "superstep/physics/sample_memory.h"

namespace superstep::data {
namespace {

constexpr int atom_capacity = 112, edge_capacity = 240;
constexpr std::uint32_t purpose_order = 1, purpose_measurement = 2;

struct Settings {
  double seconds, noise_sd;
};

struct Reaction {
  std::uint64_t number;
  Conditions conditions;
  CouplingRates rates;
  double exact, measured;  // per cent
};

const std::vector<Field>& yield_fields() {
  static const std::vector<Field> fields = {
      {"x", ElementType::f32, {atom_capacity, atom_feature_count}, "", "atom features of all molecules"},
      {"edge_index",
       ElementType::i32,
       {2, edge_capacity},
       "",
       "source and target atom of each edge, both directions"},
      {"edge_attr", ElementType::f32, {edge_capacity, bond_feature_count}, "", "bond features of each edge"},
      {"atom_count", ElementType::i32, {}, "", "rows of x that are used"},
      {"edge_count", ElementType::i32, {}, "", "edges that are used"},
      {"desc",
       ElementType::f32,
       {role_count * role_descriptor_count},
       "",
       "surrogate descriptors of each molecule"},
      {"yield", ElementType::f32, {}, "%", "measured yield: the label"},
      {"yield_exact", ElementType::f32, {}, "%", "yield without noise"},
      {"rates",
       ElementType::f32,
       {5},
       "1/s",
       "oxidative addition, transmetalation, elimination, side, deactivation"},
      {"conditions",
       ElementType::i32,
       {4},
       "",
       "ligand, base, solvent and pair of reactants, see the parameters"},
      {"reaction", ElementType::i32, {}, "", "number of the reaction in the full factorial"},
  };
  return fields;
}

std::vector<float> descriptors_of(const Conditions& conditions) {
  std::vector<float> all;
  for (int role = 0; role < role_count; ++role) {
    const std::string smiles = role_smiles(conditions, static_cast<Role>(role));
    const Molecule molecule = smiles.empty() ? Molecule() : parse_smiles(smiles);
    std::ranges::copy(role_descriptors(molecule), std::back_inserter(all));
  }
  return all;
}

nlohmann::json molecule_json(const char* category, const std::string& smiles) {
  nlohmann::json entry = {{"category", category}, {"smiles", smiles}, {"descriptors", "surrogate"}};
  if (smiles.empty()) return entry;
  const Molecule molecule = parse_smiles(smiles);
  const auto globals = global_descriptors(molecule);
  for (std::size_t i = 0; i < globals.size(); ++i) entry[global_descriptor_names[i]] = globals[i];
  const std::vector<double> charges = partial_charges(molecule), shifts = surrogate_shifts(molecule);
  for (std::size_t i = 0; i < charges.size(); ++i)
    entry["atoms"].push_back({{"nmr_shift", shifts[i]}, {"partial_charge", charges[i]}});
  return entry;
}

std::string reactant_smiles(const Conditions& conditions) {
  const std::string ligand = role_smiles(conditions, Role::ligand);
  return role_smiles(conditions, Role::electrophile) + "." + role_smiles(conditions, Role::nucleophile) +
         (ligand.empty() ? "" : "." + ligand);
}

std::string agents(const Conditions& conditions) {
  std::string text;
  for (const Role role : {Role::ligand, Role::base, Role::solvent})
    if (const std::string smiles = role_smiles(conditions, role); !smiles.empty())
      text += (text.empty() ? "" : ".") + smiles;
  return text;
}

template <class Table>
nlohmann::json names_of(const Table& table) {
  nlohmann::json names = nlohmann::json::array();
  for (const auto& each : table) names.push_back(each.name);
  return names;
}

class YieldGenerator final : public Generator {
 public:
  explicit YieldGenerator(const Settings& settings) : settings_(settings) {}

  std::string_view name() const override { return "yieldgnn"; }
  int version() const override { return 1; }
  std::span<const Field> fields() const override { return yield_fields(); }

  void sample(std::uint64_t seed, std::uint64_t index, std::span<std::byte* const> out) const override {
    const Reaction made = reaction(seed, index);
    const Molecule molecules = parse_smiles(joined_smiles(made.conditions));
    fill_graph(molecules,
               {elements<float>(out[0], atom_capacity * atom_feature_count),
                elements<std::int32_t>(out[1], 2 * edge_capacity),
                elements<float>(out[2], edge_capacity * bond_feature_count), atom_capacity, edge_capacity});
    put<std::int32_t>(out[3], molecules.atom_count());
    put<std::int32_t>(out[4], 2 * molecules.bond_count());
    put_all<float>(out[5], descriptors_of(made.conditions));
    put(out[6], static_cast<float>(made.measured));
    put(out[7], static_cast<float>(made.exact));
    const CouplingRates& r = made.rates;
    put_all<float>(out[8], std::array{r.oxidative_addition, r.transmetalation, r.reductive_elimination,
                                      r.side_reaction, r.deactivation});
    const Conditions& c = made.conditions;
    put_all<std::int32_t>(out[9], std::array{c.ligand, c.base, c.solvent, c.pair});
    put(out[10], static_cast<std::int32_t>(made.number));
  }

  nlohmann::json parameters() const override {
    nlohmann::json pairs = nlohmann::json::array();
    for (const ReactantPair& pair : coupling_pairs())
      pairs.push_back({pair.electrophile_name, pair.nucleophile_name});
    return {{"seconds", settings_.seconds},
            {"noise_sd", settings_.noise_sd},
            {"reactions", reaction_count()},
            {"ligands", names_of(coupling_ligands())},
            {"bases", names_of(coupling_bases())},
            {"solvents", names_of(coupling_solvents())},
            {"pairs", pairs},
            {"descriptors", "surrogate"}};
  }

  void write(const WriteRequest& request) const override {
    if (request.path.extension() == ".json") return write_json(request);
    if (!is_table_path(request.path)) return Generator::write(request);
    write_rows(request,
               {"id", "yield", "reactant_smiles", "solvent_smiles", "base_smiles", "product_smiles",
                "reaction_smiles", "ligand", "base", "solvent", "electrophile", "nucleophile", "yield_exact"},
               [&](std::uint64_t index) { return row(index, reaction(request.seed, index)); });
  }

 private:
  Reaction reaction(std::uint64_t seed, std::uint64_t index) const {
    Reaction made;
    made.number = IndexPermutation(seed, reaction_count(), purpose_order)(index % reaction_count());
    made.conditions = conditions_of(made.number);
    made.rates = coupling_rates(made.conditions);
    made.exact = 100 * integrate_coupling(made.rates, settings_.seconds).product;
    RandomStream random(seed, index, purpose_measurement);
    made.measured = std::clamp(made.exact + settings_.noise_sd * random.normal(), 0.0, 100.0);
    return made;
  }

  std::vector<std::string> row(std::uint64_t index, const Reaction& made) const {
    const Conditions& c = made.conditions;
    const ReactantPair& pair = coupling_pairs()[static_cast<std::size_t>(c.pair)];
    return {std::to_string(index),
            number_text(static_cast<float>(made.measured)),
            reactant_smiles(c),
            role_smiles(c, Role::solvent),
            role_smiles(c, Role::base),
            coupling_product_smiles(),
            role_smiles(c, Role::electrophile) + "." + role_smiles(c, Role::nucleophile) + ">" + agents(c) +
                ">" + coupling_product_smiles(),
            coupling_ligands()[static_cast<std::size_t>(c.ligand)].name,
            coupling_bases()[static_cast<std::size_t>(c.base)].name,
            coupling_solvents()[static_cast<std::size_t>(c.solvent)].name,
            pair.electrophile_name,
            pair.nucleophile_name,
            number_text(static_cast<float>(made.exact))};
  }

  nlohmann::json json_of(std::uint64_t index, const Reaction& made) const {
    nlohmann::json reactants = nlohmann::json::array();
    for (const Role role : {Role::electrophile, Role::nucleophile, Role::ligand})
      reactants.push_back(molecule_json(role_name(role), role_smiles(made.conditions, role)));
    return {{"id", index},
            {"yield", static_cast<float>(made.measured)},
            {"reactants", reactants},
            {"base", molecule_json("base", role_smiles(made.conditions, Role::base))},
            {"solvent", molecule_json("solvent", role_smiles(made.conditions, Role::solvent))},
            {"product", molecule_json("product", coupling_product_smiles())},
            {"synthetic", 1}};
  }

  void write_json(const WriteRequest& request) const {
    StreamedFile file(request.path);
    bool first = true;
    for_samples_in_order(
        request, [&](std::uint64_t index) { return json_of(index, reaction(request.seed, index)).dump(); },
        [&](const std::string& text) {
          file.write(first ? "[\n" : ",\n");
          file.write(text);
          first = false;
        });
    file.write(first ? "[]\n" : "\n]\n");
    file.close();
  }

  Settings settings_;
};

std::vector<OptionSpec> yield_options() {
  return {
      {"seconds", "60", "time of the reaction, s"},
      {"noise", "5", "standard deviation of a measured yield, per cent"},
  };
}

std::unique_ptr<Generator> make_yield_generator(const Options& options) {
  return std::make_unique<YieldGenerator>(
      Settings{options.number("seconds", 0, 1e6), options.number("noise", 0, 100)});
}

}  // namespace

GeneratorEntry yieldgnn_generator() {
  return {"yieldgnn", "yields of Suzuki-Miyaura couplings from kinetics, with their molecules",
          yield_options(), make_yield_generator};
}

}  // namespace superstep::data
