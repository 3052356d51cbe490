#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <tuple>

#include "superstep/base/file.h"
#include "superstep/data/cifar_file.h"
#include "superstep/data/cifar_images.h"
#include "superstep/data/generator.h"
#include "superstep/data/textures.h"
#include "tests/data/expect_error.h"
#include "tests/data/scratch.h"

namespace superstep::data {
namespace {

std::unique_ptr<Generator> make(const std::string& name, const std::vector<std::string>& settings = {}) {
  const GeneratorEntry& entry = find_generator(name);
  return entry.make(Options(entry.options, settings));
}

// How far the gradients of a texture prefer one direction: 0 none, 1 all of them.
double anisotropy(const std::vector<float>& texture, int size) {
  double xx = 0, xy = 0, yy = 0;
  for (int y = 0; y + 1 < size; ++y)
    for (int x = 0; x + 1 < size; ++x) {
      const auto at = static_cast<std::size_t>(y * size + x);
      const double gx = texture[at + 1] - texture[at],
                   gy = texture[at + static_cast<std::size_t>(size)] - texture[at];
      xx += gx * gx, xy += gx * gy, yy += gy * gy;
    }
  return std::hypot(xx - yy, 2 * xy) / (xx + yy);
}

TEST(Textures, FamiliesDifferInTheirStatistics) {
  constexpr TextureFamily families[] = {TextureFamily::waves, TextureFamily::clouds, TextureFamily::cells,
                                        TextureFamily::spots};
  double direction[4] = {}, saturated[4] = {};
  for (int f = 0; f < 4; ++f)
    for (std::uint64_t k = 0; k < 8; ++k) {
      RandomStream random(1, k);
      const std::vector<float> texture = draw_texture(random, families[f], 64, 8);
      ASSERT_EQ(texture.size(), 64u * 64u);
      direction[f] += anisotropy(texture, 64) / 8;
      for (float value : texture) {
        ASSERT_LE(std::abs(value), 1.0f);
        saturated[f] += (std::abs(value) > 0.7f) / 8.0 / 4096;
      }
    }
  EXPECT_GT(direction[0], 0.8);  // waves
  for (int f = 1; f < 4; ++f) EXPECT_LT(direction[f], 0.4) << f;
  EXPECT_GT(saturated[3], 2 * saturated[1]);  // spots are black and white, clouds grey
}

TEST(ClassImages, EveryClassIsAnotherCombination) {
  std::set<std::tuple<int, int, int>> seen;
  for (int label = 0; label < 100; ++label) {
    const ClassTraits traits = traits_of_class(label, 100);
    seen.insert({static_cast<int>(traits.texture), static_cast<int>(traits.shape), traits.palette});
  }
  EXPECT_EQ(seen.size(), 100u);
  seen.clear();
  for (int label = 0; label < 10; ++label) {
    const ClassTraits traits = traits_of_class(label, 10);
    EXPECT_EQ(traits.palette, -1);
    seen.insert({static_cast<int>(traits.texture), static_cast<int>(traits.shape), 0});
  }
  EXPECT_EQ(seen.size(), 10u);
}

// A softmax on pixels, fitted by stochastic gradient descent; the share of the unseen images that it gets
// right.
double linear_accuracy(const std::vector<Tensor>& samples, std::size_t known, int classes) {
  constexpr std::size_t pixels = 3 * 32 * 32;
  const auto image = samples[0].as<std::uint8_t>();
  const auto label = samples[1].as<std::uint8_t>();
  const auto c = static_cast<std::size_t>(classes);
  std::vector<float> weights(c * (pixels + 1), 0.0f), input(pixels + 1, 1.0f), score(c);
  const auto forward = [&](std::size_t k) {
    for (std::size_t i = 0; i < pixels; ++i) input[i] = image[k * pixels + i] / 255.0f - 0.5f;
    for (std::size_t j = 0; j < c; ++j) {
      float lanes[8] = {};
      const float* row = &weights[j * (pixels + 1)];
      for (std::size_t i = 0; i < pixels; i += 8)
        for (std::size_t l = 0; l < 8; ++l) lanes[l] += row[i + l] * input[i + l];
      score[j] = row[pixels];
      for (float lane : lanes) score[j] += lane;
    }
  };
  for (int epoch = 0; epoch < 5; ++epoch)
    for (std::size_t k = 0; k < known; ++k) {
      forward(k);
      const float top = *std::max_element(score.begin(), score.end());
      float sum = 0;
      for (float& value : score) sum += value = std::exp(value - top);
      for (std::size_t j = 0; j < c; ++j) {
        const float step = -0.002f * (score[j] / sum - (label[k] == j));
        for (std::size_t i = 0; i <= pixels; ++i) weights[j * (pixels + 1) + i] += step * input[i];
      }
    }
  double right = 0;
  for (std::size_t k = known; k < label.size(); ++k) {
    forward(k);
    right += std::max_element(score.begin(), score.end()) - score.begin() == label[k];
  }
  return right / static_cast<double>(label.size() - known);
}

TEST(ClassImages, ALinearSoftmaxOnPixelsStaysBelow45Percent) {
  ThreadPool pool(2);
  const auto samples = generate_in_memory(*make("cifar10-cnn"), 1, 0, 1800, pool);
  const double accuracy = linear_accuracy(samples, 1400, 10);
  RecordProperty("linear_softmax_accuracy", std::to_string(accuracy));
  EXPECT_LT(accuracy, 0.45);
  EXPECT_GT(accuracy, 0.05);
  // A control: the same fit learns labels that pixels do tell, here whether red outweighs green.
  auto easy = samples;
  easy[1] = samples[1].clone();
  for (std::size_t k = 0; k < 1800; ++k) {
    double red = 0, green = 0;
    for (std::size_t i = 0; i < 1024; ++i) {
      red += samples[0].as<std::uint8_t>()[k * 3072 + i];
      green += samples[0].as<std::uint8_t>()[k * 3072 + 1024 + i];
    }
    easy[1].as<std::uint8_t>()[k] = red > green;
  }
  EXPECT_GT(linear_accuracy(easy, 1400, 2), 0.85);
}

TEST(ClassImages, DifficultyAddsNoiseAndOcclusion) {
  ThreadPool pool(2);
  const auto mean_of = [&](const std::string& setting, std::int64_t which) {
    const auto samples = generate_in_memory(*make("resnet50", {setting}), 1, 0, 100, pool);
    double sum = 0;
    for (std::int64_t k = 0; k < 100; ++k) sum += samples[4].at(2 * k + which) / 100;
    return sum;
  };
  EXPECT_EQ(mean_of("difficulty=0", 0), 0);
  EXPECT_NEAR(mean_of("difficulty=1", 0), 0.125, 0.03);
  EXPECT_NEAR(mean_of("difficulty=0", 1), 0.01, 1e-6);
  EXPECT_NEAR(mean_of("difficulty=1", 1), 0.055, 0.01);
}

TEST(ClassImages, SameBitsOnAnyNumberOfThreadsAndSizes) {
  ThreadPool one(1), three(3);
  for (const char* name : {"cifar10-cnn", "resnet50"}) {
    const auto generator = make(name, {"size=32"});
    const auto a = generate_in_memory(*generator, 3, 5, 20, one),
               b = generate_in_memory(*generator, 3, 5, 20, three);
    for (std::size_t f = 0; f < a.size(); ++f)
      EXPECT_EQ(std::memcmp(a[f].bytes(), b[f].bytes(), a[f].byte_count()), 0);
  }
  EXPECT_EQ(make("resnet50", {"size=224"})->fields()[0].shape, (Shape{3, 224, 224}));
  expect_error(ErrorCode::invalid_argument, {"classes", "101"}, [] { make("resnet50", {"classes=101"}); });
}

TEST(ClassImages, BinaryFilesHaveTheRecordsOfCifar) {
  const ScratchFolder folder;
  ThreadPool pool(2);
  make("cifar10-cnn")->write({folder / "ten.bin", 1, 7, &pool});
  make("resnet50", {"size=32"})->write({folder / "hundred.bin", 1, 7, &pool});
  const std::string ten = read_text_file(folder / "ten.bin"),
                    hundred = read_text_file(folder / "hundred.bin");
  ASSERT_EQ(ten.size(), 7u * 3073);
  ASSERT_EQ(hundred.size(), 7u * 3074);
  const auto a = generate_in_memory(*make("cifar10-cnn"), 1, 0, 7, pool);
  const auto b = generate_in_memory(*make("resnet50", {"size=32"}), 1, 0, 7, pool);
  for (std::size_t k = 0; k < 7; ++k) {
    EXPECT_EQ(static_cast<std::uint8_t>(ten[3073 * k]), a[1].as<std::uint8_t>()[k]);
    EXPECT_EQ(std::memcmp(&ten[3073 * k + 1], a[0].bytes() + 3072 * k, 3072), 0);
    EXPECT_EQ(static_cast<std::uint8_t>(hundred[3074 * k]), b[2].as<std::uint8_t>()[k]);
    EXPECT_EQ(static_cast<std::uint8_t>(hundred[3074 * k + 1]), b[1].as<std::uint8_t>()[k]);
  }
  EXPECT_EQ(folder.file_count(), 2);

  const CifarFile read = read_cifar(folder / "hundred.bin", 100);
  EXPECT_EQ(std::memcmp(read.images.bytes(), b[0].bytes(), b[0].byte_count()), 0);
  EXPECT_EQ(std::memcmp(read.labels.bytes(), b[1].bytes(), 7), 0);
  EXPECT_EQ(std::memcmp(read.coarse.bytes(), b[2].bytes(), 7), 0);
  EXPECT_EQ(read_cifar(folder / "ten.bin", 10).images.shape(), (Shape{7, 3, 32, 32}));
  expect_error(ErrorCode::bad_file, {"ten.bin", "no whole number of records"},
               [&] { read_cifar(folder / "ten.bin", 100); });
  write_file_atomically(folder / "bad.bin", std::string(3073, '\x0b'));
  expect_error(ErrorCode::bad_file, {"bad.bin", "label 11"}, [&] { read_cifar(folder / "bad.bin", 10); });
}

}  // namespace
}  // namespace superstep::data
