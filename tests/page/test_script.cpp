// What the page's script does in a browser: tables sort by what their cells mean, and filter; plots tell the
// value under the pointer, enlarge, and come back as they were.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "superstep/page/page.h"
#include "tests/browser.h"
#include "tests/scratch.h"

namespace superstep::page {
namespace {

// What `script`, run when the page is loaded, returns; null without an answer.
nlohmann::json found_by(const Page& page, const std::string& script) {
  const ScratchFolder folder;
  std::string html = page.to_html();
  html.insert(
      html.rfind("</body>"),
      "<script>addEventListener('load', () => { let found; try { found = (() => {" + script +
          "})(); } catch (error) { found = 'error: ' + error; } const out = document.createElement('pre');"
          "out.textContent = 'FOUND' + JSON.stringify(found) + 'DNUOF'; document.body.append(out); });"
          "</script>");
  std::ofstream(folder / "page.html") << html;
  const std::string dom = test::output_of(fmt::format(
      "timeout 60 chromium --headless --no-sandbox --disable-gpu --no-first-run --disable-quic "
      "--disable-background-networking --disable-component-update --disable-sync --user-data-dir={0}/profile "
      "--window-size=900,900 --dump-dom file://{0}/page.html 2>/dev/null",
      (folder / "").string()));
  const std::size_t begin = dom.rfind("FOUND"), end = dom.rfind("DNUOF");
  if (begin == std::string::npos || end == std::string::npos || end < begin) return {};
  std::string text = dom.substr(begin + 5, end - begin - 5);
  for (const auto& [escaped, plain] :
       {std::pair("&lt;", "<"), std::pair("&gt;", ">"), std::pair("&amp;", "&")})
    for (std::size_t at; (at = text.find(escaped)) != std::string::npos;)
      text.replace(at, std::string(escaped).size(), plain);
  return nlohmann::json::parse(text, nullptr, false);
}

using Words = std::vector<std::string>;

class PageScript : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::has_browser()) GTEST_SKIP() << "no chromium";
  }
};

constexpr const char* column_after_clicks = R"js(
  const head = document.querySelectorAll('th')[0], seen = [];
  for (let i = 0; i < 3; ++i) {
    head.click();
    seen.push([...document.querySelectorAll('td:first-child')].map(cell => cell.textContent));
  }
  return seen;
)js";

TEST_F(PageScript, SortsByWhatCellsMean) {
  const auto sorted = [](const Words& cells) {
    std::vector<Words> rows;
    for (const std::string& cell : cells) rows.push_back({cell, "x"});
    return found_by(Page("Sorted").table({"value", "other"}, rows), column_after_clicks);
  };
  const auto check = [&](const Words& cells, const Words& up, const Words& down) {
    const nlohmann::json seen = sorted(cells);
    ASSERT_EQ(seen.size(), 3U) << seen;
    EXPECT_EQ(seen[0], nlohmann::json(up));
    EXPECT_EQ(seen[1], nlohmann::json(down));
    EXPECT_EQ(seen[2], nlohmann::json(cells)) << "the third click brings the page's own order back";
  };
  check({"1.5 ms", "900 us", "1:05 min", "-", "2.5 s", "1:00:00 h"},
        {"900 us", "1.5 ms", "2.5 s", "1:05 min", "1:00:00 h", "-"},
        {"1:00:00 h", "1:05 min", "2.5 s", "1.5 ms", "900 us", "-"});
  check({"12", "9", "1,234", "-3", "2e3"}, {"-3", "9", "12", "1,234", "2e3"},
        {"2e3", "1,234", "12", "9", "-3"});
  check({"1.2 GB", "900 MB", "64 kB", "3 B"}, {"3 B", "64 kB", "900 MB", "1.2 GB"},
        {"1.2 GB", "900 MB", "64 kB", "3 B"});
  check({"52.5 ksamples/s", "1.1 Msamples/s", "800 samples/s"},
        {"800 samples/s", "52.5 ksamples/s", "1.1 Msamples/s"},
        {"1.1 Msamples/s", "52.5 ksamples/s", "800 samples/s"});
  check({"20 parameters", "3 patches", "100 models"}, {"3 patches", "20 parameters", "100 models"},
        {"100 models", "20 parameters", "3 patches"});
  check({"gc200", "bow", "a100"}, {"a100", "bow", "gc200"}, {"gc200", "bow", "a100"});
}

TEST_F(PageScript, FiltersLongTables) {
  std::vector<Words> rows;
  for (int i = 0; i < 20; ++i) rows.push_back({fmt::format("run-{}", i), i % 2 ? "odd" : "even"});
  const nlohmann::json seen = found_by(Page("Filtered").table({"name", "kind"}, rows), R"js(
    const field = document.querySelector('input[type=search]');
    field.value = 'RUN-1 odd';
    field.dispatchEvent(new Event('input'));
    return [[...document.querySelectorAll('tbody tr')].filter(row => !row.hidden).length,
            document.querySelector('.filter span').textContent];
  )js");
  EXPECT_EQ(seen, (nlohmann::json{6, " 6 of 20 rows"})) << seen;  // 1, 11, 13, ... 19
}

// One point at (2, 30) of a plot whose axes are known.
constexpr const char* pointing = R"js(
  const svg = document.querySelector('svg.plot'), box = svg.getScreenCTM();
  const [left, top, width, height] = svg.dataset.frame.split(' ').map(Number);
  const [x0, x1] = svg.dataset.x.split(' ').map(Number), [y0, y1] = svg.dataset.y.split(' ').map(Number);
  const at = (x, y) => new DOMPoint(left + width * (x - x0) / (x1 - x0),
                                    top + height * (1 - (y - y0) / (y1 - y0))).matrixTransform(box);
  const send = (kind, x, y) => { const p = at(x, y); svg.dispatchEvent(new PointerEvent(kind,
      {clientX: p.x, clientY: p.y, bubbles: true, pointerId: 1, pointerType: 'mouse', button: 0})); };
  svg.setPointerCapture = () => {};
  const tip = () => { const t = document.querySelector('.tip'); return t.hidden ? null : t.textContent; };
)js";

Page plotted() {
  Plot plot{.title = "Loss", .x_label = "epoch", .y_label = "loss", .series = {}};
  plot.series.push_back({.label = "train", .x = {1, 2, 3, 4}, .y = {40, 30, 20, 0}});
  plot.horizontal.push_back({10, "target"});
  return std::move(Page("Plotted").plot(plot));
}

TEST_F(PageScript, TellsTheValueUnderThePointer) {
  const nlohmann::json seen = found_by(plotted(), std::string(pointing) + R"js(
    const seen = [];
    send('pointermove', 2.05, 30.5);
    seen.push(tip());
    send('pointermove', 1.5, 5);
    seen.push(tip());
    return seen;
  )js");
  EXPECT_EQ(seen, (nlohmann::json{"train: 2, 30", nullptr})) << seen;
}

TEST_F(PageScript, EnlargesAndComesBack) {
  const nlohmann::json seen = found_by(plotted(), std::string(pointing) + R"js(
    const words = () => [...svg.querySelectorAll('.ticks-x text')].map(text => text.textContent).join(' ');
    const own = words(), grid = svg.querySelector('.grid').getAttribute('d');
    send('pointerdown', 1.5, 35), send('pointermove', 2.5, 25), send('pointerup', 2.5, 25);
    const enlarged = words(), moved = svg.querySelector('.marks').getCTM().a / svg.getCTM().a;
    svg.dispatchEvent(new MouseEvent('dblclick'));
    return {enlarged, moved, again: words() === own && svg.querySelector('.grid').getAttribute('d') === grid,
            left: svg.querySelector('.marks').getAttribute('transform')};
  )js");
  ASSERT_TRUE(seen.is_object()) << seen;
  EXPECT_EQ(seen["enlarged"], "1.6 1.8 2 2.2 2.4") << seen;
  EXPECT_NEAR(seen["moved"].get<double>(), 3, 0.05) << "an axis of 1 to 4 that shows 1.5 to 2.5";
  EXPECT_TRUE(seen["again"].get<bool>());
  EXPECT_EQ(seen["left"], "");
}

}  // namespace
}  // namespace superstep::page
