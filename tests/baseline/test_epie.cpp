#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/base/text.h"
#include "superstep/baseline/baseline.h"
#include "superstep/baseline/picture_sheet.h"
#include "superstep/baseline/ptychography/epie.h"
#include "superstep/baseline/ptychography/epie_compare.h"
#include "superstep/baseline/ptychography/epie_halves.h"
#include "superstep/baseline/ptychography/epie_run.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/physics/fft.h"
#include "superstep/physics/xray/ptycho.h"
#include "tests/scratch.h"

namespace superstep::baseline {
namespace {

using data::Position;

struct Experiment {
  std::shared_ptr<const data::PtychoScan> scan;
  PtychoData data;
  std::vector<float> area;

  ObjectComparison compare(const Epie& epie) const {
    return compare_objects(epie.object(), scan->object, area, data.height, data.width);
  }
};

std::unique_ptr<data::Generator> small_generator(std::vector<std::string> more = {}) {
  std::vector<std::string> assignments{"window=32", "rows=12", "columns=12", "width=50..60", "photons=1e6"};
  assignments.insert(assignments.end(), more.begin(), more.end());
  const auto entry = data::ptychonn_64_generator();
  return entry.make(Options(entry.options, assignments));
}

Experiment make_experiment(const data::Generator& generator, std::uint64_t seed) {
  const auto& ptycho = dynamic_cast<const data::PtychoGenerator&>(generator);
  Experiment experiment;
  experiment.scan = ptycho.scan(seed, 0);
  const int n = ptycho.settings().grid.window;
  const auto points = static_cast<std::uint64_t>(ptycho.settings().points());
  ThreadPool pool(2);
  const auto fields = generate_in_memory(generator, seed, 0, points, pool);
  const auto counts = fields[0].as<float>();
  const auto targets = data::fft_shift_targets({n, n});
  PtychoData& data = experiment.data;
  data = {n,  experiment.scan->path.height, experiment.scan->path.width, experiment.scan->path.positions, {},
          {}, ptycho.settings().threshold};
  for (std::size_t i = 0; i < counts.size(); ++i)
    data.modulus.push_back(
        std::sqrt(counts[i / targets.size() * targets.size() + targets[i % targets.size()]]));
  for (const std::size_t target : targets) data.dead.push_back(experiment.scan->detector.dead[target]);
  experiment.area = scanned_area(data, experiment.scan->probe);
  return experiment;
}

bool overlap(Position a, Position b, int n) { return std::abs(a.y - b.y) < n && std::abs(a.x - b.x) < n; }

TEST(EpieGroups, HoldEveryPointOnceAndNoTwoThatOverlap) {
  RandomStream path_random(1);
  const auto path = data::raster_scan(path_random, {16, 3, 0.3}, 30, 40);
  RandomStream random(2), again(2);
  const auto groups = disjoint_groups(path.positions, 16, random);
  EXPECT_EQ(groups, disjoint_groups(path.positions, 16, again));
  EXPECT_NE(groups, disjoint_groups(path.positions, 16, again));  // another pass, another order
  std::set<int> seen;
  std::size_t largest = 0;
  for (const auto& group : groups) {
    largest = std::max(largest, group.size());
    for (std::size_t i = 0; i < group.size(); ++i) {
      EXPECT_TRUE(seen.insert(group[i]).second);
      for (std::size_t j = 0; j < i; ++j)
        ASSERT_FALSE(overlap(path.positions[static_cast<std::size_t>(group[i])],
                             path.positions[static_cast<std::size_t>(group[j])], 16));
    }
  }
  EXPECT_EQ(seen.size(), path.positions.size());
  EXPECT_GT(largest, 4u);
}

TEST(EpieGroups, AreSinglePointsWhereAllWindowsOverlap) {
  RandomStream path_random(1), random(2);
  const auto path = data::spiral_scan(path_random, {128, 3, 0.3}, 100);
  const auto groups = disjoint_groups(path.positions, 128, random);
  EXPECT_EQ(groups.size(), 100u);
}

// The acceptance of a conventional method: 0.05 rad rms at 1e6 photons a pattern.
TEST(Epie, RecoversTheObjectAtAMillionPhotons) {
  const Experiment experiment = make_experiment(*small_generator(), 4);
  Epie epie(experiment.data, experiment.scan->probe, {});
  ThreadPool pool(2);
  std::vector<double> errors;
  for (int pass = 0; pass < 60; ++pass) errors.push_back(epie.pass(pool));
  EXPECT_LT(errors.back(), 0.1 * errors.front());
  const ObjectComparison comparison = experiment.compare(epie);
  EXPECT_GT(comparison.pixels, 30 * 30);
  EXPECT_LT(comparison.phase_rms, 0.05);
  EXPECT_LT(comparison.amplitude_rms, 0.05);
}

// An object on which plain ePIE is not there after 50 passes.
TEST(Epie, RegularizedFormIsThereBeforeThePlainOne) {
  const Experiment experiment = make_experiment(*small_generator(), 2);
  EpieSettings settings;
  settings.regularization = 0.3;
  Epie regularized(experiment.data, experiment.scan->probe, settings),
      plain(experiment.data, experiment.scan->probe, {});
  ThreadPool pool(2);
  for (int pass = 0; pass < 50; ++pass) {
    regularized.pass(pool);
    plain.pass(pool);
  }
  EXPECT_LT(experiment.compare(regularized).phase_rms, 0.05);
  EXPECT_GT(experiment.compare(plain).phase_rms, 0.05);
}

TEST(Epie, RefinesAProbeThatIsOnlyRoughlyKnown) {
  const Experiment experiment = make_experiment(*small_generator(), 4);
  data::ComplexField rough = experiment.scan->probe;
  for (int y = 0; y < 32; ++y)
    for (int x = 0; x < 32; ++x) {
      const auto bend = 0.008 * ((y - 16) * (y - 16) + (x - 16) * (x - 16));
      rough[static_cast<std::size_t>(y * 32 + x)] *= std::polar(1.0f, static_cast<float>(bend));
    }
  ThreadPool pool(2);
  EpieSettings fixed, refined;
  fixed.probe_from = 1000;
  fixed.regularization = refined.regularization = 0.3;
  Epie with_refinement(experiment.data, rough, refined), without(experiment.data, rough, fixed);
  for (int pass = 0; pass < 60; ++pass) {
    with_refinement.pass(pool);
    without.pass(pool);
  }
  EXPECT_LT(experiment.compare(with_refinement).phase_rms, 0.05);
  EXPECT_GT(experiment.compare(without).phase_rms, 2 * experiment.compare(with_refinement).phase_rms);
  EXPECT_EQ(std::memcmp(without.probe().data(), rough.data(), rough.size() * sizeof(rough[0])), 0);
}

TEST(Epie, FailsOnWrongPositions) {
  Experiment experiment = make_experiment(*small_generator(), 4);
  std::reverse(experiment.data.positions.begin(), experiment.data.positions.end());
  Epie epie(experiment.data, experiment.scan->probe, {});
  ThreadPool pool(2);
  for (int pass = 0; pass < 20; ++pass) epie.pass(pool);
  EXPECT_GT(experiment.compare(epie).phase_rms, 0.3);
}

TEST(Epie, SameBitsOnAnyNumberOfThreads) {
  const auto generator = small_generator({"window=16", "rows=14", "columns=20", "width=30", "step=4"});
  const Experiment experiment = make_experiment(*generator, 5);
  EpieSettings settings;
  settings.probe_from = 1;
  ThreadPool one(1), three(3);
  Epie a(experiment.data, experiment.scan->probe, settings),
      b(experiment.data, experiment.scan->probe, settings);
  for (int pass = 0; pass < 4; ++pass) EXPECT_EQ(a.pass(one), b.pass(three));
  EXPECT_EQ(a.object(), b.object());
  EXPECT_EQ(a.probe(), b.probe());
}

TEST(Epie, RefusesWhatDoesNotFitTogether) {
  const Experiment experiment = make_experiment(*small_generator(), 4);
  const auto expect_refusal = [](const PtychoData& data, const data::ComplexField& probe,
                                 const char* message) {
    try {
      const Epie epie(data, probe, {});
      FAIL() << message;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what();
    }
  };
  PtychoData outside = experiment.data, short_of_patterns = experiment.data, dark = experiment.data;
  outside.positions[7].x = outside.width;
  short_of_patterns.modulus.pop_back();
  std::fill(dark.modulus.begin(), dark.modulus.end(), 0.0f);
  expect_refusal(outside, experiment.scan->probe, "leaves the object");
  expect_refusal(short_of_patterns, experiment.scan->probe, "differ in number");
  expect_refusal(dark, experiment.scan->probe, "no pattern has a count");
  expect_refusal(experiment.data, data::ComplexField(9), "a probe of 9 pixels");
}

TEST(ObjectComparison, RemovesWhatNoMeasurementCanTellAndNothingElse) {
  constexpr int side = 40;
  std::vector<std::complex<float>> truth, turned, bent;
  RandomStream random(1);
  for (int y = 0; y < side; ++y)
    for (int x = 0; x < side; ++x) {
      truth.push_back(
          std::polar(static_cast<float>(random.uniform(0.7, 1)), static_cast<float>(random.uniform(-3, 0))));
      turned.push_back(truth.back() * std::polar(1.7f, 0.4f + 0.05f * static_cast<float>(y) -
                                                           0.11f * static_cast<float>(x)));
      bent.push_back(turned.back() * std::polar(1.0f, (x / 4) % 2 ? 0.1f : -0.1f));
    }
  const std::vector<float> all(truth.size(), 1.0f);
  const auto same = compare_objects(turned, truth, all, side, side);
  EXPECT_LT(same.phase_rms, 1e-5);
  EXPECT_LT(same.amplitude_rms, 1e-5);
  EXPECT_NEAR(same.ramp_y, 0.05, 1e-6);
  EXPECT_NEAR(same.ramp_x, -0.11, 1e-6);
  EXPECT_NEAR(compare_objects(bent, truth, all, side, side).phase_rms, 0.1, 0.002);
}

std::string message_of(const Request& request, const std::vector<std::string>& assignments) {
  try {
    const Entry& entry = find_baseline("ptychonn-64");
    entry.run(request, Options(entry.options, assignments));
  } catch (const Error& error) {
    return std::string(name_of(error.code())) + ": " + error.what();
  }
  return "no error";
}

double value_of(const Report& report, const std::string& name) {
  for (const Metric& metric : report.metrics)
    if (metric.name == name) return metric.value;
  ADD_FAILURE() << "no metric " << name;
  return NAN;
}

TEST(EpieCommand, ReconstructsTheScansOfAFile) {
  const ScratchFolder folder;
  ThreadPool pool(2), alone(1);
  small_generator({"rows=8", "columns=8"})->write({folder / "scan.h5", 4, 128, &pool});
  const Entry& entry = find_baseline("ptychonn-64");
  const Options options(entry.options, std::vector<std::string>{"passes=30"});
  const Report report =
      entry.run({folder / "scan.h5", folder / "object.h5", folder / "page.html", &pool}, options);
  EXPECT_LT(value_of(report, "phase_error_worst_scan"), 0.1);
  EXPECT_GT(value_of(report, "time_per_scan"), 0);
  const data::Hdf5File output(folder / "object.h5");
  EXPECT_EQ(output.info("object_phase").shape[0], 2);
  EXPECT_EQ(output.info("probe").shape, (Shape{2, 32, 32, 2}));
  EXPECT_EQ(output.info("fourier_error").shape, (Shape{2, 30}));
  EXPECT_GT(std::filesystem::file_size(folder / "page.html"), 5000u);

  entry.run({folder / "scan.h5", folder / "again.h5", {}, &alone}, options);  // one scan after the other
  const data::Hdf5File again(folder / "again.h5");
  for (const char* name : {"object_phase", "object_amp", "probe", "fourier_error"}) {
    const Tensor a = output.read(name, ElementType::f64), b = again.read(name, ElementType::f64);
    EXPECT_EQ(std::memcmp(a.bytes(), b.bytes(), a.byte_count()), 0) << name;
  }
}

// Stopped by the user after so many passes; what the error says.
std::string stopped_run(const ScratchFolder& folder, int passes_before, bool at_start = false) {
  ThreadPool pool(1);
  const Entry& entry = find_baseline("ptychonn-64");
  const Options options(entry.options, std::vector<std::string>{"passes=30"});
  int seen = 0;
  if (at_start) request_interrupt();
  std::string message = "no error";
  try {
    run_epie({folder / "scan.h5", folder / "object.h5", folder / "object.png", &pool}, options,
             [&](int, double) {
               if (++seen == passes_before) request_interrupt();
             });
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::interrupted);
    message = error.what();
  }
  clear_interrupt();
  return message;
}

TEST(EpieCommand, KeepsWhatIsDoneWhenTheUserStopsIt) {
  const ScratchFolder folder;
  ThreadPool pool(1);
  small_generator({"rows=6", "columns=6"})->write({folder / "scan.h5", 4, 72, &pool});
  EXPECT_NE(stopped_run(folder, 7).find("7 of 60 passes were done"), std::string::npos);
  const data::Hdf5File output(folder / "object.h5");
  EXPECT_EQ(output.read("passes_done", ElementType::i32).at(0), 7);
  EXPECT_EQ(output.read("passes_done", ElementType::i32).at(1), 0);
  const Tensor errors = output.read("fourier_error", ElementType::f64);
  EXPECT_LT(errors.at(6), errors.at(0));
  EXPECT_TRUE(std::isnan(errors.at(7)));
  EXPECT_TRUE(std::filesystem::exists(folder / "object.png"));

  // The object is that of a run of seven passes.
  const Entry& entry = find_baseline("ptychonn-64");
  entry.run({folder / "scan.h5", folder / "seven.h5", {}, &pool},
            Options(entry.options, std::vector<std::string>{"passes=7", "scans=1"}));
  const data::Hdf5File seven(folder / "seven.h5");
  const Tensor whole = seven.read("object_phase", ElementType::f32);
  const Tensor stopped = output.read_rows("object_phase", ElementType::f32, 0, 1);
  EXPECT_EQ(std::memcmp(whole.bytes(), stopped.bytes(), whole.byte_count()), 0);
}

TEST(EpieCommand, SaysWhenTheErrorGrew) {
  const ScratchFolder folder;
  ThreadPool pool(2);
  small_generator({"rows=20", "columns=20", "step=2", "photons=3e4"})
      ->write({folder / "scan.h5", 4, 400, &pool});
  const std::string message = message_of({folder / "scan.h5", folder / "object.h5", {}, &pool},
                                         {"passes=60", "object_step=2", "probe_step=2"});
  EXPECT_NE(message.find("the error of a pass grew to"), std::string::npos) << message;
  EXPECT_NE(message.find("lower probe_step"), std::string::npos) << message;
  EXPECT_FALSE(std::filesystem::exists(folder / "object.h5"));
}

TEST(EpieCommand, WritesNothingWhenStoppedBeforeAPass) {
  const ScratchFolder folder;
  ThreadPool pool(1);
  small_generator({"rows=6", "columns=6"})->write({folder / "scan.h5", 4, 36, &pool});
  EXPECT_NE(stopped_run(folder, 0, true).find("no pass was done"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder / "object.h5"));
}

TEST(PictureSheet, LaysPicturesOutOnWhite) {
  const page::Image red{2, 1, {255, 0, 0, 255, 0, 0}}, blue{1, 1, {0, 0, 255}};
  const page::Picture pictures[] = {{red, "", {}, 3}, {blue, "", {}, 2}};
  const page::Image sheet = picture_sheet(pictures, 2);
  EXPECT_EQ(sheet.width, 2 * 6 + 6);
  EXPECT_EQ(sheet.height, 3);
  const auto pixel = [&](int x, int y) {
    const std::uint8_t* rgb = &sheet.rgb[static_cast<std::size_t>(3 * (y * sheet.width + x))];
    return std::array{int{rgb[0]}, int{rgb[1]}, int{rgb[2]}};
  };
  EXPECT_EQ(pixel(5, 2), (std::array{255, 0, 0}));
  EXPECT_EQ(pixel(7, 1), (std::array{255, 255, 255}));
  EXPECT_EQ(pixel(13, 1), (std::array{0, 0, 255}));
  EXPECT_EQ(pixel(13, 2), (std::array{255, 255, 255}));
  EXPECT_EQ(picture_sheet(pictures, 1).height, 2 * 3 + 6);
  EXPECT_THROW(picture_sheet({}, 2), Error);
}

// --- from a network's answers

// A scan, and files of answers to it: the true windows, and others.
class PointsAnswered : public ::testing::Test {
 protected:
  PointsAnswered() {
    small_generator({"rows=8", "columns=8"})->write({folder_ / "scan.h5", 4, 64, &pool_});
    const data::Hdf5File file(folder_ / "scan.h5");
    amplitude_ = file.read("amp", ElementType::f32);
    phase_ = file.read("phase", ElementType::f32);
  }
  void write(const char* name, const Tensor& phase, bool with_amplitude = true) {
    data::Hdf5Writer file(folder_ / name);
    if (with_amplitude) file.write("amp", amplitude_);
    file.write("phase", phase);
    file.set_attribute("", "seconds_per_sample", 0.01);
    file.close();
  }
  Report run(const std::string& start, int passes = 12) {
    const Entry& entry = find_baseline("ptychonn-64");
    return entry.run({folder_ / "scan.h5", folder_ / "object.h5", folder_ / "page.html", &pool_},
                     Options(entry.options, std::vector<std::string>{fmt::format("passes={}", passes),
                                                                     "start=" + (folder_ / start).string()}));
  }

  ScratchFolder folder_;
  ThreadPool pool_{2};
  Tensor amplitude_, phase_;
};

TEST_F(PointsAnswered, StitchToTheObjectWhereTheyAreTrue) {
  write("true.h5", phase_.reshaped({64, 1, 32, 32}));
  const Report report = run("true.h5");
  EXPECT_LT(value_of(report, "network_phase_error_rms"), 1e-3);
  EXPECT_LT(value_of(report, "network_resolution"), 20.01);  // 2 px of 10 nm: to the last ring
  const data::Hdf5File file(folder_ / "scan.h5"), output(folder_ / "object.h5");
  const Tensor truth = file.read("object_phase", ElementType::f32),
               stitched = output.read("stitched_phase", ElementType::f32);
  ASSERT_EQ(stitched.shape(), truth.shape());
  const std::int64_t middle = truth.shape()[1] / 2 * truth.shape()[2] + truth.shape()[2] / 2;
  EXPECT_NEAR(stitched.at(middle), truth.at(middle), 1e-4);
}

TEST_F(PointsAnswered, BeginAReconstructionThatIsThereSooner) {
  write("true.h5", phase_);
  Tensor opposite = phase_.clone();
  for (std::int64_t i = 0; i < opposite.element_count(); ++i) opposite.set(i, -opposite.at(i));
  write("opposite.h5", opposite, false);
  const Report near = run("true.h5", 3), far = run("opposite.h5", 3);
  EXPECT_LT(value_of(near, "phase_error_rms"), 0.5 * value_of(near, "from_nothing_phase_error_rms"));
  EXPECT_GT(value_of(far, "phase_error_rms"), 2 * value_of(near, "phase_error_rms"));  // the control
  EXPECT_EQ(value_of(far, "from_nothing_phase_error_rms"), value_of(near, "from_nothing_phase_error_rms"));
  for (const char* words : {"the network's, stitched", "from nothing", "from the network's", "640 ms"})
    EXPECT_NE(near.text.find(words), std::string::npos) << near.text;
  EXPECT_NE(read_text_file(folder_ / "page.html").find("Beside the true object"), std::string::npos);
}

// Halves of a scan with much light agree to the last ring and where the truth does; with a thousandth of it
// they agree less far. Halves of true answers agree everywhere.
TEST_F(PointsAnswered, AgreeInHalvesAsFarAsTheLightReaches) {
  write("true.h5", phase_);
  const auto halves = [&](const char* photons) {
    small_generator({"rows=12", "columns=12", std::string("photons=") + photons})
        ->write({folder_ / "half.h5", 4, 144, &pool_});
    const Entry& entry = find_baseline("ptychonn-64");
    return entry.run({folder_ / "half.h5", {}, {}, &pool_},
                     Options(entry.options, std::vector<std::string>{"passes=40", "halves=yes"}));
  };
  const Report bright = halves("1e7"), dim = halves("1e3");
  EXPECT_NE(bright.text.find("every second point against the others"), std::string::npos);
  EXPECT_LT(value_of(bright, "halves_resolution"), 0.7 * value_of(dim, "halves_resolution")) << dim.text;
  EXPECT_LT(value_of(bright, "halves_phase_rms"), 0.5 * value_of(dim, "halves_phase_rms"));
  EXPECT_GE(value_of(bright, "halves_resolution"), 19.99);  // two pixels of 10 nm are the last ring
  const Entry& entry = find_baseline("ptychonn-64");
  const Report answered = entry.run(
      {folder_ / "scan.h5", {}, {}, &pool_},
      Options(entry.options,
              std::vector<std::string>{"passes=4", "halves=yes", "start=" + (folder_ / "true.h5").string()}));
  EXPECT_LT(value_of(answered, "network_halves_phase_rms"), 1e-3);
  EXPECT_NEAR(value_of(answered, "network_halves_resolution"), 20, 0.01);
}

TEST(EverySecondPoint, IsInOneHalfAndNotInTheOther) {
  PtychoData data{.n = 2, .height = 8, .width = 8, .positions = {}, .modulus = {}, .dead = {}};
  for (int i = 0; i < 5; ++i) {
    data.positions.push_back({i, 0});
    for (int k = 0; k < 4; ++k) data.modulus.push_back(static_cast<float>(10 * i + k));
  }
  const PtychoData even = every_second_point(data, 0), odd = every_second_point(data, 1);
  ASSERT_EQ(even.positions.size(), 3u);
  ASSERT_EQ(odd.positions.size(), 2u);
  EXPECT_EQ(odd.positions[1].y, 3);
  EXPECT_EQ(odd.modulus, (std::vector<float>{10, 11, 12, 13, 30, 31, 32, 33}));
  EXPECT_THROW(every_second_point(data, 7), Error);
}

TEST_F(PointsAnswered, AreNamedWhereTheyAreNone) {
  const auto message = [&](const char* start) -> std::string {
    try {
      run(start);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_NE(message("none.h5").find("start"), std::string::npos) << message("none.h5");
  EXPECT_NE(message("scan.h5").find("no error"), std::string::npos);  // its labels have the names of answers
  write("a.h5", Tensor(ElementType::f32, {63, 1, 32, 32}));
  EXPECT_NE(message("a.h5").find("the scans have 64 patterns of 32 x 32"), std::string::npos)
      << message("a.h5");
  Tensor holed = phase_.clone();
  holed.set(5 * 32 * 32 + 3 * 32 + 7, NAN);
  write("a.h5", holed);
  EXPECT_NE(message("a.h5").find("point 5 holds nan at pixel (3, 7)"), std::string::npos) << message("a.h5");
  EXPECT_NE(message("a.h5").find("start: "), std::string::npos) << message("a.h5");
}

TEST(Epie, BeginsWithTheObjectThatItIsGiven) {
  const auto generator = small_generator();
  const Experiment experiment = make_experiment(*generator, 1);
  ThreadPool pool(1);
  Epie there(experiment.data, experiment.scan->probe, {}, experiment.scan->object);
  EXPECT_LT(there.pass(pool), 0.01);
  Epie elsewhere(experiment.data, experiment.scan->probe, {});
  EXPECT_GT(elsewhere.pass(pool), 0.05);
  EXPECT_THROW(Epie(experiment.data, experiment.scan->probe, {}, {1, 1}), Error);
  auto holed = experiment.scan->object;
  holed[3] = {NAN, 0};
  EXPECT_THROW(Epie(experiment.data, experiment.scan->probe, {}, holed), Error);
}

TEST(EpieCommand, ReadsFilesThatKnowNoTruth) {
  const ScratchFolder folder;
  ThreadPool pool(2);
  small_generator({"rows=8", "columns=8"})->write({folder / "scan.h5", 4, 64, &pool});
  const data::Hdf5File made(folder / "scan.h5");
  const Tensor position = made.read("position", ElementType::f64);
  Tensor translation(ElementType::f64, {64, 3});
  for (std::int64_t i = 0; i < 64; ++i) {
    translation.set(3 * i, position.at(2 * i + 1) - 1e-3);  // x, from an origin of its own
    translation.set(3 * i + 1, position.at(2 * i) + 2e-3);
  }
  data::Hdf5Writer cxi(folder / "scan.cxi");
  Tensor counts =
      made.read("diff", ElementType::f64);  // as a detector of 16 bits has them: full pixels stay full
  for (double& count : counts.as<double>()) count = std::min(count, 65535.0);
  cxi.write("entry_1/data_1/data", counts.converted(ElementType::u16));
  cxi.write("entry_1/sample_1/geometry_1/translation", translation);
  cxi.write("probe", made.read("probe", ElementType::f32));
  cxi.close();
  const Entry& entry = find_baseline("ptychonn-64");
  const Options options(entry.options, std::vector<std::string>{"passes=20", "pixel=10", "threshold=3"});
  const Report report = entry.run({folder / "scan.cxi", {}, {}, &pool}, options);
  EXPECT_LT(value_of(report, "fourier_error"), 0.02);
}

TEST(EpieCommand, NamesWhatIsWrongWithAFile) {
  const ScratchFolder folder;
  ThreadPool pool(1);
  const Request request{folder / "scan.h5", {}, {}, &pool};
  EXPECT_NE(message_of(request, {}).find("scan.h5"), std::string::npos);
  const auto write = [&](const Shape& patterns, const Shape& positions, float count) {
    data::Hdf5Writer file(folder / "scan.h5");
    file.write("diff", Tensor::full(ElementType::f32, patterns, count));
    if (positions.rank() > 0) file.write("position", Tensor(ElementType::f64, positions));
    file.write("pixel_size", Tensor::full(ElementType::f64, {}, 1e-8));
    file.close();
  };
  const auto expect_message = [&](const char* part) {
    const std::string message = message_of(request, {});
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  write({4, 8, 8}, {}, 5);
  expect_message("no scan positions");
  write({4, 8, 8}, {3, 2}, 5);
  expect_message("position");
  write({4, 8, 6}, {4, 2}, 5);
  expect_message("data set 'diff'");
  write({4, 8, 8}, {4, 2}, NAN);
  expect_message("holds a count of nan");
  write({4, 8, 8}, {4, 2}, 0);
  expect_message("no pattern has a count");
}

}  // namespace
}  // namespace superstep::baseline
