#include "superstep/cli/shared/bench_serve.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "superstep/base/statistics.h"
#include "superstep/base/system/standard_streams.h"
#include "superstep/base/text.h"
#include "superstep/cli/command.h"
#include "superstep/cli/shared/latencies.h"
#include "superstep/edge/load/load.h"

namespace superstep::cli {
namespace {

edge::ClientAccess access_of(const ServeBenchArguments& a) {
  return {.token = a.token_file.empty() ? "" : edge::first_token(a.token_file),
          .ca = a.ca,
          .certificate = a.certificate,
          .key = a.key};
}

std::vector<edge::LoadSettings> loads_of(const ServeBenchArguments& a, double seconds) {
  std::vector<edge::LoadSettings> loads;
  edge::LoadSettings base{
      .connections = static_cast<int>(a.connections),
      .arrivals = a.arrive == "constant" ? edge::Arrivals::constant : edge::Arrivals::poisson,
      .rows = a.rows,
      .binary = a.tensors == "binary",
      .seconds = seconds};
  for (const std::int64_t connections : a.concurrency) {
    loads.push_back(base);
    loads.back().connections = static_cast<int>(connections);
  }
  for (const double rate : a.request_rates) {
    loads.push_back(base);
    loads.back().rate = rate;
  }
  if (loads.empty()) {
    base.connections = 1;
    loads.push_back(base);
  }
  return loads;
}

std::string name_of_load(const edge::LoadSettings& load) {
  if (load.rate == 0) return fmt::format("closed-{}", load.connections);
  return fmt::format("{}-{:g}", load.arrivals == edge::Arrivals::constant ? "constant" : "poisson",
                     load.rate);
}

std::uint64_t failures_of(const edge::LoadReport& report) {
  std::uint64_t failures = report.unanswered;
  for (const auto& [status, count] : report.statuses)
    if (status != 200) failures += count;
  return failures;
}

// Over gRPC tensors always go as they lie in memory.
const char* form_of(const edge::LoadTarget& target, bool binary) {
  return binary || target.transport == edge::Transport::grpc ? "binary" : "json";
}

double mean_of(double sum, std::uint64_t count) { return count > 0 ? sum / static_cast<double>(count) : 0; }

std::vector<std::string> row_of(const edge::LoadSettings& load, const edge::LoadReport& report) {
  const bool said = report.server.requests > 0;  // the server, of its own times
  return {load.rate > 0
              ? fmt::format("{} {}/s", load.arrivals == edge::Arrivals::constant ? "constant" : "poisson",
                            format_count(load.rate))
              : fmt::format("{} at a time", load.connections),
          format_count(report.reached()),
          percentile(report.latencies, 0.5),
          percentile(report.latencies, 0.9),
          percentile(report.latencies, 0.99),
          percentile(report.latencies, 0.999),
          report.latencies.empty() ? "-" : format_seconds(report.latencies.back()),
          said ? format_seconds(mean_of(report.server.queue, report.server.requests)) : "-",
          said ? format_seconds(mean_of(report.server.compute, report.server.batches)) : "-",
          said
              ? fmt::format("{:.1f}", mean_of(static_cast<double>(report.server.rows), report.server.batches))
              : "-",
          report.lateness.empty() ? "-" : format_seconds(nearest_rank(report.lateness, 0.99)),
          format_count(static_cast<double>(failures_of(report))),
          report.steady ? "yes" : "no"};
}

record::Result result_of(const edge::LoadTarget& target, const edge::LoadSettings& load,
                         const edge::LoadReport& report) {
  nlohmann::json statuses = nlohmann::json::object();
  for (const auto& [status, count] : report.statuses) statuses[std::to_string(status)] = count;
  std::vector<Metric> metrics{
      {.name = "requests_rate", .value = report.reached(), .unit = "requests/s"},
      {.name = "rows_rate", .value = report.reached() * static_cast<double>(load.rows), .unit = "samples/s"},
      {.name = "failures", .value = static_cast<double>(failures_of(report)), .unit = ""}};
  const auto add = [&](const char* name, double value) {
    metrics.push_back({.name = name, .value = value, .unit = "s"});
  };
  add_latencies(report.latencies, metrics);
  if (report.server.requests > 0) {
    add("server_queue_mean", mean_of(report.server.queue, report.server.requests));
    add("server_batch_mean", mean_of(report.server.compute, report.server.batches));
  }
  record::Result result = command_result("bench", target.model,
                                         {{"url", target.url()},
                                          {"version", target.version},
                                          {"load", name_of_load(load)},
                                          {"rate", load.rate},
                                          {"connections", load.connections},
                                          {"rows", load.rows},
                                          {"tensors", form_of(target, load.binary)},
                                          {"seconds", load.seconds},
                                          {"statuses", statuses},
                                          {"steady", report.steady}},
                                         metrics);
  result.mode = "serve";
  result.id = fmt::format("{}-serve-{}-{}", target.model, name_of_load(load), load.rows);
  return result;
}

}  // namespace

void bench_serve(const std::string& url, const ServeBenchArguments& arguments, double seconds,
                 const OutputChoice& output) {
  const edge::LoadTarget target = edge::open_target(url, access_of(arguments));
  const record::HostLoad host;
  std::vector<record::Result> results;
  TextTable table({"load", "answers/s", "p50", "p90", "p99", "p99.9", "largest", "queue", "batch", "rows",
                   "late p99", "failed", "steady"});
  std::uint64_t failures = 0;
  for (const edge::LoadSettings& load : loads_of(arguments, seconds)) {
    const edge::LoadReport report = edge::apply_load(target, load);
    results.push_back(result_of(target, load, report));
    table.add_row(row_of(load, report));
    failures += failures_of(report);
  }
  if (output.format == "text") {
    keep_results(results, host, output.record);
    if (!common().quiet)
      fmt::print("{} at {}, version {}: requests of {} rows, {}\n{}", target.model, target.url(),
                 target.version, arguments.rows, form_of(target, arguments.tensors == "binary"),
                 table.to_string());
    if (const std::string warning = host.warning(); !warning.empty() && !common().quiet)
      tell(fmt::format("note: {}\n", warning));
  } else {
    finish_results(results, host, output);
  }
  if (failures > 0)
    throw Error(ErrorCode::io, fmt::format("{} requests were not answered as they should be", failures), url,
                "the result names their status (--json)");
}

}  // namespace superstep::cli
