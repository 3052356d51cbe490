#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numbers>

#include "superstep/file/tiff.h"
#include "superstep/physics/generator.h"
#include "superstep/physics/imaging/mri_phantom.h"
#include "superstep/physics/imaging/mri_signal.h"
#include "tests/scratch.h"

namespace superstep::data {
namespace {

std::unique_ptr<Generator> make(const std::vector<std::string>& settings) {
  const GeneratorEntry& entry = find_generator("unet-256");
  return entry.make(Options(entry.options, settings));
}

TEST(MriSignal, TableOfFlairAndT1Weighting) {
  const struct {
    TissueKind kind;
    double flair, t1;
  } rows[] = {{TissueKind::white, .1505, .3808},
              {TissueKind::grey, .2024, .3322},
              {TissueKind::csf, .0073, .1385},
              {TissueKind::lesion, .2613, .2622},
              {TissueKind::fat, .1621, .6894}};
  for (const auto& row : rows) {
    EXPECT_NEAR(flair_signal(tissue_of(row.kind)), row.flair, 5.1e-5) << tissue_of(row.kind).name;
    EXPECT_NEAR(t1_weighted_signal(tissue_of(row.kind)), row.t1, 5.1e-5) << tissue_of(row.kind).name;
  }
  EXPECT_LT(flair_signal(tissue_of(TissueKind::csf)), 0.05 * flair_signal(tissue_of(TissueKind::white)));
  for (const auto& row : rows)
    if (row.kind != TissueKind::lesion) {
      EXPECT_GT(flair_signal(tissue_of(TissueKind::lesion)), flair_signal(tissue_of(row.kind)));
    }
  EXPECT_GT(t1_weighted_signal(tissue_of(TissueKind::white)),
            t1_weighted_signal(tissue_of(TissueKind::grey)));
}

TEST(MriSignal, ContrastAgentShortensT1AndBrightens) {
  const Tissue lesion = tissue_of(TissueKind::lesion), bright = with_contrast(lesion, 0.5);
  EXPECT_NEAR(1000 / bright.t1_ms, 1000 / lesion.t1_ms + 4.5 * 0.5, 1e-9);
  EXPECT_GT(t1_weighted_signal(bright), 1.5 * t1_weighted_signal(lesion));
}

TEST(MriSignal, RicianMoments) {
  double mean = 0, square = 0, offset = 0;
  constexpr int draws = 100000;
  RandomStream random(1);
  for (int i = 0; i < draws; ++i) {
    const double value = rician(random, 0, 2.0);
    mean += value / draws, square += value * value / draws;
    offset += std::pow(rician(random, 3.0, 2.0), 2) / draws;
  }
  EXPECT_NEAR(mean, 2 * std::sqrt(std::numbers::pi / 2), 0.02);
  EXPECT_NEAR(square, 2 * 4, 0.1);
  EXPECT_NEAR(offset, 9 + 2 * 4, 0.2);
}

struct Means {
  double sum[3] = {};
  double count = 0;
  double of(int channel) const { return sum[channel] / count; }
};

// Mean grey levels of the pixels that `select` picks.
template <class Select>
Means means_of(const MriSlice& slice, int size, Select select) {
  Means means;
  const auto plane = static_cast<std::size_t>(size * size);
  for (std::size_t i = 0; i < plane; ++i) {
    if (!select(i, static_cast<int>(i) % size, static_cast<int>(i) / size)) continue;
    for (std::size_t k = 0; k < 3; ++k) means.sum[k] += slice.pixels[k * plane + i];
    ++means.count;
  }
  return means;
}

TEST(MriPhantom, BackgroundIsRicianNoiseOfTheStatedLevel) {
  RandomStream anatomy(3, 0), noise(3, 1);
  const Head head(anatomy);
  const MriSlice slice = draw_slice(head, 0.1, 128, noise);
  const Means air =
      means_of(slice, 128, [](std::size_t, int x, int y) { return std::hypot(x - 64, y - 64) > 72; });
  // Mean of the magnitude of pure noise, in bytes of a full scale of 0.36 and 0.85.
  const double unit = std::sqrt(std::numbers::pi / 2) / head.signal_to_noise * 255;
  EXPECT_NEAR(air.of(1), unit * 0.1505 / 0.36, 0.25);
  EXPECT_NEAR(air.of(0), unit * 0.3808 / 0.85, 0.25);
}

TEST(MriPhantom, LesionIsBrightestInFlairAndEnhancesWithARim) {
  for (std::uint64_t patient = 0; patient < 12; ++patient) {
    RandomStream anatomy(4, patient), noise(4, patient, 1);
    const Head head(anatomy);
    const MriSlice slice = draw_slice(head, head.lesion.front().z, 128, noise);
    const Means lesion = means_of(slice, 128, [&](std::size_t i, int, int) { return slice.mask[i] != 0; });
    const Means rest = means_of(slice, 128, [&](std::size_t i, int, int) {
      return !slice.mask[i] && slice.pixels[128 * 128 + i] > 60;
    });
    if (lesion.count < 50) continue;
    if (head.necrosis > 1) {
      EXPECT_GT(lesion.of(1), 1.02 * rest.of(1)) << patient;
    }
    if (head.rim_contrast > 0)
      EXPECT_GT(lesion.of(2), 1.02 * lesion.of(0)) << patient;
    else
      EXPECT_NEAR(lesion.of(2), lesion.of(0), 2) << patient;
  }
}

TEST(MriGenerator, PatientsAreGroupsAndMostHaveALesion) {
  ThreadPool pool(2);
  const auto generator = make({"size=48", "slices=20"});
  const auto samples = generate_in_memory(*generator, 1, 0, 20 * 10, pool);
  int with_lesion = 0;
  double share = 0;
  for (std::int64_t patient = 0; patient < 10; ++patient) {
    double pixels = 0;
    for (std::int64_t slice = 0; slice < 20; ++slice) {
      const std::int64_t at = patient * 20 + slice;
      ASSERT_EQ(samples[2].at(at), patient);
      ASSERT_EQ(samples[3].at(at), slice);
      for (std::int64_t k = 0; k < 6; ++k)
        ASSERT_EQ(samples[5].at(at * 6 + k), samples[5].at(patient * 20 * 6 + k));
      for (std::int64_t i = 0; i < 48 * 48; ++i) pixels += samples[1].at(at * 48 * 48 + i);
    }
    with_lesion += pixels > 0;
    share += pixels / (20 * 48 * 48) / 10;
  }
  EXPECT_GE(with_lesion, 9);
  EXPECT_GT(share, 0.003);
  EXPECT_LT(share, 0.08);
}

TEST(MriGenerator, SameBitsOnAnyNumberOfThreadsAndInAnyOrder) {
  ThreadPool one(1), three(3);
  for (const char* which : {"case=mri", "case=stripes"}) {
    const auto generator = make({which, "size=64"});
    const auto a = generate_in_memory(*generator, 9, 30, 12, one),
               b = generate_in_memory(*generator, 9, 36, 6, three);
    for (std::size_t f = 0; f < a.size(); ++f)
      EXPECT_EQ(std::memcmp(a[f].bytes() + a[f].byte_count() / 2, b[f].bytes(), b[f].byte_count()), 0)
          << which;
  }
}

TEST(MriGenerator, WritesTheFoldersOfThePublicCollection) {
  const ScratchFolder folder;
  ThreadPool pool(2);
  const auto generator = make({"size=32", "slices=20"});
  generator->write({folder / "kaggle_3m", 1, 22, &pool});
  const auto samples = generate_in_memory(*generator, 1, 21, 1, pool);
  const Tensor image = read_tiff(folder / "kaggle_3m" / "case_0001" / "case_0001_2.tif");
  const Tensor mask = read_tiff(folder / "kaggle_3m" / "case_0001" / "case_0001_2_mask.tif");
  ASSERT_EQ(image.shape(), (Shape{1, 32, 32, 3}));
  for (std::int64_t i = 0; i < 32 * 32; ++i) {
    for (std::int64_t k = 0; k < 3; ++k) ASSERT_EQ(image.at(3 * i + k), samples[0].at(k * 32 * 32 + i));
    ASSERT_EQ(mask.at(i), 255 * samples[1].at(i));
  }
}

TEST(StripesGenerator, ImageShowsThePhasesOfTheMask) {
  ThreadPool pool(2);
  const auto samples = generate_in_memory(*make({"case=stripes", "size=96"}), 2, 0, 4, pool);
  for (std::int64_t k = 0; k < 4; ++k) {
    double sum[2] = {}, count[2] = {};
    for (std::int64_t i = 0; i < 96 * 96; ++i) {
      const auto phase = static_cast<std::size_t>(samples[1].at(k * 96 * 96 + i));
      sum[phase] += samples[0].at(k * 3 * 96 * 96 + i) / 255, ++count[phase];
    }
    EXPECT_NEAR(count[0] / (96 * 96), samples[4].at(k), 1e-6);
    EXPECT_GT(sum[0] / count[0], sum[1] / count[1] + 0.1);
  }
}

}  // namespace
}  // namespace superstep::data
