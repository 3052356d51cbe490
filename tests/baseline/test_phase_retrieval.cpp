#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numbers>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/baseline/baseline.h"
#include "superstep/baseline/ptychography/phase_alignment.h"
#include "superstep/baseline/ptychography/phase_retrieval.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/physics/fft.h"
#include "superstep/physics/xray/autophase.h"
#include "tests/scratch.h"

namespace superstep::baseline {
namespace {

constexpr int n = 24, half = n / 2;
const Shape grid{n, n, n};

// A strained crystal in the middle of the grid.
Field crystal_field(std::uint64_t seed) {
  RandomStream random(seed);
  const data::CrystalShape shape = data::draw_crystal(random, half, 9);
  const auto object =
      data::render(shape, data::draw_displacement(random, shape, {{0.5, 0.5}, {0.5, 0.5}, 0}), half);
  Field field(static_cast<std::size_t>(n * n * n));
  for (int i = 0; i < half * half * half; ++i) {
    const int z = half / 2 + i / (half * half), y = half / 2 + i / half % half, x = half / 2 + i % half;
    field[static_cast<std::size_t>((z * n + y) * n + x)] =
        std::polar(object.amplitude[static_cast<std::size_t>(i)], object.phase[static_cast<std::size_t>(i)]);
  }
  return field;
}

std::vector<float> magnitude_of(Field field) {
  data::thread_fft<float>(grid).forward(field);
  std::vector<float> magnitude;
  for (const auto& value : field) magnitude.push_back(std::abs(value));
  return magnitude;
}

TEST(PhaseRetrieval, ScheduleIsErThenCyclesThenEr) {
  const RetrievalSettings settings;
  int hio = 0;
  for (int i = 0; i < settings.iterations; ++i) hio += is_hio(settings, i);
  EXPECT_FALSE(is_hio(settings, 0));
  EXPECT_TRUE(is_hio(settings, 20));
  EXPECT_FALSE(is_hio(settings, 65));
  EXPECT_FALSE(is_hio(settings, 299));
  EXPECT_EQ(hio, 5 * 45);
}

TEST(PhaseRetrieval, RecoversAStrainedCrystal) {
  const Field truth = crystal_field(3);
  const auto magnitude = magnitude_of(truth);
  Retrieval best;
  best.chi2 = 1;
  for (std::uint32_t start = 0; start < 3; ++start) {
    RandomStream random(1, 0, start);
    Retrieval found = retrieve_phase(magnitude, grid, {}, random);
    if (found.chi2 < best.chi2) best = std::move(found);
  }
  EXPECT_LT(best.chi2, 5e-3);
  const AlignedObject aligned = align(best.object, truth, grid);
  const ShapeComparison comparison = compare_shapes(aligned.object, truth, grid);
  EXPECT_GT(comparison.iou, 0.85);
  EXPECT_LT(comparison.phase_rms, 0.2);
  EXPECT_GT(comparison.ssim, 0.95);

  Field sphere(truth.size());  // the floor: another shape must not pass
  for (int i = 0; i < n * n * n; ++i)
    if (std::hypot(i / (n * n) - half, i / n % n - half, i % n - half) < 3.5)
      sphere[static_cast<std::size_t>(i)] = 1;
  EXPECT_GT(diffraction_chi2(sphere, grid, magnitude), 10 * best.chi2);
}

TEST(PhaseRetrieval, Chi2IsZeroForTheObjectItselfAndOneForNothing) {
  const Field truth = crystal_field(4);
  const auto magnitude = magnitude_of(truth);
  EXPECT_LT(diffraction_chi2(truth, grid, magnitude), 1e-10);
  EXPECT_NEAR(diffraction_chi2(Field(truth.size()), grid, magnitude), 1, 1e-6);
}

TEST(PhaseRetrieval, ShrinkWrapFollowsABall) {
  Field ball(static_cast<std::size_t>(n * n * n));
  double volume = 0;
  for (int i = 0; i < n * n * n; ++i)
    if (std::hypot(i / (n * n) - half, i / n % n - half, i % n - half) < 6) {
      ball[static_cast<std::size_t>(i)] = std::polar(1.0f, static_cast<float>(i));
      ++volume;
    }
  const auto wrapped = [&](double threshold) {
    const auto support = shrink_wrapped(ball, grid, 1.0, threshold);
    return static_cast<double>(std::count(support.begin(), support.end(), 1));
  };
  EXPECT_NEAR(wrapped(0.5) / volume, 1, 0.15);  // a blurred edge falls to half at its place
  EXPECT_GT(wrapped(0.1), 1.3 * volume);
}

TEST(PhaseRetrieval, RefusesWhatIsNoMagnitude) {
  RandomStream random(1);
  const auto message = [&](const std::vector<float>& magnitude) -> std::string {
    try {
      retrieve_phase(magnitude, {8, 8, 8}, {}, random);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_NE(message(std::vector<float>(512)).find("no count"), std::string::npos);
  EXPECT_NE(message(std::vector<float>(511, 1)).find("511 magnitudes"), std::string::npos);
  EXPECT_NE(message(std::vector<float>(512, -1)).find("negative"), std::string::npos);
  EXPECT_NE(message(std::vector<float>(512, NAN)).find("not finite"), std::string::npos);
}

TEST(PhaseRetrieval, BeginsWithAnAnswerAndNotesItsWay) {
  const Field truth = crystal_field(3);
  const auto magnitude = magnitude_of(truth);
  // The true crystal, of another scale and in noise: a retrieval begun there is there at once.
  Field near = truth;
  RandomStream random(5);
  for (auto& value : near) value *= static_cast<float>(3 + 0.3 * random.normal());
  std::vector<double> noted;
  std::vector<int> iterations;
  const auto note = [&](int before, double chi2, const Field&) {
    iterations.push_back(before), noted.push_back(chi2);
  };
  RetrievalSettings settings;
  settings.iterations = 60;
  const Retrieval found = retrieve_phase(magnitude, grid, settings, near, note);
  ASSERT_GE(noted.size(), 20U);
  EXPECT_EQ(iterations.front(), 0);
  EXPECT_EQ(iterations.back(), 60);
  EXPECT_EQ(noted.back(), found.chi2);
  EXPECT_LT(noted.front(), 0.05);  // scaled to the magnitude
  EXPECT_LT(found.chi2, 5e-3);
  for (std::size_t i = 1; i < iterations.size(); ++i) {
    EXPECT_GT(iterations[i], iterations[i - 1]);
    EXPECT_TRUE(iterations[i] == 60 || !is_hio(settings, iterations[i] - 1)) << iterations[i];
  }
  // The control: so few iterations from random numbers end worse.
  RandomStream drawn(1);
  EXPECT_GT(retrieve_phase(magnitude, grid, settings, drawn).chi2, 2 * found.chi2);
}

TEST(PhaseRetrieval, ScalesAnObjectToItsMagnitude) {
  const Field truth = crystal_field(4);
  const auto magnitude = magnitude_of(truth);
  Field scaled = truth;
  for (auto& value : scaled) value *= std::polar(0.2f, 1.0f);
  EXPECT_NEAR(diffraction_chi2(scaled, grid, magnitude), 0.64, 1e-4);  // (1 - 0.2)^2
  scale_to(scaled, grid, magnitude);
  EXPECT_LT(diffraction_chi2(scaled, grid, magnitude), 1e-10);
}

TEST(PhaseRetrieval, RefusesAStartThatIsNone) {
  const auto magnitude = magnitude_of(crystal_field(3));
  const auto message = [&](Field start) -> std::string {
    try {
      retrieve_phase(magnitude, grid, {}, std::move(start), [](int, double, const Field&) {});
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_NE(message(Field(7)).find("a start of 7 voxels"), std::string::npos);
  EXPECT_NE(message(Field(magnitude.size())).find("zero everywhere"), std::string::npos);
  EXPECT_NE(message(Field(magnitude.size(), {NAN, 0})).find("not finite"), std::string::npos);
}

// Of a cube of m voxels in a grid of n, 2 (m - n / 2) / m of each row meets itself half a grid away, round
// the corner too, and the mean over such a plane is (m / n)^2 of that.
TEST(PhaseRetrieval, SeesAnObjectThatIsLargerThanHalfItsGrid) {
  const auto share_of = [](int side) {
    Field cube(static_cast<std::size_t>(n * n * n));
    for (int i = 0; i < n * n * n; ++i)
      if (i / (n * n) < side && i / n % n < side && i % n < side) cube[static_cast<std::size_t>(i)] = 1;
    return share_beyond_half(magnitude_of(cube), grid);
  };
  EXPECT_LT(share_of(n / 2), 1e-5);
  for (const int side : {15, 18, 21})
    EXPECT_NEAR(share_of(side), 2.0 * (side - n / 2) / side * std::pow(static_cast<double>(side) / n, 2),
                1e-3)
        << side;
}

// What is done to the truth must be undone exactly.
TEST(PhaseAlignment, UndoesTwinShiftPhaseAndScale) {
  // A smooth object, so that a shift by a part of a voxel is exact.
  Field truth(static_cast<std::size_t>(n * n * n)), changed(truth);
  const auto value = [](double z, double y, double x) {
    const double r2 = (z * z / 6 + y * y / 9 + x * x / 4) / 2;
    return std::polar(std::exp(-r2), 0.2 * z + 0.05 * y * x);
  };
  for (int i = 0; i < n * n * n; ++i) {
    const double z = i / (n * n) - half, y = i / n % n - half, x = i % n - half;
    truth[static_cast<std::size_t>(i)] = static_cast<std::complex<float>>(value(z, y, x));
    // The twin of the truth, moved by (1.3, -2, 0.6).
    changed[static_cast<std::size_t>(i)] = static_cast<std::complex<float>>(
        2.5 * std::polar(1.0, 0.9) * std::conj(value(-(z - 1.3), -(y + 2), -(x - 0.6))));
  }
  const AlignedObject aligned = align(changed, truth, grid);
  EXPECT_TRUE(aligned.twin);
  EXPECT_GT(aligned.overlap, 0.999);
  double worst = 0;
  for (std::size_t i = 0; i < truth.size(); ++i)
    worst = std::max(worst, static_cast<double>(std::abs(aligned.object[i] - truth[i])));
  EXPECT_LT(worst, 0.03);
  const AlignedObject direct = align(truth, truth, grid);
  EXPECT_FALSE(direct.twin);
  EXPECT_NEAR(direct.overlap, 1, 1e-6);
}

TEST(PhaseAlignment, ComparisonSeesShapeAndPhase) {
  const Field truth = crystal_field(5);
  EXPECT_EQ(compare_shapes(truth, truth, grid).iou, 1);
  EXPECT_NEAR(compare_shapes(truth, truth, grid).ssim, 1, 1e-6);
  EXPECT_NEAR(compare_shapes(truth, truth, grid).phase_rms, 0, 1e-6);
  Field bent = truth, empty(truth.size());
  for (std::size_t i = 0; i < bent.size(); ++i) bent[i] *= std::polar(1.0f, i % 2 ? 0.3f : -0.3f);
  EXPECT_NEAR(compare_shapes(bent, truth, grid).phase_rms, 0.3, 0.01);
  EXPECT_NEAR(compare_shapes(bent, truth, grid).phase_mean, 0.3, 0.01);
  EXPECT_EQ(compare_shapes(empty, truth, grid).iou, 0);
  EXPECT_LT(compare_shapes(empty, truth, grid).ssim, 0.9);
}

// A constant against another: only the first factor of the index is not 1.
TEST(PhaseAlignment, StructuralSimilarityOfConstants) {
  const std::vector<float> a(512, 0.5f), b(512, 0.8f);
  EXPECT_NEAR(structural_similarity(a, b, {8, 8, 8}), (2 * 0.4 + 1e-4) / (0.25 + 0.64 + 1e-4), 1e-6);
}

TEST(PhaseAlignment, CentredPutsTheMassInTheMiddle) {
  Field field(static_cast<std::size_t>(n * n * n));
  field[static_cast<std::size_t>((1 * n + 22) * n + 5)] = 2;
  const Field moved = centered(field, grid);
  EXPECT_EQ(moved[static_cast<std::size_t>((half * n + half) * n + half)], 2.0f);
}

double value_of(const Report& report, const std::string& name) {
  for (const Metric& metric : report.metrics)
    if (metric.name == name) return metric.value;
  ADD_FAILURE() << "no metric " << name;
  return NAN;
}

TEST(PhaseRetrievalCommand, RetrievesTheCrystalsOfAFile) {
  const ScratchFolder folder;
  ThreadPool pool(3), alone(1);
  const auto generator_entry = data::autophasenn_generator();
  const Options made(generator_entry.options, std::vector<std::string>{"size=24", "diameter=0.6..0.8",
                                                                       "photons=1e7", "dislocations=0"});
  generator_entry.make(made)->write({folder / "crystals.h5", 3, 2, &pool});
  const Entry& entry = find_baseline("autophasenn");
  const Options options(entry.options, std::vector<std::string>{"starts=2", "iterations=150"});
  const Report report =
      entry.run({folder / "crystals.h5", folder / "found.h5", folder / "page.html", &pool}, options);
  EXPECT_GT(value_of(report, "iou"), 0.7);
  EXPECT_LT(value_of(report, "chi2"), 0.02);
  EXPECT_GT(std::filesystem::file_size(folder / "page.html"), 5000u);

  entry.run({folder / "crystals.h5", folder / "again.h5", {}, &alone}, options);
  const data::Hdf5File found(folder / "found.h5"), again(folder / "again.h5");
  EXPECT_EQ(found.info("amp").shape, (Shape{2, 12, 12, 12}));
  for (const char* name : {"amp", "phase", "chi2"}) {
    const Tensor a = found.read(name, ElementType::f64), b = again.read(name, ElementType::f64);
    EXPECT_EQ(std::memcmp(a.bytes(), b.bytes(), a.byte_count()), 0) << name;
  }
}

TEST(PhaseRetrievalCommand, NamesWhatIsWrongWithAFile) {
  const ScratchFolder folder;
  ThreadPool pool(1);
  const Entry& entry = find_baseline("autophasenn");
  const auto message = [&](const std::vector<std::string>& assignments) -> std::string {
    try {
      entry.run({folder / "a.h5", {}, {}, &pool}, Options(entry.options, assignments));
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  const auto write = [&](const Shape& shape) {
    data::Hdf5Writer file(folder / "a.h5");
    file.write("diff", Tensor(ElementType::f32, shape));
    file.close();
  };
  write({2, 16, 16, 12});
  EXPECT_NE(message({}).find("'diff'"), std::string::npos) << message({});
  write({2, 16, 16, 16});
  EXPECT_NE(message({}).find("no count"), std::string::npos) << message({});
  EXPECT_NE(message({"starts=0"}).find("starts"), std::string::npos);
  const auto write_values = [&](float value, bool last_alone) {
    Tensor diff = Tensor::full(ElementType::f32, {2, 16, 16, 16}, last_alone ? 0 : value);
    diff.set(16 * 16 * 16 - 1, value);
    data::Hdf5Writer file(folder / "a.h5");
    file.write("diff", diff);
    file.close();
  };
  write_values(NAN, true);
  EXPECT_NE(message({}).find("crystal 0: a magnitude of nan"), std::string::npos) << message({});
  write_values(1, true);  // one frequency alone: an object as large as the grid
  EXPECT_NE(message({}).find("larger than half of its grid"), std::string::npos) << message({});
}

// Files of answers: the true crystals, and others.
class AnswersAtHand : public ::testing::Test {
 protected:
  AnswersAtHand() {
    const auto generator = data::autophasenn_generator();
    const Options made(generator.options, std::vector<std::string>{"size=24", "diameter=0.6..0.8",
                                                                   "photons=1e7", "dislocations=0"});
    generator.make(made)->write({folder_ / "crystals.h5", 3, 2, &pool_});
    const data::Hdf5File file(folder_ / "crystals.h5");
    amplitude_ = file.read("amp", ElementType::f32);
    phase_ = file.read("phase", ElementType::f32);
  }
  void write(const char* name, const Tensor& amplitude, const Tensor& phase) {
    data::Hdf5Writer file(folder_ / name);
    file.write("amp", amplitude);
    file.write("phase", phase);
    file.set_attribute("", "seconds_per_sample", 0.25);
    file.close();
  }
  Report run(const std::string& start) {
    const Entry& entry = find_baseline("autophasenn");
    return entry.run(
        {folder_ / "crystals.h5", {}, folder_ / "page.html", &pool_},
        Options(entry.options, std::vector<std::string>{"starts=2", "iterations=100", "start=" + start}));
  }
  std::string message(const std::string& start) {
    try {
      run(start);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

  ScratchFolder folder_;
  ThreadPool pool_{2};
  Tensor amplitude_, phase_;
};

TEST_F(AnswersAtHand, StandBesideRetrievalsAndAreContinued) {
  write("true.h5", amplitude_.reshaped({2, 1, 12, 12, 12}), phase_.reshaped({2, 1, 12, 12, 12}));
  Tensor flat(ElementType::f32, phase_.shape()), block = Tensor::full(ElementType::f32, phase_.shape(), 0.0);
  for (std::int64_t i = 0; i < block.element_count(); ++i)
    if (i % 12 > 2 && i % 12 < 9 && i / 12 % 12 > 2 && i / 12 % 12 < 9) block.set(i, 1);
  write("block.h5", block, flat);
  const Report report = run((folder_ / "true.h5").string() + "," + (folder_ / "block.h5").string());
  EXPECT_LT(value_of(report, "true_chi2"), 1e-3);
  EXPECT_GT(value_of(report, "true_overlap"), 0.999);
  EXPECT_LT(value_of(report, "block_overlap"), 0.95);
  EXPECT_GT(value_of(report, "true_iou"), 0.99);
  EXPECT_LT(value_of(report, "true_phase_error_rms"), 0.05);
  EXPECT_GT(value_of(report, "block_chi2"), 20 * value_of(report, "true_chi2"));  // the control
  EXPECT_LT(value_of(report, "block_iou"), 0.9);
  EXPECT_LT(value_of(report, "block_continued_chi2"), value_of(report, "block_chi2"));
  for (const char* words :
       {"HIO and ER from true", "HIO and ER, the best of all", "time to equal block", "250 ms"})
    EXPECT_NE(report.text.find(words), std::string::npos) << words << "\n" << report.text;
  const std::string page = read_text_file(folder_ / "page.html");
  for (const char* words : {"class=\"moving\"", "from block", "On the way"})
    EXPECT_NE(page.find(words), std::string::npos) << words;
}

TEST_F(AnswersAtHand, AreNamedWhereTheyAreNone) {
  EXPECT_NE(message("none.h5").find("start: none.h5"), std::string::npos) << message("none.h5");
  const std::string path = (folder_ / "a.h5").string();
  write("a.h5", Tensor(ElementType::f32, {1, 1, 12, 12, 12}), phase_);  // one crystal too few
  EXPECT_NE(message(path).find("[2,1,12,12,12]"), std::string::npos) << message(path);
  EXPECT_NE(message(path).find("a.h5: data set 'amp'"), std::string::npos) << message(path);
  Tensor empty(ElementType::f32, amplitude_.shape());
  write("a.h5", empty, phase_);
  EXPECT_NE(message(path).find("crystal 0 is empty"), std::string::npos) << message(path);
  Tensor holed = phase_.clone();
  holed.set(holed.element_count() - 1, NAN);
  write("a.h5", Tensor::full(ElementType::f32, amplitude_.shape(), 1), holed);
  EXPECT_NE(message(path).find("crystal 1 holds what is not finite"), std::string::npos) << message(path);
}

}  // namespace
}  // namespace superstep::baseline
