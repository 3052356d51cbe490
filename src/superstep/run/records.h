// The record of every run, in one SQLite file of the user's: what was done, with what, on which machine, and
// what came out, every sample included. docs/records.md has the tables.
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
  nlohmann::json details = nlohmann::json::object();  // what else its result says: mode, units, flags
};

struct RecordFilter {
  std::string workload, command;  // empty: any
  int most = 50;
};

class Records {
 public:
  // Opens or makes the database; `path` empty: records.sqlite in the user's data folder. One of the schema's
  // version 1 is brought to the present one. Throws Error: io when it is locked or may not be written,
  // bad_file when it is something else, damaged, or of a later version of the program.
  explicit Records(std::filesystem::path path = {});
  ~Records();
  Records(const Records&) = delete;
  Records& operator=(const Records&) = delete;

  std::int64_t add(const Record& record);
  std::vector<std::int64_t> add_all(const std::vector<Record>& records);  // all of them or none
  std::vector<Record> list(const RecordFilter& filter = {}) const;        // newest first
  std::optional<Record> find(std::int64_t id) const;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  std::unique_ptr<class Database> database_;
};

// Adds a record, or says in one line on standard error why it could not: a full or locked database does not
// undo the work it would have recorded.
void keep_record(const Record& record);
void keep_records(const std::vector<Record>& records);

}  // namespace superstep::run
