#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <string>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/file/csv.h"
#include "tests/scratch.h"

namespace superstep::data {
namespace {

std::filesystem::path temporary(const std::string& name) {
  return std::filesystem::path(testing::TempDir()) / ("csv_" + name);
}

std::string error_of(const std::filesystem::path& path, const std::string& column) {
  try {
    CsvReader reader(path);
    while (reader.next()) reader.number(reader.column(column));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_file);
    return error.what();
  }
  return "";
}

TEST(Csv, ReadsBackWhatItWrote) {
  for (const char* name : {"round.csv", "round.tsv"}) {
    const auto path = temporary(name);
    CsvWriter writer(path, {"name", "value", "count"});
    writer.cell("plain").cell(0.1).cell(-7).end_row();
    writer.cell("comma, \"quote\"\ttab\nline").cell(1e300).cell(std::int64_t{1} << 62).end_row();
    writer.cell("").cell(std::numeric_limits<double>::infinity()).cell(0).end_row();
    EXPECT_FALSE(std::filesystem::exists(path));
    writer.close();

    CsvReader reader(path);
    ASSERT_TRUE(reader.next());
    EXPECT_EQ(reader.number(1), 0.1);
    EXPECT_EQ(reader.integer(2), -7);
    ASSERT_TRUE(reader.next());
    EXPECT_EQ(reader.text(0), "comma, \"quote\"\ttab\nline");
    EXPECT_EQ(reader.number(1), 1e300);
    EXPECT_EQ(reader.integer(reader.column("count")), std::int64_t{1} << 62);
    ASSERT_TRUE(reader.next());
    EXPECT_EQ(reader.text(0), "");
    EXPECT_TRUE(std::isinf(reader.number(1)));
    EXPECT_EQ(reader.line(), 5u);
    EXPECT_FALSE(reader.next());
    std::filesystem::remove(path);
  }
}

TEST(Csv, AcceptsByteOrderMarkCarriageReturnsAndBlankLines) {
  const auto path = temporary("windows.csv");
  write_file_atomically(path, std::string_view("\xef\xbb\xbf"
                                               "a,b\r\n\r\n1, +2.5 \r\n3,\"4\""));
  CsvReader reader(path);
  EXPECT_EQ(reader.header(), (std::vector<std::string>{"a", "b"}));
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.number(1), 2.5);
  EXPECT_EQ(reader.line(), 3u);
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.integer(1), 4);
  EXPECT_FALSE(reader.next());
  std::filesystem::remove(path);
}

TEST(Csv, RefusesDamageWithFileAndLine) {
  const auto path = temporary("damaged.csv");
  const auto refused = [&](std::string_view text, const std::string& expected) {
    write_file_atomically(path, text);
    const std::string message = error_of(path, "sigma");
    EXPECT_NE(message.find("csv_damaged.csv"), std::string::npos) << message;
    EXPECT_NE(message.find(expected), std::string::npos) << message;
  };
  refused("", "the table is empty");
  refused("a,sigma\n1,2\n3\n", ":3: the row has 1 cells, the header 2");
  refused("a,sigma\n1,two\n", ":2: column 'sigma' holds 'two', which is not a number");
  refused("a,sigma\n1,\n", "holds '', which is not a number");
  refused("a,sigma\n1,\"2\n", ":2: a quoted cell is not closed");
  refused("a,sigmo\n1,2\n", "there is no column 'sigma' (did you mean 'sigmo'?)");
  std::filesystem::remove(path);
  EXPECT_THROW(CsvReader("no/such/file.csv"), Error);
}

TEST(Csv, UnfinishedWriterLeavesNothing) {
  const auto path = temporary("unfinished.csv");
  {
    CsvWriter writer(path, {"a", "b"});
    writer.cell(1);
    EXPECT_THROW(writer.end_row(), Error);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  for (const auto& entry : std::filesystem::directory_iterator(path.parent_path()))
    EXPECT_FALSE(entry.path().string().starts_with(path.string() + ".part")) << entry.path();
}

// Found by mutation: the last cell of a row lost it.
TEST(Csv, KeepsACarriageReturnThatStandsInQuotes) {
  const ScratchFolder folder;
  const std::vector<std::string> cells = {"a", "3\r"};
  CsvWriter writer(folder / "t.csv", {"x", "y"});
  for (const std::string& cell : cells) writer.cell(cell);
  writer.end_row();
  writer.close();
  CsvReader reader(folder / "t.csv");
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(std::vector<std::string>(reader.cells().begin(), reader.cells().end()), cells);
  EXPECT_FALSE(reader.next());
}

}  // namespace
}  // namespace superstep::data
