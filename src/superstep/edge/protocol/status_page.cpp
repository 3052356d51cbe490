#include "superstep/edge/protocol/status_page.h"

#include <fmt/format.h>

#include "superstep/base/text.h"
#include "superstep/page/page.h"

namespace superstep::edge {
namespace {

std::string count(std::uint64_t value) { return format_count(static_cast<double>(value)); }

std::vector<std::vector<std::string>> account_rows(const Account& account) {
  std::vector<std::vector<std::string>> rows;
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

void add_model(page::Page& page, const ModelService& model) {
  page.heading(model.name());
  const auto version = model.current(), former = model.former();
  const ServiceTimes times = model.batcher().times();
  page.facts({{"version", version ? version->id() : "unloaded"},
              {"former version", former ? former->id() : "none"},
              {"workers", fmt::to_string(model.settings().workers)},
              {"threads of a worker", fmt::to_string(model.settings().threads)},
              {"mean time in the queue", mean_of(times.queue)},
              {"mean time of a batch", mean_of(times.compute)},
              {"mean time of a request", mean_of(times.total)}});
  page.table({"", "requests", "rows"}, account_rows(model.batcher().account()));
}

}  // namespace

std::string status_page(const Repository& repository) {
  page::Page page("Superstep serves");
  page.raw("<meta http-equiv=\"refresh\" content=\"2\">");
  page.paragraph(repository.is_ready() ? "ready" : "not ready: starting, or shutting down");
  for (const auto& [name, model] : repository.models()) add_model(page, *model);
  return page.to_html();
}

}  // namespace superstep::edge
