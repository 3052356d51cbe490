// A page as a headless Chromium shows it: what its script finds there. Without Chromium such tests skip.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace superstep::test {

enum class Scheme { light, dark };

inline std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = ::popen(command.c_str(), "r");
  if (!pipe) return text;
  std::array<char, 4096> buffer;
  for (std::size_t n; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
    text.append(buffer.data(), n);
  ::pclose(pipe);
  return text;
}

inline bool has_browser() {
  return std::system("command -v chromium >/dev/null 2>&1") == 0;  // NOLINT(concurrency-mt-unsafe)
}

// Measures a page: overflow to the side, colours, drawings (what they draw, what the pointer finds on their
// longest bar), tables that are wider than their place and whether these are shaded where more lies, texts of
// drawings that lie on each other.
inline constexpr const char* measuring_script = R"js(
const errors = [];
window.addEventListener('error', e => errors.push(e.message));
window.addEventListener('load', () => {
  const root = document.documentElement, style = getComputedStyle(document.body);
  const drawings = [...document.querySelectorAll('svg.plot')].map(svg => {
    const box = svg.getBoundingClientRect();
    let length = 0;
    for (const path of svg.querySelectorAll('path.line, path.bars, path.points, path.area'))
      length += path.getTotalLength();
    const bars = [...svg.querySelectorAll('rect')].sort(
        (a, b) => b.getBoundingClientRect().width - a.getBoundingClientRect().width);
    let hovered = null;
    if (bars.length) {
      bars[0].scrollIntoView({block: 'center', inline: 'center'});
      const bar = bars[0].getBoundingClientRect();
      const found = document.elementFromPoint(bar.x + bar.width / 2, bar.y + bar.height / 2);
      hovered = found && found.querySelector('title') ? found.querySelector('title').textContent : '';
    }
    const texts = [...svg.querySelectorAll('text')];
    const sizes = texts.map(t => t.getBoundingClientRect().height);
    const boxes = texts.filter(t => t.textContent).map(t => t.getBoundingClientRect());
    const overlaps = boxes.flatMap((a, i) => boxes.slice(i + 1).map((b, k) => [a, b, i, i + 1 + k]))
        .filter(([a, b]) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 3 &&
                            b.top < a.bottom - 3)
        .map(([a, b, i, k]) => texts[i].textContent + ' | ' + texts[k].textContent);
    return {width: box.width, height: box.height, length: length, bars: bars.length, hovered: hovered,
            least_text: Math.min(...sizes), overlaps: overlaps};
  });
  const wide = [...document.querySelectorAll('.table')].filter(t => t.scrollWidth > t.clientWidth + 1);
  const found = {wide: wide.length, shaded: wide.filter(t => {
                   const style = getComputedStyle(t);
                   return style.backgroundImage.includes('gradient') &&
                          style.backgroundAttachment.includes('local') && style.overflowX == 'auto';
                 }).length,
                 right: Math.max(0, ...[...document.querySelectorAll('figure, .table, p, h2, h3')]
                                          .map(e => e.getBoundingClientRect().right)),
                 overflow: root.scrollWidth - root.clientWidth, width: root.clientWidth, errors: errors,
                 ink: style.color, paper: style.backgroundColor, drawings: drawings,
                 tables: document.querySelectorAll('table').length};
  parent.postMessage(JSON.stringify(found), '*');
});
)js";

// A window is no narrower than 500 pixels: a frame in it can be.
inline constexpr const char* framing_page = R"html(<!doctype html><body style="margin:0"><script>
addEventListener('message', message => {{
  const out = document.createElement('pre');
  out.textContent = 'MEASURED' + message.data + 'DERUSAEM';
  document.body.appendChild(out);
}});
</script><iframe src="page.html" style="border:0;width:{}px;height:900px"></iframe>
)html";

// Empty when the browser gave nothing.
inline nlohmann::json shown(std::string html, int width, Scheme scheme) {
  const auto folder = std::filesystem::temp_directory_path() /
                      fmt::format("superstep-browser-{}-{}", ::getpid(), width + (scheme == Scheme::dark));
  std::filesystem::create_directories(folder);
  html.insert(html.find("<body"), fmt::format("<script>{}</script>", measuring_script));
  std::ofstream(folder / "page.html") << html;
  std::ofstream(folder / "frame.html") << fmt::format(framing_page, width);
  const std::string dom = output_of(fmt::format(
      "timeout 60 chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --disable-quic "
      "--no-first-run --disable-background-networking --disable-component-update --disable-sync "
      "--user-data-dir={0}/profile --window-size={1},900 --blink-settings=preferredColorScheme={2} "
      "--dump-dom file://{0}/frame.html 2>/dev/null",
      folder.string(), width, scheme == Scheme::dark ? 0 : 1));
  std::filesystem::remove_all(folder);
  const std::size_t begin = dom.rfind("MEASURED{"), end = dom.rfind("}DERUSAEM");
  if (begin == std::string::npos || end == std::string::npos) return {};
  std::string text = dom.substr(begin + 8, end + 1 - begin - 8);
  for (const auto& [escaped, plain] :
       {std::pair("&lt;", "<"), std::pair("&gt;", ">"), std::pair("&amp;", "&")})
    for (std::size_t at; (at = text.find(escaped)) != std::string::npos;)
      text.replace(at, std::string_view(escaped).size(), plain);
  return nlohmann::json::parse(text, nullptr, false);
}

// The sum of a colour's channels: "rgb(21, 24, 27)" is 72.
inline int brightness(const std::string& color) {
  int r = 0, g = 0, b = 0;
  std::sscanf(color.c_str(), "rgb(%d, %d, %d)", &r, &g, &b);
  return r + g + b;
}

// No errors, nothing past the side but the last letter of a label of an axis (8 pixels), ink that stands out
// from the paper, no drawing that is blank, no words on each other, no wide table that hides it.
inline void expect_readable(const nlohmann::json& page, Scheme scheme) {
  ASSERT_TRUE(page.is_object()) << "the browser gave nothing";
  EXPECT_TRUE(page["errors"].empty()) << page["errors"].dump();
  EXPECT_LE(page["overflow"].get<int>(), 8) << "at a width of " << page["width"];
  EXPECT_LE(page["right"].get<double>(), page["width"].get<double>() + 0.5);
  EXPECT_EQ(page["shaded"], page["wide"]) << "of the tables that scroll";
  const int ink = brightness(page["ink"]), paper = brightness(page["paper"]);
  EXPECT_GT(std::abs(ink - paper), 400);
  EXPECT_EQ(paper < ink, scheme == Scheme::dark);
  for (const nlohmann::json& drawing : page["drawings"]) {
    EXPECT_GT(drawing["width"].get<double>(), 100);
    EXPECT_GT(drawing["length"].get<double>() + drawing["bars"].get<double>(), 5) << drawing.dump();
    EXPECT_GT(drawing["least_text"].get<double>(), 7) << drawing.dump();
    EXPECT_TRUE(drawing["overlaps"].empty()) << drawing["overlaps"].dump();
  }
}

}  // namespace superstep::test
