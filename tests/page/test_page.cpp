#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/page/page.h"

namespace superstep::page {
namespace {

// True when every element that is opened is closed, in order.
bool is_balanced(const std::string& html) {
  static const std::regex tag("<(/?)([a-zA-Z0-9]+)([^>]*?)(/?)>");
  std::vector<std::string> open;
  for (std::sregex_iterator at(html.begin(), html.end(), tag), end; at != end; ++at) {
    const std::string name = (*at)[2];
    const bool single = (*at)[4].length() > 0 || name == "meta" || name == "img";
    if ((*at)[1].length() > 0) {
      if (open.empty() || open.back() != name) return false;
      open.pop_back();
    } else if (!single) {
      open.push_back(name);
    }
  }
  return open.empty();
}

Page sample_page() {
  Page page("Peaks <1 & 2>");
  page.heading("Results").paragraph("a < b").preformatted("x\n  y");
  page.table({"name", "error", "note"}, {{"fit", "0.031", "-"}, {"centroid", "0.070"}});
  Picture picture{colored(std::vector<float>{0, 1, 2, 3}, 2, 2, Colormap::viridis), "patch \"7\"", {}, 8};
  picture.marks.push_back({Mark::Shape::circle, 0.5, 0, "red", "true"});
  page.pictures({picture, picture});
  page.plot({"loss", "epoch", "", false, true, {{"train", {1, 2, 3}, {1, 0.1, 0.01}}}, {{0.05, "goal"}}, {}});
  return page;
}

TEST(Escape, MakesTextSafe) {
  EXPECT_EQ(escape("<a href='x'>\"&\"</a>"), "&lt;a href=&#39;x&#39;&gt;&quot;&amp;&quot;&lt;/a&gt;");
  EXPECT_EQ(escape("µm ≤ 3 Å\t\n"), "µm ≤ 3 Å\t\n");
  EXPECT_EQ(escape(""), "");
}

TEST(Escape, ReplacesControlCharactersAndWhatIsNotUtf8) {
  const std::string bad = "\uFFFD";
  EXPECT_EQ(escape(std::string_view("a\0b\x1b", 4)), "a" + bad + "b" + bad);
  EXPECT_EQ(escape("\xff\xc3"), bad + bad);                      // never valid; cut short
  EXPECT_EQ(escape("\xc0\xaf"), bad + bad);                      // overlong '/'
  EXPECT_EQ(escape("\xed\xa0\x80"), bad + bad + bad);            // surrogate
  EXPECT_EQ(escape("\xf4\x90\x80\x80"), bad + bad + bad + bad);  // above U+10FFFF
  EXPECT_EQ(escape("\xf0\x9f\x94\xac"), "\xf0\x9f\x94\xac");
}

TEST(Page, IsWellFormedAndSelfContained) {
  const std::string html = sample_page().to_html();
  EXPECT_TRUE(is_balanced(html));
  EXPECT_FALSE(is_balanced(html + "</p>"));
  for (const char* outside :
       {"http:", "https:", "src=\"http", "<link", "import", "fetch(", "url(\"", "url(h"})
    EXPECT_EQ(html.find(outside), std::string::npos) << outside;
  EXPECT_EQ(html.find("<script"), html.rfind("<script")) << "the page's own alone";
}

TEST(Page, EscapesEverythingButRaw) {
  const std::string html = sample_page().to_html();
  EXPECT_NE(html.find("<title>Peaks &lt;1 &amp; 2&gt;</title>"), std::string::npos);
  EXPECT_NE(html.find("<p>a &lt; b</p>"), std::string::npos);
  EXPECT_NE(html.find("patch &quot;7&quot;"), std::string::npos);
  Picture hostile{Image{1, 1, {0, 0, 0}}, "", {{Mark::Shape::plus, 0, 0, "red\"><script>", "<b>"}}, 1};
  const std::string marked = Page("x").pictures({hostile}).to_html();
  EXPECT_EQ(marked.find("<script>"), std::string::npos);
  EXPECT_EQ(marked.find("<b>"), std::string::npos);
  EXPECT_NE(Page("x").raw("<b>bold</b>").to_html().find("<b>bold</b>"), std::string::npos);
}

TEST(Page, NumbersStandToTheRight) {
  const std::string html =
      Page("x").table({"a", "b"}, {{"name", "3.5 ms"}, {"-", "\u22120.5"}, {"x9", ".5"}}).to_html();
  EXPECT_NE(html.find("<td class=\"number\">3.5 ms</td>"), std::string::npos);
  EXPECT_NE(html.find("<td class=\"number\">\u22120.5</td>"), std::string::npos);
  EXPECT_NE(html.find("<td class=\"number\">.5</td>"), std::string::npos);
  EXPECT_NE(html.find("<th class=\"number\">b</th>"), std::string::npos);
  EXPECT_NE(html.find("<td>-</td>"), std::string::npos);
  EXPECT_NE(html.find("<td>x9</td>"), std::string::npos);
  // Where a column of numbers has none.
  const std::string partly = Page("x").table({"p99"}, {{"1.5 ms"}, {"-"}}).to_html();
  EXPECT_NE(partly.find("<th class=\"number\">p99</th>"), std::string::npos);
  EXPECT_NE(partly.find("<td class=\"number\">-</td>"), std::string::npos);
  // A range is a number; a unit and a sentence that begin with a digit are not.
  const std::string more = Page("x").table({"a"}, {{"0 to 1"}, {"1/s"}, {"1 where the lesion is"}}).to_html();
  EXPECT_NE(more.find("<td class=\"number\">0 to 1</td>"), std::string::npos);
  EXPECT_NE(more.find("<td>1/s</td>"), std::string::npos);
  EXPECT_NE(more.find("<td>1 where the lesion is</td>"), std::string::npos);
}

TEST(Page, ALabelStandsOnceInTheLegend) {
  const std::string html = sample_page().to_html();
  const std::size_t first = html.find("</svg>true</span>");
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(html.find("</svg>true</span>", first + 1), std::string::npos);
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(Page, AColourBarStandsOnceForPicturesOfOneScale) {
  Picture picture{Image{1, 1, {0, 0, 0}}, "", {}, 8};
  picture.bar = phase_bar();
  Picture other = picture;
  other.bar = ColorBar{Colormap::viridis, "0.6", "<1.1>", "amplitude"};
  const std::string html = Page("x").pictures({picture, picture, other}).to_html();
  EXPECT_EQ(count(html, "class=\"colors\""), 2U);
  EXPECT_NE(html.find("−π"), std::string::npos);
  EXPECT_NE(html.find("&lt;1.1&gt;: amplitude"), std::string::npos);
  EXPECT_TRUE(is_balanced(html));
}

// Marks a tenth of a pixel apart lie on each other in the picture; in the inset they are far apart.
TEST(Page, AnInsetSetsMarksApart) {
  Picture picture{Image{11, 11, std::vector<std::uint8_t>(3 * 121)}, "patch", {}, 12};
  picture.marks = {{Mark::Shape::plus, 5.0, 5.0, "green", "true"},
                   {Mark::Shape::cross, 5.1, 5.0, "red", "found"}};
  picture.inset = inset_around(picture.marks, 0.1);
  EXPECT_NEAR(picture.inset->side, 0.16, 1e-12);
  EXPECT_NEAR(picture.inset->x, 5.05, 1e-12);
  const std::string html = Page("x").pictures({picture}).to_html();
  EXPECT_TRUE(is_balanced(html));
  EXPECT_EQ(count(html, "class=\"inset\""), 1U);
  EXPECT_EQ(count(html, "class=\"frame\""), 1U);
  // A dark line beneath the white frame, and around the inset: of a saturated pixel both would be white on
  // white.
  EXPECT_EQ(count(html, "<rect class=\"halo\""), 1U);
  EXPECT_LT(html.find("<rect class=\"halo\""), html.find("<rect class=\"frame\""));
  static const std::regex place("translate\\(([0-9.]+) ([0-9.]+)\\)");
  std::vector<double> across;
  for (std::sregex_iterator at(html.begin(), html.end(), place), end; at != end; ++at) {
    across.push_back(std::stod((*at)[1]));
    EXPECT_NEAR(std::stod((*at)[2]), 66, 0.1);  // the middle of 132
  }
  ASSERT_EQ(across.size(), 2U);
  EXPECT_NEAR(across[1] - across[0], 132 * 0.1 / 0.16, 0.1);
  EXPECT_NE(html.find("0.05 px</text>"), std::string::npos);  // the line of a known length
}

TEST(Page, AnInsetHoldsAllMarks) {
  for (double apart : {0.0, 1e-3, 0.5, 40.0}) {
    const std::vector<Mark> marks{{Mark::Shape::plus, 5, 5, "", ""},
                                  {Mark::Shape::cross, 5 - apart, 5 + apart / 2, "", ""}};
    const Inset inset = inset_around(marks, 0.5);
    EXPECT_GE(inset.side, 0.5);
    for (const Mark& mark : marks) {
      EXPECT_LT(std::abs(mark.x - inset.x), 0.4 * inset.side);
      EXPECT_LT(std::abs(mark.y - inset.y), 0.4 * inset.side);
    }
  }
}

TEST(Page, TheRowThatMattersStandsOut) {
  const std::size_t second = 1;
  const std::string html = Page("x").table({"a"}, {{"one"}, {"two"}}, {&second, 1}).to_html();
  EXPECT_NE(html.find("<tr><td>one"), std::string::npos);
  EXPECT_NE(html.find("<tr class=\"main\"><td>two"), std::string::npos);
}

TEST(Page, RowsBarsAndConfusionsAreWellFormed) {
  Page page("x");
  page.begin_row().begin_column().facts({{"name", "<value>"}}).end_column();
  page.bars({{.label = "<op>", .text = "3 ms", .length = 0.5, .full = 2}}).end_row();
  page.confusion({"cat", "dog"}, {{3, 1}, {0, 0}});
  const std::string html = page.to_html();
  EXPECT_TRUE(is_balanced(html));
  EXPECT_NE(html.find("&lt;op&gt;"), std::string::npos);
  EXPECT_NE(html.find("--length:50.00%;--full:100.00%"), std::string::npos);
  EXPECT_NE(html.find("right\" style=\"--part:0.750\">3<"), std::string::npos);
  EXPECT_NE(html.find("wrong\" style=\"--part:0.250\">1<"), std::string::npos);
  EXPECT_EQ(html.find("nan"), std::string::npos);  // of the class without samples
}

TEST(Page, WritesAFileAndNamesTheOneItCannot) {
  const auto path = std::filesystem::temp_directory_path() / ("superstep-page-" + std::to_string(getpid()));
  sample_page().write(path);
  EXPECT_EQ(read_text_file(path), sample_page().to_html());
  std::filesystem::remove(path);
  try {
    sample_page().write("/no-such-folder/page.html");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.where(), "/no-such-folder/page.html");
  }
}

}  // namespace
}  // namespace superstep::page
