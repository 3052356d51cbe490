#include "superstep/run/records.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <cstdio>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/run/environment.h"

namespace superstep::run {
namespace {

using nlohmann::json;

constexpr int schema_version = 1;
constexpr int busy_milliseconds = 5000;

constexpr const char* schema = R"sql(
create table if not exists runs (
  id integer primary key, created text not null, command text not null, workload text not null,
  machine text not null, folder text not null, config text not null, environment text not null);
create table if not exists metrics (
  run integer not null references runs(id), name text not null, value real, unit text not null,
  how text not null, samples text);
create index if not exists metrics_by_run on metrics(run);
create index if not exists runs_by_workload on runs(workload, id);
)sql";

}  // namespace

struct Records::State {
  sqlite3* database = nullptr;
  std::string where;
  ~State() { sqlite3_close(database); }

  [[noreturn]] void fail(const char* action) const {
    const int code = sqlite3_errcode(database);
    const ErrorCode kind =
        code == SQLITE_NOTADB || code == SQLITE_CORRUPT ? ErrorCode::bad_file : ErrorCode::io;
    const char* hint = code == SQLITE_BUSY || code == SQLITE_LOCKED
                           ? "another program holds it: try again later"
                       : code == SQLITE_READONLY || code == SQLITE_CANTOPEN
                           ? "check the permissions, or set SUPERSTEP_HOME to another folder"
                       : code == SQLITE_FULL ? "the disk is full"
                                             : "";
    throw Error(kind, fmt::format("cannot {} the records: {}", action, sqlite3_errmsg(database)), where,
                hint);
  }
  void execute(const char* sql, const char* action) const {
    if (sqlite3_exec(database, sql, nullptr, nullptr, nullptr) != SQLITE_OK) fail(action);
  }
};

namespace {

// A prepared statement whose parameters are bound in order.
class Statement {
 public:
  Statement(sqlite3* database, const char* sql) : database_(database) {
    sqlite3_prepare_v2(database, sql, -1, &statement_, nullptr);
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& bind(const std::string& text) {
    sqlite3_bind_text(statement_, ++bound_, text.c_str(), -1, SQLITE_TRANSIENT);
    return *this;
  }
  Statement& bind(std::int64_t value) {
    sqlite3_bind_int64(statement_, ++bound_, value);
    return *this;
  }
  Statement& bind(double value) {
    sqlite3_bind_double(statement_, ++bound_, value);
    return *this;
  }
  bool row() { return sqlite3_step(statement_) == SQLITE_ROW; }
  bool done() { return sqlite3_step(statement_) == SQLITE_DONE; }
  std::string text(int column) const {
    const auto* value = sqlite3_column_text(statement_, column);
    return value ? reinterpret_cast<const char*>(value) : "";
  }
  std::int64_t integer(int column) const { return sqlite3_column_int64(statement_, column); }
  double number(int column) const { return sqlite3_column_double(statement_, column); }

 private:
  sqlite3* database_;
  sqlite3_stmt* statement_ = nullptr;
  int bound_ = 0;
};

std::vector<Metric> read_metrics(sqlite3* database, std::int64_t run) {
  std::vector<Metric> metrics;
  Statement query(database,
                  "select name, value, unit, how, samples from metrics where run = ? order by rowid");
  query.bind(run);
  while (query.row()) {
    Metric metric{.name = query.text(0), .value = query.number(1), .unit = query.text(2)};
    metric.how = query.text(3) == "predicted" ? How::predicted : How::measured;
    const json samples = json::parse(query.text(4), nullptr, false);
    if (samples.is_array())
      for (const json& sample : samples)
        if (sample.is_number()) metric.samples.push_back(sample.get<double>());
    metrics.push_back(std::move(metric));
  }
  return metrics;
}

Record read_record(sqlite3* database, const Statement& query) {
  return {.id = query.integer(0),
          .created = query.text(1),
          .command = query.text(2),
          .workload = query.text(3),
          .machine = query.text(4),
          .folder = query.text(5),
          .config = json::parse(query.text(6), nullptr, false),
          .environment = json::parse(query.text(7), nullptr, false),
          .metrics = read_metrics(database, query.integer(0))};
}

constexpr const char* columns = "id, created, command, workload, machine, folder, config, environment";

}  // namespace

Records::Records(std::filesystem::path path)
    : path_(path.empty() ? user_data_folder() / "records.sqlite" : std::move(path)),
      state_(std::make_unique<State>()) {
  state_->where = path_.string();
  if (sqlite3_open(path_.c_str(), &state_->database) != SQLITE_OK) state_->fail("open");
  sqlite3_busy_timeout(state_->database, busy_milliseconds);
  Statement version(state_->database, "pragma user_version");
  const std::int64_t found = version.row() ? version.integer(0) : 0;
  if (found > schema_version)
    throw Error(ErrorCode::bad_file,
                fmt::format("is of version {}, this program knows {}", found, schema_version), state_->where,
                "use the newer program, or set SUPERSTEP_HOME to another folder");
  if (found < schema_version)
    state_->execute((std::string(schema) + fmt::format("pragma user_version = {};", schema_version)).c_str(),
                    "set up");
}

Records::~Records() = default;

std::int64_t Records::add(const Record& record) {
  const auto text = [](const json& value) {
    return value.dump(-1, ' ', false, json::error_handler_t::replace);
  };
  state_->execute("begin immediate", "write");
  Statement insert(state_->database,
                   "insert into runs (created, command, workload, machine, folder, config, environment) "
                   "values (?, ?, ?, ?, ?, ?, ?)");
  insert.bind(record.created.empty() ? iso_time() : record.created)
      .bind(record.command)
      .bind(record.workload);
  insert.bind(record.machine).bind(record.folder).bind(text(record.config)).bind(text(record.environment));
  bool written = insert.done();
  const std::int64_t id = sqlite3_last_insert_rowid(state_->database);
  for (const Metric& metric : record.metrics) {
    Statement row(state_->database, "insert into metrics values (?, ?, ?, ?, ?, ?)");
    row.bind(id).bind(metric.name).bind(metric.value).bind(metric.unit);
    row.bind(std::string(metric.how == How::predicted ? "predicted" : "measured"))
        .bind(text(json(metric.samples)));
    written = row.done() && written;
  }
  if (!written) {
    sqlite3_exec(state_->database, "rollback", nullptr, nullptr, nullptr);
    state_->fail("write");
  }
  state_->execute("commit", "write");
  return id;
}

std::vector<Record> Records::list(const std::string& workload, int most) const {
  std::vector<Record> records;
  Statement query(
      state_->database,
      fmt::format("select {} from runs where ?1 = '' or workload = ?1 order by id desc limit ?2", columns)
          .c_str());
  query.bind(workload).bind(std::int64_t{most});
  while (query.row()) records.push_back(read_record(state_->database, query));
  return records;
}

std::optional<Record> Records::find(std::int64_t id) const {
  Statement query(state_->database, fmt::format("select {} from runs where id = ?", columns).c_str());
  query.bind(id);
  if (!query.row()) return std::nullopt;
  return read_record(state_->database, query);
}

void keep_record(const Record& record) {
  try {
    Records().add(record);
  } catch (const Error& error) {
    fmt::print(stderr, "superstep: note: this run is not in the records: {}\n", error.what());
  }
}

}  // namespace superstep::run
