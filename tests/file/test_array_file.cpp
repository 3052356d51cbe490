// Arrays by name out of any form: what an HDF5 file says, an npz archive, parts of it and others say too.
#include <gtest/gtest.h>

#include "superstep/base/error.h"
#include "superstep/file/npz.h"
#include "superstep/file/source/array_file.h"
#include "tests/contains.h"
#include "tests/expect_error.h"
#include "tests/scratch.h"

namespace superstep::data {
namespace {

Tensor numbered(std::int64_t first, std::int64_t rows) {
  Tensor tensor(ElementType::f64, {rows, 2});
  for (std::int64_t i = 0; i < 2 * rows; ++i) tensor.set(i, static_cast<double>(2 * first + i));
  return tensor;
}

class ArrayFiles : public testing::Test {
 protected:
  void SetUp() override {
    Hdf5Writer file(folder / "all.h5");
    file.write("x", numbered(0, 6));
    file.set_attribute("", "unit", std::string("px"));
    file.close();
    write_npz(folder / "all.npz", {{"x", numbered(0, 6)}});
    write_npz(folder / "part-0.npz", {{"x", numbered(0, 4)}});
    write_npz(folder / "part-1.npz", {{"x", numbered(4, 2)}});
  }
  const ScratchFolder folder;
};

TEST_F(ArrayFiles, SayTheSameWhateverTheirForm) {
  const std::int64_t any[] = {-1, 2}, other[] = {-1, 3};
  for (const char* name : {"all.h5", "all.npz", "part-?.npz", "part-{0,1}.npz"}) {
    SCOPED_TRACE(name);
    const ArrayFile file(folder / name);
    EXPECT_TRUE(file.contains("x"));
    EXPECT_FALSE(file.contains("y"));
    EXPECT_EQ(file.info("x").shape, (Shape{6, 2}));
    EXPECT_EQ(file.require_shape("x", any).shape, (Shape{6, 2}));
    const Tensor all = file.read("x", ElementType::f32, any),
                 rows = file.read_rows("x", ElementType::i32, 3, 2);
    ASSERT_EQ(all.shape(), (Shape{6, 2}));
    ASSERT_EQ(rows.shape(), (Shape{2, 2}));
    for (std::int64_t i = 0; i < 12; ++i) EXPECT_EQ(all.at(i), static_cast<double>(i));
    for (std::int64_t i = 0; i < 4; ++i) EXPECT_EQ(rows.at(i), static_cast<double>(6 + i));
    expect_error(ErrorCode::bad_file, {"its shape is [6,2], not [any,3]"},
                 [&] { file.require_shape("x", other); });
    expect_error(ErrorCode::not_found, {"'y'"}, [&] { file.read("y", ElementType::f32); });
    EXPECT_THROW(file.read_rows("x", ElementType::f32, 5, 2), Error);
  }
  EXPECT_EQ(ArrayFile(folder / "all.h5").attributes().size(), 1U);
  EXPECT_TRUE(ArrayFile(folder / "all.npz").attributes().empty());
}

TEST_F(ArrayFiles, WhatATypeCannotHoldIsRefused) {
  Tensor large = numbered(0, 6);
  large.set(5, 300);
  write_npz(folder / "large.npz", {{"x", large}});
  const ArrayFile file(folder / "large.npz");
  EXPECT_EQ(file.read("x", ElementType::i16).at(5), 300);
  expect_error(ErrorCode::bad_file, {"large.npz", "it holds 300 at [2,1]", "u8"},
               [&] { file.read("x", ElementType::u8); });
  expect_error(ErrorCode::bad_file, {"large.npz", "it holds 300 at [2,1]", "u8"},
               [&] { file.read_rows("x", ElementType::u8, 1, 3); });
}

}  // namespace
}  // namespace superstep::data
