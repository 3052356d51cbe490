#include "superstep/machine/configuration/set_ups.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "superstep/base/error.h"
#include "superstep/base/text.h"
#include "superstep/machine/built_in.h"
#include "superstep/machine/precision.h"
#include "superstep/machine/toml/parse_toml.h"
#include "superstep/machine/toml/toml_text.h"

namespace superstep::machine {
namespace {

constexpr std::int64_t largest_count = 1 << 30;

// One table of a file, every key of which is asked for once.
class Entry {
 public:
  Entry(const toml::table& table, std::string where) : table_(table), where_(std::move(where)) {}

  std::string text(std::string_view key, bool required = false) {
    const auto node = take(key);
    if (!node && required) refuse(key, "is missing");
    if (!node) return {};
    const auto text = node.value<std::string>();
    if (!text || text->empty()) refuse(key, "must be a text");
    return *text;
  }

  bool flag(std::string_view key) {
    const auto node = take(key);
    if (node && !node.is_boolean()) refuse(key, "must be true or false");
    return node.value_or(false);
  }

  std::int64_t count(std::string_view key) {
    const auto node = take(key);
    return node ? count_of(node, key) : 0;
  }

  double number(std::string_view key, double otherwise) {
    const auto node = take(key);
    if (!node) return otherwise;
    const auto value = node.is_number() ? node.value<double>() : std::nullopt;
    if (!value || !(*value > 0) || *value > static_cast<double>(largest_count))
      refuse(key, "must be a number above zero");
    return *value;
  }

  std::vector<std::string> texts(std::string_view key) {
    std::vector<std::string> found;
    for_each(key, [&](toml::node_view<const toml::node> node) {
      const auto text = node.value<std::string>();
      if (!text || text->empty()) refuse(key, "must be a list of texts");
      found.push_back(*text);
    });
    return found;
  }

  std::vector<int> counts(std::string_view key) {
    std::vector<int> found;
    for_each(key, [&](toml::node_view<const toml::node> node) {
      found.push_back(static_cast<int>(count_of(node, key, 0)));
    });
    return found;
  }

  std::vector<std::pair<int, std::int64_t>> pairs(std::string_view key) {
    std::vector<std::pair<int, std::int64_t>> found;
    for_each(key, [&](toml::node_view<const toml::node> node) {
      const toml::array* pair = node.as_array();
      if (!pair || pair->size() != 2) refuse(key, "must be a list of pairs: units, samples");
      found.emplace_back(static_cast<int>(count_of(node[0], key)), count_of(node[1], key));
    });
    if (!std::ranges::is_sorted(found)) refuse(key, "must be in the order of the units");
    return found;
  }

  void refuse_others() const {
    for (const auto& [key, value] : table_)
      if (std::ranges::find(asked_, key.str()) == asked_.end())
        refuse(key.str(), "is not a key of set-ups", unknown_name_hint(key.str(), asked_));
  }

  [[noreturn]] void refuse(std::string_view key, const std::string& what, std::string hint = {}) const {
    throw Error(ErrorCode::bad_file, what, fmt::format("{}: {}", where_, key), std::move(hint));
  }

 private:
  toml::node_view<const toml::node> take(std::string_view key) {
    asked_.emplace_back(key);
    return table_[key];
  }

  template <class Do>
  void for_each(std::string_view key, Do what) {
    const auto node = take(key);
    if (!node) return;
    const toml::array* array = node.as_array();
    if (!array || array->empty()) refuse(key, "must be a list");
    for (const toml::node& element : *array) what(toml::node_view<const toml::node>(element));
  }

  std::int64_t count_of(toml::node_view<const toml::node> node, std::string_view key,
                        std::int64_t least = 1) const {
    const auto value = node.is_integer() ? node.value<std::int64_t>() : std::nullopt;
    if (!value || *value < least || *value > largest_count)
      refuse(key, fmt::format("must be a count of {} or more", least));
    return *value;
  }

  const toml::table& table_;
  std::string where_;
  std::vector<std::string> asked_;
};

SetUp set_up_of(Entry& entry, const std::string& source, const std::string& licence, Style style) {
  SetUp set_up{.name = entry.text("name", true),
               .licence = licence,
               .workload = entry.text("workload", true),
               .software = entry.texts("software"),
               .style = style};
  const std::string own = entry.text("source");
  set_up.source = fmt::format("{}, {}", own.empty() ? source : own, entry.text("where", true));
  const std::string mode = entry.text("mode", true);
  if (mode != "train" && mode != "infer") entry.refuse("mode", "must be train or infer");
  set_up.training = mode == "train";
  set_up.length = entry.count("length");
  set_up.precision = entry.text("precision");
  if (!set_up.precision.empty()) precision_from_name(set_up.precision);
  set_up.micro_batch = entry.count("micro_batch");
  if (set_up.micro_batch == 0) entry.refuse("micro_batch", "is missing");
  set_up.accumulate = static_cast<int>(entry.count("accumulate"));
  set_up.update_samples = entry.pairs("update_samples");
  set_up.pipeline = entry.counts("pipeline");
  set_up.chips = entry.counts("chips");
  if (!set_up.chips.empty() && set_up.chips.size() != set_up.pipeline.size())
    entry.refuse("chips", "must have one of each stage of the pipeline");
  set_up.stages = static_cast<int>(entry.count("stages"));
  if (set_up.stages > 0 && !set_up.pipeline.empty()) entry.refuse("stages", "is said by pipeline already");
  set_up.recompute = entry.flag("recompute");
  set_up.optimizer_off_chip = entry.flag("optimizer_off_chip");
  set_up.optimizer_sharded = entry.flag("optimizer_sharded");
  set_up.input_bytes = static_cast<int>(entry.count("input_bytes"));
  set_up.loaders = static_cast<int>(entry.count("loaders"));
  set_up.device_iterations = static_cast<int>(entry.count("device_iterations"));
  set_up.packed_samples = entry.number("packed_samples", 1);
  return set_up;
}

Form form_of(Entry& entry) {
  return {.name = entry.text("name", true),
          .workload = entry.text("workload", true),
          .source = entry.text("source", true),
          .options = entry.texts("options"),
          .published_only = entry.flag("published_only")};
}

DataFacts data_of(Entry& entry) {
  return {.workload = entry.text("workload", true),
          .source = entry.text("source", true),
          .in_files = entry.flag("in_files"),
          .graphs = entry.flag("graphs"),
          .loaders = static_cast<int>(entry.count("loaders")),
          .input_bytes = static_cast<int>(entry.count("input_bytes")),
          .epoch_samples = entry.number("epoch_samples", 0)};
}

// Every table of the list `key`, read by `read`.
template <class Read>
void read_list(const toml::table& table, const char* key, const std::string& where, Read read) {
  if (!table.contains(key)) return;
  const toml::array* list = table[key].as_array();
  if (!list) throw Error(ErrorCode::bad_file, "must be a list of tables", fmt::format("{}: {}", where, key));
  for (std::size_t i = 0; i < list->size(); ++i) {
    const std::string place = fmt::format("{}: {} {}", where, key, i + 1);
    const toml::table* one = (*list)[i].as_table();
    if (!one) throw Error(ErrorCode::bad_file, "must be a table", place);
    Entry entry(*one, place);
    read(entry);
    entry.refuse_others();
  }
}

void refuse_other_keys(const toml::table& table, const std::string& where) {
  static const std::vector<std::string> keys{"machines", "source", "licence", "set_up", "form", "data"};
  for (const auto& [key, value] : table)
    if (std::ranges::find(keys, key.str()) == keys.end())
      throw Error(ErrorCode::bad_file, "is not a key of files of set-ups",
                  fmt::format("{}: {}", where, key.str()), unknown_name_hint(key.str(), keys));
}

toml::table parsed(std::string_view text, const std::string& where) {
  try {
    return parse_toml(in_ascii(text));
  } catch (const toml::parse_error& error) {
    throw Error(ErrorCode::bad_file,
                fmt::format("line {}: {}", error.source().begin.line, error.description()), where);
  }
}

}  // namespace

int SetUp::chip_count() const {
  if (!chips.empty()) return std::ranges::max(chips) + 1;
  return pipeline.empty() ? std::max(1, stages) : static_cast<int>(pipeline.size());
}

std::int64_t SetUp::samples_of_update(int units) const {
  std::int64_t samples = update_samples.empty() ? 0 : update_samples.front().second;
  for (const auto& [of, stated] : update_samples)
    if (of <= units) samples = stated;
  return samples;
}

SetUpFacts parse_set_ups(std::string_view text, const std::string& where) {
  const toml::table table = parsed(text, where);
  refuse_other_keys(table, where);
  SetUpFacts facts;
  if (table.contains("set_up")) {
    const std::string style_name = table["machines"].value_or(std::string()),
                      source = table["source"].value_or(std::string()),
                      licence = table["licence"].value_or(std::string());
    const auto style = style_from_name(style_name);
    if (!style)
      throw Error(ErrorCode::bad_file, fmt::format("'{}' is not a style", style_name), where + ": machines");
    if (source.empty() || licence.empty())
      throw Error(ErrorCode::bad_file, "set-ups have a source and a license", where);
    read_list(table, "set_up", where,
              [&](Entry& entry) { facts.set_ups.push_back(set_up_of(entry, source, licence, *style)); });
  }
  read_list(table, "form", where, [&](Entry& entry) { facts.forms.push_back(form_of(entry)); });
  read_list(table, "data", where, [&](Entry& entry) { facts.data.push_back(data_of(entry)); });
  return facts;
}

const SetUpFacts& public_set_ups() {
  static const SetUpFacts all = [] {
    SetUpFacts facts;
    for (const BuiltIn& file : set_up_files()) {
      SetUpFacts of_file = parse_set_ups(file.text, fmt::format("machines/set-ups/{}.toml", file.id));
      std::ranges::move(of_file.set_ups, std::back_inserter(facts.set_ups));
      std::ranges::move(of_file.forms, std::back_inserter(facts.forms));
      std::ranges::move(of_file.data, std::back_inserter(facts.data));
    }
    return facts;
  }();
  return all;
}

const Form* form_of(std::string_view name) {
  for (const Form& form : public_set_ups().forms)
    if (form.name == name) return &form;
  return nullptr;
}

const DataFacts* data_facts_of(std::string_view workload) {
  for (const DataFacts& data : public_set_ups().data)
    if (data.workload == workload) return &data;
  return nullptr;
}

std::vector<const SetUp*> set_ups_of(std::string_view workload, Style style, bool training,
                                     std::int64_t length) {
  const auto named = [&](std::string_view name) {
    std::vector<const SetUp*> found;
    for (const SetUp& set_up : public_set_ups().set_ups)
      if (set_up.workload == name && set_up.style == style && set_up.training == training &&
          (set_up.length == 0 || length == 0 || set_up.length == length))
        found.push_back(&set_up);
    return found;
  };
  std::vector<const SetUp*> own = named(workload);
  const Form* form = form_of(workload);
  // Another form of a model is another size: its set-ups are not this one's, but where only the name differs.
  return own.empty() && form && form->options.empty() ? named(form->workload) : own;
}

}  // namespace superstep::machine
