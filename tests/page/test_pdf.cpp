// PDF files: objects lie where the table says, text is what was written, and long tables go on with their
// header.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "superstep/page/pdf.h"
#include "tests/contains.h"

namespace superstep::page {
namespace {

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size()))
    ++found;
  return found;
}

// Every entry of the cross-reference table points at its object, every stream is as long as it says.
void expect_sound(const std::string& file) {
  ASSERT_TRUE(file.starts_with("%PDF-1.4\n"));
  ASSERT_TRUE(file.ends_with("%%EOF\n"));
  const std::size_t start = std::strtoul(file.c_str() + file.rfind("startxref\n") + 10, nullptr, 10);
  ASSERT_EQ(file.substr(start, 7), "xref\n0 ");
  const std::size_t entries = std::strtoul(file.c_str() + start + 7, nullptr, 10);
  std::size_t at = file.find("f \n", start) + 3;
  for (std::size_t object = 1; object < entries; ++object, at += 20) {
    const std::size_t place = std::strtoul(file.substr(at, 10).c_str(), nullptr, 10);
    EXPECT_EQ(file.substr(place, std::to_string(object).size() + 6), std::to_string(object) + " 0 obj");
  }
  for (std::size_t length = file.find("/Length "); length != std::string::npos;
       length = file.find("/Length ", length + 1)) {
    const std::size_t bytes = std::strtoul(file.c_str() + length + 8, nullptr, 10);
    const std::size_t stream = file.find("stream\n", length) + 7;
    EXPECT_EQ(file.substr(stream + bytes, 9), "endstream");
  }
}

TEST(Pdf, SaysWhatWasWritten) {
  Pdf pdf("A (title) \\ of it");
  pdf.heading("Heading").paragraph("Zürich \xE2\x89\xA4 5 µs").list({"one", "two"}).preformatted("a\n  b");
  const std::string file = pdf.to_bytes();
  expect_sound(file);
  EXPECT_TRUE(contains(file, "(A \\(title\\) \\\\ of it)"));
  EXPECT_TRUE(contains(file, "(Z\xFCrich ? 5 \xB5s)")) << "in the fonts' alphabet";
  EXPECT_TRUE(contains(file, "page 1 of 1"));
  EXPECT_EQ(file, Pdf(pdf).to_bytes());
}

TEST(Pdf, GoesOnWithTheTablesHeader) {
  Pdf pdf("Long");
  std::vector<std::vector<std::string>> rows;
  for (int i = 0; i < 200; ++i)
    rows.push_back(
        {"row " + std::to_string(i), std::string(300, 'x') + " and words that need several lines"});
  pdf.table({"name", "text"}, rows);
  const std::string file = pdf.to_bytes();
  expect_sound(file);
  const std::size_t pages = count(file, "/Type /Page /Parent");
  EXPECT_GT(pages, 5U);
  EXPECT_EQ(count(file, "(name) Tj"), pages);
  for (int i = 0; i < 200; ++i) EXPECT_EQ(count(file, "(row " + std::to_string(i) + ") Tj"), 1U);
}

TEST(Pdf, DrawsPlots) {
  Pdf pdf("Plot");
  Plot plot{.title = "Efficiency", .x_label = "units", .y_label = "share", .log_x = true};
  plot.series.push_back({.label = "strong", .x = {1, 2, 4}, .y = {1, 0.9, NAN}});
  plot.series.push_back({.label = "points", .x = {1}, .y = {0.5}, .style = Series::Style::points});
  const std::string file = pdf.plot(plot).to_bytes();
  expect_sound(file);
  EXPECT_TRUE(contains(file, "(strong) Tj"));
  EXPECT_TRUE(contains(file, " re f\n"));
  EXPECT_FALSE(file.find("nan") != std::string::npos);
}

TEST(Pdf, KnowsHowWideLettersAre) {
  EXPECT_EQ(helvetica_width("Wi", false), 944 + 222);
  EXPECT_EQ(helvetica_width("~", true), 584);
  EXPECT_EQ(helvetica_width("", false), 0);
}

}  // namespace
}  // namespace superstep::page
