#include "superstep/lab/formats/mllog.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>

#include "superstep/lab/formats/writers.h"
#include "superstep/record/member.h"

namespace superstep::lab {
namespace {

using Json = MlLog::Json;

void log_settings(MlLog& log, std::int64_t at, const record::Result& result) {
  log.point(at, "submission_benchmark", result.workload);
  const auto batch = result.config.find("batch");
  if (batch != result.config.end()) log.point(at, "global_batch_size", Json(*batch));
  const auto seed = result.config.find("seed");
  if (seed != result.config.end()) log.point(at, "seed", Json(*seed));
}

double value_of(const record::Result& result, const char* name) {
  const record::Quantity* found = result.find(name);
  return found && std::isfinite(found->value) ? found->value : 0;
}

double timed_seconds(const record::Result& result) {
  const record::Quantity* time = result.find("step_time");
  double sum = 0;
  if (time)
    for (double sample : time->samples)
      sum += sample * record::number_member(time->details, "calls_per_sample", 1);
  return sum;
}

// Of at most a million years: results of others may say anything.
std::int64_t milliseconds(double seconds) {
  constexpr double most = 3e13;
  return std::isfinite(seconds) ? std::llround(1e3 * std::clamp(seconds, -most, most)) : 0;
}

void log_result(MlLog& log, const record::Result& result) {
  const std::int64_t end = milliseconds_of(result.created);
  const std::int64_t begin = end - milliseconds(timed_seconds(result));
  const std::int64_t init = begin - milliseconds(value_of(result, "compile_time"));
  log.start(init, "init_start");
  log_settings(log, init, result);
  log.end(begin, "init_stop");
  log.start(begin, "run_start");
  for (const char* name : {"throughput", "throughput_with_data"})
    if (const record::Quantity* rate = result.find(name))
      log.point(end, name, rate->value, {{"mode", result.mode}});
  log.end(end, "run_stop", nullptr, {{"status", result.quantities.empty() ? "aborted" : "success"}});
}

}  // namespace

void MlLog::start(std::int64_t time_ms, const std::string& key, Json value, Json metadata) {
  line(time_ms, "INTERVAL_START", key, std::move(value), std::move(metadata));
}
void MlLog::end(std::int64_t time_ms, const std::string& key, Json value, Json metadata) {
  line(time_ms, "INTERVAL_END", key, std::move(value), std::move(metadata));
}
void MlLog::point(std::int64_t time_ms, const std::string& key, Json value, Json metadata) {
  line(time_ms, "POINT_IN_TIME", key, std::move(value), std::move(metadata));
}

void MlLog::line(std::int64_t time_ms, const char* type, const std::string& key, Json value, Json metadata) {
  // The form wants a place in a source file; these lines are all made here.
  metadata["file"] = "lab/formats/mllog.cpp";
  metadata["lineno"] = __LINE__;
  const Json object{{"namespace", "superstep"},  {"time_ms", time_ms},
                    {"event_type", type},        {"key", key},
                    {"value", std::move(value)}, {"metadata", std::move(metadata)}};
  text_ += ":::MLLOG " + object.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::int64_t milliseconds_of(const std::string& iso_time) {
  std::tm time{};
  char sign = '+';
  int hours = 0, minutes = 0;
  const int read =
      std::sscanf(iso_time.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d%c%2d:%2d", &time.tm_year, &time.tm_mon,
                  &time.tm_mday, &time.tm_hour, &time.tm_min, &time.tm_sec, &sign, &hours, &minutes);
  if (read != 9) return 0;
  time.tm_year -= 1900;  // as std::tm counts
  time.tm_mon -= 1;
  const std::int64_t zone = (sign == '-' ? -1 : 1) * (hours * 3600 + minutes * 60);  // s
  return 1000 * (static_cast<std::int64_t>(timegm(&time)) - zone);
}

std::string write_mllog(const std::vector<record::Result>& results) {
  MlLog log;
  for (const record::Result& result : results) log_result(log, result);
  return log.text();
}

}  // namespace superstep::lab
