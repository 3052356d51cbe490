#include "superstep/edge/protocol/live_page.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "superstep/page/page.h"

namespace superstep::edge {
namespace {

using nlohmann::json;

// Seconds that a share of all are below, by the edges of a histogram.
double quantile(const Durations& times, double share) {
  const double wanted = share * static_cast<double>(times.count());
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < Durations::edges; ++i)
    if (below += times.in(i); static_cast<double>(below) >= wanted && below > 0) return Durations::edge(i);
  return Durations::edge(Durations::edges - 1);
}

json account_of(const StreamAccount& account) {
  json counts{{"received", account.received},   {"waiting", account.waiting},
              {"duplicate", account.duplicate}, {"corrupt", account.corrupt},
              {"unread", account.unread},       {"unfitting", account.unfitting},
              {"late", account.late},           {"missing", account.missing},
              {"series ended", account.series}, {"incomplete", account.incomplete}};
  for (const Outcome outcome : all_outcomes)
    if (account.of(outcome) > 0 || outcome == Outcome::served) counts[name_of(outcome)] = account.of(outcome);
  return counts;
}

constexpr const char* body = R"html(
<style>
.live{display:flex;flex-wrap:wrap;gap:1.5rem}
.live figure{margin:0}
.live img{image-rendering:pixelated;min-width:256px;max-width:100%;width:22rem;background:#888}
#state{font-variant-numeric:tabular-nums}
</style>
<p id="state">waiting for frames</p>
<div class="live">
<figure><img id="mean" alt="the picture so far"><figcaption>the picture so far</figcaption></figure>
<figure><img id="spread" alt="spread of overlapping predictions"><figcaption>spread of what overlaps</figcaption></figure>
<figure><img id="coverage" alt="windows on each pixel"><figcaption>windows on each pixel</figcaption></figure>
</div>
<h2>Account</h2>
<div class="table"><table id="account"></table></div>
<h2>Versions</h2>
<div class="table"><table id="versions"></table></div>
<script>
const at = id => document.getElementById(id);
let shown = '';
function fill(table, rows) {
  table.replaceChildren(...rows.map(cells => {
    const row = document.createElement('tr');
    row.replaceChildren(...cells.map(text => {
      const cell = document.createElement('td');
      cell.textContent = text;
      return cell;
    }));
    return row;
  }));
}
const time = s => s < 1e-3 ? (s * 1e6).toFixed(0) + ' us' : s < 1 ? (s * 1e3).toFixed(1) + ' ms' : s.toFixed(2) + ' s';
async function look() {
  try {
    const state = await (await fetch('/live/state', {cache: 'no-store'})).json();
    at('state').textContent = state.series
      ? `series ${state.series}: ${state.added} windows, ${state.rate.toFixed(0)} frames/s, p50 ${time(state.p50)}, p99 ` +
        `${time(state.p99)}, ${state.queue} in the queue, version ${state.version}` +
        (state.unplaced ? `, ${state.unplaced} without a position` : '') + (state.failure ? `; ${state.failure}` : '') +
        (state.learning ? `; learning: ${state.learning}` : '')
      : 'waiting for frames';
    fill(at('account'), Object.entries(state.account).map(([name, count]) => [name, count]));
    fill(at('versions'), state.versions.map(v => [v.version, `from frame ${v.frame} of ${v.series}`]));
    const now = state.series + state.added;
    if (state.added && now !== shown) {
      shown = now;
      for (const name of ['mean', 'spread', 'coverage']) at(name).src = `/live/${name}.png?${encodeURIComponent(now)}`;
    }
  } catch (error) {
    at('state').textContent = 'the server does not answer';
  }
  setTimeout(look, 250);
}
look();
</script>
)html";

}  // namespace

std::string live_page() {
  page::Page page("The scan, as it runs");
  page.raw(body);
  return page.to_html();
}

json live_state(const Live& live, const Repository& repository, const std::optional<StreamAccount>& stream,
                const Learner* learner) {
  const Live::State state = live.state();
  json versions = json::array();
  for (const Live::Change& change : state.versions)
    versions.push_back(
        {{"version", change.version}, {"frame", change.first_frame}, {"series", change.series}});
  Durations total;
  std::uint64_t waiting = 0;
  if (!repository.models().empty()) {
    const Batcher& batcher = repository.models().begin()->second->batcher();
    total = batcher.times().total;
    waiting = batcher.account().waiting.rows;
  }
  return {{"series", state.series},
          {"version", state.version},
          {"added", state.added},
          {"unplaced", state.unplaced},
          {"beyond", state.beyond},
          {"rate", state.frames_a_second},
          {"failure", state.failure},
          {"p50", total.count() ? quantile(total, 0.5) : 0},
          {"p99", total.count() ? quantile(total, 0.99) : 0},
          {"queue", waiting},
          {"versions", versions},
          {"learning", learner ? learner->state().doing : ""},
          {"account", stream ? account_of(*stream) : json::object()}};
}

}  // namespace superstep::edge
