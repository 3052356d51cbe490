#include "superstep/lab/bench/processes.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/system/child_process.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/base/text.h"
#include "superstep/lab/bench/baseline.h"
#include "superstep/record/result_json.h"
#include "superstep/record/summary.h"

namespace superstep::lab {
namespace {

namespace fs = std::filesystem;

// A folder of its own in the system's, gone when this ends.
class Scratch {
 public:
  Scratch() {
    std::string name = (fs::temp_directory_path() / "superstep-bench-XXXXXX").string();
    if (!mkdtemp(name.data()))
      throw Error(ErrorCode::io, fmt::format("cannot make a folder: {}", std::strerror(errno)), name);
    path_ = name;
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  fs::path operator/(const char* name) const { return path_ / name; }

 private:
  fs::path path_;
};

int run_and_wait(const std::vector<std::string>& command, const fs::path& errors) {
  const auto child = start_process(command, errors, Outlives::no);
  if (!child)
    throw Error(ErrorCode::io, fmt::format("cannot be started again: {}", std::strerror(child.error())),
                command[0]);
  return wait_for_process(*child);
}

std::vector<record::Quantity> same_of_all(const std::vector<const record::Result*>& results,
                                          const std::string& name) {
  std::vector<record::Quantity> all;
  for (const record::Result* result : results)
    if (const record::Quantity* found = result->find(name)) all.push_back(*found);
  return all;
}

// What a flag says of one process's samples is kept in the details; what all say stays a flag.
void join_flags(record::Quantity& joined, const std::vector<record::Quantity>& all) {
  nlohmann::json each = nlohmann::json::array();
  for (const record::Quantity& quantity : all) {
    each.push_back(quantity.flags);
    std::erase_if(joined.flags, [&](const std::string& flag) {
      return std::ranges::find(quantity.flags, flag) == quantity.flags.end();
    });
  }
  joined.details["process_flags"] = std::move(each);
}

record::Quantity join_quantity(const std::vector<record::Quantity>& all) {
  record::Quantity joined = all.front();
  std::vector<double> values, lows, highs;
  joined.samples.clear();
  for (const record::Quantity& quantity : all) {
    values.push_back(quantity.value);
    lows.push_back(quantity.low.value_or(quantity.value));
    highs.push_back(quantity.high.value_or(quantity.value));
    joined.samples.insert(joined.samples.end(), quantity.samples.begin(), quantity.samples.end());
  }
  join_flags(joined, all);
  const record::Summary summary = record::summarize(values);
  joined.value = summary.median;
  joined.details["process_values"] = values;
  if (summary.min == summary.max) return joined;  // a size, not a measurement
  joined.low = record::summarize(lows).low;
  joined.high = record::summarize(highs).high;
  joined.statistic = fmt::format("median of {} processes", values.size());
  joined.details["process_spread"] = summary.max / summary.min - 1;
  return joined;
}

record::Result join_result(const std::vector<const record::Result*>& results) {
  record::Result joined = *results.front();
  for (record::Quantity& quantity : joined.quantities)
    quantity = join_quantity(same_of_all(results, quantity.name));
  joined.config["processes"] = results.size();
  for (record::Quantity& quantity : joined.quantities)
    if (quantity.name == "step_time" && quantity.details.contains("process_spread"))
      quantity.flags.insert(quantity.flags.begin(),
                            fmt::format("{} processes, {:.1f} % apart", results.size(),
                                        100 * quantity.details["process_spread"].get<double>()));
  return joined;
}

}  // namespace

std::vector<record::Result> run_in_process(const std::vector<std::string>& arguments) {
  const Scratch scratch;
  const fs::path file = scratch / "results.json", errors = scratch / "stderr.txt";
  std::error_code failure;
  std::vector<std::string> command{fs::read_symlink("/proc/self/exe", failure).string()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  command.insert(command.end(), {"--json", file.string()});
  const int code = run_and_wait(command, errors);
  if (interrupted()) throw Error(ErrorCode::interrupted, "with the process that was measuring");
  if (code != 0)
    throw Error(code == 2 ? ErrorCode::invalid_argument : ErrorCode::io,
                fmt::format("a process ended with {}:\n  {}", code, read_text_file(errors)), "--processes");
  return record::read_results(read_text_file(file), file.string());
}

std::vector<std::string> own_arguments_without(const std::vector<std::string>& options,
                                               const std::vector<std::string>& flags) {
  std::vector<std::string> words = split(read_text_file("/proc/self/cmdline"), '\0'), kept;
  if (!words.empty() && words.back().empty()) words.pop_back();
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string name = words[i].substr(0, words[i].find('='));
    if (std::ranges::find(flags, words[i]) != flags.end()) continue;
    if (std::ranges::find(options, name) == options.end())
      kept.push_back(words[i]);
    else if (name == words[i])
      ++i;  // the option's value is the next word
  }
  return kept;
}

std::vector<record::Result> join_processes(const std::vector<std::vector<record::Result>>& runs) {
  std::vector<record::Result> joined;
  for (const auto& run : runs)
    for (const record::Result& result : run) {
      if (std::ranges::find(joined, result.id, &record::Result::id) != joined.end()) continue;
      std::vector<const record::Result*> same;
      for (const auto& other : runs)
        for (const record::Result& partner : other)
          if (partner.id == result.id) same.push_back(&partner);
      joined.push_back(join_result(same));
    }
  for (record::Result& result : joined)
    if (is_baseline(result))
      if (const auto first =
              std::ranges::find(joined, result.config.value("repeats", ""), &record::Result::id);
          first != joined.end())
        mark_as_baseline(result, *first);
  return joined;
}

}  // namespace superstep::lab
