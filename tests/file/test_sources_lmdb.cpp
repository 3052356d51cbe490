// Databases of LMDB: samples out of values as python-lmdb's users pack them, what is not read named, and
// damage found before it is followed. The files are tests/fuzz/make/make_lmdb_seeds.py's.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "superstep/base/file.h"
#include "superstep/file/atoms/ase_database.h"
#include "superstep/file/atoms/labelled_frames.h"
#include "superstep/file/npz.h"
#include "superstep/file/records/lmdb_values.h"
#include "superstep/file/source/forms.h"
#include "tests/contains.h"
#include "tests/expect_error.h"
#include "tests/python.h"
#include "tests/scratch.h"

namespace superstep::data {
namespace {

namespace fs = std::filesystem;

fs::path seed(const char* name) {
  return fs::path(SUPERSTEP_SOURCE) / "tests/fuzz/seeds/sample_source" / name;
}

Record value(std::string_view text) {
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  return record_of_value({bytes, bytes + text.size()}, "here");
}

TEST(LmdbSources, SamplesComeByTheNumbersOfTheirKeys) {
  const auto source = open_source(seed("arrays.mdb"));
  ASSERT_EQ(source->arrays().size(), 2u);
  const std::size_t x = find_array(*source, "x"), label = find_array(*source, "label");
  EXPECT_EQ(source->arrays()[x].row, (Shape{4}));
  EXPECT_EQ(source->arrays()[x].type, ElementType::f32);
  EXPECT_EQ(source->arrays()[x].rows, 6);
  for (std::int64_t i = 0; i < 6; ++i)
    EXPECT_EQ(read_whole(*source, label).at(i), static_cast<double>(i % 3));
  EXPECT_TRUE(contains(source->notes().at(0), "__len__")) << source->notes()[0];
  EXPECT_TRUE(contains(source->place(x, 3), "key '3'"));
}

// 200 keys of three figures, in two levels of pages; key 007 has pages of its own.
TEST(LmdbSources, OfTreesAndOfValuesOverSeveralPages) {
  const Lmdb base(seed("levels.mdb"));
  ASSERT_EQ(base.entries().size(), 200u);
  for (std::size_t i = 0; i < 200; ++i) {
    const std::string where = base.entries()[i].key;
    const Record record = record_of_value(base.value(base.entries()[i]), where);
    const auto& x = std::get<Tensor>(find_value(record, "x")->value);
    ASSERT_EQ(x.element_count(), i == 7 ? 1200 : 2) << where;
    EXPECT_EQ(x.at(x.element_count() - 1), static_cast<double>(i) + 0.5) << where;
    EXPECT_EQ(std::get<Tensor>(find_value(record, "k")->value).at(0), static_cast<double>(i)) << where;
  }
  // What one sample has more of than the others is a fault of that sample.
  expect_error(ErrorCode::bad_file, {"key '007'"}, [&] {
    const auto source = open_source(seed("levels.mdb"));
    read_whole(*source, find_array(*source, "x"));
  });
}

TEST(LmdbSources, RowsOfAseAreMolecules) {
  EXPECT_TRUE(holds_ase_rows(seed("rows.mdb")));
  const LabelledFrames read = read_labelled_frames(seed("rows.mdb"));
  ASSERT_EQ(read.frames.size(), 4u);
  EXPECT_EQ(read.frames[2].configuration.elements, (std::vector<int>{8, 1, 1}));
  EXPECT_EQ(*read.frames[2].labels.energy, -2.0);
  EXPECT_EQ(read.frames[2].labels.forces.size(), 3u);
  EXPECT_FALSE(read.frames[2].configuration.cell);
  const auto source = open_source(seed("rows.mdb"));
  EXPECT_EQ(source->arrays()[find_array(*source, "positions")].row, (Shape{3, 3}));
}

TEST(LmdbSources, AFolderWithTheFileInItIsTheSame) {
  const ScratchFolder folder;
  fs::create_directories(folder / "base");
  fs::copy_file(seed("arrays.mdb"), folder / "base/data.mdb");
  EXPECT_EQ(open_source(folder / "base")->arrays().size(), 2u);
}

TEST(LmdbValues, PicklesAndMessagePackAreRefusedByName) {
  using namespace std::string_view_literals;
  expect_error(ErrorCode::unsupported, {"a pickle of Python", "numpy.savez"},
               [] { value("\x80\x04}\x94."sv); });
  expect_error(ErrorCode::unsupported, {"msgpack", "numpy.savez"}, [] { value("\x81\xa1x\x01"sv); });
  expect_error(ErrorCode::bad_file, {"packed by zlib"}, [] { value("\x78\x9c\x01\x02"sv); });
  expect_error(ErrorCode::bad_file, {"no JSON object"}, [] { value("{\"x\": "sv); });
  expect_error(ErrorCode::bad_file, {"a damaged array"},
               [] { value(R"({"x": {"__ndarray__": [[3], "float64", [1, 2]]}})"sv); });
  const Record other = value("anything");
  EXPECT_EQ(std::get<EncodedBytes>(find_value(other, "value")->value).size(), 8u);
}

// What unpacks to a thousand times what it was is no sample: it is left before it takes more.
TEST(LmdbValues, AStreamThatUnpacksToFarTooMuchIsRefused) {
  const std::string python = python_with("zlib");
  if (python.empty()) GTEST_SKIP() << "no Python";
  const ScratchFolder folder;
  ASSERT_TRUE(run_python(python, folder / ".", R"(
import zlib
packed = zlib.compressobj(9)
with open('bomb', 'wb') as out:
    for _ in range(300): out.write(packed.compress(bytes(1 << 20)))
    out.write(packed.flush())
)"));
  expect_error(ErrorCode::bad_file, {"here", "unpacks to more than 256 MB"},
               [&] { value(read_text_file(folder / "bomb")); });
}

class DamagedLmdb : public testing::Test {
 protected:
  // The seed with some bytes as they are given.
  fs::path with(const char* name, std::size_t at, std::string_view bytes) {
    std::string whole = read_text_file(seed(name));
    whole.replace(at, bytes.size(), bytes);
    write_file_atomically(folder / "damaged.mdb", whole);
    return folder / "damaged.mdb";
  }
  static constexpr std::size_t page = 4096, meta = 16;
  const ScratchFolder folder;
};

TEST_F(DamagedLmdb, IsRefusedBeforeItIsFollowed) {
  using namespace std::string_view_literals;
  const std::string whole = read_text_file(seed("levels.mdb"));
  write_file_atomically(folder / "cut.mdb", std::string_view(whole).substr(0, whole.size() - page));
  expect_error(ErrorCode::bad_file, {"cut.mdb", "it was cut short"},
               [&] { open_source(folder / "cut.mdb"); });
  expect_error(ErrorCode::unsupported, {"version 7"},
               [&] { Lmdb(with("levels.mdb", meta + 4, "\x07\0\0\0"sv)); });
  expect_error(ErrorCode::bad_file, {"its pages have 4097 bytes"},
               [&] { Lmdb(with("levels.mdb", meta + 24, "\x01\x10\0\0"sv)); });
  // Of both meta pages: the root is one of them, and one beyond the file.
  for (const auto& [root, why] :
       {std::pair("\0\0\0\0"sv, "of no known kind"), {"\xff\0\0\0"sv, "points to page 255"}}) {
    std::string damaged = whole;
    for (const std::size_t number : {0, 1}) damaged.replace(number * page + meta + 72 + 40, 4, root);
    write_file_atomically(folder / "root.mdb", damaged);
    expect_error(ErrorCode::bad_file, {"root.mdb", why}, [&] { Lmdb(folder / "root.mdb"); });
  }
}

}  // namespace
}  // namespace superstep::data
