// Samples that validate from files of their own, behind those that train.
#include <gtest/gtest.h>

#include "superstep/file/npz.h"
#include "superstep/file/source/forms.h"
#include "superstep/file/source/validated.h"
#include "tests/expect_error.h"
#include "tests/scratch.h"

namespace superstep::data {
namespace {

Tensor counted(std::int64_t rows, double first) {
  Tensor tensor(ElementType::f32, {rows, 2});
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) tensor.set(i, first + static_cast<double>(i));
  return tensor;
}

TEST(Validated, AllOfTheFirstTrainAndNoneOfTheSecond) {
  const ScratchFolder folder;
  write_npz(folder / "a.npz", {{"x", counted(5, 0)}});
  write_npz(folder / "b.npz", {{"x", counted(3, 100)}});
  const auto source = with_validation(open_source(folder / "a.npz"), "a", open_source(folder / "b.npz"), "b");
  EXPECT_EQ(source->arrays()[0].rows, 8);
  EXPECT_EQ(source->training_rows(), 5);
  EXPECT_EQ(training_rows(*source, 8, 0.5), 5) << "whatever the share";
  const Tensor whole = read_whole(*source, 0);
  EXPECT_EQ(whole.at(9), 9);
  EXPECT_EQ(whole.at(10), 100);
  const std::int64_t rows[] = {7, 0, 5};
  const Tensor some = read_rows(*source, 0, rows);
  EXPECT_EQ(some.at(0), 104);
  EXPECT_EQ(some.at(2), 0);
  EXPECT_EQ(some.at(4), 100);
}

TEST(Validated, WhatDoesNotGoTogetherIsRefused) {
  const ScratchFolder folder;
  write_npz(folder / "a.npz", {{"x", counted(5, 0)}});
  write_npz(folder / "y.npz", {{"y", counted(5, 0)}});
  write_npz(folder / "none.npz", {{"x", counted(0, 0)}});
  const auto joined = [&](const char* first, const char* second) {
    return with_validation(open_source(folder / first), first, open_source(folder / second), second);
  };
  expect_error(ErrorCode::bad_file, {"y.npz", "has no array 'x'"}, [&] { joined("a.npz", "y.npz"); });
  expect_error(ErrorCode::bad_file, {"none.npz", "holds no samples"}, [&] { joined("a.npz", "none.npz"); });
  expect_error(ErrorCode::invalid_argument, {"says itself", "--validation"}, [&] {
    with_validation(joined("a.npz", "a.npz"), "folder", open_source(folder / "a.npz"), "a.npz");
  });
}

}  // namespace
}  // namespace superstep::data
