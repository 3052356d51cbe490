// Machine files: TOML, every key checked.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "superstep/base/text.h"
#include "superstep/machine/built_in.h"
#include "superstep/machine/machine.h"
#include "superstep/machine/precision.h"
#include "superstep/machine/toml/parse_toml.h"
#include "superstep/machine/toml/toml_text.h"

namespace superstep::machine {
namespace {

constexpr std::size_t largest_file = 1 << 20;  // bytes; a machine file has some thousands
constexpr int deepest_base = 4;                // files based on files
constexpr double most_threads = 1 << 20;

using Sources = std::map<std::string, std::string, std::less<>>;

struct Draft {
  std::string id, name;
  std::optional<Style> style;
  Sources sources;
  std::vector<Constant> constants;
  std::vector<Stack> stacks;
  std::vector<std::string> precisions;
  std::vector<NumericsMode> numerics;
  std::optional<ProcessorTimes> processor;
};

class Reader {
 public:
  explicit Reader(std::string where) : where_(std::move(where)) {}

  Draft read(std::string_view text, int depth) const;

 private:
  [[noreturn]] void refuse(const std::string& key, const std::string& what, std::string hint = {}) const {
    throw Error(ErrorCode::bad_file, what, key.empty() ? where_ : where_ + ": " + key, std::move(hint));
  }
  toml::table parse(std::string_view text) const;
  void check_keys(const toml::table& table, const std::string& prefix,
                  std::span<const std::string> known) const;
  std::string text_of(const toml::table& table, const std::string& prefix, std::string_view key,
                      bool required) const;
  double number_of(const toml::node_view<const toml::node>& node, const std::string& key) const;
  void read_base(const toml::table& table, Draft& draft, int depth) const;
  void read_sources(const toml::table& table, Draft& draft) const;
  void read_constants(const toml::table& table, Draft& draft) const;
  void read_stacks(const toml::table& table, Draft& draft) const;
  void read_precisions(const toml::table& table, Draft& draft) const;
  void read_numerics(const toml::table& table, Draft& draft) const;
  NumericsMode read_mode(const toml::table& table, const std::string& name, const Draft& draft) const;
  NumericsFact read_fact(const toml::node& node, const std::string& key, const Sources& sources) const;
  void read_kernels(const toml::table& table, Draft& draft) const;
  void read_times(const toml::table& times, ProcessorTimes& processor) const;
  void take_over_stacks(const toml::table& table, Draft& draft, int depth) const;
  Draft built_in(const std::string& id, const std::string& key, int depth) const;
  // Those of the specs that `table` has, each once.
  std::vector<Constant> read_all(const toml::table& table, const std::string& prefix,
                                 std::span<const ConstantSpec> specs, const Sources& sources) const;
  Constant read_constant(const toml::table& table, const std::string& prefix, const ConstantSpec& spec,
                         const Sources& sources) const;
  void read_range(const toml::table& table, const std::string& key, Constant& constant) const;
  std::string full_source(const std::string& tags, const std::string& key, const Sources& sources) const;

  std::string where_;
};

toml::table Reader::parse(std::string_view text) const {
  if (text.size() > largest_file) refuse("", "is too large for a machine file");
  try {
    return parse_toml(in_ascii(text));
  } catch (const Error& error) {
    refuse("", error.message(), error.hint());
  } catch (const toml::parse_error& error) {
    refuse("", fmt::format("line {}: {}", error.source().begin.line, error.description()),
           "machine files are TOML; docs/machines.md describes them");
  }
}

void Reader::check_keys(const toml::table& table, const std::string& prefix,
                        std::span<const std::string> known) const {
  for (const auto& [key, value] : table) {
    const std::string name(key.str());
    if (std::find(known.begin(), known.end(), name) == known.end())
      refuse(prefix + name, "is not a key of machine files", unknown_name_hint(name, known));
  }
}

std::string Reader::text_of(const toml::table& table, const std::string& prefix, std::string_view key,
                            bool required) const {
  const auto node = table[key];
  if (!node) {
    if (required) refuse(prefix + std::string(key), "is missing");
    return {};
  }
  const auto text = node.value<std::string>();
  if (!text) refuse(prefix + std::string(key), "must be a text");
  return *text;
}

double Reader::number_of(const toml::node_view<const toml::node>& node, const std::string& key) const {
  const auto number = node.is_number() ? node.value<double>() : std::nullopt;
  if (!number || !std::isfinite(*number) || *number < 0) refuse(key, "must be a number, not below zero");
  return *number;
}

std::string Reader::full_source(const std::string& tags, const std::string& key,
                                const Sources& sources) const {
  std::vector<std::string> full;
  for (std::string tag : split(tags, ',')) {
    tag.erase(0, tag.find_first_not_of(' '));
    const auto found = sources.find(tag);
    if (found == sources.end()) refuse(key + ".source", fmt::format("'{}' is not in [sources]", tag));
    full.push_back(found->second);
  }
  return join(full, "; ");
}

// What a number of this kind is usually off by, as a share of it, when the file gives no range. No source:
// chosen in the order of trust of the kinds.
double usual_uncertainty(Kind kind) {
  switch (kind) {
    case Kind::measured: return 0.03;
    case Kind::vendor_code: return 0;
    case Kind::datasheet: return 0.02;
    case Kind::derived: return 0.05;
    case Kind::guess: return 0.5;
  }
  return 0.5;
}

void Reader::read_range(const toml::table& table, const std::string& key, Constant& constant) const {
  const double share = usual_uncertainty(constant.kind);
  constant.low = constant.value * (1 - share);
  constant.high = constant.value * (1 + share);
  if (!table["range"]) return;
  const toml::array* range = table["range"].as_array();
  if (!range || range->size() != 2) refuse(key + ".range", "must be a list of two numbers");
  constant.low = number_of(table["range"][0], key + ".range");
  constant.high = number_of(table["range"][1], key + ".range");
  if (constant.low > constant.value || constant.value > constant.high)
    refuse(key + ".range",
           fmt::format("{} to {} does not hold the value {}", constant.low, constant.high, constant.value));
}

Constant Reader::read_constant(const toml::table& table, const std::string& prefix, const ConstantSpec& spec,
                               const Sources& sources) const {
  static const std::vector<std::string> keys{"value", "unit", "kind", "source", "note", "range", "open"};
  const std::string key = prefix + std::string(spec.name);
  check_keys(table, key + ".", keys);
  Constant constant;
  constant.name = spec.name;
  if (!table["value"]) refuse(key + ".value", "is missing");
  constant.value = number_of(table["value"], key + ".value");
  constant.unit = text_of(table, key + ".", "unit", true);
  if (constant.unit != spec.unit)
    refuse(key + ".unit", fmt::format("is '{}', expected '{}'", constant.unit, spec.unit));
  const std::string kind = text_of(table, key + ".", "kind", true);
  if (!kind_from_code(kind, constant.kind))
    refuse(key + ".kind", fmt::format("'{}' is not a kind", kind), "kinds are ME, VC, DS, DE and GU");
  const std::string source = text_of(table, key + ".", "source", true);
  if (!source.empty()) constant.source = full_source(source, key, sources);
  if (source.empty() && constant.kind != Kind::guess)
    refuse(key + ".source", "is empty: only a guess (GU) has no source");
  constant.note = text_of(table, key + ".", "note", false);
  read_range(table, key, constant);
  constant.open = table["open"].value_or(false);
  return constant;
}

void Reader::read_sources(const toml::table& table, Draft& draft) const {
  if (!table["sources"]) return;
  const toml::table* sources = table["sources"].as_table();
  if (!sources) refuse("sources", "must be a table");
  for (const auto& [tag, text] : *sources) {
    const auto full = text.value<std::string>();
    if (!full) refuse(fmt::format("sources.{}", tag.str()), "must be a text");
    draft.sources[std::string(tag.str())] = *full;
  }
}

void replace(std::vector<Constant>& constants, Constant constant) {
  for (Constant& old : constants)
    if (old.name == constant.name) return (void)(old = std::move(constant));
  constants.push_back(std::move(constant));
}

std::vector<Constant> Reader::read_all(const toml::table& table, const std::string& prefix,
                                       std::span<const ConstantSpec> specs, const Sources& sources) const {
  std::vector<std::string> names;
  for (const ConstantSpec& spec : specs) names.emplace_back(spec.name);
  check_keys(table, prefix, names);
  std::vector<Constant> found;
  for (const ConstantSpec& spec : specs) {
    if (!table.contains(spec.name)) continue;
    const toml::table* entry = table[spec.name].as_table();
    if (!entry)
      refuse(fmt::format("{}{}", prefix, spec.name), "must be a table: { value = ..., unit = ... }");
    found.push_back(read_constant(*entry, prefix, spec, sources));
  }
  return found;
}

void Reader::read_constants(const toml::table& table, Draft& draft) const {
  const toml::table* constants = table["constants"].as_table();
  if (!constants) refuse("constants", "must be a table");
  for (Constant& constant : read_all(*constants, "constants.", constants_of(*draft.style), draft.sources))
    replace(draft.constants, std::move(constant));
}

Constant default_of(const ConstantSpec& spec) {
  Constant constant;
  constant.name = spec.name;
  constant.unit = spec.unit;
  constant.value = *spec.otherwise;
  const double share = usual_uncertainty(Kind::guess);  // a default is no better
  constant.low = spec.high > 0 ? spec.low : constant.value * (1 - share);
  constant.high = spec.high > 0 ? spec.high : constant.value * (1 + share);
  constant.note = "not in the machine file: the style's default";
  constant.defaulted = true;
  return constant;
}

// A stack's own numbers, each with a default that adds nothing, and those that take the machine's place.
void Reader::read_stacks(const toml::table& table, Draft& draft) const {
  if (!table["stacks"]) return;
  const toml::table* stacks = table["stacks"].as_table();
  if (!stacks) refuse("stacks", "must be a table");
  std::vector<std::string> names;
  for (const std::string_view name : stack_names()) names.emplace_back(name);
  check_keys(*stacks, "stacks.", names);
  std::vector<ConstantSpec> specs(stack_constants().begin(), stack_constants().end());
  for (const ConstantSpec& spec : constants_of(*draft.style))
    if (spec.name.starts_with("host_")) specs.push_back(spec);
  for (const std::string& name : names) {
    if (!stacks->contains(name)) continue;
    const std::string prefix = "stacks." + name + ".";
    const toml::table* entry = (*stacks)[name].as_table();
    if (!entry) refuse("stacks." + name, "must be a table");
    Stack stack{.name = name, .constants = {}};
    for (const ConstantSpec& spec : stack_constants()) stack.constants.push_back(default_of(spec));
    for (Constant& constant : read_all(*entry, prefix, specs, draft.sources))
      replace(stack.constants, std::move(constant));
    std::erase_if(draft.stacks, [&](const Stack& old) { return old.name == name; });
    draft.stacks.push_back(std::move(stack));
  }
}

// [kernels.times]: a kernel's description, and for each size that was measured a list as it is written by
// to_toml.
void Reader::read_times(const toml::table& times, ProcessorTimes& processor) const {
  for (const auto& [kernel, node] : times) {
    const std::string key = fmt::format("kernels.times.'{}'", kernel.str());
    const toml::array* const rows = node.as_array();
    if (!rows) refuse(key, "must be a list");
    for (std::size_t i = 0; i < rows->size(); ++i) {
      const toml::array* const row = (*rows)[i].as_array();
      if (!row || row->size() != 6)
        refuse(key, "must have lists of six numbers",
               "operations, bytes, bytes of the plan, threads that share it, threads at work, seconds");
      double numbers[6];
      for (std::size_t k = 0; k < 6; ++k)
        numbers[k] = number_of(toml::node_view<const toml::node>((*row)[k]), key);
      if (numbers[5] <= 0) refuse(key, "a time must be above zero");
      for (const std::size_t count : {std::size_t{3}, std::size_t{4}})
        if (numbers[count] < 1 || numbers[count] > most_threads)
          refuse(key, "a number of threads must be one or more");
      processor.times.push_back({.kernel = std::string(kernel.str()),
                                 .flops = numbers[0],
                                 .bytes = numbers[1],
                                 .working_set = numbers[2],
                                 .sharing = static_cast<int>(numbers[3]),
                                 .busy = static_cast<int>(numbers[4]),
                                 .seconds = numbers[5]});
    }
  }
}

void Reader::read_kernels(const toml::table& table, Draft& draft) const {
  if (!table["kernels"]) return;
  const toml::table* const kernels = table["kernels"].as_table();
  if (!kernels) refuse("kernels", "must be a table");
  static const std::vector<std::string> keys{"instructions", "threads", "step_overhead", "uncertainty",
                                             "times"};
  check_keys(*kernels, "kernels.", keys);
  ProcessorTimes processor;
  processor.instructions = text_of(*kernels, "kernels.", "instructions", true);
  processor.step_overhead = number_of((*kernels)["step_overhead"], "kernels.step_overhead");
  processor.uncertainty = number_of((*kernels)["uncertainty"], "kernels.uncertainty");
  const double threads = number_of((*kernels)["threads"], "kernels.threads");
  if (threads < 1 || threads > most_threads) refuse("kernels.threads", "must be one or more");
  processor.threads = static_cast<int>(threads);
  const toml::table* const times = (*kernels)["times"].as_table();
  if (!times || times->empty()) refuse("kernels.times", "must be a table with a kernel or more");
  read_times(*times, processor);
  draft.processor = std::move(processor);
}

Draft Reader::built_in(const std::string& id, const std::string& key, int depth) const {
  if (depth >= deepest_base) refuse(key, "files are based on each other too often");
  for (const BuiltIn& file : built_in_files())
    if (file.id == id) return Reader(fmt::format("machines/{}.toml", id)).read(file.text, depth + 1);
  refuse(key, fmt::format("there is no machine '{}'", id), "superstep list machines");
}

void Reader::take_over_stacks(const toml::table& table, Draft& draft, int depth) const {
  const std::string other = text_of(table, "", "stacks_of", false);
  if (!other.empty()) draft.stacks = built_in(other, "stacks_of", depth).stacks;
}

void Reader::read_base(const toml::table& table, Draft& draft, int depth) const {
  const std::string base = text_of(table, "", "based_on", false);
  if (base.empty()) return;
  Draft found = built_in(base, "based_on", depth);
  if (found.style != draft.style) refuse("style", fmt::format("differs from that of '{}'", base));
  draft.sources = std::move(found.sources);
  draft.constants = std::move(found.constants);
  draft.stacks = std::move(found.stacks);
  draft.precisions = std::move(found.precisions);
  draft.numerics = std::move(found.numerics);
}

NumericsFact Reader::read_fact(const toml::node& node, const std::string& key, const Sources& sources) const {
  static const std::vector<std::string> keys{"value", "kind", "source", "note"};
  const toml::table* const table = node.as_table();
  if (!table) refuse(key, "must be a table: { value = ..., kind = ... }");
  check_keys(*table, key + ".", keys);
  NumericsFact fact;
  fact.value = text_of(*table, key + ".", "value", true);
  const std::string kind = text_of(*table, key + ".", "kind", true);
  if (!kind_from_code(kind, fact.kind))
    refuse(key + ".kind", fmt::format("'{}' is not a kind", kind), "kinds are ME, VC, DS, DE and GU");
  const std::string source = text_of(*table, key + ".", "source", false);
  if (!source.empty()) fact.source = full_source(source, key, sources);
  if (source.empty() && fact.kind != Kind::guess)
    refuse(key + ".source", "is empty: only a guess (GU) has no source");
  fact.note = text_of(*table, key + ".", "note", false);
  return fact;
}

// Every setting is stated, in the mode or in the one that it is based on: what is not published is a guess.
NumericsMode Reader::read_mode(const toml::table& table, const std::string& name, const Draft& draft) const {
  const std::string prefix = "numerics." + name;
  NumericsMode mode{.name = name, .facts = {}, .arithmetic = {}};
  const std::string base = text_of(table, prefix + ".", "based_on", false);
  for (const NumericsMode& other : draft.numerics)
    if (other.name == base) mode.facts = other.facts;
  if (!base.empty() && mode.facts.empty())
    refuse(prefix + ".based_on", fmt::format("there is no mode '{}'", base));
  std::vector<std::string> known{"based_on"};
  for (const numerics::Setting& setting : numerics::settings())
    if (setting.name != "seed") known.emplace_back(setting.name);
  for (const Habit& habit : numerics_habits()) known.emplace_back(habit.name);
  check_keys(table, prefix + ".", known);
  for (const std::string& setting : known) {
    if (setting == "based_on") continue;
    const auto old = std::ranges::find(mode.facts, setting, &NumericsFact::setting);
    if (!table.contains(setting)) {
      if (old == mode.facts.end())
        refuse(prefix + "." + setting, "is missing", "what is not published is a guess (GU)");
      continue;
    }
    NumericsFact fact = read_fact(*table.get(setting), prefix + "." + setting, draft.sources);
    fact.setting = setting;
    if (old == mode.facts.end())
      mode.facts.push_back(std::move(fact));
    else
      *old = std::move(fact);
  }
  for (const NumericsFact& fact : mode.facts) {
    const auto is_it = [&](const Habit& habit) { return habit.name == fact.setting; };
    if (std::ranges::any_of(numerics_habits(), is_it)) continue;
    try {
      numerics::set(mode.arithmetic, fact.setting, fact.value);
    } catch (const Error& error) {
      refuse(prefix + "." + fact.setting, error.message(), error.hint());
    }
  }
  numerics::check(mode.arithmetic, where_ + ": " + prefix);
  return mode;
}

// A file's modes take the place of those that it is based on: of one machine all or none are known. The usual
// one comes first; others may be based on it, and on what is before them in the alphabet.
void Reader::read_numerics(const toml::table& table, Draft& draft) const {
  if (!table["numerics"]) {
    if (table["numerics_default"])
      refuse("numerics_default", "names a mode of [numerics], which is not there");
    return;
  }
  const toml::table* const modes = table["numerics"].as_table();
  const std::string usual = text_of(table, "", "numerics_default", true);
  if (!modes || !modes->contains(usual))
    refuse("numerics_default", fmt::format("there is no mode '{}'", usual));
  draft.numerics.clear();
  std::vector<std::string> names{usual};
  for (const auto& [name, node] : *modes)
    if (name.str() != usual) names.emplace_back(name.str());
  for (const std::string& name : names) {
    const toml::table* const mode = (*modes)[name].as_table();
    if (!mode) refuse("numerics." + name, "must be a table");
    draft.numerics.push_back(read_mode(*mode, name, draft));
  }
}

void Reader::read_precisions(const toml::table& table, Draft& draft) const {
  if (!table["precisions"]) return;
  const toml::array* const list = table["precisions"].as_array();
  if (!list || list->empty()) refuse("precisions", "must be a list of names");
  draft.precisions.clear();
  for (const toml::node& node : *list) {
    const auto name = node.value<std::string>();
    if (!name) refuse("precisions", "must be a list of names");
    try {
      draft.precisions.push_back(precision_from_name(*name).name);
    } catch (const Error& error) {
      refuse("precisions", fmt::format("'{}' {}", *name, error.message()), error.hint());
    }
  }
}

Draft Reader::read(std::string_view text, int depth) const {
  // "measured" is what a measurement found beside the style's constants: kept in files, not read.
  static const std::vector<std::string> keys{
      "id",     "name",     "style",   "based_on",   "stacks_of", "sources",         "constants",
      "stacks", "measured", "kernels", "precisions", "numerics",  "numerics_default"};
  const toml::table table = parse(text);
  check_keys(table, "", keys);
  Draft draft;
  draft.id = text_of(table, "", "id", true);
  draft.name = text_of(table, "", "name", true);
  const std::string style = text_of(table, "", "style", true);
  draft.style = style_from_name(style);
  if (!draft.style) {
    std::vector<std::string> names;
    for (int i = 0; i < 4; ++i) names.emplace_back(name_of(static_cast<Style>(i)));
    refuse("style", fmt::format("'{}' is not a style", style), unknown_name_hint(style, names));
  }
  read_base(table, draft, depth);
  read_sources(table, draft);
  read_constants(table, draft);
  take_over_stacks(table, draft, depth);
  read_stacks(table, draft);
  read_precisions(table, draft);
  read_numerics(table, draft);
  read_kernels(table, draft);
  return draft;
}

}  // namespace

Machine parse_machine(std::string_view text, const std::string& where) {
  Draft draft = Reader(where).read(text, 0);
  std::vector<Constant> ordered;
  for (const ConstantSpec& spec : constants_of(*draft.style)) {
    const auto found = std::find_if(draft.constants.begin(), draft.constants.end(),
                                    [&](const Constant& constant) { return constant.name == spec.name; });
    if (found != draft.constants.end()) {
      ordered.push_back(std::move(*found));
      continue;
    }
    if (!spec.otherwise)
      throw Error(ErrorCode::bad_file, fmt::format("is missing: {}", spec.meaning),
                  fmt::format("{}: constants.{}", where, spec.name));
    ordered.push_back(default_of(spec));
  }
  Machine machine(std::move(draft.id), std::move(draft.name), *draft.style, std::move(ordered));
  machine.set_stacks(std::move(draft.stacks));
  machine.set_precisions(std::move(draft.precisions));
  machine.set_numerics(std::move(draft.numerics));
  if (draft.processor) machine.set_processor(std::move(*draft.processor));
  return machine;
}

}  // namespace superstep::machine
