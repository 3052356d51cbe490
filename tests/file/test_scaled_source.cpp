// Arrays that are scaled as they are read: by one number or one for each channel, logarithms of counts, each
// sample from 0 to 1.
#include <gtest/gtest.h>

#include <cmath>

#include "superstep/file/npy.h"
#include "superstep/file/npz.h"
#include "superstep/file/source/forms.h"
#include "superstep/file/source/scaled_source.h"
#include "tests/contains.h"
#include "tests/expect_error.h"
#include "tests/scratch.h"

namespace superstep::data {
namespace {

using Texts = std::vector<std::string>;

Tensor counted(ElementType type, const Shape& shape, double first = 0) {
  Tensor tensor(type, shape);
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) tensor.set(i, first + static_cast<double>(i));
  return tensor;
}

class ScaledSources : public testing::Test {
 protected:
  void SetUp() override {
    write_npz(folder / "in.npz", {{"image", counted(ElementType::u8, {4, 3, 2, 2})},
                                  {"label", counted(ElementType::i64, {4}, 1)},
                                  {"counts", counted(ElementType::u16, {4, 5})},
                                  {"wide", counted(ElementType::i64, {4, 2}, double{1LL << 53} - 8)}});
  }
  std::unique_ptr<SampleSource> open(const Texts& scale, const Texts& offset = {}) const {
    return open_source(folder / "in.npz", {.scalings = scalings_from_text(scale, offset)});
  }
  static Tensor whole(const SampleSource& source, const char* name) {
    return read_whole(source, find_array(source, name));
  }
  const ScratchFolder folder;
};

TEST_F(ScaledSources, ByANumberOrOneForEachChannel) {
  const auto source = open({"image=0.5,2,-1", "counts=0.1"}, {"image=1", "label=-1"});
  const Tensor image = whole(*source, "image"), label = whole(*source, "label"),
               counts = whole(*source, "counts");
  EXPECT_EQ(image.type(), ElementType::f32);
  EXPECT_EQ(counts.type(), ElementType::f32);
  constexpr double factors[] = {0.5, 2, -1};
  for (std::int64_t i = 0; i < image.element_count(); ++i)
    EXPECT_EQ(image.at(i), factors[i / 4 % 3] * static_cast<double>(i) + 1) << i;
  for (std::int64_t i = 0; i < 4; ++i) EXPECT_EQ(label.at(i), static_cast<double>(i));
  // Rounded once: what 0.1 times a number is in f64, as f32.
  for (std::int64_t i = 0; i < counts.element_count(); ++i)
    EXPECT_EQ(counts.as<float>()[static_cast<std::size_t>(i)],
              static_cast<float>(0.1 * static_cast<double>(i)));
  EXPECT_EQ(source->notes().size(), 3u);
  EXPECT_TRUE(contains(source->notes()[0], "multiplied by")) << source->notes()[0];
}

// Whole numbers of 64 bits are shifted as whole numbers, as far as f64 holds them.
TEST_F(ScaledSources, WholeNumbersStayWhole) {
  const auto source = open({}, {"wide=-9007199254740984"});
  const Tensor wide = whole(*source, "wide");
  for (std::int64_t i = 0; i < wide.element_count(); ++i) EXPECT_EQ(wide.at(i), static_cast<double>(i));
}

TEST_F(ScaledSources, LogarithmsAndUnits) {
  const auto source = open({"counts=log", "image=unit"}, {"counts=2"});
  const Tensor counts = whole(*source, "counts"), image = whole(*source, "image");
  for (std::int64_t i = 0; i < counts.element_count(); ++i)
    EXPECT_EQ(counts.at(i), static_cast<float>(std::log1p(static_cast<double>(i)) + 2)) << i;
  for (std::int64_t i = 0; i < image.element_count(); ++i)
    EXPECT_EQ(image.at(i), static_cast<float>(static_cast<double>(i % 12) / 11)) << i;
  Tensor negative = counted(ElementType::f32, {3, 2});
  negative.set(3, -1.5);
  write_npz(folder / "negative.npz", {{"x", negative}});
  const Texts log{"x=log"};
  const auto bad = open_source(folder / "negative.npz", {.scalings = scalings_from_text(log, {})});
  const std::int64_t first[] = {0}, second[] = {1};
  read_rows(*bad, 0, first);
  expect_error(ErrorCode::bad_file, {"negative.npz", "-1.5 in row 1"}, [&] { read_rows(*bad, 0, second); });
}

TEST_F(ScaledSources, TheArrayOfAFileWithoutNamesIsTheOnlyOne) {
  write_npy(folder / "x.npy", counted(ElementType::f32, {3, 2}));
  const Texts tenth{"x=10"};
  const auto source = open_source(folder / "x.npy", {.scalings = scalings_from_text(tenth, {})});
  EXPECT_EQ(source->arrays()[0].name, "x");
  EXPECT_EQ(read_whole(*source, 0).at(5), 50);
}

TEST_F(ScaledSources, WhatIsNotThereIsRefusedOrLeftOut) {
  expect_error(ErrorCode::not_found, {"imgae", "image"}, [&] { open({"imgae=2"}); });
  expect_error(ErrorCode::bad_file, {"in.npz", "2 numbers to scale its channels"},
               [&] { open({"image=1,2"}); });
  std::vector<Scaling> lenient = scalings_from_text(Texts{"none=2"}, {});
  lenient[0].required = false;
  EXPECT_EQ(open_source(folder / "in.npz", {.scalings = lenient})->arrays().size(), 4u);
}

TEST(ScalingTexts, WhatIsNoScalingIsRefusedByTheOption) {
  const auto refused = [](const Texts& scale, const Texts& offset, std::initializer_list<std::string> parts) {
    expect_error(ErrorCode::invalid_argument, parts, [&] { scalings_from_text(scale, offset); });
  };
  refused({"0.1"}, {}, {"--scale 0.1", "names no array"});
  refused({"x=ten"}, {}, {"--scale x=ten", "'ten' is no number"});
  refused({"x=nan"}, {}, {"'nan' is no number"});
  refused({"x=0"}, {}, {"the same of every value"});
  refused({"x=1", "x=2"}, {}, {"'x' is given twice"});
  refused({}, {"x=log"}, {"--offset x=log", "'log' is no number"});
  refused({"x=1,2"}, {"x=1,2,3"}, {"has 3 numbers, --scale 2"});
  EXPECT_EQ(scalings_from_text(Texts{"a=b=2"}, {})[0].array, "a=b");
}

TEST(ScalingTexts, ValuesComeBack) {
  const Scaling log = scalings_from_text(Texts{"x=log"}, Texts{"x=3"})[0];
  double value[] = {41};
  scale_row(log, value);
  EXPECT_NEAR(*unscaled(log, value[0]), 41, 1e-12);
  EXPECT_FALSE(unscaled(scalings_from_text(Texts{"x=1,2"}, {})[0], 1));
}

}  // namespace
}  // namespace superstep::data
