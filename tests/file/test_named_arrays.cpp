// Arrays that are named with the place they are read from, and how arrays fit what is wanted of them.
#include <gtest/gtest.h>

#include <numeric>

#include "superstep/file/hdf5/hdf5.h"
#include "superstep/file/npy.h"
#include "superstep/file/npz.h"
#include "superstep/file/source/array_file.h"
#include "superstep/file/source/fit.h"
#include "superstep/file/source/forms.h"
#include "superstep/file/source/paths.h"
#include "tests/contains.h"
#include "tests/expect_error.h"
#include "tests/scratch.h"

namespace superstep::data {
namespace {

Tensor counted(const Shape& shape, double first = 0) {
  Tensor tensor(ElementType::f32, shape);
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) tensor.set(i, first + static_cast<double>(i));
  return tensor;
}

class NamedArrays : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"scan.nxs", "other.hdf"}) {
      Hdf5Writer writer(folder_ / name);
      writer.write("entry/data/data", counted({6, 5, 7}, name[0] == 's' ? 0 : 1000));
      writer.write("entry/mask", counted({6, 5, 7}, 5000));
      writer.set_attribute("entry/data", "signal", std::string("data"));
      writer.close();
    }
    write_npy(folder_ / "labels.npy", counted({6, 1}));
  }
  std::string at(const std::string& name) const { return (folder_ / name).string(); }
  std::unique_ptr<SampleSource> open(const std::string& given, const SourceRequest& request = {}) const {
    return open_source(given, request);
  }
  const ScratchFolder folder_;
};

std::vector<std::string> names(const SampleSource& source) {
  std::vector<std::string> found;
  for (const SourceArray& array : source.arrays()) found.push_back(array.name);
  return found;
}

TEST_F(NamedArrays, ComeFromWhereTheyAreSaidToLie) {
  const auto source = open("x=" + at("scan.nxs") + ":/entry/data/data,target=" + at("labels.npy"));
  EXPECT_EQ(names(*source), (std::vector<std::string>{"x", "target"}));
  EXPECT_EQ(source->arrays()[0].row, (Shape{5, 7}));
  const std::int64_t rows[] = {4, 0};
  const Tensor x = read_rows(*source, 0, rows), target = read_rows(*source, 1, rows);
  EXPECT_EQ(x.at(0), 4 * 35);
  EXPECT_EQ(x.at(35), 0);
  EXPECT_EQ(target.at(0), 4);
  EXPECT_TRUE(contains(source->place(0, 0), "entry/data/data"));
  // Without the '/', too, and several of one file.
  EXPECT_EQ(names(*open("a=" + at("scan.nxs") + ":entry/mask,b=" + at("scan.nxs") + ":/entry/data/data")),
            (std::vector<std::string>{"a", "b"}));
}

TEST_F(NamedArrays, WhatIsNotSaidIsTheSignalOrTheOnlyOne) {
  EXPECT_EQ(read_rows(*open("x=" + at("scan.nxs")), 0, std::vector<std::int64_t>{1}).at(0), 35);
  EXPECT_EQ(names(*open("y=" + at("labels.npy"))), std::vector<std::string>{"y"});
  write_npz(folder_ / "two.npz", {{"a", counted({2})}, {"b", counted({2})}});
  EXPECT_EQ(names(*open("b=" + at("two.npz"))), std::vector<std::string>{"b"});
  expect_error(ErrorCode::invalid_argument, {"which of its arrays is 'x'", "two.npz:ARRAY", "a, b"},
               [&] { open("x=" + at("two.npz")); });
  expect_error(ErrorCode::not_found, {"entry/mas", "entry/mask"},
               [&] { open("x=" + at("scan.nxs") + ":entry/mas"); });
  expect_error(ErrorCode::not_found, {"none.h5", "no such file"},
               [&] { open("x=" + at("none.h5") + ":/a"); });
  expect_error(ErrorCode::invalid_argument, {"'x' is given twice"},
               [&] { open("x=" + at("scan.nxs") + ",x=" + at("other.hdf")); });
}

TEST_F(NamedArrays, OneWithoutANameStandsForTheOnlyOneWanted) {
  const std::string place = at("scan.nxs") + ":/entry/mask";
  EXPECT_EQ(names(*open(place)), std::vector<std::string>{""});
  EXPECT_EQ(names(*open(place, {.unnamed = "patch"})), std::vector<std::string>{"patch"});
  EXPECT_EQ(names(*open(at("labels.npy"), {.unnamed = "patch"})), std::vector<std::string>{"patch"});
}

TEST_F(NamedArrays, OfSeveralFilesAreOneBehindTheOther) {
  const auto source = open("x={" + at("scan.nxs") + "," + at("other.hdf") + "}:/entry/data/data");
  EXPECT_EQ(source->arrays()[0].rows, 12);
  EXPECT_EQ(read_rows(*source, 0, std::vector<std::int64_t>{6}).at(0), 1000);
}

TEST_F(NamedArrays, AreThereWhereTheirFilesAre) {
  const std::string both = "x=" + at("scan.nxs") + ":/entry/mask,y=" + at("scan.nxs");
  EXPECT_EQ(named_paths(both), std::vector<std::filesystem::path>{at("scan.nxs")});
  EXPECT_TRUE(are_there(both));
  EXPECT_FALSE(are_there("x=" + at("none.h5")));
  const std::string each[] = {"x=a.h5:/u", "y=b.h5"};
  EXPECT_EQ(joined_names(each), "x=a.h5:/u,y=b.h5");
  EXPECT_EQ(named_arrays(joined_names(each)).size(), 2u);
}

TEST_F(NamedArrays, AFileOfSuchANameIsThatFile) {
  for (const char* name : {"x=scan.npy", "scan:1.npy", "a,b=c.npy"}) {
    write_npy(folder_ / name, counted({3}));
    EXPECT_TRUE(named_arrays(at(name)).empty()) << name;
    EXPECT_EQ(open(at(name))->arrays()[0].rows, 3) << name;
    EXPECT_EQ(open("x=" + at(name))->arrays()[0].rows, 3) << name;
  }
}

TEST_F(NamedArrays, MethodsThatReadWholeArraysFindThem) {
  const ArrayFile file("diff=" + at("scan.nxs") + ":/entry/data/data");
  EXPECT_TRUE(file.contains("diff"));
  EXPECT_FALSE(file.contains("entry/mask"));
  EXPECT_EQ(file.read("diff", ElementType::f64).at(209), 209);
}

SourceArray array(const Shape& shape) {
  std::vector<std::int64_t> row(shape.extents().begin() + 1, shape.extents().end());
  return {.name = "x", .type = ElementType::f32, .row = Shape(row), .rows = shape[0]};
}

TEST(Fit, AxesOfOneElementArePutInAndLeftOut) {
  EXPECT_EQ(fit_to(array({9, 11, 11}), {1, 11, 11}, false)->row, (Shape{1, 11, 11}));
  EXPECT_EQ(fit_to(array({9, 1, 11, 1, 11}), {11, 11}, false)->row, (Shape{11, 11}));
  EXPECT_EQ(fit_to(array({9, 11, 11}), {11, 11, 1}, false)->row, (Shape{11, 11, 1}));
  EXPECT_EQ(fit_to(array({9, 8, 11}), {1, -1, -1}, false)->row, (Shape{1, 8, 11}));
  EXPECT_EQ(fit_to(array({9, 1}), {}, false)->row, Shape{});
  EXPECT_EQ(fit_to(array({9}), {1}, false)->row, Shape{1});
}

TEST(Fit, ElementsAreNeverMoved) {
  EXPECT_FALSE(fit_to(array({9, 11, 12}), {12, 11}, false));
  EXPECT_FALSE(fit_to(array({9, 121}), {11, 11}, false));
  EXPECT_FALSE(fit_to(array({9, 3, 11, 11}), {11, 11, 3}, true));
  EXPECT_FALSE(fit_to(array({9, 11, 11}), {3, 11, 11}, true));
}

TEST(Fit, AWholeArrayMayBeOneSample) {
  const auto fit = fit_to(array({11, 11}), {1, 11, 11}, false);
  ASSERT_TRUE(fit);
  EXPECT_TRUE(fit->one_sample);
  EXPECT_FALSE(fit_to(array({11, 11}), {1, -1, -1}, false));
  // As many rows as a row has elements are rows.
  EXPECT_FALSE(fit_to(array({4, 4}), {4}, false)->one_sample);
}

TEST(Fit, PicturesAreCutToTheirMiddleWhereThatIsAsked) {
  EXPECT_FALSE(fit_to(array({9, 13, 13}), {1, 11, 11}, false));
  EXPECT_TRUE(contains(hint_to_fit(array({9, 13, 13}), {1, 11, 11}), "--crop center"));
  EXPECT_EQ(hint_to_fit(array({9, 9, 9}), {1, 11, 11}), "");
  const auto fit = fit_to(array({9, 13, 13}), {1, 11, 11}, true);
  ASSERT_TRUE(fit && fit->crops());
  EXPECT_EQ(fit->from, (Shape{1, 13, 13}));
  EXPECT_FALSE(fit_to(array({9, 5}), {4}, true)) << "a list of numbers is no picture";
}

TEST_F(NamedArrays, AreGivenAsTheyFit) {
  const WantedRow wanted[] = {{"x", {1, 3, 4}}, {"y", {}}};
  const auto source = fitted(open("x=" + at("scan.nxs") + ",y=" + at("labels.npy")), wanted, true);
  ASSERT_EQ(source->arrays()[0].shape(), (Shape{6, 1, 3, 4}));
  ASSERT_EQ(source->arrays()[1].shape(), (Shape{6}));
  const Tensor x = read_rows(*source, 0, std::vector<std::int64_t>{2, 5});
  for (std::int64_t i = 0; i < 3; ++i)
    for (std::int64_t k = 0; k < 4; ++k) {
      EXPECT_EQ(x.at(i * 4 + k), static_cast<double>(2 * 35 + (i + 1) * 7 + k + 1));
      EXPECT_EQ(x.at(12 + i * 4 + k), static_cast<double>(5 * 35 + (i + 1) * 7 + k + 1));
    }
  const std::vector<std::string> notes = source->notes();
  ASSERT_EQ(notes.size(), 3u);  // the signal, and one for each
  EXPECT_TRUE(contains(notes[1], "the middle [1,3,4] of each sample of [5,7]")) << notes[1];
  EXPECT_TRUE(contains(notes[2], "[6,1] is taken as [6]")) << notes[2];
}

TEST_F(NamedArrays, OneSampleIsReadWhole) {
  write_npy(folder_ / "one.npy", counted({3, 4}));
  const WantedRow wanted[] = {{"x", {1, 3, 4}}};
  const auto source = fitted(open(at("one.npy")), wanted, false);
  ASSERT_EQ(source->arrays()[0].shape(), (Shape{1, 1, 3, 4}));
  const Tensor twice = read_rows(*source, 0, std::vector<std::int64_t>{0, 0});
  for (std::int64_t i = 0; i < 24; ++i) EXPECT_EQ(twice.at(i), static_cast<double>(i % 12));
}

}  // namespace
}  // namespace superstep::data
