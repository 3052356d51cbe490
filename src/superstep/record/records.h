// The record of every run, in one SQLite file of the user's: what was done, with what, on which machine, and
// what came out, every sample included. docs/records.md has the tables.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "superstep/record/result.h"

namespace superstep::record {

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

  // The numbers that they are given. A timeline is not kept.
  std::int64_t add(const Result& result);
  std::vector<std::int64_t> add_all(const std::vector<Result>& results);  // all of them or none
  std::vector<Result> list(const RecordFilter& filter = {}) const;        // newest first
  std::optional<Result> find(std::int64_t number) const;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  std::unique_ptr<class Database> database_;
};

// Adds results, or says in one line on standard error why it could not: a full or locked database does not
// undo the work it would have recorded.
void keep(const std::vector<Result>& results);

}  // namespace superstep::record
