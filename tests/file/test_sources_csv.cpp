// Tables of text as sources: quotes, line ends, several numbers a sample, and what is refused.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/file/csv.h"
#include "superstep/file/source/forms.h"
#include "tests/contains.h"
#include "tests/scratch.h"

namespace superstep::data {
namespace {

class CsvSources : public testing::Test {
 protected:
  std::unique_ptr<SampleSource> opened(std::string_view text, const SourceRequest& request = {},
                                       const char* name = "a.csv") const {
    write_file_atomically(folder / name, text);
    return open_source(folder / name, request);
  }
  std::string refusal_of(std::string_view text) const {
    try {
      const auto source = opened(text);
      for (std::size_t i = 0; i < source->arrays().size(); ++i) read_whole(*source, i);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  static std::vector<double> values(const SampleSource& source, std::string_view name) {
    const Tensor all = read_whole(source, require_array(source, name, ""));
    std::vector<double> numbers;
    for (std::int64_t i = 0; i < all.element_count(); ++i) numbers.push_back(all.at(i));
    return numbers;
  }
  const ScratchFolder folder;
};

using Numbers = std::vector<double>;

SourceRequest wanting(std::int64_t count) {
  return {.wanted = {{.name = "x", .type = ElementType::f32, .row = Shape{count}},
                     {.name = "y", .type = ElementType::f32, .row = Shape{1}}}};
}

TEST_F(CsvSources, AColumnIsAnArray) {
  const auto source =
      opened("\xef\xbb\xbf\"a\",b,name\r\n1,+2.5,\"x, \"\"y\n\"\"\"\r\n\r\n -3 ,4e2,5\" pipe\r\n\n");
  ASSERT_EQ(source->arrays().size(), 2U);
  EXPECT_EQ(values(*source, "a"), (Numbers{1, -3}));
  EXPECT_EQ(values(*source, "b"), (Numbers{2.5, 400}));
  EXPECT_EQ(source->others(), std::vector<std::string>{"'name' (text)"});
  EXPECT_TRUE(contains(source->place(1, 1), "a.csv: row 2, column 'b'"));
}

TEST_F(CsvSources, RowsInAnyOrderAreThoseOfTheReader) {
  std::string text = "a,b\n";
  for (int i = 0; i < 1000; ++i) text += std::to_string(i * i) + "," + std::to_string(0.1 * i) + "\n";
  const auto source = opened(text);
  CsvReader reader(folder / "a.csv");
  for (std::int64_t row = 0; reader.next(); ++row) {
    const std::int64_t rows[] = {999 - row, row, row};
    const Tensor found = read_rows(*source, 1, rows);
    EXPECT_EQ(found.at(1), reader.number(1));
    EXPECT_EQ(found.at(2), reader.number(1));
  }
}

TEST_F(CsvSources, NumberedColumnsAreOneArray) {
  for (const char* header : {"x1,x0,y", "x_1,x_0,y", "x[2],x[1],y", "x.2,x.1,y"}) {
    const auto source = opened(std::string(header) + "\n1,2,3\n4,5,6\n", wanting(2));
    EXPECT_EQ(values(*source, "x"), (Numbers{2, 1, 5, 4})) << header;
    EXPECT_EQ(source->arrays()[find_array(*source, "y")].row, Shape{1});
    EXPECT_TRUE(source->notes().empty());
  }
  // Not where one is missing, or there are more.
  for (const char* header : {"x0,x2,y", "x2,x3,y"})
    EXPECT_NE(opened(std::string(header) + "\n1,2,3\n", wanting(3))->arrays()[0].row, Shape{3}) << header;
}

TEST_F(CsvSources, TheColumnsThatAreLeftAreTheOnlyInputWithoutAny) {
  const auto source = opened("pH;name;y;T\n1;a;2;3\n", wanting(2));
  EXPECT_EQ(values(*source, "x"), (Numbers{1, 3}));
  ASSERT_EQ(source->notes().size(), 1U);
  EXPECT_EQ(source->notes()[0], "'x' is made of the columns pH, T");
  EXPECT_EQ(find_array(*opened("pH,y,T\n1,2,3\n", wanting(3)), "x"), 3U) << "as many, or none";
}

TEST_F(CsvSources, WhatIsNoTableOfNumbersIsRefusedByName) {
  const std::pair<const char*, const char*> cases[] = {
      {"a,b\n1,2\n3\n", "a.csv: row 2: has 1 cells, the header 2"},
      {"a,b\n1,2\n3,4,5\n", "a.csv: row 2: has 3 cells, the header 2"},
      {"a,b\n1,2\n3,\n", "a.csv: row 2: column 'b' holds '', which is not a number"},
      {"a\n9007199254740993\n", "holds '9007199254740993', a whole number beyond 2^53"},
      {"1,2\n3,4\n", "begins with a row of numbers"},
      {"a,b\n", "has no row below its header"},
      {"a,b\n\"1,2\n", "a quoted cell is not closed"},
      {"a\nb\n", "has no column of numbers"},
  };
  for (const auto& [text, words] : cases) EXPECT_TRUE(contains(refusal_of(text), words)) << text;
  std::string late = "a\n";
  for (int i = 0; i < 200; ++i) late += "1\n";
  EXPECT_TRUE(contains(refusal_of(late + "text\n"), "row 201: column 'a' holds 'text'"));
}

}  // namespace
}  // namespace superstep::data
