// Archives of NumPy that are written a block of rows at a time.
#include <gtest/gtest.h>

#include <filesystem>

#include "superstep/base/error.h"
#include "superstep/file/npz.h"
#include "superstep/file/npz_writer.h"
#include "tests/expect_error.h"
#include "tests/scratch.h"

namespace superstep::data {
namespace {

Tensor counting(ElementType type, const Shape& shape) {
  Tensor tensor(type, shape);
  for (std::size_t i = 0; i < tensor.byte_count(); ++i) tensor.bytes()[i] = static_cast<std::byte>(i % 61);
  return tensor;
}

TEST(NpzWriter, WritesRowsAsTheWholeArraysWouldBe) {
  const ScratchFolder folder;
  const Tensor rows = counting(ElementType::i16, Shape({2, 3})),
               number = counting(ElementType::f64, Shape({}));
  NpzWriter writer(folder / "some.npz");
  writer.create("x", ElementType::i16, Shape({4, 3}));
  writer.create("nobody", ElementType::f32, Shape({0, 5}));
  writer.write_rows("x", 0, rows);
  writer.write_rows("x", 2, rows);
  writer.write("number", number);
  writer.set_comment("where it is from");
  EXPECT_FALSE(std::filesystem::exists(folder / "some.npz"));
  writer.close();

  const NamedTensors read = read_npz(folder / "some.npz");
  ASSERT_EQ(read.size(), 3U);
  EXPECT_EQ(read.at("x").shape(), Shape({4, 3}));
  for (std::size_t i = 0; i < 2 * rows.byte_count(); ++i)
    EXPECT_EQ(read.at("x").bytes()[i], rows.bytes()[i % rows.byte_count()]);
  EXPECT_EQ(read.at("nobody").shape(), Shape({0, 5}));
  EXPECT_EQ(read.at("number").shape().rank(), 0U);
}

TEST(NpzWriter, LeavesNothingBehindThatIsNotWhole) {
  const ScratchFolder folder;
  const auto path = folder / "some.npz";
  {
    NpzWriter writer(path);
    writer.create("x", ElementType::i16, Shape({4, 3}));
    writer.write_rows("x", 0, counting(ElementType::i16, Shape({2, 3})));
    expect_error(ErrorCode::invalid_argument, {"2 of 4 rows"}, [&] { writer.close(); });
  }
  EXPECT_EQ(folder.file_count(), 0);
}

TEST(NpzWriter, RefusesWhatIsNotTheNextRows) {
  const ScratchFolder folder;
  NpzWriter writer(folder / "some.npz");
  writer.create("x", ElementType::i16, Shape({4, 3}));
  expect_error(ErrorCode::invalid_argument, {"'x'"}, [&] {
    writer.create("x", ElementType::i16, Shape({4, 3}));
  });
  expect_error(ErrorCode::unsupported, {"bf16"}, [&] { writer.create("y", ElementType::bf16, Shape({1})); });
  const auto refused = [&](std::int64_t first, ElementType type, const Shape& shape) {
    expect_error(ErrorCode::invalid_argument, {"'x'"},
                 [&] { writer.write_rows("x", first, counting(type, shape)); });
  };
  refused(1, ElementType::i16, Shape({2, 3}));
  refused(0, ElementType::u16, Shape({2, 3}));
  refused(0, ElementType::i16, Shape({2, 4}));
  refused(0, ElementType::i16, Shape({5, 3}));
  refused(0, ElementType::i16, Shape({3}));
}

}  // namespace
}  // namespace superstep::data
