// Reactions of tables, of JSON, and generated ones.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "superstep/base/file.h"
#include "superstep/base/json.h"
#include "superstep/base/text.h"
#include "superstep/baseline/in_file.h"
#include "superstep/file/csv.h"
#include "superstep/file/form.h"
#include "superstep/file/source/array_file.h"
#include "superstep/physics/chemistry/smiles.h"
#include "superstep/physics/row_writer.h"
#include "superstep/workload/chemistry/yieldgnn/yieldgnn.h"
#include "superstep/workload/generated.h"

namespace superstep::workload {
namespace {

using data::Role;
using nlohmann::json;

constexpr std::int64_t default_reactions = 4543;  // as many as were published

std::string& smiles_of(Reaction& reaction, Role role) {
  return reaction.of_role[static_cast<std::size_t>(role)];
}

data::Molecule molecule_of(const std::string& smiles, const std::string& place) {
  if (smiles.empty()) return {};
  try {
    return data::parse_smiles(smiles);
  } catch (const Error& error) {
    throw baseline::in_file(error, place);
  }
}

// Molecules that are met in one reaction after the other are described once.
class Descriptions {
 public:
  const std::vector<float>& of(const std::string& smiles, const std::string& place) {
    const auto found = known_.find(smiles);
    if (found != known_.end()) return found->second;
    return known_.emplace(smiles, data::role_descriptors(molecule_of(smiles, place))).first->second;
  }

 private:
  std::map<std::string, std::vector<float>> known_;
};

void check_yield(const Reaction& reaction) {
  if (!std::isnan(reaction.label) && !(reaction.label >= 0 && reaction.label <= 100))
    throw Error(ErrorCode::bad_file,
                fmt::format("a yield of {} is not between 0 and 100 per cent", reaction.label),
                reaction.place);
}

// The graph, and the descriptors that a file did not bring.
void complete(Reaction& reaction, Descriptions& descriptions) {
  check_yield(reaction);
  if (smiles_of(reaction, Role::electrophile).empty())
    throw Error(ErrorCode::bad_file, "has no reactant", reaction.place);
  const bool described = !reaction.descriptors.empty();
  for (const std::string& smiles : reaction.of_role) {
    const std::vector<float>& own = descriptions.of(smiles, reaction.place);
    if (!described) reaction.descriptors.insert(reaction.descriptors.end(), own.begin(), own.end());
  }
  reaction.smiles = reaction.joined();
  reaction.molecule = data::parse_smiles(reaction.smiles);
}

// "electrophile.nucleophile.ligand": what comes behind the second is the ligand. A trifluoroborate brings its
// cation along.
void split_reactants(const std::string& text, Reaction& reaction) {
  std::vector<std::string> parts = split(text, '.');
  const auto is_cation = [](const std::string& part) {
    return part.starts_with('[') && part.ends_with("+]");
  };
  smiles_of(reaction, Role::electrophile) = parts[0];
  std::size_t at = 1;
  if (at < parts.size()) smiles_of(reaction, Role::nucleophile) = parts[at++];
  if (at < parts.size() && is_cation(parts[at])) smiles_of(reaction, Role::nucleophile) += "." + parts[at++];
  std::string& ligand = smiles_of(reaction, Role::ligand);
  for (; at < parts.size(); ++at) ligand += (ligand.empty() ? "" : ".") + parts[at];
}

std::vector<Reaction> read_table(const std::filesystem::path& path) {
  data::CsvReader file(path);
  const std::size_t reactants = file.column("reactant_smiles"), solvent = file.column("solvent_smiles"),
                    base = file.column("base_smiles");
  const bool measured = file.has_column("yield"), exact = file.has_column("yield_exact"),
             named = file.has_column("id");
  std::vector<Reaction> reactions;
  while (file.next()) {
    Reaction reaction;
    reaction.place = fmt::format("{}, line {}", path.string(), file.line());
    reaction.id = named ? file.text(file.column("id")) : std::to_string(reactions.size());
    split_reactants(file.text(reactants), reaction);
    smiles_of(reaction, Role::solvent) = file.text(solvent);
    smiles_of(reaction, Role::base) = file.text(base);
    if (measured && !file.text(file.column("yield")).empty())
      reaction.label = file.number(file.column("yield"));
    if (exact) reaction.exact = file.number(file.column("yield_exact"));
    reactions.push_back(std::move(reaction));
  }
  return reactions;
}

// The numbers that an entry of a molecule brings, else surrogates of its SMILES.
std::vector<float> descriptors_of(const json& entry, const std::string& smiles, const std::string& place) {
  const data::Molecule molecule = molecule_of(smiles, place);
  auto globals = data::global_descriptors(molecule);
  for (std::size_t i = 0; i < globals.size(); ++i)
    if (const auto found = entry.find(data::global_descriptor_names[i]);
        found != entry.end() && found->is_number())
      globals[i] = found->get<double>();
  const std::vector<double> charges = data::partial_charges(molecule),
                            shifts = data::surrogate_shifts(molecule);
  std::vector<data::AtomDescriptors> atoms;
  for (std::size_t i = 0; i < charges.size(); ++i) atoms.push_back({charges[i], shifts[i]});
  if (const auto given = entry.find("atoms"); given != entry.end() && given->is_array()) {
    if (given->size() != atoms.size())
      throw Error(ErrorCode::bad_file,
                  fmt::format("{} atoms are described, '{}' has {}", given->size(), smiles, atoms.size()),
                  place);
    for (std::size_t i = 0; i < atoms.size(); ++i) {
      const json& atom = (*given)[i];
      if (!atom.is_object()) throw Error(ErrorCode::bad_file, "an atom is not an object", place);
      const auto number = [&](const char* name, double other) {
        const auto found = atom.find(name);
        return found != atom.end() && found->is_number() ? found->get<double>() : other;
      };
      atoms[i] = {number("partial_charge", atoms[i].charge), number("nmr_shift", atoms[i].shift)};
    }
  }
  return data::role_descriptors(globals, std::move(atoms));
}

class JsonReaction {
 public:
  JsonReaction(const json& entry, std::string place) : entry_(entry) {
    reaction_.place = std::move(place);
    if (!entry.is_object()) refuse("is not an object");
    if (const auto id = entry.find("id"); id != entry.end())
      reaction_.id = id->is_string() ? id->get<std::string>() : id->dump();
    if (const auto yield = entry.find("yield"); yield != entry.end() && !yield->is_null()) {
      if (!yield->is_number()) refuse("its yield is not a number");
      reaction_.label = yield->get<double>();
    }
    read_reactants();
    for (const Role role : {Role::base, Role::solvent})
      if (const auto found = entry.find(data::role_name(role)); found != entry.end()) take(role, *found);
    for (const auto& role : descriptors_)
      reaction_.descriptors.insert(reaction_.descriptors.end(), role.begin(), role.end());
  }
  Reaction&& taken() { return std::move(reaction_); }

 private:
  [[noreturn]] void refuse(const std::string& message) const {
    throw Error(ErrorCode::bad_file, message, reaction_.place);
  }

  // By category; one that is none of ours is in the next place that is free.
  void read_reactants() {
    const auto reactants = entry_.find("reactants");
    if (reactants == entry_.end() || !reactants->is_array()) refuse("has no list 'reactants'");
    for (const json& each : *reactants) {
      if (!each.is_object()) refuse("a reactant is not an object");
      const std::string category = each.value("category", "");
      auto role = Role::electrophile;
      for (const Role free : {Role::ligand, Role::nucleophile, Role::electrophile})
        if (smiles_of(reaction_, free).empty()) role = free;
      for (const Role named : {Role::electrophile, Role::nucleophile, Role::ligand})
        if (category == data::role_name(named)) role = named;
      take(role, each);
    }
  }

  void take(Role role, const json& molecule) {
    const auto smiles = molecule.is_object() ? molecule.find("smiles") : molecule.end();
    if (!molecule.is_object() || smiles == molecule.end() || !smiles->is_string())
      refuse(fmt::format("its {} has no text 'smiles'", data::role_name(role)));
    smiles_of(reaction_, role) = smiles->get<std::string>();
    descriptors_[static_cast<std::size_t>(role)] =
        descriptors_of(molecule, smiles_of(reaction_, role), reaction_.place);
  }

  const json& entry_;
  Reaction reaction_;
  std::array<std::vector<float>, data::role_count> descriptors_ = [] {
    std::array<std::vector<float>, data::role_count> none;
    none.fill(data::role_descriptors(data::Molecule()));
    return none;
  }();
};

std::vector<Reaction> read_json(const std::filesystem::path& path) {
  const json all = parse_json(read_text_file(path));
  if (all.is_discarded() || !all.is_array())
    throw Error(ErrorCode::bad_file, "is no JSON list of reactions", path.string());
  std::vector<Reaction> reactions;
  for (const json& entry : all)
    reactions.push_back(
        JsonReaction(entry, fmt::format("{}, reaction {}", path.string(), reactions.size() + 1)).taken());
  return reactions;
}

// `conditions` [n, 4], and what was measured.
std::vector<Reaction> reactions_of(const Fields& fields, const std::string& where) {
  const Tensor& conditions = fields.at("conditions");
  const auto value = [&](const char* field, std::int64_t i) {
    const auto found = fields.find(field);
    return found == fields.end() ? NAN : found->second.at(i);
  };
  const std::array<std::size_t, 4> choices = {data::coupling_ligands().size(), data::coupling_bases().size(),
                                              data::coupling_solvents().size(),
                                              data::coupling_pairs().size()};
  std::vector<Reaction> reactions(static_cast<std::size_t>(conditions.shape()[0]));
  for (std::int64_t i = 0; i < conditions.shape()[0]; ++i) {
    Reaction& reaction = reactions[static_cast<std::size_t>(i)];
    reaction.id = std::to_string(i);
    reaction.place = fmt::format("{}, reaction {}", where, i + 1);
    std::array<int, 4> chosen{};
    for (std::size_t k = 0; k < 4; ++k) {
      const double number = conditions.at(4 * i + static_cast<std::int64_t>(k));
      if (!(number >= 0 && number < static_cast<double>(choices[k])))
        throw Error(ErrorCode::bad_file, fmt::format("{} is no condition of the factorial", number),
                    reaction.place);
      chosen[k] = static_cast<int>(number);
    }
    for (int role = 0; role < data::role_count; ++role)
      reaction.of_role[static_cast<std::size_t>(role)] =
          data::role_smiles({chosen[0], chosen[1], chosen[2], chosen[3]}, static_cast<Role>(role));
    reaction.label = value("yield", i), reaction.exact = value("yield_exact", i);
  }
  return reactions;
}

std::vector<Reaction> read_hdf5(const std::filesystem::path& path) {
  const data::ArrayFile file(path);
  Fields fields;
  const std::int64_t any[] = {-1, 4};
  fields.emplace("conditions", file.read("conditions", ElementType::i32, any));
  const std::int64_t count[] = {fields.at("conditions").shape()[0]};
  for (const char* name : {"yield", "yield_exact"})
    if (file.contains(name)) fields.emplace(name, file.read(name, ElementType::f64, count));
  return reactions_of(fields, path.string());
}

std::vector<Reaction> read_file(const std::filesystem::path& path) {
  if (path.extension() == ".json") return read_json(path);
  return data::is_text(path, {".csv", ".tsv", ".tab", ".txt"}) ? read_table(path) : read_hdf5(path);
}

}  // namespace

std::string Reaction::joined() const {
  std::string all;
  for (const std::string& each : of_role)
    if (!each.empty()) all += (all.empty() ? "" : ".") + each;
  return all;
}

std::vector<Reaction> read_reactions(const TaskSettings& settings) {
  std::vector<Reaction> reactions =
      settings.data.empty()
          ? reactions_of(generated_fields(*make_generator("yieldgnn"), settings, default_reactions),
                         generated_source(settings))
          : read_file(settings.data);
  if (settings.samples > 0 && static_cast<std::int64_t>(reactions.size()) > settings.samples)
    reactions.resize(static_cast<std::size_t>(settings.samples));
  if (reactions.empty()) throw Error(ErrorCode::bad_file, "has no reactions", settings.data.string());
  Descriptions descriptions;
  for (std::size_t i = 0; i < reactions.size(); ++i) {
    Reaction& reaction = reactions[i];
    reaction.row = i;
    complete(reaction, descriptions);
    if (settings.labels_required && std::isnan(reaction.label))
      throw Error(ErrorCode::bad_file, "has no yield to learn from", reaction.place);
  }
  return reactions;
}

}  // namespace superstep::workload
