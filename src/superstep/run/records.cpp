#include "superstep/run/records.h"

#include <fmt/format.h>

#include <cstdio>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/system/standard_streams.h"
#include "superstep/base/system/user_folders.h"
#include "superstep/run/database.h"
#include "superstep/run/environment.h"
#include "superstep/run/ranks/communicator.h"
#include "superstep/run/records_schema.h"

namespace superstep::run {
namespace {

using nlohmann::json;

std::string text_of(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

json json_of(const std::string& text) {
  json value = json::parse(text, nullptr, false);
  return value.is_discarded() ? json(nullptr) : value;
}

std::optional<double> optional_of(const Statement& query, int column) {
  return query.is_null(column) ? std::nullopt : std::optional(query.number(column));
}

void bind_optional(Statement& statement, const std::optional<double>& value) {
  value ? statement.bind(*value) : statement.bind_null();
}

// A row that was just written is not there: an index or a table of the file is broken.
[[noreturn]] void refuse_damaged(const Database& database) {
  throw Error(ErrorCode::bad_file, "cannot write the records: they are damaged", database.where(),
              "move the file away, or set SUPERSTEP_HOME to another folder");
}

// The id of a text in a table of texts, which holds each once.
std::int64_t text_id(Database& database, const char* table, const std::string& text) {
  Statement(database, fmt::format("insert or ignore into {} (json) values (?)", table), "write")
      .bind(text)
      .run();
  Statement query(database, fmt::format("select id from {} where json = ?", table));
  if (!query.bind(text).row()) refuse_damaged(database);
  return query.integer(0);
}

std::vector<double> read_samples(Database& database, std::int64_t metric) {
  std::vector<double> samples;
  Statement query(database, "select value from samples where metric = ? order by position");
  query.bind(metric);
  while (query.row()) samples.push_back(query.number(0));
  return samples;
}

std::vector<Metric> read_metrics(Database& database, std::int64_t run) {
  std::vector<Metric> metrics;
  Statement query(database,
                  "select id, name, value, unit, how, low, high from metrics where run = ? order by id");
  query.bind(run);
  while (query.row()) {
    Metric metric{.name = query.text(1), .value = query.number(2), .unit = query.text(3)};
    metric.how = query.text(4) == "predicted" ? How::predicted : How::measured;
    metric.samples = read_samples(database, query.integer(0));
    metric.low = optional_of(query, 5);
    metric.high = optional_of(query, 6);
    metrics.push_back(std::move(metric));
  }
  return metrics;
}

Record read_record(Database& database, const Statement& query) {
  return {.id = query.integer(0),
          .created = query.text(1),
          .command = query.text(2),
          .workload = query.text(3),
          .machine = query.text(4),
          .folder = query.text(5),
          .config = json_of(query.text(6)),
          .environment = json_of(query.text(7)),
          .metrics = read_metrics(database, query.integer(0)),
          .details = json_of(query.text(8))};
}

constexpr const char* select_runs =
    "select r.id, r.created, r.command, r.workload, r.machine, r.folder, c.json, e.json, r.details from runs "
    "r "
    "join configurations c on c.id = r.configuration join environments e on e.id = r.environment ";

void write_metric(Database& database, std::int64_t run, const Metric& metric) {
  Statement row(database,
                "insert into metrics (run, name, value, unit, how, low, high) values (?, ?, ?, ?, ?, ?, ?)",
                "write");
  row.bind(run).bind(metric.name).bind(metric.value).bind(metric.unit);
  row.bind(std::string(metric.how == How::predicted ? "predicted" : "measured"));
  bind_optional(row, metric.low);
  bind_optional(row, metric.high);
  row.run();
  const std::int64_t id = database.last_id();
  Statement sample(database, "insert into samples values (?, ?, ?)", "write");
  for (std::size_t i = 0; i < metric.samples.size(); ++i)
    sample.bind(id).bind(static_cast<std::int64_t>(i)).bind(metric.samples[i]).run();
}

std::int64_t write_record(Database& database, const Record& record) {
  const std::int64_t configuration = text_id(database, "configurations", text_of(record.config));
  const std::int64_t environment = text_id(database, "environments", text_of(record.environment));
  Statement row(
      database,
      "insert into runs (created, command, workload, machine, folder, configuration, environment, details) "
      "values (?, ?, ?, ?, ?, ?, ?, ?)",
      "write");
  row.bind(record.created.empty() ? iso_time() : record.created).bind(record.command).bind(record.workload);
  row.bind(record.machine)
      .bind(record.folder)
      .bind(configuration)
      .bind(environment)
      .bind(text_of(record.details));
  row.run();
  const std::int64_t id = database.last_id();
  for (const Metric& metric : record.metrics) write_metric(database, id, metric);
  Statement written(database, std::string(select_runs) + "where r.id = ?");
  if (!written.bind(id).row()) refuse_damaged(database);
  return id;
}

}  // namespace

Records::Records(std::filesystem::path path)
    : path_(path.empty() ? user_data_folder() / "records.sqlite" : std::move(path)),
      database_(std::make_unique<Database>(path_)) {
  bring_to_present_schema(*database_, path_.string());
}

Records::~Records() = default;

std::vector<std::int64_t> Records::add_all(const std::vector<Record>& records) {
  Transaction transaction(*database_);
  std::vector<std::int64_t> ids;
  for (const Record& record : records) ids.push_back(write_record(*database_, record));
  transaction.commit();
  return ids;
}

std::int64_t Records::add(const Record& record) { return add_all({record}).front(); }

std::vector<Record> Records::list(const RecordFilter& filter) const {
  std::vector<Record> records;
  Statement query(*database_, std::string(select_runs) +
                                  "where (?1 = '' or r.workload = ?1) and (?2 = '' or r.command = ?2) "
                                  "order by r.id desc limit ?3");
  query.bind(filter.workload).bind(filter.command).bind(std::int64_t{filter.most});
  while (query.row()) records.push_back(read_record(*database_, query));
  return records;
}

std::optional<Record> Records::find(std::int64_t id) const {
  Statement query(*database_, std::string(select_runs) + "where r.id = ?");
  query.bind(id);
  if (!query.row()) return std::nullopt;
  return read_record(*database_, query);
}

void keep_records(const std::vector<Record>& records) {
  if (launched_rank() > 0) return;  // the first rank speaks for all
  try {
    Records().add_all(records);
  } catch (const Error& error) {
    tell(fmt::format("superstep: note: this run is not in the records: {}\n", error.what()));
  }
}

void keep_record(const Record& record) { keep_records({record}); }

}  // namespace superstep::run
