#include "superstep/record/records.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/json.h"
#include "superstep/base/system/standard_streams.h"
#include "superstep/base/system/user_folders.h"
#include "superstep/record/database.h"
#include "superstep/record/details.h"
#include "superstep/record/environment.h"
#include "superstep/record/records_schema.h"

namespace superstep::record {
namespace {

using nlohmann::json;

std::string text_of(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

json json_of(const std::string& text) {
  json value = parse_json(text);
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

std::vector<Quantity> read_quantities(Database& database, std::int64_t run) {
  std::vector<Quantity> quantities;
  Statement query(database,
                  "select id, name, value, unit, how, low, high from metrics where run = ? order by id");
  query.bind(run);
  while (query.row()) {
    Quantity quantity{.name = query.text(1), .unit = query.text(3)};
    quantity.value = optional_of(query, 2).value_or(std::nan(""));  // SQLite keeps what is no number as null
    quantity.how = how_from_name(query.text(4));
    quantity.samples = read_samples(database, query.integer(0));
    quantity.low = optional_of(query, 5);
    quantity.high = optional_of(query, 6);
    quantities.push_back(std::move(quantity));
  }
  return quantities;
}

Result read_result(Database& database, const Statement& query) {
  Result result{.command = query.text(2), .created = query.text(1), .workload = query.text(3)};
  result.number = query.integer(0);
  result.machine = query.text(4);
  result.folder = query.text(5);
  result.config = json_of(query.text(6));
  result.environment = json_of(query.text(7));
  result.quantities = read_quantities(database, result.number);
  add_details(result, json_of(query.text(8)));
  return result;
}

constexpr const char* select_runs =
    "select r.id, r.created, r.command, r.workload, r.machine, r.folder, c.json, e.json, r.details from runs "
    "r "
    "join configurations c on c.id = r.configuration join environments e on e.id = r.environment ";

void write_quantity(Database& database, std::int64_t run, const Quantity& quantity) {
  Statement row(database,
                "insert into metrics (run, name, value, unit, how, low, high) values (?, ?, ?, ?, ?, ?, ?)",
                "write");
  row.bind(run).bind(quantity.name).bind(quantity.value).bind(quantity.unit);
  row.bind(std::string(name_of(quantity.how)));
  bind_optional(row, quantity.low);
  bind_optional(row, quantity.high);
  row.run();
  const std::int64_t id = database.last_id();
  Statement sample(database, "insert into samples values (?, ?, ?)", "write");
  for (std::size_t i = 0; i < quantity.samples.size(); ++i)
    sample.bind(id).bind(static_cast<std::int64_t>(i)).bind(quantity.samples[i]).run();
}

std::int64_t write_result(Database& database, const Result& result) {
  const std::int64_t configuration = text_id(database, "configurations", text_of(result.config));
  const std::int64_t environment = text_id(database, "environments", text_of(result.environment));
  Statement row(
      database,
      "insert into runs (created, command, workload, machine, folder, configuration, environment, details) "
      "values (?, ?, ?, ?, ?, ?, ?, ?)",
      "write");
  row.bind(result.created.empty() ? iso_time() : result.created).bind(result.command).bind(result.workload);
  row.bind(result.machine)
      .bind(result.folder)
      .bind(configuration)
      .bind(environment)
      .bind(text_of(details_of(result)));
  row.run();
  const std::int64_t id = database.last_id();
  for (const Quantity& quantity : result.quantities) write_quantity(database, id, quantity);
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

std::vector<std::int64_t> Records::add_all(const std::vector<Result>& results) {
  Transaction transaction(*database_);
  std::vector<std::int64_t> numbers;
  for (const Result& result : results) numbers.push_back(write_result(*database_, result));
  transaction.commit();
  return numbers;
}

std::int64_t Records::add(const Result& result) { return add_all({result}).front(); }

std::vector<Result> Records::list(const RecordFilter& filter) const {
  std::vector<Result> results;
  Statement query(*database_, std::string(select_runs) +
                                  "where (?1 = '' or r.workload = ?1) and (?2 = '' or r.command = ?2) "
                                  "order by r.id desc limit ?3");
  query.bind(filter.workload).bind(filter.command).bind(std::int64_t{filter.most});
  while (query.row()) results.push_back(read_result(*database_, query));
  return results;
}

std::optional<Result> Records::find(std::int64_t number) const {
  Statement query(*database_, std::string(select_runs) + "where r.id = ?");
  query.bind(number);
  if (!query.row()) return std::nullopt;
  return read_result(*database_, query);
}

void keep(const std::vector<Result>& results) {
  try {
    Records().add_all(results);
  } catch (const Error& error) {
    tell(fmt::format("superstep: note: this run is not in the records: {}\n", error.what()));
  }
}

}  // namespace superstep::record
