#include "superstep/edge/protocol/status_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "superstep/base/text.h"
#include "superstep/edge/protocol/datatype.h"
#include "superstep/edge/protocol/path.h"
#include "superstep/page/page.h"

namespace superstep::edge {
namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string count(std::uint64_t value) { return format_count(static_cast<double>(value)); }

Rows account_rows(const Account& account) {
  Rows rows;
  rows.push_back({"received", count(account.received.requests), count(account.received.rows)});
  for (const Outcome outcome : all_outcomes)
    rows.push_back({name_of(outcome), count(account.of(outcome).requests), count(account.of(outcome).rows)});
  rows.push_back({"waiting", count(account.waiting.requests), count(account.waiting.rows)});
  rows.push_back({"running", count(account.running.requests), count(account.running.rows)});
  return rows;
}

std::string mean_of(const Durations& times) {
  if (times.count() == 0) return "-";
  return format_seconds(static_cast<double>(times.nanoseconds()) * 1e-9 / static_cast<double>(times.count()));
}

// Ten beyond it, as `bench serve` asks of a percentile: fewer say little.
constexpr double least_beyond = 10;

std::string percentile(const Durations& times, double share) {
  const double beyond = static_cast<double>(times.count()) * (1 - share);
  return beyond < least_beyond ? "-" : format_seconds(times.quantile(share));
}

Rows time_rows(const ServiceTimes& times) {
  Rows rows;
  for (const auto& [name, of] : {std::pair("in the queue", &times.queue),
                                 {"computing a batch", &times.compute},
                                 {"a request in all", &times.total}})
    rows.push_back({name, mean_of(*of), percentile(*of, 0.5), percentile(*of, 0.9), percentile(*of, 0.99),
                    percentile(*of, 0.999), count(of->count())});
  return rows;
}

std::vector<std::int64_t> one_row(const ServedPort& port, bool batched) {
  std::vector<std::int64_t> shape = port.shape.extents();
  if (batched) shape.insert(shape.begin(), 1);
  return shape;
}

Rows port_rows(const ServedPorts& ports) {
  Rows rows;
  for (const auto& [side, all] : {std::pair("input", &ports.inputs), {"output", &ports.outputs}})
    for (const ServedPort& port : *all) {
      std::string shape = ports.batched ? "rows" : "";
      for (const std::int64_t extent : port.shape.extents())
        shape += fmt::format("{}{}", shape.empty() ? "" : ", ", extent);
      rows.push_back({port.name, side, datatype_of(port.element), fmt::format("[{}]", shape)});
    }
  return rows;
}

// For a shell, between single quotes.
std::string quoted(const std::string& text) {
  std::string inside;
  for (const char c : text) inside += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return "'" + inside + "'";
}

// What a client sent as its Host goes into a line of shell only where it can be nothing but a host.
bool is_plain_host(const std::string& host) {
  return !host.empty() && std::ranges::all_of(host, [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == ':' || c == '-' || c == '_' || c == '[' || c == ']';
  });
}

void add_model(page::Page& page, const ModelService& model, const PageReader& reader) {
  page.heading(model.name());
  const auto version = model.current(), former = model.former();
  page.facts({{"version", version ? version->id() : "unloaded"},
              {"former version", former ? former->id() : "none"},
              {"workers", fmt::to_string(model.settings().workers)},
              {"threads of a worker", fmt::to_string(model.settings().threads)}});
  if (version) {
    page.table({"port", "", "datatype", "shape"}, port_rows(version->ports()));
    page.paragraph("Ask it, here for one row of zeros:");
    page.preformatted(curl_line(model.name(), version->ports(), reader));
  }
  page.table({"time", "mean", "p50", "p90", "p99", "p99.9", "counted"}, time_rows(model.batcher().times()));
  page.table({"", "requests", "rows"}, account_rows(model.batcher().account()));
}

}  // namespace

std::string curl_line(const std::string& model, const ServedPorts& ports, const PageReader& reader) {
  nlohmann::ordered_json inputs = nlohmann::ordered_json::array();
  for (const ServedPort& port : ports.inputs)
    inputs.push_back({{"name", port.name},
                      {"datatype", datatype_of(port.element)},
                      {"shape", one_row(port, ports.batched)},
                      {"parameters", {{"binary_data_size", port.row_bytes()}}}});
  const std::string json = nlohmann::ordered_json{{"inputs", inputs}}.dump(
      -1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  return fmt::format(
      "(printf %s {};\n  head -c {} /dev/zero) |\n  curl -s{} -H 'Inference-Header-Content-Length: {}' "
      "--data-binary @- \\\n  {}://{}/v2/models/{}/infer",
      quoted(json), ports.input_bytes(), reader.needs_token ? " -H 'Authorization: Bearer TOKEN'" : "",
      json.size(), reader.secure ? "https" : "http", is_plain_host(reader.host) ? reader.host : "HOST:PORT",
      percent_encoded(model));
}

std::string status_page(const Repository& repository, const PageReader& reader) {
  page::Page page("Superstep serves");
  page.reloaded_every(10);  // s: time to read it, and to copy from it (chosen)
  page.paragraph(repository.is_ready() ? "ready" : "not ready: starting, or shutting down");
  for (const auto& [name, model] : repository.models()) add_model(page, *model, reader);
  page.paragraph(
      "Percentiles are upper edges of steps of a factor of 1.5, and stand where ten samples lie beyond them. "
      "/metrics has the same for Prometheus, /v2/openapi.json all paths.");
  return page.to_html();
}

}  // namespace superstep::edge
