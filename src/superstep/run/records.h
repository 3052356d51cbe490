// The record of every run, in one SQLite file of the user's: what was done, with what, on which machine, and
// what came out.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "superstep/base/metric.h"

namespace superstep::run {

struct Record {
  std::int64_t id = 0;  // given by the database
  std::string created;  // ISO 8601
  std::string command;  // "train", "infer", "bench"
  std::string workload;
  std::string machine;  // "cpu"
  std::string folder;   // of a run directory; may be empty
  nlohmann::json config;
  nlohmann::json environment;
  std::vector<Metric> metrics;
};

class Records {
 public:
  // Opens or makes the database; `path` empty: records.sqlite in the user's data folder. Throws Error (io,
  // bad_file), also when it was written by a later version of the program.
  explicit Records(std::filesystem::path path = {});
  ~Records();
  Records(const Records&) = delete;
  Records& operator=(const Records&) = delete;

  std::int64_t add(const Record& record);
  std::vector<Record> list(const std::string& workload = {}, int most = 50) const;  // newest first
  std::optional<Record> find(std::int64_t id) const;
  const std::filesystem::path& path() const { return path_; }

 private:
  struct State;
  std::filesystem::path path_;
  std::unique_ptr<State> state_;
};

// Adds a record, or says in one line on standard error why it could not: a full or locked database does not
// undo the work it would have recorded.
void keep_record(const Record& record);

}  // namespace superstep::run
