#include <gtest/gtest.h>

#include <cstring>

#include "superstep/base/error.h"
#include "superstep/file/csv.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/file/tiff.h"
#include "superstep/physics/generator.h"
#include "superstep/physics/materials/conductivity.h"
#include "tests/scratch.h"

namespace superstep::data {
namespace {

std::unique_ptr<Generator> make(const std::vector<std::string>& assignments) {
  const GeneratorEntry& entry = find_generator("conductivity");
  return entry.make(Options(entry.options, assignments));
}

TEST(ConductivityGenerator, SameBitsOnAnyNumberOfThreadsAndInAnyOrder) {
  const auto generator = make({"size=64"});
  ThreadPool one(1), three(3);
  const auto a = generate_in_memory(*generator, 5, 0, 8, one),
             b = generate_in_memory(*generator, 5, 4, 4, three);
  const auto other = generate_in_memory(*generator, 6, 4, 4, one);
  for (std::size_t f = 0; f < a.size(); ++f)
    EXPECT_EQ(std::memcmp(a[f].bytes() + a[f].byte_count() / 2, b[f].bytes(), b[f].byte_count()), 0)
        << generator->fields()[f].name;
  EXPECT_NE(std::memcmp(b[0].bytes(), other[0].bytes(), b[0].byte_count()), 0);
}

TEST(ConductivityGenerator, LabelsAreTheSolutionOfTheImages) {
  ThreadPool pool(2);
  const auto samples = generate_in_memory(*make({"size=64", "crack-share=1"}), 2, 0, 6, pool);
  for (std::int64_t k = 0; k < 6; ++k) {
    const auto image = samples[0].as<std::uint8_t>().subspan(static_cast<std::size_t>(k) * 64 * 64, 64 * 64);
    const double sigma = samples[2].at(k), fraction = samples[5].at(k);
    const Conductivity solved = effective_conductivity(image, 64, 64, sigma, 0);
    EXPECT_NEAR(samples[3].at(k), solved.effective, 1e-6 * sigma);
    EXPECT_EQ(samples[4].at(k), solved.percolates);
    EXPECT_GE(sigma, 0.1);
    EXPECT_LE(sigma, 10);
    EXPECT_GT(fraction, 0.33);
    EXPECT_LT(fraction, 0.8);  // cracks come on top of at most 0.65
    EXPECT_GE(samples[8].at(k), 1);
  }
}

TEST(ConductivityGenerator, FractionIsReachedByBothKinds) {
  ThreadPool pool(2);
  for (const char* kind : {"kind=particles", "kind=field"}) {
    const auto samples = generate_in_memory(
        *make({kind, "fraction-low=0.45", "fraction-high=0.45", "crack-share=0"}), 3, 0, 3, pool);
    for (std::int64_t k = 0; k < 3; ++k) EXPECT_NEAR(samples[5].at(k), 0.45, 0.01) << kind;
  }
}

TEST(ConductivityGenerator, MicrographHasThePhasesAndTheStripes) {
  ThreadPool pool(1);
  const auto samples = generate_in_memory(*make({"size=128"}), 4, 0, 1, pool);
  const auto image = samples[0].as<std::uint8_t>(), sem = samples[1].as<std::uint8_t>();
  double sum[2] = {}, count[2] = {};
  for (std::size_t i = 0; i < image.size(); ++i) sum[image[i]] += sem[i] / 255.0, ++count[image[i]];
  const auto grey = samples[10].as<float>();
  EXPECT_NEAR(sum[1] / count[1], grey[0], 0.15);
  EXPECT_NEAR(sum[0] / count[0], grey[1], 0.15);
  EXPECT_GT(sum[0] / count[0], sum[1] / count[1] + 0.1);
  const auto stripes = samples[9].as<float>();
  for (std::size_t s = 0; s < 5; ++s) {
    EXPECT_GE(stripes[3 * s + 1], 1);
    EXPECT_LE(stripes[3 * s + 1], 4);
    EXPECT_GE(std::abs(stripes[3 * s + 2]), 0.05);
    EXPECT_LE(std::abs(stripes[3 * s + 2]), 0.25);
  }
}

TEST(ConductivityGenerator, WritesTiffAndTableThatAgreeWithHdf5) {
  const ScratchFolder folder;
  ThreadPool pool(2);
  const auto generator = make({"size=32"});
  generator->write({folder / "c.tif", 1, 70, &pool});
  generator->write({folder / "c.h5", 1, 70, &pool});
  EXPECT_EQ(folder.file_count(), 4);
  const Hdf5File file(folder / "c.h5");
  const Tensor image = file.read("image", ElementType::u8), pages = read_tiff(folder / "c.tif");
  EXPECT_EQ(read_tiff(folder / "c-sem.tif").shape(), pages.shape());
  ASSERT_EQ(pages.shape(), image.shape());
  for (std::int64_t i = 0; i < pages.element_count(); ++i) ASSERT_EQ(pages.at(i), 255 * image.at(i));
  const Tensor sigma = file.read("sigma_eff", ElementType::f32);
  CsvReader table(folder / "c.csv");
  for (std::int64_t k = 0; k < 70; ++k) {
    ASSERT_TRUE(table.next());
    EXPECT_EQ(static_cast<float>(table.number(table.column("sigma_eff"))),
              sigma.as<float>()[static_cast<std::size_t>(k)]);
  }
  EXPECT_FALSE(table.next());
}

TEST(ConductivityGenerator, RefusesOptionsOutOfRange) {
  EXPECT_THROW(make({"fraction-high=0.9"}), Error);
  EXPECT_THROW(make({"fraction-low=0.5", "fraction-high=0.4"}), Error);
  EXPECT_THROW(make({"kind=cubes"}), Error);
  EXPECT_THROW(make({"sizes=3"}), Error);
}

}  // namespace
}  // namespace superstep::data
