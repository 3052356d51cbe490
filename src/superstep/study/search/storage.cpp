#include "superstep/study/search/storage.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/json.h"
#include "superstep/base/text.h"
#include "superstep/record/member.h"

namespace superstep::study {
namespace {

using record::Statement;

// How long a process waits for others to write: each holds the file for milliseconds, but there may be
// hundreds of them in a cluster.
constexpr std::chrono::milliseconds patience{120'000};

struct StateName {
  TrialState state;
  const char* name;
  const char* in_optuna;  // a trial that waits is as good as pruned there, until it goes on
};
constexpr std::array states{StateName{TrialState::running, "running", "RUNNING"},
                            StateName{TrialState::paused, "paused", "PRUNED"},
                            StateName{TrialState::done, "done", "COMPLETE"},
                            StateName{TrialState::reached, "reached", "COMPLETE"},
                            StateName{TrialState::diverged, "diverged", "FAIL"},
                            StateName{TrialState::failed, "failed", "FAIL"}};

const StateName& entry_of(TrialState state) { return states[static_cast<std::size_t>(state)]; }

[[noreturn]] void damaged(std::int64_t number, const std::string& what, const std::string& where) {
  throw Error(ErrorCode::bad_file, fmt::format("has a trial {} {}", number, what), where,
              "the file is damaged: give --out another folder");
}

TrialState state_named(const std::string& name, const std::string& where) {
  for (const StateName& each : states)
    if (name == each.name) return each.state;
  throw Error(ErrorCode::bad_file, fmt::format("has a trial that is '{}'", name), where,
              "the file is damaged");
}

// What optuna 3.2 to 5 make of an empty file: the names, types and keys are theirs.
constexpr const char* optuna_tables = R"sql(
create table if not exists studies (study_id integer not null primary key, study_name varchar(512) not null);
create unique index if not exists ix_studies_study_name on studies (study_name);
create table if not exists version_info (version_info_id integer not null primary key check (version_info_id = 1),
  schema_version integer, library_version varchar(256));
create table if not exists study_directions (study_direction_id integer not null primary key,
  direction varchar(8) not null, study_id integer not null references studies (study_id),
  objective integer not null, unique (study_id, objective));
create table if not exists study_user_attributes (study_user_attribute_id integer not null primary key,
  study_id integer references studies (study_id), "key" varchar(512), value_json text, unique (study_id, "key"));
create table if not exists study_system_attributes (study_system_attribute_id integer not null primary key,
  study_id integer references studies (study_id), "key" varchar(512), value_json text, unique (study_id, "key"));
create table if not exists trials (trial_id integer not null primary key, number integer,
  study_id integer references studies (study_id), state varchar(8) not null, datetime_start datetime,
  datetime_complete datetime);
create index if not exists ix_trials_study_id on trials (study_id);
create table if not exists trial_user_attributes (trial_user_attribute_id integer not null primary key,
  trial_id integer references trials (trial_id), "key" varchar(512), value_json text, unique (trial_id, "key"));
create table if not exists trial_system_attributes (trial_system_attribute_id integer not null primary key,
  trial_id integer references trials (trial_id), "key" varchar(512), value_json text, unique (trial_id, "key"));
create table if not exists trial_params (param_id integer not null primary key,
  trial_id integer references trials (trial_id), param_name varchar(512), param_value float,
  distribution_json text, unique (trial_id, param_name));
create table if not exists trial_values (trial_value_id integer not null primary key,
  trial_id integer not null references trials (trial_id), objective integer not null, value float,
  value_type varchar(7) not null, unique (trial_id, objective));
create table if not exists trial_intermediate_values (trial_intermediate_value_id integer not null primary key,
  trial_id integer not null references trials (trial_id), step integer not null, intermediate_value float,
  intermediate_value_type varchar(7) not null, unique (trial_id, step));
create table if not exists trial_heartbeats (trial_heartbeat_id integer not null primary key,
  trial_id integer not null unique references trials (trial_id), heartbeat datetime not null);
create table if not exists alembic_version (version_num varchar(32) not null primary key);
)sql";

constexpr const char* own_tables = R"sql(
create table if not exists superstep_search (study_id integer primary key, what text not null);
create table if not exists superstep_trials (trial_id integer primary key, state text not null,
  rung integer not null, "values" text not null, qualities text not null, seconds real not null,
  words text not null);
)sql";

std::string now() {
  const auto time = std::chrono::floor<std::chrono::microseconds>(std::chrono::system_clock::now());
  const auto second = std::chrono::floor<std::chrono::seconds>(time);
  return fmt::format("{:%Y-%m-%d %H:%M:%S}.{:06}", fmt::gmtime(std::chrono::system_clock::to_time_t(second)),
                     (time - second).count());
}

// A choice is its number, in a list of the choices.
nlohmann::json distribution_of(const Parameter& parameter) {
  if (parameter.kind == Parameter::Kind::choice)
    return {{"name", "CategoricalDistribution"}, {"attributes", {{"choices", parameter.choices}}}};
  nlohmann::json attributes{{"low", parameter.low}, {"high", parameter.high}, {"log", parameter.log}};
  if (parameter.kind == Parameter::Kind::real) {
    attributes["step"] = nullptr;
    return {{"name", "FloatDistribution"}, {"attributes", std::move(attributes)}};
  }
  attributes = {{"low", std::llround(parameter.low)},
                {"high", std::llround(parameter.high)},
                {"log", parameter.log},
                {"step", 1}};
  return {{"name", "IntDistribution"}, {"attributes", std::move(attributes)}};
}

double number_of(const Parameter& parameter, const std::string& value) {
  if (parameter.kind != Parameter::Kind::choice) return std::strtod(value.c_str(), nullptr);
  return static_cast<double>(std::ranges::find(parameter.choices, value) - parameter.choices.begin());
}

const char* type_of(double value) {
  return std::isfinite(value) ? "FINITE" : value < 0 ? "INF_NEG" : "INF_POS";
}

// A quality that is no number is kept as null.
std::vector<double> qualities_from(const nlohmann::json& list) {
  std::vector<double> all;
  for (const nlohmann::json& each : list)
    all.push_back(each.is_number() ? each.get<double>() : std::numeric_limits<double>::quiet_NaN());
  return all;
}

std::vector<std::string> values_from(const nlohmann::json& list) {
  std::vector<std::string> all;
  for (const nlohmann::json& each : list)
    all.push_back(each.is_string() ? each.get<std::string>() : each.dump());
  return all;
}

// As many as a trial has that is in this state, on this rung; a trial that failed may have done the rung or
// not.
bool has_qualities(const Trial& trial) {
  const auto done = static_cast<std::size_t>(trial.rung), said = trial.qualities.size();
  switch (trial.state) {
    case TrialState::running: return said == done;
    case TrialState::failed: return said <= done + 1;
    case TrialState::paused:
    case TrialState::done:
    case TrialState::reached:
    case TrialState::diverged: break;
  }
  return said == done + 1;
}

nlohmann::ordered_json to_json(const std::vector<std::pair<std::string, std::string>>& what) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const auto& [name, value] : what) json[name] = value;
  return json;
}

// "epochs is 27 there and 9 here", of all that differs.
std::string differences(const nlohmann::json& kept,
                        const std::vector<std::pair<std::string, std::string>>& what) {
  std::vector<std::string> said;
  const auto words = [](const std::string& value) { return value.empty() ? std::string("nothing") : value; };
  for (const auto& [name, value] : what) {
    const std::string other = record::text_member(kept, name.c_str(), "");
    if (other != value)
      said.push_back(fmt::format("{}: {} there, {} here", name, words(other), words(value)));
  }
  return join(said, "; ");
}

}  // namespace

const char* name_of(TrialState state) { return entry_of(state).name; }

std::vector<Standing> standings_of(const std::vector<Trial>& trials, bool higher_is_better) {
  std::vector<Standing> all;
  for (const Trial& trial : trials) {
    Standing standing{.number = trial.number,
                      .rung = trial.rung,
                      .state = trial.over()                         ? Standing::State::over
                               : trial.state == TrialState::running ? Standing::State::running
                                                                    : Standing::State::paused,
                      .losses = {}};
    for (const double quality : trial.qualities)
      standing.losses.push_back(!std::isfinite(quality) ? std::numeric_limits<double>::infinity()
                                : higher_is_better      ? -quality
                                                        : quality);
    all.push_back(std::move(standing));
  }
  return all;
}

SearchStorage::SearchStorage(const std::filesystem::path& file, SearchIdentity identity)
    : identity_(std::move(identity)),
      database_(file, patience, {.what = "the search", .elsewhere = "give --out another folder"}) {
  record::Transaction transaction(database_);
  make_tables();
  Statement found(database_, "select study_id from studies where study_name = ?");
  found.bind(identity_.name);
  if (found.row())
    study_ = found.integer(0);
  else
    make_study();
  Statement(database_, "insert or ignore into superstep_search values (?, ?)", "write")
      .bind(study_)
      .bind(to_json(identity_.what).dump())
      .run();
  require_same();
  transaction.commit();
}

void SearchStorage::require_same() {
  Statement row(database_, "select what from superstep_search where study_id = ?");
  row.bind(study_).row();
  const nlohmann::json kept = parse_json(row.text(0));
  if (!kept.is_object())
    throw Error(ErrorCode::bad_file, "does not say what is searched as this version does", database_.where(),
                "give --out another folder: another version's search is not gone on with");
  if (const std::string others = differences(kept, identity_.what); !others.empty())
    throw Error(ErrorCode::invalid_argument, fmt::format("holds another search ({})", others),
                database_.where(), "give --out another folder, or the options that it was begun with");
}

void SearchStorage::make_tables() {
  database_.execute(optuna_tables, "write");
  database_.execute(own_tables, "write");
  Statement(database_, "insert or ignore into version_info values (1, 12, '5.0.0')", "write").run();
  database_.execute(
      "insert into alembic_version select 'v3.2.0.a' where not exists (select 1 from alembic_version)",
      "write");
}

void SearchStorage::make_study() {
  Statement(database_, "insert into studies (study_name) values (?)", "write").bind(identity_.name).run();
  study_ = database_.last_id();
  Statement(database_, "insert into study_directions (direction, study_id, objective) values (?, ?, 0)",
            "write")
      .bind(std::string(identity_.higher_is_better ? "MAXIMIZE" : "MINIMIZE"))
      .bind(study_)
      .run();
}

std::vector<Trial> SearchStorage::trials() {
  Statement rows(database_,
                 "select number, s.state, rung, \"values\", qualities, seconds, words from trials t join "
                 "superstep_trials s on t.trial_id = s.trial_id where study_id = ? order by number");
  rows.bind(study_);
  std::vector<Trial> all;
  while (rows.row()) {
    const std::int64_t number = rows.integer(0), rung = rows.integer(2);
    if (rung < 0 || rung >= static_cast<std::int64_t>(identity_.rungs))
      damaged(number, fmt::format("on rung {}, and there are {}", rung, identity_.rungs), database_.where());
    all.push_back({.number = number,
                   .state = state_named(rows.text(1), database_.where()),
                   .rung = static_cast<int>(rung),
                   .values = values_from(list_in(rows.text(3), number)),
                   .qualities = qualities_from(list_in(rows.text(4), number)),
                   .seconds = rows.number(5),
                   .words = rows.text(6)});
    require_sound(all.back());
  }
  return all;
}

nlohmann::json SearchStorage::list_in(const std::string& cell, std::int64_t number) const {
  nlohmann::json list = parse_json(cell);
  if (!list.is_array()) damaged(number, "with something else than a list of values", database_.where());
  return list;
}

void SearchStorage::require_sound(const Trial& trial) const {
  const bool refused = trial.state == TrialState::failed && trial.values.empty();  // that Optuna had queued
  if (!refused && trial.values.size() != identity_.parameters)
    damaged(trial.number, fmt::format("with {} values of {}", trial.values.size(), identity_.parameters),
            database_.where());
  if (!has_qualities(trial))
    damaged(trial.number,
            fmt::format("that is {} on rung {} with {} qualities", name_of(trial.state), trial.rung,
                        trial.qualities.size()),
            database_.where());
}

std::int64_t SearchStorage::next_number() {
  Statement last(database_, "select coalesce(max(number) + 1, 0) from trials where study_id = ?");
  last.bind(study_).row();
  return last.integer(0);
}

Trial SearchStorage::add(const std::vector<Parameter>& parameters, std::vector<std::string> values) {
  Trial trial{.number = next_number(), .values = std::move(values), .qualities = {}, .words = {}};
  Statement(database_,
            "insert into trials (number, study_id, state, datetime_start) values (?, ?, 'RUNNING', ?)",
            "write")
      .bind(trial.number)
      .bind(study_)
      .bind(now())
      .run();
  fill(database_.last_id(), trial, parameters);
  return trial;
}

void SearchStorage::fill(std::int64_t id, const Trial& trial, const std::vector<Parameter>& parameters) {
  for (std::size_t i = 0; i < trial.values.size(); ++i)
    Statement(database_,
              "insert into trial_params (trial_id, param_name, param_value, distribution_json) values (?, "
              "?, ?, ?)",
              "write")
        .bind(id)
        .bind(parameters[i].name)
        .bind(number_of(parameters[i], trial.values[i]))
        .bind(distribution_of(parameters[i]).dump())
        .run();
  Statement(database_, "insert into superstep_trials values (?, 'running', 0, ?, '[]', 0, '')", "write")
      .bind(id)
      .bind(nlohmann::json(trial.values).dump())
      .run();
}

std::optional<SearchStorage::Queued> SearchStorage::queued() {
  Statement found(database_,
                  "select t.trial_id, number, coalesce(value_json, '{}') from trials t left join "
                  "trial_system_attributes a on a.trial_id = t.trial_id and a.\"key\" = 'fixed_params' where "
                  "study_id = ? and state = 'WAITING' order by number limit 1");
  found.bind(study_);
  if (!found.row()) return std::nullopt;
  Queued queued{.id = found.integer(0), .number = found.integer(1), .values = {}};
  const nlohmann::json asked = parse_json(found.text(2));
  if (!asked.is_object()) damaged(queued.number, "queued without names of what it fixes", database_.where());
  for (const auto& [name, value] : asked.items())
    queued.values[name] = value.is_string() ? value.get<std::string>() : value.dump();
  return queued;
}

Trial SearchStorage::begin(const Queued& queued, const std::vector<Parameter>& parameters,
                           std::vector<std::string> values) {
  Trial trial{.number = queued.number, .values = std::move(values), .qualities = {}, .words = {}};
  Statement(database_, "update trials set state = 'RUNNING', datetime_start = ? where trial_id = ?", "write")
      .bind(now())
      .bind(queued.id)
      .run();
  fill(queued.id, trial, parameters);
  return trial;
}

void SearchStorage::refuse(const Queued& queued, const std::vector<Parameter>& parameters,
                           const std::string& words) {
  Trial trial{
      .number = queued.number, .state = TrialState::failed, .values = {}, .qualities = {}, .words = words};
  fill(queued.id, trial, parameters);
  update(trial, std::nullopt);
}

std::int64_t SearchStorage::id_of(std::int64_t number) {
  Statement found(database_, "select trial_id from trials where study_id = ? and number = ?");
  found.bind(study_).bind(number);
  if (!found.row())
    throw Error(ErrorCode::bad_file, fmt::format("has no trial {} any more", number), database_.where());
  return found.integer(0);
}

void SearchStorage::update(const Trial& trial, std::optional<int> epochs) {
  const std::int64_t id = id_of(trial.number);
  Statement(database_,
            "update superstep_trials set state = ?, rung = ?, qualities = ?, seconds = ?, words = ? where "
            "trial_id = ?",
            "write")
      .bind(std::string(name_of(trial.state)))
      .bind(std::int64_t{trial.rung})
      .bind(nlohmann::json(trial.qualities).dump())
      .bind(trial.seconds)
      .bind(trial.words)
      .bind(id)
      .run();
  const bool running = trial.state == TrialState::running;
  Statement set(database_, "update trials set state = ?, datetime_complete = ? where trial_id = ?", "write");
  set.bind(std::string(entry_of(trial.state).in_optuna));
  running ? set.bind_null() : set.bind(now());
  set.bind(id).run();
  if (!epochs || trial.qualities.empty()) return;
  const double quality = trial.qualities.back();
  Statement(database_,
            "insert or replace into trial_intermediate_values (trial_id, step, intermediate_value, "
            "intermediate_value_type) values (?, ?, ?, ?)",
            "write")
      .bind(id)
      .bind(std::int64_t{*epochs})
      .bind(std::isfinite(quality) ? quality : std::nan(""))
      .bind(std::string(std::isnan(quality) ? "NAN" : type_of(quality)))
      .run();
  const bool complete = trial.state == TrialState::done || trial.state == TrialState::reached;
  if (complete)
    Statement(database_,
              "insert or replace into trial_values (trial_id, objective, value, value_type) values (?, 0, ?, "
              "?)",
              "write")
        .bind(id)
        .bind(quality)
        .bind(std::string(type_of(quality)))
        .run();
}

}  // namespace superstep::study
