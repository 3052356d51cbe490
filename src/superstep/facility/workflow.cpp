#include "superstep/facility/workflow.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/text.h"
#include "superstep/facility/keys.h"

namespace superstep::facility {
namespace {

using machine::Keys;

// Sums of items stay exact in a double.
constexpr std::int64_t most_items = 1'000'000'000'000;

Source source_of(const Named& of, const std::string& where) {
  Keys keys(*of.table, where, fmt::format("[source.{}]", of.name));
  Source source{.name = of.name,
                .at = keys.text("at", true),
                .rate = exact(keys, "rate", Dimension::rate),
                .bytes = exact(keys, "bytes", Dimension::data)};
  source.files = keys.text("files");
  const double lasts = exact(keys, "lasts", Dimension::time);
  if (lasts > 0 && (source.rate == 0 || keys.has("count")))
    keys.refuse("lasts", "goes with rate, in place of count");
  source.count = keys.count("count");
  if (lasts > 0)
    source.count = std::max<std::int64_t>(1, static_cast<std::int64_t>(lasts * source.rate + .5));
  if (source.count == 0) keys.refuse("count", "is missing: how many items come, or lasts = \"1 h\"");
  if (source.count > most_items) keys.refuse("count", "is more than anybody waits for");
  keys.refuse_others();
  return source;
}

// Names of the file's sources and tasks, which are one name space.
struct Names {
  std::vector<std::string> sources, tasks;

  std::optional<Input> find(const std::string& name) const {
    for (const auto* list : {&sources, &tasks}) {
      const auto found = std::ranges::find(*list, name);
      if (found != list->end())
        return Input{.of_source = list == &sources, .from = static_cast<int>(found - list->begin())};
    }
    return std::nullopt;
  }
  std::vector<std::string> all() const {
    std::vector<std::string> names = sources;
    names.insert(names.end(), tasks.begin(), tasks.end());
    return names;
  }
};

Input input_of(const Keys& keys, std::string_view key, const Names& names, const std::string& name) {
  const std::optional<Input> found = names.find(name);
  if (!found)
    keys.refuse(key, fmt::format("'{}' is no source and no task of this file", name),
                unknown_name_hint(name, names.all()));
  return *found;
}

// every = 16, "end", "10 min", { frames = 100, dark = 1 } or { drift = "2 h" }.
void read_trigger(Keys& keys, const toml::table& table, const Names& names, const std::string& where,
                  Task& task) {
  const toml::node* node = table.get("every");
  if (!node) return;
  if (node->is_integer()) {
    const auto every = static_cast<double>(keys.count("every"));
    for (Input& input : task.inputs) input.every = every;
  } else if (node->is_table()) {
    Keys inner(*keys.tables("every").front(), where, "every");
    if (inner.has("drift")) {
      task.trigger = Trigger::drift;
      task.period = exact(inner, "drift", Dimension::time, true);
    } else {
      for (Input& input : task.inputs)
        input.every = static_cast<double>(inner.count(
            (input.of_source ? names.sources : names.tasks)[static_cast<std::size_t>(input.from)], 1));
    }
    inner.refuse_others();
  } else if (keys.text("every") == "end") {
    task.trigger = Trigger::end;
  } else {
    task.trigger = Trigger::period;
    task.period = exact(keys, "every", Dimension::time, true);
  }
}

void read_seconds(Keys& keys, const toml::table& table, const std::string& where, Task& task) {
  const toml::node* node = table.get("seconds");
  if (!node) return;
  if (!node->is_table()) {
    task.seconds.push_back({"any", amount(keys, "seconds", Dimension::time, true)});
    return;
  }
  Keys inner(*keys.tables("seconds").front(), where, "seconds");
  for (const auto& [name, value] : *node->as_table())
    task.seconds.push_back({std::string(name.str()), amount(inner, name.str(), Dimension::time, true)});
  inner.refuse_others();
}

void read_model(Keys& keys, Task& task) {
  task.model = keys.text("model");
  task.trains = keys.one_of("mode", {"train", "infer"}) == "train";
  task.precision = keys.text("precision");
  task.samples = keys.count("samples");
  task.batch = keys.count("batch");
  task.epochs = keys.number("epochs", 0);
  task.options = keys.list("options");
  for (const std::string& option : task.options)
    if (option.find('=') == std::string::npos) keys.refuse("options", "must be a list of name=value");
  if (task.model.empty()) {
    for (const char* key : {"mode", "precision", "samples", "batch", "epochs", "options"})
      if (keys.has(key)) keys.refuse(key, "is of a model, and none is named (model = \"braggnn\")");
    if (task.seconds.empty())
      keys.refuse("seconds", "is missing: how long does it take, or which model is it?");
  }
  if (!task.trains && keys.has("epochs")) keys.refuse("epochs", "is of training (mode = \"train\")");
}

constexpr std::int64_t most_copies = 1'000'000, most_retries = 1'000;

void read_devices(Keys& keys, Task& task) {
  const std::vector<std::string> words = keys.list("devices");
  if (words.empty()) return;
  task.devices.clear();
  for (const std::string& word : words) {
    const bool number = word.size() <= 6 && word != "0" &&
                        std::ranges::all_of(word, [](char c) { return c >= '0' && c <= '9'; });
    if (!number) keys.refuse("devices", "must be whole numbers, 1 or more");
    task.devices.push_back(std::stoi(word));
  }
}

Task task_of(const Named& of, const Names& names, const std::string& where) {
  Keys keys(*of.table, where, fmt::format("[task.{}]", of.name));
  Task task{.name = of.name, .line = static_cast<int>(of.table->source().begin.line)};
  for (const std::string& name : keys.list("from"))
    task.inputs.push_back(input_of(keys, "from", names, name));
  if (task.inputs.empty()) keys.refuse("from", "is missing: a source or a task whose items it takes");
  for (const std::string& name : keys.list("uses")) {
    const Input used = input_of(keys, "uses", names, name);
    if (used.of_source) keys.refuse("uses", fmt::format("'{}' is a source: uses are results of tasks", name));
    task.uses.push_back(used.from);
  }
  read_trigger(keys, *of.table, names, where, task);
  read_seconds(keys, *of.table, where, task);
  read_model(keys, task);
  read_devices(keys, task);
  task.bytes = exact(keys, "bytes", Dimension::data);
  task.copies = static_cast<int>(std::min(keys.count("copies"), most_copies));
  task.checkpoint = exact(keys, "checkpoint", Dimension::time);
  task.on = keys.list("on");
  task.run = keys.text("run");
  if (keys.has("retries") && task.run.empty()) keys.refuse("retries", "is of commands: run = \"...\"");
  task.retries = static_cast<int>(std::min<std::int64_t>(keys.count("retries"), most_retries));
  const std::string runs_as = keys.one_of("as", {"job", "service"});
  const bool rare = task.trains || task.trigger != Trigger::items;
  task.job = runs_as.empty() ? rare : runs_as == "job";
  keys.refuse_others();
  return task;
}

struct Limit {
  const char* key;
  Wish wish;
  double share;
  Dimension dimension;
};
constexpr Limit limits[] = {
    {"p50", Wish::latency, .5, Dimension::time},   {"p90", Wish::latency, .9, Dimension::time},
    {"p99", Wish::latency, .99, Dimension::time},  {"p999", Wish::latency, .999, Dimension::time},
    {"age", Wish::age, .99, Dimension::time},      {"end", Wish::end, 1, Dimension::time},
    {"energy", Wish::energy, 1, Dimension::energy}};

Target target_of(const Named& of, const Names& names, const std::vector<Task>& tasks,
                 const std::string& where) {
  Keys keys(*of.table, where, fmt::format("[target.{}]", of.name));
  Target target{.name = of.name};
  int said = 0;
  for (const Limit& limit : limits) {
    if (!keys.has(limit.key)) continue;
    ++said;
    target.wish = limit.wish;
    target.share = limit.share;
    target.limit = exact(keys, limit.key, limit.dimension, true);
  }
  if (keys.has("cost")) {
    ++said;
    target.wish = Wish::cost;
    target.limit = keys.number("cost", 0);
  }
  if (said != 1)
    keys.refuse(said == 0 ? "p99" : "target",
                "must be one of p50, p90, p99, p999, age, end, cost and energy, and no more than one");
  const bool of_task = target.wish == Wish::latency || target.wish == Wish::age;
  const std::string name = keys.text("of", of_task);
  if (!of_task && !name.empty()) keys.refuse("of", "is of p50, p90, p99, p999 and age alone");
  if (of_task) {
    const Input found = input_of(keys, "of", names, name);
    if (found.of_source) keys.refuse("of", fmt::format("'{}' is a source, which waits for nothing", name));
    target.task = found.from;
    if (target.wish == Wish::age && tasks[static_cast<std::size_t>(found.from)].uses.empty())
      keys.refuse("of", fmt::format("'{}' has no uses = [...] whose age could be counted", name));
  }
  keys.refuse_others();
  return target;
}

// Each task after those whose items it takes. Refuses circles.
std::vector<int> ordered(const Workflow& workflow, const std::string& where) {
  std::vector<int> order;
  std::vector<bool> done(workflow.tasks.size(), false);
  while (order.size() < workflow.tasks.size()) {
    const std::size_t before = order.size();
    for (std::size_t t = 0; t < workflow.tasks.size(); ++t) {
      const auto& inputs = workflow.tasks[t].inputs;
      const bool ready = std::ranges::all_of(inputs, [&](const Input& input) {
        return input.of_source || done[static_cast<std::size_t>(input.from)];
      });
      if (done[t] || !ready) continue;
      done[t] = true;
      order.push_back(static_cast<int>(t));
    }
    if (order.size() > before) continue;
    std::vector<std::string> left;
    int line = 0;
    for (std::size_t t = 0; t < done.size(); ++t)
      if (!done[t]) {
        left.push_back(workflow.tasks[t].name);
        line = line == 0 ? workflow.tasks[t].line : line;
      }
    throw Error(ErrorCode::invalid_argument,
                fmt::format("tasks wait for each other in a circle: {}", join(left, ", ")),
                fmt::format("{}:{}", where, line),
                "uses = [...] takes the newest result there is and waits for none");
  }
  return order;
}

}  // namespace

std::string words_of(const Workflow& workflow, const Target& target) {
  const std::string task = target.task < 0 ? "" : workflow.tasks[static_cast<std::size_t>(target.task)].name;
  switch (target.wish) {
    case Wish::latency: return fmt::format("p{:g} of the time to {}", target.share * 100, task);
    case Wish::age: return fmt::format("p99 age of what {} uses", task);
    case Wish::end: return "time to the end";
    case Wish::cost: return "cost";
    case Wish::energy: return "energy";
  }
  return {};
}

Workflow parse_workflow(std::string_view text, const std::string& where) {
  const toml::table table = machine::users_toml(text, where);
  Keys keys(table, where, "a workflow");
  Workflow workflow{.name = keys.text("name", true), .summary = keys.text("summary"), .file = where};
  const auto sources = named(keys, "source");
  const auto tasks = named(keys, "task");
  const auto targets = named(keys, "target");
  Names names;
  for (const Named& one : sources) names.sources.push_back(one.name);
  for (const Named& one : tasks) {
    if (std::ranges::find(names.sources, one.name) != names.sources.end())
      keys.refuse("task", fmt::format("'{}' is the name of a source, too", one.name));
    names.tasks.push_back(one.name);
  }
  if (sources.empty()) keys.refuse("source", "is missing: where data come from, [source.NAME]");
  if (tasks.empty()) keys.refuse("task", "is missing: what is done with them, [task.NAME]");
  for (const Named& one : sources) workflow.sources.push_back(source_of(one, where));
  for (const Named& one : tasks) workflow.tasks.push_back(task_of(one, names, where));
  for (const Named& one : targets) workflow.targets.push_back(target_of(one, names, workflow.tasks, where));
  keys.refuse_others();
  workflow.order = ordered(workflow, where);
  return workflow;
}

Workflow read_workflow(const std::filesystem::path& file) {
  return parse_workflow(read_text_file(file), file.string());
}

}  // namespace superstep::facility
