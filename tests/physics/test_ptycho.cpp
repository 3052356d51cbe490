#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numbers>

#include "superstep/file/hdf5/hdf5.h"
#include "superstep/physics/xray/ptycho.h"
#include "superstep/physics/xray/ptycho_stitch.h"
#include "tests/scratch.h"

namespace superstep::data {
namespace {

std::unique_ptr<Generator> make(const GeneratorEntry& entry, const std::vector<std::string>& assignments) {
  return entry.make(Options(entry.options, assignments));
}

const std::vector<std::string> small_raster{"window=32", "rows=6", "columns=7", "photons=1e5"};

bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.byte_count() == b.byte_count() && std::memcmp(a.bytes(), b.bytes(), a.byte_count()) == 0;
}

TEST(Ptycho, SameBitsOnAnyNumberOfThreadsAndInAnyOrder) {
  const auto generator = make(ptychonn_64_generator(), small_raster);
  ThreadPool one(1), three(3);
  const auto expected = generate_in_memory(*generator, 9, 30, 40, one);  // three scans
  const auto other = make(ptychonn_64_generator(), small_raster);
  const auto found = generate_in_memory(*other, 9, 30, 40, three);
  const auto backwards = generate_in_memory(*other, 9, 69, 1, three);
  const auto another_seed = generate_in_memory(*other, 10, 30, 40, three);
  for (std::size_t f = 0; f < expected.size(); ++f) {
    EXPECT_TRUE(same_bytes(expected[f], found[f])) << generator->fields()[f].name;
    const std::size_t row = expected[f].byte_count() / 40;
    EXPECT_EQ(std::memcmp(expected[f].bytes() + 39 * row, backwards[f].bytes(), row), 0);
  }
  EXPECT_FALSE(same_bytes(expected[0], another_seed[0]));
  EXPECT_FALSE(same_bytes(expected[1], another_seed[1]));
}

TEST(Ptycho, PhotonsArriveAndLabelsAreInRange) {
  const auto generator =
      make(ptychonn_64_generator(), {"rows=5", "columns=5", "photons=1e6", "dead=0", "threshold=0"});
  ThreadPool pool(2);
  const auto fields = generate_in_memory(*generator, 1, 0, 25, pool);
  double counted = 0;
  for (const float count : fields[0].as<float>()) counted += count;
  // The object absorbs between nothing and 1 - 0.73^2 of the intensity.
  EXPECT_GT(counted / 25, 0.53e6);
  EXPECT_LT(counted / 25, 1.005e6);
  for (const float amplitude : fields[1].as<float>()) ASSERT_TRUE(amplitude >= 0.73f && amplitude <= 1.0f);
  for (const float phase : fields[2].as<float>()) ASSERT_TRUE(phase > -3.1416f && phase <= 1e-6f);
}

TEST(Ptycho, PatternIsTheForwardModelOfTheFilesOwnArrays) {
  const ScratchFolder folder;
  ThreadPool pool(2);
  std::vector<std::string> bright = small_raster;
  bright.insert(bright.end(), {"photons=1e9", "dead=0"});
  const auto generator = make(ptychonn_64_generator(), bright);
  generator->write({folder / "scan.h5", 5, 60, &pool});
  const Hdf5File file(folder / "scan.h5");
  EXPECT_EQ(file.info("diff").shape, (Shape{60, 32, 32}));
  EXPECT_EQ(file.info("object_amp").shape[0], 2);  // 42 points a scan
  EXPECT_EQ(file.info("probe").shape, (Shape{2, 32, 32, 2}));
  EXPECT_DOUBLE_EQ(file.read("pixel_size", ElementType::f64).at(0), 10e-9);
  EXPECT_EQ(std::get<std::int64_t>(file.attributes().at("synthetic")), 1);

  const std::int64_t sample = 50;  // of the second scan
  const Tensor phase = file.read("object_phase", ElementType::f32),
               position = file.read("position", ElementType::f64);
  const auto probe = file.read("probe", ElementType::f32);
  const int width = static_cast<int>(phase.shape()[2]);
  const int top = static_cast<int>(std::lround(position.at(2 * sample) / 10e-9)) - 16;
  const int left = static_cast<int>(std::lround(position.at(2 * sample + 1) / 10e-9)) - 16;
  const Tensor amplitude = file.read("object_amp", ElementType::f32);
  const std::int64_t object_size = phase.shape()[1] * phase.shape()[2];
  std::vector<std::complex<float>> object, light, wave(1024);
  for (std::int64_t i = object_size; i < 2 * object_size; ++i)
    object.push_back(std::polar(static_cast<float>(amplitude.at(i)), static_cast<float>(phase.at(i))));
  for (std::int64_t i = 1024; i < 2048; ++i)
    light.emplace_back(static_cast<float>(probe.at(2 * i)), static_cast<float>(probe.at(2 * i + 1)));
  std::vector<float> intensity(1024);
  exit_wave<float>(light, 32, object, width, {top, left}, wave);
  far_field_intensity<float>(wave, 32, intensity);
  const Tensor counts = file.read_rows("diff", ElementType::f32, sample, 1);
  for (std::int64_t i = 0; i < 1024; ++i) {
    const double mean = intensity[static_cast<std::size_t>(i)];
    EXPECT_NEAR(counts.at(i), mean, 6 * std::sqrt(mean) + 1e-6 * mean + 8);
  }
}

// In metres, and the labels are the object's own pixels there.
TEST(Ptycho, PositionsAndWavelengthAreInMetres) {
  const ScratchFolder folder;
  ThreadPool pool(2);
  std::vector<std::string> options = small_raster;
  options.insert(options.end(), {"pixel=7", "energy=12.4"});  // nm, keV
  const auto generator = make(ptychonn_64_generator(), options);
  generator->write({folder / "scan.h5", 5, 60, &pool});
  const Hdf5File file(folder / "scan.h5");
  const auto all = [&](const char* name, ElementType type) { return file.read(name, type); };
  EXPECT_DOUBLE_EQ(all("pixel_size", ElementType::f64).at(0), 7e-9);
  EXPECT_NEAR(all("wavelength", ElementType::f64).at(0), 1e-10, 2e-13) << "12.4 keV is an angstrom";
  const Tensor object[] = {all("object_amp", ElementType::f32), all("object_phase", ElementType::f32)},
               label[] = {all("amp", ElementType::f32), all("phase", ElementType::f32)},
               position = all("position", ElementType::f64), scan = all("scan", ElementType::u32),
               point = all("point", ElementType::u32);
  const std::int64_t height = object[0].shape()[1], width = object[0].shape()[2];
  for (std::int64_t sample = 0; sample < 60; ++sample) {
    EXPECT_EQ(scan.at(sample), static_cast<double>(sample / 42));
    EXPECT_EQ(point.at(sample), static_cast<double>(sample % 42));
    const std::int64_t top = std::lround(position.at(2 * sample) / 7e-9) - 16,
                       left = std::lround(position.at(2 * sample + 1) / 7e-9) - 16;
    for (int part = 0; part < 2; ++part)
      for (const std::int64_t y : {0, 13, 31})
        for (const std::int64_t x : {0, 17, 31})
          ASSERT_EQ(label[part].at((sample * 32 + y) * 32 + x),
                    object[part].at((sample / 42 * height + top + y) * width + left + x))
              << sample << " " << part << " " << y << " " << x;
  }
}

// Two files of a scan each are one of two scans.
TEST(Ptycho, AFileGoesOnWhereAnotherOneEnded) {
  const auto both = make(ptychonn_64_generator(), small_raster);
  std::vector<std::string> second = small_raster;
  second.push_back("first=1");
  const auto later = make(ptychonn_64_generator(), second);
  ThreadPool pool(2);
  const auto expected = generate_in_memory(*both, 9, 42, 42, pool),
             found = generate_in_memory(*later, 9, 0, 42, pool);
  for (std::size_t f = 0; f < expected.size(); ++f) {
    if (both->fields()[f].name == "scan")
      EXPECT_EQ(found[f].at(0), 0) << "scans are numbered within their file";
    else
      EXPECT_TRUE(same_bytes(expected[f], found[f])) << both->fields()[f].name;
  }
  EXPECT_FALSE(same_bytes(generate_in_memory(*both, 9, 0, 42, pool)[0], found[0]));
}

TEST(Ptycho, DriftingSampleMovesUnderTheScan) {
  const auto generator = make(ptychonn_128_generator(), {"window=32", "points=20", "drift=4"});
  const auto* ptycho = dynamic_cast<const PtychoGenerator*>(generator.get());
  const auto first = ptycho->scan(1, 0), second = ptycho->scan(1, 1), later = ptycho->scan(1, 40);
  const int width = first->path.width;
  for (int x = 0; x + 4 < width; ++x)
    ASSERT_EQ(first->phase[static_cast<std::size_t>(5 * width + x + 4)],
              second->phase[static_cast<std::size_t>(5 * width + x)]);
  EXPECT_NE(first->phase, later->phase);
}

TEST(Ptycho, RefusesWhatCannotBe) {
  const auto expect_refusal = [](const std::vector<std::string>& assignments, const std::string& message) {
    try {
      make(ptychonn_64_generator(), assignments);
      FAIL() << message;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what();
    }
  };
  expect_refusal({"window=33"}, "even number of pixels");
  expect_refusal({"photons=many"}, "'many' is neither a number nor a range");
  expect_refusal({"photons=1e7..1e4"}, "not a rising range");
  expect_refusal({"scan=zigzag"}, "one of raster, spiral");
  expect_refusal({"width=900"}, "does not fit");
  expect_refusal({"photon=3"}, "photons");
}

TEST(PtychoStitch, PerfectLabelsReturnTheObject) {
  const auto generator = make(ptychonn_128_generator(), {"points=60", "window=64"});
  const auto* ptycho = dynamic_cast<const PtychoGenerator*>(generator.get());
  const auto scan = ptycho->scan(3, 0);
  ThreadPool pool(2);
  const auto fields = generate_in_memory(*generator, 3, 0, 60, pool);
  for (const int central : {64, 12}) {
    Stitcher stitcher(scan->path.height, scan->path.width);
    for (std::size_t i = 0; i < 60; ++i) {
      const double pixel = ptycho->settings().pixel;
      stitcher.add(fields[2].as<float>().subspan(i * 4096, 4096), 64,
                   fields[3].as<double>()[2 * i] / pixel - 32, fields[3].as<double>()[2 * i + 1] / pixel - 32,
                   central);
    }
    const Map stitched = stitcher.mean();
    double worst = 0, covered = 0;
    for (std::size_t i = 0; i < stitched.values.size(); ++i)
      if (stitcher.hits()[i] > 0) {
        worst = std::max(worst, std::abs(double{stitched.values[i]} - scan->phase[i]));
        ++covered;
      }
    EXPECT_LT(worst, 1e-6);
    EXPECT_GT(covered, central * central);
    EXPECT_NEAR(correlation(stitched.values, scan->phase, stitcher.hits()), 1, 1e-9);
  }
}

TEST(PtychoStitch, SharesOutBetweenPixelsAndDropsWhatIsOutside) {
  Stitcher stitcher(3, 3);
  const std::vector<float> one{8};
  stitcher.add(one, 1, 0.25, 1.5, 1);
  EXPECT_NEAR(stitcher.hits()[1], 0.75 * 0.5, 1e-12);
  EXPECT_NEAR(stitcher.hits()[5], 0.25 * 0.5, 1e-12);
  EXPECT_FLOAT_EQ(stitcher.mean().at(0, 1), 8);
  EXPECT_EQ(stitcher.mean().at(2, 0), 0);
  stitcher.add(one, 1, -5, 2, 1);
  stitcher.add(one, 1, 2.5, 2, 1);
  EXPECT_NEAR(stitcher.hits()[8], 0.5, 1e-12);
  EXPECT_THROW(stitcher.add(one, 2, 0, 0, 1), Error);
  EXPECT_THROW(stitcher.add(one, 1, 0, 0, 2), Error);
}

TEST(PtychoStitch, CircularMeanIsRemoved) {
  std::vector<float> phase{3.0f, -3.0f, 3.1f, -3.1f};  // about pi
  remove_circular_mean(phase);
  for (const float value : phase) EXPECT_LT(std::abs(value), 0.15f);
  EXPECT_NEAR(phase[0], 3.0 - std::numbers::pi, 1e-6);
}

}  // namespace
}  // namespace superstep::data
