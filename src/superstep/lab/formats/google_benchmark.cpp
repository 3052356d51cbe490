// Google Benchmark's JSON, json_schema_version 1, as its own console tools write it.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "superstep/lab/formats/writers.h"
#include "superstep/record/member.h"
#include "superstep/record/summary.h"

namespace superstep::lab {
namespace {

using nlohmann::json;

std::string text(const std::string& value) {
  return json(value).dump(-1, ' ', false, json::error_handler_t::replace);
}
std::string number(double value) { return std::isfinite(value) ? fmt::format("{:.16e}", value) : "\"NaN\""; }

struct Unit {
  const char* name;
  double scale;  // units a second
};
Unit unit_of(double seconds) {
  if (seconds < 1e-6) return {"ns", 1e9};
  if (seconds < 1e-3) return {"us", 1e6};
  if (seconds < 1) return {"ms", 1e3};
  return {"s", 1};
}

const record::Quantity* time_of(const record::Result& result) {
  if (const record::Quantity* step = result.find("step_time")) return step;
  for (const record::Quantity& quantity : result.quantities)
    if (quantity.unit == "s") return &quantity;
  return nullptr;
}

// {"a": 1, ...}, members in the order they are added.
class Object {
 public:
  Object& add(const char* name, const std::string& raw) {
    body_ += fmt::format("{}      \"{}\": {}", body_.empty() ? "" : ",\n", name, raw);
    return *this;
  }
  std::string str() const { return "    {\n" + body_ + "\n    }"; }

 private:
  std::string body_;
};

std::string threads_of(const record::Result& result) {
  const auto found = result.config.find("threads");
  return found != result.config.end() && found->is_number_integer() ? found->dump() : "1";
}

Object head(const record::Result& result, std::size_t family, const char* type, std::size_t repetitions,
            const std::string& suffix) {
  Object object;
  object.add("name", text(result.id + suffix))
      .add("family_index", std::to_string(family))
      .add("per_family_instance_index", "0")
      .add("run_name", text(result.id))
      .add("run_type", fmt::format("\"{}\"", type))
      .add("repetitions", std::to_string(repetitions));
  return object;
}

void add_times(Object& object, const record::Result& result, const record::Quantity& time, double seconds,
               const Unit& unit, std::size_t iterations) {
  object.add("iterations", std::to_string(iterations))
      .add("real_time", number(seconds * unit.scale))
      .add("cpu_time", number(seconds * unit.scale))
      .add("time_unit", fmt::format("\"{}\"", unit.name));
  const record::Quantity *flops = result.find("flops_rate"), *bytes = result.find("bandwidth");
  if (seconds <= 0 || time.value <= 0) return;
  if (flops) object.add("flops", number(flops->value * time.value / seconds));
  if (bytes) object.add("bytes_per_second", number(bytes->value * time.value / seconds));
}

void add_samples(std::vector<std::string>& rows, const record::Result& result, std::size_t family,
                 const record::Quantity& time) {
  const std::vector<double> samples = time.samples.empty() ? std::vector{time.value} : time.samples;
  const Unit unit = unit_of(time.value);
  const auto calls = time.details.find("calls_per_sample");
  const std::size_t iterations =
      calls != time.details.end() && calls->is_number_integer() ? calls->get<std::size_t>() : 1;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    Object row = head(result, family, "iteration", samples.size(), "");
    row.add("repetition_index", std::to_string(i)).add("threads", threads_of(result));
    add_times(row, result, time, samples[i], unit, iterations);
    rows.push_back(row.str());
  }
  if (samples.size() < 2) return;
  const record::Summary summary = record::summarize(samples);
  for (const auto& [name, value] :
       {std::pair{"mean", summary.mean}, {"median", summary.median}, {"stddev", summary.stddev}}) {
    Object row = head(result, family, "aggregate", samples.size(), fmt::format("_{}", name));
    row.add("threads", threads_of(result))
        .add("aggregate_name", fmt::format("\"{}\"", name))
        .add("aggregate_unit", "\"time\"");
    row.add("iterations", std::to_string(samples.size()))
        .add("real_time", number(value * unit.scale))
        .add("cpu_time", number(value * unit.scale))
        .add("time_unit", fmt::format("\"{}\"", unit.name));
    rows.push_back(row.str());
  }
}

std::string caches_of(const json& host) {
  std::string list;
  const auto found = host.find("caches");
  if (found == host.end() || !found->is_array()) return "[]";
  for (const json& cache : *found)
    list +=
        fmt::format("{}      {{\"type\": {}, \"level\": {}, \"size\": {}, \"num_sharing\": {}}}",
                    list.empty() ? "\n" : ",\n",
                    text(record::text_member(cache, "type", "") == "instruction" ? "Instruction" : "Data"),
                    record::integer_member(cache, "level", 0), record::integer_member(cache, "size", 0),
                    record::integer_member(cache, "num_sharing", 0));
  return "[" + list + "\n    ]";
}

std::string context_of(const std::vector<record::Result>& results) {
  const json environment = results.empty() ? json() : results[0].environment,
             program = results.empty() ? json() : results[0].program;
  const json host = record::object_member(environment, "host");
  const auto string_of = [](const json& object, const char* name) {
    return object.is_object() && object.contains(name) && object[name].is_string()
               ? object[name].get<std::string>()
               : "";
  };
  const double hertz = record::number_member(record::object_member(host, "clock"), "observed", 0);
  const auto load = host.find("load_average");
  std::string context =
      fmt::format("    \"date\": {},\n    \"host_name\": {},\n    \"executable\": \"superstep\",\n",
                  text(string_of(environment, "date")), text(string_of(host, "hostname")));
  context += fmt::format("    \"num_cpus\": {},\n    \"mhz_per_cpu\": {},\n",
                         record::integer_member(host, "hardware_threads", 0), std::llround(hertz * 1e-6));
  context += fmt::format("    \"caches\": {},\n    \"load_avg\": {},\n", caches_of(host),
                         load != host.end() && load->is_array() ? load->dump() : "[]");
  context += fmt::format("    \"library_version\": {},\n    \"library_build_type\": \"release\",\n",
                         text(string_of(program, "version")));
  return context +
         "    \"json_schema_version\": 1,\n    \"cpu_time_is\": \"wall time: CPU time is not measured a "
         "call\"";
}

}  // namespace

std::string write_google_benchmark(const std::vector<record::Result>& results) {
  std::vector<std::string> rows;
  for (std::size_t i = 0; i < results.size(); ++i)
    if (const record::Quantity* time = time_of(results[i])) add_samples(rows, results[i], i, *time);
  std::string list;
  for (const std::string& row : rows) list += (list.empty() ? "" : ",\n") + row;
  return "{\n  \"context\": {\n" + context_of(results) + "\n  },\n  \"benchmarks\": [\n" + list +
         "\n  ]\n}\n";
}

}  // namespace superstep::lab
