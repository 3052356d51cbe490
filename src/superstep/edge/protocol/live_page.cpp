#include "superstep/edge/protocol/live_page.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "superstep/page/page.h"

namespace superstep::edge {
namespace {

using nlohmann::json;

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
.live figure{margin:0;max-width:100%}
.live .picture{position:relative;width:22rem;max-width:100%}
.live img{display:block;image-rendering:pixelated;width:100%;background:#888}
.live .scale{position:absolute;left:.6rem;bottom:.6rem;border-bottom:3px solid #fff;color:#fff;text-align:center;
  font-size:.8rem;line-height:1.3;text-shadow:0 0 3px #000,0 0 3px #000;filter:drop-shadow(0 0 1px #000)}
.live .bar{height:.7rem;margin-top:.4rem}
.live .ends{display:flex;justify-content:space-between;gap:1rem;font-size:.85rem;font-variant-numeric:tabular-nums}
#state{font-variant-numeric:tabular-nums}
</style>
<p id="state">waiting for frames</p>
<div class="live">)html";

constexpr const char* script = R"html(</div>
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
function length(m) {
  for (const [unit, size] of [['m', 1], ['mm', 1e-3], ['um', 1e-6], ['nm', 1e-9]])
    if (m >= size * 0.9999) return Number((m / size).toPrecision(3)) + ' ' + unit;
  return Number((m * 1e12).toPrecision(3)) + ' pm';
}
// The longest of 1, 2, 5, 10 ... that a third of the picture holds.
function round_length(m) {
  const most = m / 3, power = 10 ** Math.floor(Math.log10(most));
  return power * ([5, 2, 1].find(k => k * power <= most) || 1);
}
function explain(name, range, state) {
  const figure = at(name + '-figure');
  const [low, unit, high] = figure.querySelectorAll('.ends span');
  low.textContent = Number(range.low.toPrecision(3));
  high.textContent = Number(range.high.toPrecision(3));
  unit.textContent = name === 'coverage' ? 'windows' : state.output + (state.unit ? ', ' + state.unit : '');
  const across = range.width * state.pixel, scale = figure.querySelector('.scale');
  const bar = round_length(across);
  scale.textContent = length(bar);
  scale.style.width = bar / across * 100 + '%';
}
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
    for (const [name, range] of Object.entries(state.drawn)) explain(name, range, state);
    const now = state.series + state.added;
    if (state.added && now !== shown) {
      shown = now;
      for (const name of ['mean', 'spread', 'coverage']) {
        const image = at(name);
        image.onload = () => { at(name + '-figure').hidden = false; };
        image.src = `/live/${name}.png?${encodeURIComponent(now)}`;
      }
    }
  } catch (error) {
    at('state').textContent = 'the server does not answer';
  }
  setTimeout(look, 250);
}
look();
</script>
)html";

// The map's colors from its low end to its high one.
std::string gradient(page::Colormap map) {
  constexpr int stops = 9;  // between which viridis is straight for the eye
  std::vector<float> values(stops);
  for (int i = 0; i < stops; ++i) values[static_cast<std::size_t>(i)] = static_cast<float>(i);
  const page::Image image = page::colored(values, stops, 1, map);
  std::string colors;
  for (std::size_t i = 0; i < stops; ++i)
    colors += fmt::format(",rgb({} {} {})", image.rgb[3 * i], image.rgb[3 * i + 1], image.rgb[3 * i + 2]);
  return fmt::format("linear-gradient(to right{})", colors);
}

// Hidden until there is a picture.
std::string figure(const char* name, const char* caption, page::Colormap map) {
  return fmt::format(
      "<figure id=\"{0}-figure\" hidden><div class=\"picture\"><img id=\"{0}\" alt=\"{1}\">"
      "<div class=\"scale\"></div></div><div class=\"bar\" style=\"background:{2}\"></div>"
      "<div "
      "class=\"ends\"><span></span><span></span><span></span></div><figcaption>{1}</figcaption></figure>\n",
      name, caption, gradient(map));
}

json drawn_of(const Live::State& state) {
  json all = json::object();
  for (const auto& [name, what] : {std::pair("mean", Live::Shown::mean),
                                   {"spread", Live::Shown::spread},
                                   {"coverage", Live::Shown::coverage}})
    if (const auto found = state.drawn.find(what); found != state.drawn.end())
      all[name] = {{"low", found->second.low},
                   {"high", found->second.high},
                   {"height", found->second.height},
                   {"width", found->second.width}};
  return all;
}

}  // namespace

std::string live_page() {
  page::Page page("The scan, as it runs");
  page.raw(body);
  page.raw(figure("mean", "the picture so far", page::Colormap::gray));
  page.raw(figure("spread", "spread of what overlaps", page::Colormap::viridis));
  page.raw(figure("coverage", "windows on each pixel", page::Colormap::viridis));
  page.raw(script);
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
          {"rate", state.frames_per_second},
          {"failure", state.failure},
          {"pixel", state.pixel},
          {"output", state.output},
          {"unit", state.unit},
          {"drawn", drawn_of(state)},
          {"p50", total.quantile(0.5)},
          {"p99", total.quantile(0.99)},
          {"queue", waiting},
          {"versions", versions},
          {"learning", learner ? learner->state().doing : ""},
          {"account", stream ? account_of(*stream) : json::object()}};
}

}  // namespace superstep::edge
