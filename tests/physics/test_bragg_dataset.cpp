#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>
#include <thread>

#include "superstep/base/file.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/physics/xray/bragg_dataset.h"
#include "superstep/physics/xray/bragg_frames.h"
#include "superstep/physics/xray/bragg_patches.h"
#include "tests/expect_error.h"
#include "tests/scratch.h"

namespace superstep::data {
namespace {

constexpr std::uint64_t seed = 3;

struct Batch {
  std::vector<float> patches, labels;
  bool operator==(const Batch&) const = default;
};

Batch fill(const BraggDataset& data, const std::vector<std::int64_t>& indices, bool augment,
           std::uint64_t epoch = 0) {
  const auto area = static_cast<std::size_t>(data.patch_size() * data.patch_size());
  Batch batch{std::vector<float>(indices.size() * area), std::vector<float>(indices.size() * 2)};
  data.fill(indices, 77, epoch, batch.patches.data(), batch.labels.data(), augment);
  return batch;
}

std::vector<std::int64_t> first(std::int64_t count) {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(count));
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

void write_file(const std::filesystem::path& path, const std::map<std::string, Tensor>& arrays) {
  Hdf5Writer file(path);
  for (const auto& [name, tensor] : arrays) file.write(name, tensor);
  file.close();
}

Tensor random_patches(const Shape& shape) {
  Tensor tensor(ElementType::f32, shape);
  RandomStream random(1);
  for (float& value : tensor.as<float>()) value = static_cast<float>(random.uniform(0, 100));
  return tensor;
}

TEST(BraggPatchWork, CropPadsWithZeros) {
  std::vector<float> image(20), patch(9);
  std::iota(image.begin(), image.end(), 1.0f);  // 5 wide, 4 high
  crop(image, 5, 4, 1, 1, 3, patch);
  EXPECT_EQ(patch, (std::vector<float>{7, 8, 9, 12, 13, 14, 17, 18, 19}));
  crop(image, 5, 4, -2, -1, 3, patch);
  EXPECT_EQ(patch, (std::vector<float>{0, 0, 0, 0, 0, 1, 0, 0, 6}));
  crop(image, 5, 4, 4, 3, 3, patch);
  EXPECT_EQ(patch, (std::vector<float>{20, 0, 0, 0, 0, 0, 0, 0, 0}));
  crop(image, 5, 4, 50, -50, 3, patch);
  EXPECT_EQ(patch, std::vector<float>(9, 0));
}

TEST(BraggPatchWork, KeepsTheComponentWhoseSummitIsNearestTheMiddle) {
  // The left component touches itself over a corner; the one at the right is higher but farther away.
  std::vector<float> patch{1, 0, 0, 0, 9,  //
                           0, 2, 0, 0, 8,  //
                           0, 0, 3, 0, 0,  //
                           0, 0, 0, 0, 0,  //
                           7, 7, 0, 0, 0};
  keep_central_component(patch, 5);
  EXPECT_EQ(patch,
            (std::vector<float>{1, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  // What counts is where the summit is, not the nearest pixel.
  std::vector<float> far{0, 0, 0, 9, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0};
  keep_central_component(far, 5);
  EXPECT_EQ(std::accumulate(far.begin(), far.end(), 0.0f), 5);
  std::vector<float> empty(25, 0);
  keep_central_component(empty, 5);
  EXPECT_EQ(empty, std::vector<float>(25, 0));
}

TEST(BraggPatchWork, ScalesToTheUnitInterval) {
  std::vector<float> patch{3, 5, 4, 7};
  scale_to_unit(patch);
  EXPECT_EQ(patch, (std::vector<float>{0, 0.5f, 0.25f, 1}));
  std::vector<float> flat(4, 6);
  scale_to_unit(flat);
  EXPECT_EQ(flat, std::vector<float>(4, 0));
}

TEST(BraggDataset, PatchFileGivesScaledPatchesAndBothConventions) {
  const ScratchFolder folder;
  ThreadPool pool(2);
  BraggPatchGenerator({}).write({folder / "a.h5", seed, 100, &pool});
  const BraggDataset centered = BraggDataset::open(folder / "a.h5");
  const BraggDataset plain = BraggDataset::open(folder / "a.h5", {.centered_labels = false});
  ASSERT_EQ(centered.size(), 100);
  EXPECT_FALSE(centered.can_shift());
  EXPECT_EQ(centered.training_count(), 80);
  const Batch a = fill(centered, first(100), false), b = fill(plain, first(100), false);
  EXPECT_EQ(a.patches, b.patches);
  const Tensor ploc = Hdf5File(folder / "a.h5").read("ploc", ElementType::f32);
  for (std::size_t i = 0; i < 200; ++i) {
    EXPECT_NEAR(b.labels[i], ploc.as<float>()[i], 1e-6);
    EXPECT_NEAR(a.labels[i] + 0.5f, b.labels[i], 1e-6);
  }
  for (std::size_t i = 0; i < 100; ++i) {
    const auto begin = a.patches.begin() + static_cast<std::ptrdiff_t>(i * 121);
    EXPECT_EQ(*std::min_element(begin, begin + 121), 0);
    EXPECT_EQ(*std::max_element(begin, begin + 121), 1);
  }
}

TEST(BraggDataset, FileAndMemoryAgree) {
  const ScratchFolder folder;
  ThreadPool pool(2);
  const BraggPatchSettings settings{.patch_size = 13, .margin = 1};
  BraggPatchGenerator(settings).write({folder / "a.h5", seed, 60, &pool});
  const BraggDataset file = BraggDataset::open(folder / "a.h5", {.patch_size = 0});
  const BraggDataset memory = BraggDataset::generate(settings, seed, 0, 60, pool);
  EXPECT_EQ(file.patch_size(), 13);
  EXPECT_TRUE(file.can_shift());
  EXPECT_EQ(fill(file, first(60), true), fill(memory, first(60), true));
  EXPECT_EQ(fill(BraggDataset::generate(settings, seed, 20, 10, pool), {0}, false),
            fill(memory, {20}, false));
}

// A shifted crop is the same peak elsewhere: the label moves by the shift and the pixels with it.
TEST(BraggDataset, AugmentationShiftsPatchAndLabelTogether) {
  ThreadPool pool(2);
  const BraggDataset data = BraggDataset::generate({.margin = 1}, seed, 0, 2000, pool);
  const Batch still = fill(data, first(2000), false), moved = fill(data, first(2000), true);
  std::map<std::pair<int, int>, int> shifts;
  for (std::size_t i = 0; i < 2000; ++i) {
    const double dx = 11 * (still.labels[2 * i] - moved.labels[2 * i]),
                 dy = 11 * (still.labels[2 * i + 1] - moved.labels[2 * i + 1]);
    const int column = static_cast<int>(std::lround(dx)), row = static_cast<int>(std::lround(dy));
    EXPECT_NEAR(dx, column, 1e-4);
    EXPECT_NEAR(dy, row, 1e-4);
    ++shifts[{column, row}];
    // The middle pixel of the moved patch is the pixel (column, row) beside the middle of the other, up to
    // the scale; compare by rank of two pixels that both hold.
    const auto at = [&](const Batch& batch, int c, int r) {
      return batch.patches[i * 121 + static_cast<std::size_t>(r * 11 + c)];
    };
    EXPECT_EQ(at(moved, 5, 5) > at(moved, 4, 6),
              at(still, 5 + column, 5 + row) > at(still, 4 + column, 6 + row));
  }
  ASSERT_EQ(shifts.size(), 9u);
  for (const auto& [shift, count] : shifts) {
    EXPECT_LE(std::abs(shift.first), 1);
    EXPECT_LE(std::abs(shift.second), 1);
    EXPECT_NEAR(count, 2000 / 9.0, 4 * std::sqrt(2000 / 9.0));
  }
}

TEST(BraggDataset, ABatchIsAFunctionOfSeedEpochAndIndex) {
  ThreadPool pool(2);
  const BraggDataset data = BraggDataset::generate({.margin = 1}, seed, 0, 500, pool);
  const Batch whole = fill(data, first(500), true, 4);
  EXPECT_EQ(whole, fill(data, first(500), true, 4));
  EXPECT_NE(whole.labels, fill(data, first(500), true, 5).labels);
  const Batch one = fill(data, {321}, true, 4);
  EXPECT_EQ(one.labels[0], whole.labels[642]);
  Batch halves{std::vector<float>(500 * 121), std::vector<float>(1000)};
  const auto indices = first(500);
  const auto half = [&](std::size_t begin) {
    data.fill(std::span(indices).subspan(begin, 250), 77, 4, &halves.patches[begin * 121],
              &halves.labels[begin * 2], true);
  };
  std::thread other(half, 250);
  half(0);
  other.join();
  EXPECT_EQ(halves, whole);
}

TEST(BraggDataset, ForeignFilesOfRankFourAndOtherTypes) {
  const ScratchFolder folder;
  write_file(folder / "a.h5", {{"patch", random_patches({5, 1, 11, 11}).converted(ElementType::u16)},
                               {"ploc", Tensor::full(ElementType::f64, {5, 2}, 0.45)}});
  const BraggDataset data = BraggDataset::open(folder / "a.h5");
  EXPECT_EQ(data.size(), 5);
  EXPECT_NEAR(fill(data, {4}, false).labels[0], -0.05, 1e-6);
  EXPECT_NEAR(data.position(4)[1], 4.95, 1e-5);
}

TEST(BraggDataset, LabelsOfAnotherFile) {
  const ScratchFolder folder;
  write_file(folder / "a.h5", {{"patch", random_patches({4, 11, 11})}});
  write_file(folder / "fits.h5", {{"ploc", Tensor::full(ElementType::f32, {4, 2}, 0.5)}});
  EXPECT_EQ(fill(BraggDataset::open(folder / "a.h5", {.labels = folder / "fits.h5"}), {2}, false).labels[1],
            0);
  EXPECT_FALSE(BraggDataset::open(folder / "a.h5", {.labels_required = false}).has_labels());
  expect_error(ErrorCode::not_found, {"a.h5", "'ploc'"}, [&] { BraggDataset::open(folder / "a.h5"); });
}

TEST(BraggDataset, BadPatchFilesAreRefusedByName) {
  const ScratchFolder folder;
  const auto refused = [&](const std::map<std::string, Tensor>& arrays,
                           std::initializer_list<std::string> parts) {
    write_file(folder / "bad.h5", arrays);
    expect_error(ErrorCode::bad_file, parts, [&] { BraggDataset::open(folder / "bad.h5"); });
  };
  const Tensor ploc = Tensor::full(ElementType::f32, {5, 2}, 0.5);
  refused({{"patch", random_patches({5, 11, 12})}, {"ploc", ploc}},
          {"bad.h5", "'patch'", "[5,11,12]", "[n,s,s]"});
  refused({{"patch", random_patches({5, 2, 11, 11})}, {"ploc", ploc}}, {"'patch'", "[5,2,11,11]"});
  refused({{"patch", random_patches({5, 15, 15})}, {"ploc", Tensor::full(ElementType::f32, {4, 2}, 0.5)}},
          {"'ploc'", "[4,2]", "[5,2]"});
  refused({{"patch", random_patches({5, 10, 10})}, {"ploc", ploc}}, {"10 px", "11 px"});
  refused({{"patch", random_patches({0, 11, 11})}, {"ploc", ploc}}, {"no patches"});
  Tensor bad = random_patches({5, 11, 11});
  bad.as<float>()[2 * 121 + 3 * 11 + 4] = std::numeric_limits<float>::quiet_NaN();
  refused({{"patch", bad}, {"ploc", ploc}}, {"'patch'", "nan", "[2,3,4]"});
  Tensor pixels = ploc.clone();
  pixels.as<float>()[7] = 5.2f;
  refused({{"patch", random_patches({5, 11, 11})}, {"ploc", pixels}},
          {"'ploc'", "5.2", "[3,1]", "divided by the patch size"});
  {
    Hdf5Writer file(folder / "text.h5");
    file.write_strings("patch", std::vector<std::string>{"a"});
    file.close();
  }
  expect_error(ErrorCode::bad_file, {"'patch'"}, [&] { BraggDataset::open(folder / "text.h5"); });
}

TEST(BraggDataset, MisuseIsRefused) {
  ThreadPool pool(1);
  const BraggDataset data = BraggDataset::generate({}, seed, 0, 4, pool);
  expect_error(ErrorCode::invalid_argument, {"margin=1"}, [&] { fill(data, {0}, true); });
}

// ---- frames

BraggFrameSettings small_frames() { return {.height = 96, .width = 128, .peaks_per_frame = 12}; }

TEST(BraggFrames, FilesHaveTheNamesOfTheirUsersAndAreTheSameOnAnyThreads) {
  const ScratchFolder folder;
  ThreadPool one(1), four(4);
  const BraggFrameGenerator generator(small_frames());
  generator.write({folder / "one.h5", seed, 20, &one});
  generator.write({folder / "four.h5", seed, 20, &four});
  EXPECT_EQ(read_text_file(folder / "one.h5"), read_text_file(folder / "four.h5"));
  const Hdf5File a(folder / "one.h5");
  EXPECT_EQ(a.info("frames").shape, (Shape{20, 96, 128}));
  EXPECT_EQ(a.info("frames").type, ElementType::u16);
  EXPECT_EQ(a.info("peak_fidx").type, ElementType::u32);
  EXPECT_EQ(a.info("npeaks").type, ElementType::u16);
  for (const char* name : {"peak_row", "peak_col", "deviations"})
    EXPECT_EQ(a.info(name).type, ElementType::f32);
  EXPECT_NEAR(static_cast<double>(a.info("peak_row").shape[0]), 240, 4 * std::sqrt(240.0));
}

// Columns of the table against the frame, worked out another way.
TEST(BraggFrames, TheTableDescribesTheFrame) {
  const BraggFrameGenerator generator(small_frames());
  int alone = 0, shared = 0, lost = 0;
  for (std::uint64_t index = 0; index < 30; ++index) {
    const BraggFrame frame = generator.frame(seed, index);
    const auto count_at = [&](long column, long row) {
      return frame.counts[static_cast<std::size_t>(row * 128 + column)];
    };
    for (const std::uint16_t count : frame.counts) ASSERT_TRUE(count == 0 || count >= 20);
    for (const BraggTableRow& row : frame.table) {
      const long column = std::clamp(std::lround(row.peak.column), 0L, 127L),
                 line = std::clamp(std::lround(row.peak.row), 0L, 95L);
      if (count_at(column, line) == 0) {
        EXPECT_EQ(row.peaks, 0);
        EXPECT_EQ(row.deviation, -1);
        ++lost;
        continue;
      }
      ASSERT_GE(row.peaks, 1);
      ++(row.peaks == 1 ? alone : shared);
      if (row.peaks > 1 || row.deviation >= 1) continue;
      // The brightest pixel is one of those around the centre, at the distance the table says.
      bool found = false;
      for (long r = std::max(line - 1, 0L); r <= std::min(line + 1, 95L); ++r)
        for (long c = std::max(column - 1, 0L); c <= std::min(column + 1, 127L); ++c)
          found = found || std::abs(std::hypot(double(c) - row.peak.column, double(r) - row.peak.row) -
                                    row.deviation) < 1e-4;
      EXPECT_TRUE(found);
    }
  }
  EXPECT_GT(alone, 50);
  EXPECT_GT(shared, 10);
  EXPECT_LT(lost, 30);
}

TEST(BraggDataset, FramesAreSelectedCroppedCleanedAndLabelled) {
  const ScratchFolder folder;
  ThreadPool pool(2);
  const BraggFrameGenerator generator(small_frames());
  generator.write({folder / "f.h5", seed, 30, &pool});
  const BraggDataset data = BraggDataset::open(folder / "f.h5", {.centered_labels = false});
  ASSERT_GT(data.size(), 50);
  const Hdf5File file(folder / "f.h5");
  const Tensor fidx = file.read("peak_fidx", ElementType::i64), row = file.read("peak_row", ElementType::f64),
               column = file.read("peak_col", ElementType::f64),
               npeaks = file.read("npeaks", ElementType::i64),
               deviations = file.read("deviations", ElementType::f64);
  std::int64_t selected = 0;
  for (std::int64_t i = 0; i < fidx.element_count(); ++i)
    selected += npeaks.at(i) == 1 && deviations.at(i) >= 0 && deviations.at(i) < 1;
  EXPECT_EQ(data.size(), selected);
  for (std::int64_t i = 0; i < data.size(); i += 5) {
    const std::int64_t at = data.row(i);
    EXPECT_EQ(npeaks.at(at), 1);
    const BraggFrame frame = generator.frame(seed, static_cast<std::uint64_t>(fidx.at(at)));
    const std::vector<float> image(frame.counts.begin(), frame.counts.end());
    std::vector<float> patch(121);
    const int first_column = static_cast<int>(column.at(at)) - 5,
              first_row = static_cast<int>(row.at(at)) - 5;
    crop(image, 128, 96, first_column, first_row, 11, patch);
    keep_central_component(patch, 11);
    std::vector<float> raw(121);
    data.raw(i, raw);
    EXPECT_EQ(raw, patch);
    scale_to_unit(patch);
    const Batch batch = fill(data, {i}, false);
    EXPECT_EQ(batch.patches, patch);
    EXPECT_NEAR(batch.labels[0], (column.at(at) - first_column) / 11, 1e-6);
    EXPECT_NEAR(batch.labels[1], (row.at(at) - first_row) / 11, 1e-6);
  }
  EXPECT_TRUE(data.can_shift());
  fill(data, first(data.size()), true);
}

// Rows in the first 80 % of the file train, whatever the selection took from them, and in any order of
// frames.
TEST(BraggDataset, SplitIsByRowsOfTheFile) {
  const ScratchFolder folder;
  const auto column = [](const std::vector<double>& values) { return Tensor::from<double>({10}, values); };
  std::map<std::string, Tensor> arrays{{"frames", Tensor::full(ElementType::u16, {3, 40, 40}, 7)},
                                       {"peak_row", column({5, 6, 7, 8, 9, 10, 11, 12, 13, 14})},
                                       {"peak_col", column({20, 20, 20, 20, 20, 20, 20, 20, 20, 20})},
                                       {"peak_fidx", column({2, 1, 0, 2, 1, 0, 2, 1, 0, 2})},
                                       {"npeaks", column({1, 2, 1, 1, 1, 1, 1, 1, 1, 1})},
                                       {"deviations", column({.1, .1, 1, -1, .2, .3, .4, .5, .6, .7})}};
  write_file(folder / "f.h5", arrays);
  const BraggDataset data = BraggDataset::open(folder / "f.h5");
  ASSERT_EQ(data.size(), 7);
  EXPECT_EQ(data.training_count(), 5);
  for (std::int64_t i = 1; i < 7; ++i) EXPECT_EQ(data.row(i), i + 3);
  EXPECT_EQ(data.position(6), (std::array<double, 2>{5, 5}));

  arrays["peak_fidx"] = column({2, 1, 0, 2, 1, 3, 2, 1, 0, 2});
  write_file(folder / "f.h5", arrays);
  expect_error(ErrorCode::bad_file, {"f.h5", "'peak_fidx'", "3 at [5]"},
               [&] { BraggDataset::open(folder / "f.h5"); });
  arrays["peak_fidx"] = Tensor(ElementType::u32, {9});
  write_file(folder / "f.h5", arrays);
  expect_error(ErrorCode::bad_file, {"'peak_fidx'", "[9]", "[10]"},
               [&] { BraggDataset::open(folder / "f.h5"); });
  arrays.erase("npeaks");
  arrays["peak_fidx"] = Tensor(ElementType::u32, {10});
  write_file(folder / "f.h5", arrays);
  expect_error(ErrorCode::not_found, {"'npeaks'"}, [&] { BraggDataset::open(folder / "f.h5"); });
  arrays["npeaks"] = column({2, 2, 2, 2, 2, 2, 2, 2, 2, 2});
  write_file(folder / "f.h5", arrays);
  expect_error(ErrorCode::bad_file, {"no peak is alone"}, [&] { BraggDataset::open(folder / "f.h5"); });
}

}  // namespace
}  // namespace superstep::data
