#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <regex>
#include <string>
#include <vector>

#include "superstep/base/error.h"
#include "superstep/page/axis.h"
#include "superstep/page/page.h"

namespace superstep::page {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

Axis linear(double low, double high, int wanted = 5, double margin = 0) {
  Extent extent;
  extent.include(low), extent.include(high);
  return Axis(extent, false, wanted, margin);
}

Axis logarithmic(double low, double high, int wanted = 5) {
  Extent extent;
  extent.include(low), extent.include(high);
  return Axis(extent, true, wanted, 0);
}

std::string labels(const Axis& axis) {
  std::string text;
  for (const Tick& tick : axis.ticks()) text += (text.empty() ? "" : " ") + tick.label;
  return text;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

// Every number in the drawing's paths is finite.
bool is_clean(const std::string& svg) {
  return svg.find("nan") == std::string::npos && svg.find("inf") == std::string::npos;
}

TEST(Axis, MarksRoundValues) {
  EXPECT_EQ(labels(linear(0, 1)), "0 0.2 0.4 0.6 0.8 1.0");
  EXPECT_EQ(labels(linear(0, 10)), "0 2 4 6 8 10");
  EXPECT_EQ(labels(linear(-1, 1)), "−1.0 −0.5 0 0.5 1.0");
  EXPECT_EQ(labels(linear(0.031, 0.074)), "0.04 0.05 0.06 0.07");
  EXPECT_EQ(labels(linear(0, 77267)), "0 20,000 40,000 60,000");
  EXPECT_EQ(labels(linear(0, 2.2e6)), "0 0.5×10⁶ 1.0×10⁶ 1.5×10⁶ 2.0×10⁶");
  EXPECT_EQ(labels(linear(0, 4e-7)), "0 10⁻⁷ 2×10⁻⁷ 3×10⁻⁷ 4×10⁻⁷");
}

TEST(Axis, TicksLieInsideAndNeverRunAway) {
  const double values[] = {0, 1e-200, -1e-9, 3, 3 + 1e-13, 3 + 1e-7, -2e5, 1e200, -1e200, 5e-324};
  for (double a : values)
    for (double b : values)
      for (bool log : {false, true}) {
        if (log && (!drawable(a, true) || !drawable(b, true))) continue;
        const Axis axis =
            log ? logarithmic(std::min(a, b), std::max(a, b)) : linear(std::min(a, b), std::max(a, b));
        EXPECT_LT(axis.low(), axis.high());
        EXPECT_LE(axis.ticks().size(), 40u);
        for (const Tick& tick : axis.ticks()) {
          EXPECT_GE(axis.position(tick.value), -1e-6) << a << " " << b;
          EXPECT_LE(axis.position(tick.value), 1 + 1e-6) << a << " " << b;
        }
      }
}

TEST(Axis, StartsAtZeroWhenNearlyThere) {
  EXPECT_EQ(linear(0.1, 1).low(), 0);
  EXPECT_EQ(linear(0.1, 1, 5, 0.05).low(), 0);
  EXPECT_GT(linear(0.5, 1).low(), 0);
  EXPECT_EQ(linear(-5, -0.5).high(), 0);
}

TEST(Axis, NothingAndASingleValueHaveAnInterval) {
  EXPECT_EQ(labels(Axis(Extent(), false, 5, 0)), "0 0.2 0.4 0.6 0.8 1.0");
  EXPECT_EQ(labels(Axis(Extent(), true, 5, 0)), "1 2 5 10");
  EXPECT_NEAR(linear(20, 20).position(20), 0.5, 1e-12);
  EXPECT_NEAR(linear(0, 0).position(0), 0.5, 1e-12);
  EXPECT_NEAR(logarithmic(1e-3, 1e-3).position(1e-3), 0.5, 1e-12);
}

TEST(Axis, LogarithmicMarksDecades) {
  EXPECT_EQ(labels(logarithmic(0.01, 10)), "0.01 0.1 1 10");
  EXPECT_EQ(labels(logarithmic(1, 50)), "1 2 5 10 20 50");
  EXPECT_EQ(labels(logarithmic(1e-6, 1e4)), "10⁻⁶ 10⁻⁴ 0.01 1 100 10⁴");
  EXPECT_EQ(labels(logarithmic(1, 3)), "1.0 1.5 2.0 2.5 3.0");
  EXPECT_NEAR(logarithmic(0.01, 10).position(0.1), 1.0 / 3, 1e-12);
  EXPECT_EQ(logarithmic(1, 1000).minor_ticks().size(), 24u);
}

// Round values of equal distance crowd at the upper end: "1800" and "2000" of 500 to 2,100 ran into each
// other.
TEST(Axis, LogarithmicLabelsKeepTheirDistance) {
  const Axis axis = logarithmic(500, 2100);
  ASSERT_GE(axis.ticks().size(), 3u);
  for (std::size_t i = 1; i < axis.ticks().size(); ++i)
    EXPECT_GE(axis.position(axis.ticks()[i].value) - axis.position(axis.ticks()[i - 1].value), 0.12);
  EXPECT_FALSE(axis.minor_ticks().empty()) << "what has no label keeps its line";
}

std::string tick_labels(const std::string& svg) {
  static const std::regex text("<text x=\"[^\"]*\" y=\"[^\"]*\" text-anchor=\"middle\">([^<]*)</text>");
  std::string labels;
  for (std::sregex_iterator at(svg.begin(), svg.end(), text), end; at != end; ++at)
    labels += (labels.empty() ? "" : " ") + (*at)[1].str();
  return labels;
}

// Nobody trains half an epoch: a plot over three has three ticks, and over one has one.
TEST(Plot, WholeNumbersHaveWholeTicks) {
  Plot plot{.title = "", .x_label = "", .y_label = "", .series = {{"loss", {1, 2, 3}, {0.5, 0.25, 0.125}}}};
  EXPECT_EQ(tick_labels(to_svg(plot)), "1 2 3");
  plot.series[0].x = {1, 1, 1};
  EXPECT_EQ(tick_labels(to_svg(plot)), "1");
  plot.series[0].x = {0, 1, 1};
  EXPECT_EQ(tick_labels(to_svg(plot)), "0 1");
  // The control: one value between them, and the ticks are between them too.
  plot.series[0].x = {0, 0.5, 1};
  EXPECT_EQ(tick_labels(to_svg(plot)), "0 0.2 0.4 0.6 0.8 1.0");
  // Counts upwards.
  EXPECT_NE(to_svg({.series = {{"n", {0.1, 0.2}, {1, 2}}}}).find(">1</text>"), std::string::npos);
  EXPECT_EQ(to_svg({.series = {{"n", {0.1, 0.2}, {1, 2}}}}).find(">1.5<"), std::string::npos);
}

TEST(Plot, AreasStandOnEachOther) {
  const std::vector<double> x{0, 1, 2};
  const auto layers = stacked({{"a", x, {1, 2, 3}}, {"nothing", x, {0, 0, 0}}, {"b", x, {4, 4, 4}}});
  ASSERT_EQ(layers.size(), 2U);
  EXPECT_EQ(layers[0].low, (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(layers[1].low, layers[0].high);
  EXPECT_EQ(layers[1].high, (std::vector<double>{5, 6, 7}));
  const std::string svg = to_svg({.series = layers});
  EXPECT_EQ(count(svg, "class=\"area s1\""), 2U);  // drawn, and in the legend
  EXPECT_EQ(count(svg, "class=\"line"), 0U);
  EXPECT_TRUE(is_clean(svg));
}

TEST(Histogram, CountsEveryValueInRangeOnce) {
  const std::vector<double> values = {0, 0.1, 0.25, 0.5, 0.99, 1.0, -0.1, 1.1, nan, infinity};
  const Series bars = histogram("h", values, 0, 1, 4);
  EXPECT_EQ(bars.y, (std::vector<double>{2, 1, 1, 2}));
  EXPECT_EQ(bars.x, (std::vector<double>{0.125, 0.375, 0.625, 0.875}));
  EXPECT_EQ(bars.bar_width, 0.25);
}

TEST(Histogram, NoBinLosesAValueToRounding) {
  std::vector<double> values;
  for (int i = 0; i <= 1000; ++i) values.push_back(0.1 + 0.7 * i / 1000);
  const Series bars = histogram("h", values, 0.1, 0.8, 7);
  EXPECT_EQ(std::accumulate(bars.y.begin(), bars.y.end(), 0.0), 1001);
}

TEST(Histogram, AConstantHasAPlaceAndNonsenseIsRefused) {
  const std::vector<double> same(5, 3.0);
  EXPECT_EQ(histogram("h", same, 3, 3, 1).y[0], 5);
  EXPECT_THROW(histogram("h", same, 0, 1, 0), Error);
  EXPECT_THROW(histogram("h", same, 1, 0, 3), Error);
  EXPECT_THROW(histogram("h", same, 0, infinity, 3), Error);
}

Plot plot_of(std::vector<double> x, std::vector<double> y, bool log = false) {
  Plot plot{"t", "x", "y", false, log, {}, {}, {}};
  plot.series.push_back({"s", std::move(x), std::move(y), {}, {}, Series::Style::line, 0});
  return plot;
}

TEST(Plot, DrawsWhatIsMissingOrConstant) {
  for (bool log : {false, true}) {
    EXPECT_NE(to_svg(plot_of({}, {}, log)).find("no data"), std::string::npos);
    const std::string odd = to_svg(plot_of({0, 1, 2, 3}, {nan, infinity, -infinity, 1}, log));
    EXPECT_TRUE(is_clean(odd));
    EXPECT_NE(odd.find("3 values not shown"), std::string::npos);
    EXPECT_TRUE(is_clean(to_svg(plot_of({0, 1, 2}, {nan, nan, nan}, log))));
    const std::string constant = to_svg(plot_of({5, 5}, {2, 2}, log));
    EXPECT_TRUE(is_clean(constant));
    EXPECT_EQ(constant.find("not shown"), std::string::npos);
  }
}

TEST(Plot, LogAxesLeaveOutWhatIsNotPositiveAndSaySo) {
  const std::string svg = to_svg(plot_of({0, 1, 2}, {1, 0, -1}, true));
  EXPECT_NE(svg.find("2 values not shown (not finite, or not positive on a log axis)"), std::string::npos);
  EXPECT_EQ(to_svg(plot_of({0, 1, 2}, {1, 0, -1})).find("not shown"), std::string::npos);
}

TEST(Plot, ABreakInTheDataBreaksTheLine) {
  const auto path = [](const std::string& svg) {
    std::smatch found;
    std::regex_search(svg, found, std::regex("class=\"line s0\"[^>]* d=\"([^\"]*)\""));
    return found[1].str();
  };
  EXPECT_EQ(count(path(to_svg(plot_of({0, 1, 2, 3}, {1, 2, 3, 4}))), "M"), 1u);
  EXPECT_EQ(count(path(to_svg(plot_of({0, 1, 2, 3}, {1, nan, 3, 4}))), "M"), 2u);
}

TEST(Plot, LongSeriesAreThinnedAndKeepTheirExtremes) {
  std::vector<double> x(200000), y(200000);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i), y[i] = std::sin(0.001 * x[i]);
  const std::string plain = to_svg(plot_of(x, y));
  y[123456] = 50;
  const std::string peaked = to_svg(plot_of(x, y));
  EXPECT_LT(peaked.size(), 80000u);
  EXPECT_NE(plain, peaked);
  EXPECT_NE(peaked.find(">50<"), std::string::npos);
}

TEST(Plot, NamesTheSeriesWhoseLengthsDisagree) {
  try {
    to_svg(plot_of({1, 2}, {1}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "the series 's' has 2 x, 1 y, 0 low and 0 high values");
  }
}

TEST(Plot, EscapesTextAndShowsReferenceLinesWithinTheAxes) {
  Plot plot = plot_of({0, 1}, {1, 2});
  plot.title = "<a> & \"b\"";
  plot.series[0].label = "<script>";
  plot.horizontal.push_back({100, "target"});
  plot.vertical.push_back({nan, "nowhere"});
  const std::string svg = to_svg(plot);
  EXPECT_EQ(svg.find("<script>"), std::string::npos);
  EXPECT_NE(svg.find("&lt;a&gt; &amp; &quot;b&quot;"), std::string::npos);
  EXPECT_NE(svg.find(">100<"), std::string::npos);
  EXPECT_NE(svg.find("target"), std::string::npos);
  EXPECT_EQ(svg.find("nowhere"), std::string::npos);
}

// The ends of labels, which are right-aligned, in the order of the lines.
std::vector<double> label_ends(const Plot& plot) {
  const std::string svg = to_svg(plot);
  std::vector<double> ends;
  for (const Plot::Line& line : plot.horizontal) {
    const std::size_t text = svg.find(">" + line.label + "<");
    const std::size_t x = svg.rfind("x=\"", text) + 3;
    ends.push_back(std::stod(svg.substr(x)));
  }
  return ends;
}

TEST(Plot, LabelsOfLinesThatLieCloseDoNotMeet) {
  Plot plot{
      .title = {}, .x_label = {}, .y_label = {}, .series = {{"s", {0, 10}, {0, 1}, {}, {}}}, .vertical = {}};
  plot.horizontal = {{0.5, "floor"}, {0.1, "target"}, {0.09, "the method"}, {0.08, "limit"}};
  const std::vector<double> ends = label_ends(plot);
  EXPECT_EQ(ends[0], ends[1]) << "far apart: both at the right";
  EXPECT_LT(ends[2], ends[1] - 40);
  EXPECT_LT(ends[3], ends[2] - 60);
}

TEST(Plot, BandsAndBarsSurviveLogAxes) {
  Plot plot = plot_of({1, 2, 3}, {1, 2, 3}, true);
  plot.series[0].low = {-1, 1, nan};
  plot.series[0].high = {2, 3, 4};
  plot.series.push_back({"bars", {1, 2, 3}, {0, 10, 100}, {}, {}, Series::Style::bars, 0});
  plot.series.push_back({"dots", {1, 2, 3}, {4, 4, 4}, {}, {}, Series::Style::points, 0});
  plot.series.push_back({"steps", {1, 2, 3}, {4, 9, 4}, {}, {}, Series::Style::steps, 0});
  const std::string svg = to_svg(plot);
  EXPECT_TRUE(is_clean(svg));
  EXPECT_EQ(count(svg, "class=\"band s0\""), 1u);
  EXPECT_EQ(count(svg, "class=\"bars s1\""), 2u);  // the bars and their key in the legend
}

TEST(Plot, SqueezesATitleThatIsWiderThanTheDrawing) {
  Plot plot{.title = std::string(40, 'n'), .series = {{.label = "", .x = {0, 1}, .y = {0, 1}}}};
  EXPECT_EQ(count(to_svg(plot), "textLength"), 0U);
  plot.title = std::string(80, 'n');
  EXPECT_EQ(count(to_svg(plot), "textLength"), 1U);
}

}  // namespace
}  // namespace superstep::page
