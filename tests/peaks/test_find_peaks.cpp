// From files of frames to tables: what is found, the same on any threads, of any form, or refused by name.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "superstep/base/file.h"
#include "superstep/base/json.h"
#include "superstep/base/statistics.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/file/npy.h"
#include "superstep/file/npz.h"
#include "superstep/peaks/find_peaks.h"
#include "superstep/peaks/score.h"
#include "superstep/peaks/table.h"
#include "superstep/physics/xray/bragg_frames.h"
#include "superstep/run/serve/infer.h"
#include "superstep/run/train/train.h"
#include "tests/expect_error.h"
#include "tests/peaks/pictures.h"
#include "tests/scratch.h"

namespace superstep::peaks {
namespace {

namespace fs = std::filesystem;

data::BraggFrameSettings turning() {
  data::BraggFrameSettings settings{
      .height = 300, .width = 280, .peaks_per_frame = 4, .detector = {}, .rocking = 1.2};
  settings.ranges.amplitude_low = 300;
  return settings;
}

fs::path generate(const ScratchFolder& folder, const data::BraggFrameSettings& settings,
                  std::uint64_t frames) {
  ThreadPool pool(2);
  const fs::path path = folder / "scan.h5";
  data::BraggFrameGenerator(settings).write({path, 3, frames, &pool});
  return path;
}

PeaksSettings by_centroid(const fs::path& frames) { return {.frames = frames, .threads = 2}; }

double value_of(const std::vector<Metric>& metrics, std::string_view name) {
  for (const Metric& metric : metrics)
    if (metric.name == name) return metric.value;
  ADD_FAILURE() << "no " << name;
  return NAN;
}

TEST(FindPeaks, FindsTheReflectionsOfATurningSample) {
  const ScratchFolder folder;
  PeaksSettings settings = by_centroid(generate(folder, turning(), 40));
  const PeakTable centroids = find_peaks(settings);
  EXPECT_EQ(centroids.frames, 40);
  EXPECT_GT(centroids.spots.size(), 2 * centroids.merged.reflections.size());
  const std::vector<Metric> of_centroids = score_metrics(centroids, settings);
  EXPECT_GT(value_of(of_centroids, "found_share"), 0.93);
  EXPECT_LT(value_of(of_centroids, "false_share"), 0.07);
  EXPECT_LT(value_of(of_centroids, "frame_error_mean"), 0.2);
  settings.locator.method = Method::fit;
  const PeakTable fits = find_peaks(settings);
  ASSERT_EQ(fits.spots.size(), centroids.spots.size());
  const std::vector<Metric> of_fits = score_metrics(fits, settings);
  EXPECT_LT(value_of(of_fits, "error_px_mean_isolated"), 0.05);
  EXPECT_LT(value_of(of_fits, "error_px_mean_isolated"), value_of(of_centroids, "error_px_mean_isolated"));
}

// Negative control of the score: places that are off by two pixels, or by three frames.
TEST(FindPeaks, TheScoreSeesWhatIsWrong) {
  const ScratchFolder folder;
  const PeaksSettings settings = by_centroid(generate(folder, turning(), 20));
  PeakTable table = find_peaks(settings);
  for (Reflection& each : table.merged.reflections) each.row += 2;
  EXPECT_NEAR(value_of(score_metrics(table, settings), "error_px_mean_isolated"), 2, 0.15);
  for (Reflection& each : table.merged.reflections) each.frame += 3;
  EXPECT_LT(value_of(score_metrics(table, settings), "found_share"), 0.2);
  EXPECT_GT(value_of(score_metrics(table, settings), "false_share"), 0.8);
  table.merged.reflections.clear();
  EXPECT_EQ(value_of(score_metrics(table, settings), "found_share"), 0);
}

TEST(FindPeaks, FramesThatHaveNothingToDoWithEachOther) {
  const ScratchFolder folder;
  data::BraggFrameSettings frames{.height = 256, .width = 256, .peaks_per_frame = 12, .detector = {}};
  PeaksSettings settings = by_centroid(generate(folder, frames, 6));
  settings.merge = false;
  const PeakTable table = find_peaks(settings);
  EXPECT_EQ(table.spots.size(), table.merged.reflections.size());
  EXPECT_GT(value_of(score_metrics(table, settings), "found_share"), 0.9);
  EXPECT_EQ(table.merged.reflections[0].row, table.spots[0].found_row);
}

std::string text_of(const ScratchFolder& folder, const PeaksSettings& settings) {
  const PeakTable found = find_peaks(settings);
  write_table(folder / "table.json", describe(settings, found), settings, found);
  return read_text_file(folder / "table.json");
}

TEST(FindPeaks, IsTheSameOnAnyThreads) {
  const ScratchFolder folder;
  PeaksSettings settings = by_centroid(generate(folder, turning(), 70));
  settings.locator.method = Method::fit;
  settings.find.valley = 0.05;
  settings.threads = 1;
  const std::string alone = text_of(folder, settings);
  for (const int threads : {2, 7, 64}) {
    settings.threads = threads;
    EXPECT_EQ(text_of(folder, settings), alone) << threads;
  }
}

// A network that has seen little: its places are what `infer` says of the same patches.
TEST(FindPeaks, PlacesOfTheNetworkAreItsOwnAnswers) {
  const ScratchFolder folder;
  run::TrainSettings training{.workload = "braggnn", .samples = 256, .epochs = 1};
  run::train(training, {.out = folder / "run"});
  PeaksSettings settings = by_centroid(generate(folder, turning(), 12));
  settings.locator = {.method = Method::braggnn, .run = folder / "run"};
  settings.threads = 1;
  const PeakTable table = find_peaks(settings);
  ASSERT_GT(table.spots.size(), 60u);
  settings.threads = 3;
  const PeakTable again = find_peaks(settings);
  std::vector<float> patches;
  const auto file = data::Hdf5File(settings.frames);
  const Tensor frames = file.read("frames", ElementType::u16);
  const Correction plain{.height = 300, .width = 280};
  SpotFinder finder(settings.find);
  for (std::int64_t f = 0; f < 12; ++f) {
    const FrameSpots spots = finder.find({ElementType::u16, frames.bytes() + f * 300 * 280 * 2, plain}, f);
    patches.insert(patches.end(), spots.patches.begin(), spots.patches.end());
  }
  const auto count = static_cast<std::int64_t>(table.spots.size());
  data::write_npy(folder / "patch.npy", Tensor::from<float>({count, 11, 11}, patches));
  run::infer({.workload = "braggnn",
              .weights = folder / "run",
              .input = folder / "patch.npy",
              .output = folder / "ploc.npy"});
  const Tensor ploc = data::read_npy(folder / "ploc.npy");
  for (std::int64_t i = 0; i < count; ++i) {
    const FoundSpot& spot = table.spots[static_cast<std::size_t>(i)];
    EXPECT_NEAR(spot.found_column, spot.column - 5 + 11 * ploc.at(2 * i), 1e-3);
    EXPECT_NEAR(spot.found_row, spot.row - 5 + 11 * ploc.at(2 * i + 1), 1e-3);
    EXPECT_EQ(spot.found_row, again.spots[static_cast<std::size_t>(i)].found_row);
  }
}

TEST(FindPeaks, TakesOneFrameAndStacksOfArrays) {
  const ScratchFolder folder;
  Picture picture(40, 50, 2);
  picture.add_gaussian(20, 30, 500, 1.3);
  const Tensor one = Tensor::from<float>({40, 50}, picture.values);
  data::write_npy(folder / "one.npy", one);
  data::write_npy(folder / "stack.npy", one.reshaped({1, 1, 40, 50}));
  {
    data::Hdf5Writer file(folder / "two.h5");
    file.write("left", one.reshaped({1, 40, 50}));
    file.write("right", one.reshaped({1, 40, 50}));
    file.close();
  }
  for (const char* name : {"one.npy", "stack.npy"}) {
    const PeakTable table = find_peaks(by_centroid(folder / name));
    ASSERT_EQ(table.spots.size(), 1u) << name;
    EXPECT_NEAR(table.merged.reflections[0].column, 30, 1e-3) << name;
    EXPECT_EQ(table.merged.reflections[0].flags, 0) << name;
  }
  expect_error(ErrorCode::invalid_argument, {"left, right", "frames=", ":left"},
               [&] { find_peaks(by_centroid(folder / "two.h5")); });
  EXPECT_EQ(find_peaks(by_centroid("frames=" + (folder / "two.h5").string() + ":right")).spots.size(), 1u);
}

// Dark, flat field and mask undo what a detector does.
TEST(FindPeaks, CorrectsDarkFlatAndMask) {
  const ScratchFolder folder;
  Picture spot(64, 64), dark(64, 64), flat(64, 64), frame(64, 64), mask(64, 64);
  spot.add_gaussian(30.3, 29.6, 900, 1.4);
  RandomStream random(4);
  for (std::size_t i = 0; i < frame.values.size(); ++i) {
    const double gain = random.uniform(0.5, 1.5), level = random.uniform(50, 250);
    dark.values[i] = float(level);
    flat.values[i] = float(level + 1000 * gain);
    frame.values[i] = float(level + gain * (5 + double{spot.values[i]}));
  }
  for (const int column : {10, 11, 12, 13}) mask.at(50, column) = 1, frame.at(50, column) = 1e5f;
  const auto write = [&](const char* name, const Picture& picture) {
    data::write_npy(folder / name, Tensor::from<float>({64, 64}, picture.values));
    return folder / name;
  };
  PeaksSettings settings = by_centroid(write("frame.npy", frame));
  settings.correction = {write("dark.npy", dark), write("flat.npy", flat), write("mask.npy", mask)};
  settings.find.threshold = {60, false};
  const PeakTable table = find_peaks(settings);
  ASSERT_EQ(table.spots.size(), 1u);
  EXPECT_NEAR(table.merged.reflections[0].row, 30.3, 0.02);
  EXPECT_NEAR(table.merged.reflections[0].column, 29.6, 0.02);
  settings.correction.mask.clear();
  EXPECT_EQ(find_peaks(settings).spots.size(), 2u);
  settings.correction.flat.clear();
  EXPECT_NE(find_peaks(settings).merged.reflections[0].row, table.merged.reflections[0].row);
}

TEST(FindPeaks, RefusesByName) {
  const ScratchFolder folder;
  Picture picture(40, 50, 2);
  picture.add_gaussian(20, 30, 500, 1.3);
  const auto write = [&](const char* name, const Tensor& tensor) {
    data::write_npy(folder / name, tensor);
    return folder / name;
  };
  const Tensor frames = Tensor::from<float>({1, 40, 50}, picture.values);
  const fs::path good = write("frames.npy", frames);
  PeaksSettings settings = by_centroid(good);
  settings.correction.dark = write("small.npy", Tensor(ElementType::f32, {40, 49}));
  expect_error(ErrorCode::bad_file, {"small.npy", "40 x 49", "40 x 50"}, [&] { find_peaks(settings); });
  settings.correction = {.mask = write("all.npy", Tensor::full(ElementType::u8, {40, 50}, 1))};
  expect_error(ErrorCode::invalid_argument, {"all.npy", "no pixel is left"}, [&] { find_peaks(settings); });
  settings.correction = {.flat = write("black.npy", Tensor(ElementType::f32, {40, 50}))};
  expect_error(ErrorCode::bad_file, {"black.npy", "flat field"}, [&] { find_peaks(settings); });
  settings = by_centroid(good);
  settings.find.threshold = {1, false};
  expect_error(ErrorCode::invalid_argument, {"frames.npy", "frame 0", "a quarter", "--threshold"},
               [&] { find_peaks(settings); });
  settings = by_centroid(good);
  settings.locator.method = Method::braggnn;
  expect_error(ErrorCode::invalid_argument, {"--run", "superstep train braggnn"},
               [&] { find_peaks(settings); });
  settings.locator = {.method = Method::fit, .run = folder / "run"};
  expect_error(ErrorCode::invalid_argument, {"--run", "--method braggnn"}, [&] { find_peaks(settings); });
  expect_error(ErrorCode::unsupported, {"wide.npy", "i64"}, [&] {
    find_peaks(by_centroid(write("wide.npy", Tensor(ElementType::i64, {2, 8, 8}))));
  });
  expect_error(ErrorCode::bad_file, {"line.npy", "[N,H,W]"},
               [&] { find_peaks(by_centroid(write("line.npy", Tensor(ElementType::f32, {8})))); });
  expect_error(ErrorCode::invalid_argument, {"peaks.xls", ".csv"}, [] { require_table_form("peaks.xls"); });
  request_interrupt();
  expect_error(ErrorCode::interrupted, {"no file was written"}, [&] { find_peaks(by_centroid(good)); });
  clear_interrupt();
}

TEST(FindPeaks, TablesSayTheSameInEveryForm) {
  const ScratchFolder folder;
  PeaksSettings settings = by_centroid(generate(folder, turning(), 10));
  settings.omega = Omega{-90, 0.5};
  const PeakTable table = find_peaks(settings);
  for (const char* name : {"t.h5", "t.npz", "t.csv", "t.json"})
    write_table(folder / name, describe(settings, table), settings, table);
  const auto& reflections = table.merged.reflections;
  const data::Hdf5File hdf5(folder / "t.h5");
  const Tensor omega = hdf5.read("reflections/omega", ElementType::f64);
  const auto npz = data::read_npz(folder / "t.npz");
  const auto json = parse_json(read_text_file(folder / "t.json"));
  ASSERT_EQ(omega.element_count(), std::int64_t(reflections.size()));
  for (std::size_t i = 0; i < reflections.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    EXPECT_DOUBLE_EQ(omega.at(at), -90 + 0.5 * (reflections[i].frame + 0.5));
    EXPECT_DOUBLE_EQ(npz.at("reflections/row").at(at), reflections[i].row);
    EXPECT_DOUBLE_EQ(json["reflections"]["column"][i].get<double>(), reflections[i].column);
  }
  EXPECT_EQ(std::get<std::string>(hdf5.attributes("reflections/omega").at("unit")), "degrees");
  EXPECT_EQ(hdf5.read("spots/reflection", ElementType::i64).at(0), 0);
  EXPECT_EQ(json["threshold"], "8sigma");
  const std::string csv = read_text_file(folder / "t.csv");
  EXPECT_TRUE(
      csv.starts_with("row(px),column(px),frame(frames),omega(degrees),row_sigma(px),column_sigma(px),"
                      "frame_width(frames),intensity(counts),maximum(counts),pixels,first_frame,"
                      "last_frame,spots,flags\n"))
      << csv.substr(0, 300);
  EXPECT_EQ(std::ranges::count(csv, '\n'), std::ptrdiff_t(reflections.size()) + 1);
}

}  // namespace
}  // namespace superstep::peaks
