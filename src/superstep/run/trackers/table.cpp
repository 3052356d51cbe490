#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/base/file.h"
#include "superstep/run/trackers/tracker.h"

namespace superstep::run {
namespace {

// As CSV has a name with commas or quotes (RFC 4180): in quotes, which are doubled.
std::string quoted(const std::string& name) {
  if (name.find_first_of(",\"\n\r") == std::string::npos) return name;
  std::string inner;
  for (const char c : name) inner += c == '"' ? std::string("\"\"") : std::string(1, c);
  return '"' + inner + '"';
}

class Table : public Tracker {
 public:
  explicit Table(std::filesystem::path file) : file_(std::move(file)) {}

  void write(const RunStory& story) override {
    std::vector<std::string> names;
    for (const LoggedEpoch& epoch : story.epochs)
      for (const auto& [name, value] : epoch.values)
        if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    std::string text = "epoch,step,seconds";
    for (const std::string& name : names) text += "," + quoted(name);
    text += "\n";
    for (const LoggedEpoch& epoch : story.epochs) {
      text += fmt::format("{},{},{}", epoch.epoch, epoch.step, epoch.seconds);
      for (const std::string& name : names) {
        const double value = epoch.value(name);
        text += std::isnan(value) ? "," : fmt::format(",{}", value);
      }
      text += "\n";
    }
    write_file_atomically(file_, text);
  }

 private:
  std::filesystem::path file_;
};

}  // namespace

std::unique_ptr<Tracker> csv_tracker(std::filesystem::path file) {
  return std::make_unique<Table>(std::move(file));
}

}  // namespace superstep::run
