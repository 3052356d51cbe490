#include "superstep/workflow/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/json.h"
#include "superstep/base/progress.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/text.h"

namespace superstep::workflow {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* state_file = "workflow.json";

json parsed(const fs::path& path) {
  try {
    return parse_json_or_throw(read_text_file(path));
  } catch (const json::exception& error) {
    throw Error(ErrorCode::bad_file, fmt::format("is no workflow's state: {}", error.what()), path.string(),
                "delete the folder, or name another with --out");
  }
}

void say(const std::string& line) {
  if (is_quiet()) return;
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

}  // namespace

Steps::Steps(fs::path folder, std::string workflow, const Options& options, int count)
    : folder_(std::move(folder)), workflow_(std::move(workflow)), count_(count) {
  for (const auto& [name, value] : options.all()) options_[name] = value;
  const bool known = fs::exists(folder_ / state_file);
  if (!known && !holds_nothing(folder_))
    throw Error(ErrorCode::invalid_argument, "holds something else than a workflow", folder_.string(),
                "name a folder of its own with --out");
  make_folder(folder_);
  lock_ = std::make_unique<FolderLock>(folder_);
  if (known) read(options);
  write();
}

void Steps::read(const Options& options) {
  const fs::path path = folder_ / state_file;
  const json state = parsed(path);
  try {
    if (const std::string kept = state.at("workflow"); kept != workflow_)
      throw Error(ErrorCode::invalid_argument, fmt::format("holds the workflow '{}'", kept), folder_.string(),
                  "name another folder with --out");
    for (const auto& [name, value] : options.all()) {
      const std::string kept = state.at("options").value(name, std::string());
      if (kept != value)
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("was begun with {}={}, not {}", name, kept, value), folder_.string(),
                    "leave the option as it was to go on, or name another folder with --out");
    }
    for (const json& step : state.at("steps")) done_.push_back({step.at("name"), step.at("seconds")});
  } catch (const json::exception& error) {
    throw Error(ErrorCode::bad_file, fmt::format("is no workflow's state: {}", error.what()), path.string(),
                "delete the folder, or name another with --out");
  }
}

void Steps::write() const {
  json steps = json::array();
  for (const Done& done : done_) steps.push_back({{"name", done.name}, {"seconds", done.seconds}});
  write_file_atomically(
      folder_ / state_file,
      json{{"workflow", workflow_}, {"options", options_}, {"steps", steps}}.dump(2) + "\n");
}

const Steps::Done* Steps::find(const std::string& name) const {
  const auto found = std::ranges::find(done_, name, &Done::name);
  return found == done_.end() ? nullptr : &*found;
}

void Steps::step(const std::string& name, const std::vector<fs::path>& files,
                 const std::function<void()>& work) {
  const std::string which = fmt::format("step {} of {}, {}", ++at_, count_, name);
  const bool there = std::ranges::all_of(files, [](const fs::path& file) { return fs::exists(file); });
  if (find(name) && there) return say(which + ": done before");
  std::erase_if(done_, [&](const Done& done) { return done.name == name; });
  const Stopwatch watch;
  work();
  done_.push_back({name, watch.seconds()});
  write();
  say(fmt::format("{}: {}", which, format_seconds(done_.back().seconds)));
}

}  // namespace superstep::workflow
