#include "superstep/record/records_schema.h"

#include <fmt/format.h>

#include "superstep/base/error.h"

namespace superstep::record {
namespace {

constexpr std::int64_t present_version = 2;

constexpr const char* present_schema = R"sql(
create table configurations (id integer primary key, json text not null unique);
create table environments (id integer primary key, json text not null unique);
create table runs (
  id integer primary key, created text not null, command text not null, workload text not null,
  machine text not null, folder text not null, configuration integer not null references configurations(id),
  environment integer not null references environments(id), details text not null);
create table metrics (
  id integer primary key, run integer not null references runs(id), name text not null, value real,
  unit text not null, how text not null, low real, high real);
create table samples (
  metric integer not null references metrics(id), position integer not null, value real,
  primary key (metric, position)) without rowid;
create index metrics_of_run on metrics(run);
create index runs_of_workload on runs(workload, id);
)sql";

// Version 1 kept configuration and environment in the run's row, and samples as a JSON list.
constexpr const char* from_version_1 = R"sql(
insert or ignore into configurations (json) select config from runs_1;
insert or ignore into environments (json) select environment from runs_1;
insert into runs select r.id, r.created, r.command, r.workload, r.machine, r.folder, c.id, e.id, '{}'
  from runs_1 r join configurations c on c.json = r.config join environments e on e.json = r.environment;
insert into metrics (id, run, name, value, unit, how) select rowid, run, name, value, unit, how from metrics_1;
insert into samples select m.rowid, s.key, s.value from metrics_1 m, json_each(m.samples) s
  where json_valid(m.samples);
drop table metrics_1;
drop table runs_1;
)sql";

constexpr const char* set_aside_version_1 = R"sql(
drop index if exists metrics_by_run;
drop index if exists runs_by_workload;
alter table metrics rename to metrics_1;
alter table runs rename to runs_1;
)sql";

std::int64_t version_of(Database& database) {
  Statement query(database, "pragma user_version");
  return query.row() ? query.integer(0) : 0;
}

}  // namespace

void bring_to_present_schema(Database& database, const std::string& where) {
  if (version_of(database) == present_version) return;
  Transaction transaction(database);
  const std::int64_t found = version_of(database);  // again: another program may just have done it
  if (found == present_version) return;
  if (found > present_version || found < 0)
    throw Error(
        ErrorCode::bad_file,
        fmt::format("the records are of version {}, this program knows up to {}", found, present_version),
        where, "use the newer program, or set SUPERSTEP_HOME to another folder");
  if (found == 1) database.execute(set_aside_version_1, "convert");
  database.execute(present_schema, "set up");
  if (found == 1) database.execute(from_version_1, "convert");
  database.execute(fmt::format("pragma user_version = {}", present_version), "set up");
  transaction.commit();
}

}  // namespace superstep::record
