#include "superstep/facility/run/shop.h"

#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/json.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/base/text.h"

namespace superstep::facility {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// s between looks at commands: a thousandth of what people wait for, and no load.
constexpr double between_looks = 0.002;

std::vector<fs::path> files_of(const Source& source, const fs::path& at) {
  std::vector<fs::path> files;
  if (source.files.empty()) return files;
  glob_t found{};
  const std::string pattern = (at / source.files).string();
  if (::glob(pattern.c_str(), 0, nullptr, &found) == 0)
    for (std::size_t i = 0; i < found.gl_pathc; ++i) files.emplace_back(found.gl_pathv[i]);
  ::globfree(&found);
  if (static_cast<std::int64_t>(files.size()) < source.count)
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("source {} has {} items, and its files are {}", source.name, source.count, files.size()),
        pattern, "--items N takes the first ones alone");
  return files;
}

// A file of so many bytes that takes no room on the disk.
void make_hollow(const fs::path& file, double bytes) {
  std::ofstream made(file, std::ios::binary);
  made.close();
  std::error_code error;
  fs::resize_file(file, static_cast<std::uintmax_t>(bytes), error);
  if (!made || error) throw Error(ErrorCode::io, "cannot be written: " + error.message(), file.string());
}

std::string variable_name(std::string name) {
  std::ranges::replace(name, '-', '_');
  return name;
}

std::string tail_of(const fs::path& log) {
  if (!fs::exists(log)) return {};
  const std::string text = read_text_file(log);
  constexpr std::size_t most = 400;  // of a message
  return text.size() <= most ? text : text.substr(text.size() - most);
}

}  // namespace

Shop::Shop(fs::path folder, const Plan& plan, double speed)
    : folder_(fs::absolute(folder)), plan_(plan), speed_(speed) {
  const Workflow& workflow = *plan.workflow;
  const fs::path at = fs::absolute(fs::path(workflow.file)).parent_path();
  for (const Source& source : workflow.sources) files_.push_back(files_of(source, at));
  next_number_.assign(workflow.tasks.size(), 0);
  done_.resize(workflow.tasks.size());
  taken_.resize(workflow.tasks.size());
  for (const Task& task : workflow.tasks) make_folder(folder_ / "work" / task.name);
  for (const Source& source : workflow.sources) make_folder(folder_ / "work" / source.name);
  for (std::size_t t = 0; t < workflow.tasks.size(); ++t) read_firings(t);
}

const Partition& Shop::partition(std::size_t t) const {
  return plan_.facility->partitions[static_cast<std::size_t>(plan_.places[t].partition)];
}

fs::path Shop::path_of(const ItemName& item) const {
  if (!item.of_source) return firing_folder(folder_, task_at(item.producer).name, item.number) / "out";
  if (!files_[item.producer].empty()) return files_[item.producer][item.number];
  return folder_ / "work" / plan_.workflow->sources[item.producer].name / fmt::format("{:05}", item.number);
}

ItemId Shop::register_item(const ItemName& item) {
  const auto [known, added] = ids_.emplace(item, static_cast<ItemId>(items_.size()));
  if (added) items_.push_back(item);
  return known->second;
}

void Shop::read_firings(std::size_t t) {
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(folder_ / "work" / task_at(t).name))
    folders.push_back(entry.path());
  std::ranges::sort(folders);
  std::vector<FiringRecord> others;
  for (const fs::path& folder : folders) {
    const std::size_t number = std::stoul("0" + folder.filename().string());
    next_number_[t] = std::max(next_number_[t], number + 1);
    auto record = read_firing(folder);
    if (!record) continue;
    record->task = t;
    record->number = number;
    if (record->ended)
      take_over(std::move(*record));
    else
      others.push_back(std::move(*record));
  }
  // Commands outlive a call that is killed. What one of them ends with counts unless a call since has done
  // the same work: an item that another firing has taken is not taken twice.
  for (FiringRecord& record : others) {
    const fs::path folder = firing_folder(folder_, task_at(t).name, record.number);
    const bool again = std::ranges::any_of(record.taken, [&](const auto& one) {
      return !one.first.used && taken_[t].contains({one.first.door, one.second});
    });
    if (again) continue;
    if (!record.emulated && status_of(folder) == 0) {
      record.ended = record.begun;
      record.course = {.born = record.begun};
      write_done(folder, *record.ended, record.course);
      take_over(std::move(record));
    } else if (!record.job.empty()) {
      unfinished_jobs_.push_back(std::move(record));
    }
  }
}

// A firing of a call before this one that is done.
void Shop::take_over(FiringRecord record) {
  offset_ = std::max(offset_, *record.ended);
  ++went_on_;
  for (const auto& [how, item] : record.taken)
    if (!how.used) taken_[record.task].insert({how.door, item});
  done_[record.task].push_back(std::move(record));
}

Restored Shop::restore() {
  Restored restored;
  const Workflow& workflow = *plan_.workflow;
  std::map<ItemName, std::vector<bool>> taken;
  for (const auto& firings : done_)
    for (const FiringRecord& firing : firings)
      for (const auto& [how, item] : firing.taken) {
        auto& by = taken[item];
        by.resize(workflow.tasks.size());
        if (!how.used) by[firing.task] = true;
      }
  const auto item_of = [&](const ItemName& name, double cut, double born) {
    auto& by = taken[name];
    by.resize(workflow.tasks.size());
    return Restored::Item{.id = register_item(name), .cut = cut, .born = born, .taken_by = by};
  };
  restored.of_sources.resize(workflow.sources.size());
  for (std::size_t s = 0; s < workflow.sources.size(); ++s) {
    const fs::path log = folder_ / "work" / workflow.sources[s].name / "given.jsonl";
    if (!fs::exists(log)) continue;
    for (const std::string& line : split(read_text_file(log), '\n')) {
      const Json json = parse_json(line);
      if (json.is_discarded() || !json.is_number()) continue;  // the last one, cut off
      const double at = json.get<double>();
      restored.of_sources[s].push_back(item_of({true, s, restored.of_sources[s].size()}, at, at));
      offset_ = std::max(offset_, at);
    }
  }
  restored.of_tasks.resize(workflow.tasks.size());
  for (std::size_t t = 0; t < done_.size(); ++t) {
    std::ranges::sort(done_[t], {}, [](const FiringRecord& one) { return *one.ended; });
    for (const FiringRecord& firing : done_[t])
      restored.of_tasks[t].push_back(item_of({false, t, firing.number}, firing.cut, firing.course.born));
  }
  restored.now = offset_;
  clock_ = {};
  return restored;
}

double Shop::now() { return offset_ + clock_.seconds() * speed_; }

bool Shop::paced(std::size_t task) const { return partition(task).runs == Partition::Runs::emulated; }

bool Shop::begin(std::uint32_t firing, std::size_t task, double now, std::span<const Taken> items) {
  Open open{.record = {.task = task, .number = next_number_[task]++, .cut = now, .begun = now}};
  for (const Taken& taken : items) open.record.taken.emplace_back(taken, items_[taken.item]);
  open.record.emulated = task_at(task).run.empty();
  open.folder = firing_folder(folder_, task_at(task).name, open.record.number);
  Open& kept = open_[firing] = std::move(open);
  if (!kept.record.emulated && attach(firing, kept)) return true;
  make_folder(kept.folder);
  write_firing(kept.folder, kept.record);
  if (kept.record.emulated) return false;
  start(firing, kept);
  return true;
}

// A job of a call before this one that takes the same items.
bool Shop::attach(std::uint32_t firing, Open& open) {
  const auto same = std::ranges::find_if(unfinished_jobs_, [&](const FiringRecord& one) {
    return one.task == open.record.task &&
           std::ranges::equal(one.taken, open.record.taken, [](const auto& a, const auto& b) {
             return a.second == b.second && a.first.used == b.first.used;
           });
  });
  if (same == unfinished_jobs_.end()) return false;
  const fs::path folder = firing_folder(folder_, task_at(same->task).name, same->number);
  const bool there = commands_.attach(firing, folder, same->job);
  if (there) {
    open.record = *same;
    open.folder = folder;
  }
  unfinished_jobs_.erase(same);
  return there;
}

ScriptVariables Shop::variables_of(const Open& open) const {
  const Task& task = task_at(open.record.task);
  ScriptVariables variables;
  std::map<std::string, std::string> by_name;
  std::string all;
  for (const Input& input : task.inputs)
    by_name["IN_" + variable_name(input.of_source
                                      ? plan_.workflow->sources[static_cast<std::size_t>(input.from)].name
                                      : task_at(static_cast<std::size_t>(input.from)).name)];
  for (const int used : task.uses)
    by_name["USES_" + variable_name(task_at(static_cast<std::size_t>(used)).name)];
  for (const auto& [how, item] : open.record.taken) {
    const std::string name = variable_name(item.of_source ? plan_.workflow->sources[item.producer].name
                                                          : task_at(item.producer).name);
    std::string& value = by_name[(how.used ? "USES_" : "IN_") + name];
    const std::string path = path_of(item).string();
    value += (value.empty() ? "" : " ") + path;
    if (!how.used) all += (all.empty() ? "" : " ") + path;
  }
  variables.values = {{"IN", all},
                      {"OUT", (open.folder / "out").string()},
                      {"NUMBER", fmt::format("{}", open.record.number)},
                      {"SUPERSTEP", fs::read_symlink("/proc/self/exe").string()},
                      {"TASK", task.name},
                      {"DEVICES", fmt::format("{}", plan_.places[open.record.task].devices)}};
  variables.values.insert(variables.values.end(), by_name.begin(), by_name.end());
  return variables;
}

void Shop::start(std::uint32_t firing, Open& open) {
  const Task& task = task_at(open.record.task);
  fs::path at = fs::absolute(fs::path(plan_.workflow->file)).parent_path();
  write_script(open.folder, at, variables_of(open), task.run);
  if (partition(open.record.task).runs != Partition::Runs::slurm)
    return commands_.start_here(firing, open.folder);
  open.record.job = commands_.submit(firing, open.folder, task.name, partition(open.record.task).sbatch);
  write_firing(open.folder, open.record);
}

std::optional<std::uint32_t> Shop::wait(double until) {
  while (true) {
    if (interrupted()) throw Error(ErrorCode::interrupted, "stopped", {}, "the same call goes on from here");
    for (const Commands::Ended& one : commands_.ended()) {
      if (one.status != 0)
        command_failed(one.firing, one.status);
      else
        ended_.push_back(one.firing);
    }
    if (!ended_.empty()) {
      const std::uint32_t first = ended_.front();
      ended_.erase(ended_.begin());
      return first;
    }
    const double left = (until - now()) / speed_;
    if (left <= 0) return std::nullopt;
    if (!commands_.any() && !std::isfinite(left))
      throw Error(ErrorCode::internal, "nothing is left to do, and tasks that are not done");
    const double pause = commands_.any() ? std::min(left, between_looks) : std::min(left, 0.05);
    std::this_thread::sleep_for(std::chrono::duration<double>(pause));
  }
}

// Begins again, in a folder of its own, as often as the task allows.
void Shop::command_failed(std::uint32_t firing, int status) {
  Open& open = open_.at(firing);
  const Task& task = task_at(open.record.task);
  if (open.attempts++ < task.retries) {
    open.record.number = next_number_[open.record.task]++;
    open.record.job.clear();
    open.folder = firing_folder(folder_, task.name, open.record.number);
    make_folder(open.folder);
    write_firing(open.folder, open.record);
    return start(firing, open);
  }
  const fs::path log = open.folder / "log";
  const std::string how =
      status < 0 ? "is gone from Slurm without a status" : fmt::format("ended with {}", status);
  throw Error(
      ErrorCode::diverged, fmt::format("the command of {} {}: {}", task.name, how, tail_of(log)),
      log.string(),
      "mend it, and the same call goes on from what is done; retries = N in the task tries again by itself");
}

ItemId Shop::give(std::uint32_t firing, std::size_t task, double now, const Course& course) {
  Open open = std::move(open_.at(firing));
  open_.erase(firing);
  const fs::path out = open.folder / "out";
  const bool is_taken = std::ranges::any_of(plan_.workflow->tasks, [&](const Task& other) {
    return std::ranges::any_of(other.inputs,
                               [&](const Input& input) {
                                 return !input.of_source && static_cast<std::size_t>(input.from) == task;
                               }) ||
           std::ranges::find(other.uses, static_cast<int>(task)) != other.uses.end();
  });
  if (open.record.emulated)
    make_hollow(out, task_at(task).bytes);
  else if (is_taken && !fs::exists(out))
    throw Error(ErrorCode::bad_file,
                fmt::format("the command of {} ended with 0 and wrote no $OUT, which other tasks take",
                            task_at(task).name),
                open.folder.string(), "it writes its item to the file, or folder, that $OUT names");
  write_done(open.folder, now, course);
  return register_item({false, task, open.record.number});
}

ItemId Shop::give_of_source(std::size_t source, double index, double now) {
  const ItemName name{true, source, static_cast<std::size_t>(index)};
  if (files_[source].empty()) make_hollow(path_of(name), plan_.workflow->sources[source].bytes);
  append_line(folder_ / "work" / plan_.workflow->sources[source].name / "given.jsonl",
              fmt::format("{:.9f}", now));
  return register_item(name);
}

}  // namespace superstep::facility
