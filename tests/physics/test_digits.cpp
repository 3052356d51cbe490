#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "superstep/base/file.h"
#include "superstep/file/idx.h"
#include "superstep/physics/generator.h"
#include "superstep/physics/imaging/digits.h"
#include "tests/expect_error.h"
#include "tests/scratch.h"

namespace superstep::data {
namespace {

std::unique_ptr<Generator> make() {
  const GeneratorEntry& entry = find_generator("image-autoencoder");
  return entry.make(Options(entry.options, {}));
}

TEST(Digits, AreCentredByMassAndStayInsideTheImage) {
  for (std::uint64_t index = 0; index < 300; ++index) {
    RandomStream random(1, index);
    const Digit digit = draw_digit(random);
    double sum = 0, x_sum = 0, y_sum = 0, rim = 0;
    for (int y = 0; y < digit_size; ++y)
      for (int x = 0; x < digit_size; ++x) {
        const double ink = digit.pixels[static_cast<std::size_t>(y * digit_size + x)];
        sum += ink, x_sum += ink * (x + 0.5), y_sum += ink * (y + 0.5);
        if (x % 27 == 0 || y % 27 == 0) rim += ink;
      }
    EXPECT_NEAR(x_sum / sum, 14, 0.5) << index;
    EXPECT_NEAR(y_sum / sum, 14, 0.5) << index;
    EXPECT_EQ(rim, 0) << "digit " << digit.label << " at " << index << " touches the edge";
    EXPECT_GT(sum / 255, 25);
    EXPECT_LT(sum / 255, 260);
  }
}

TEST(Digits, ParametersCoverTheirRangesAndAllLabelsOccur) {
  double low[4] = {9, 9, 9, 9}, high[4] = {-9, -9, -9, -9};
  int counts[10] = {};
  for (std::uint64_t index = 0; index < 1000; ++index) {
    RandomStream random(2, index);
    const Digit digit = draw_digit(random);
    ++counts[digit.label];
    const double drawn[] = {digit.rotation, digit.shear, digit.scale, digit.width_px};
    for (int k = 0; k < 4; ++k) low[k] = std::min(low[k], drawn[k]), high[k] = std::max(high[k], drawn[k]);
  }
  const double from[] = {-0.2618, -0.2, 0.8, 2}, to[] = {0.2618, 0.2, 1.2, 4};
  for (int k = 0; k < 4; ++k) {
    EXPECT_GE(low[k], from[k]);
    EXPECT_LE(high[k], to[k]);
    EXPECT_GT(high[k] - low[k], 0.95 * (to[k] - from[k]));
  }
  for (int count : counts) EXPECT_NEAR(count, 100, 40);
}

// The mean images of 500 digits recognise others of their kind: the labels belong to the images.
TEST(Digits, NearestMeanImageRecognisesMost) {
  ThreadPool pool(2);
  const auto generator = make();
  const auto known = generate_in_memory(*generator, 1, 0, 500, pool);
  const auto asked = generate_in_memory(*generator, 1, 500, 200, pool);
  std::vector<std::vector<double>> mean(10, std::vector<double>(784, 0.0));
  double count[10] = {};
  for (std::size_t k = 0; k < 500; ++k) {
    const auto label = known[1].as<std::uint8_t>()[k];
    ++count[label];
    for (std::size_t i = 0; i < 784; ++i) mean[label][i] += known[0].as<std::uint8_t>()[784 * k + i];
  }
  int right = 0;
  for (std::size_t k = 0; k < 200; ++k) {
    double best = 1e300;
    std::size_t found = 0;
    for (std::size_t d = 0; d < 10; ++d) {
      double distance = 0;
      for (std::size_t i = 0; i < 784; ++i)
        distance += std::pow(mean[d][i] / count[d] - asked[0].as<std::uint8_t>()[784 * k + i], 2);
      if (distance < best) best = distance, found = d;
    }
    right += found == asked[1].as<std::uint8_t>()[k];
  }
  EXPECT_GT(right, 120);
}

TEST(Digits, SameBitsOnAnyNumberOfThreads) {
  ThreadPool one(1), three(3);
  const auto generator = make();
  const auto a = generate_in_memory(*generator, 7, 10, 30, one),
             b = generate_in_memory(*generator, 7, 10, 30, three);
  const auto other = generate_in_memory(*generator, 8, 10, 30, one);
  EXPECT_EQ(std::memcmp(a[0].bytes(), b[0].bytes(), a[0].byte_count()), 0);
  EXPECT_NE(std::memcmp(a[0].bytes(), other[0].bytes(), a[0].byte_count()), 0);
}

TEST(Idx, WritesWhatMnistReadersExpect) {
  const ScratchFolder folder;
  ThreadPool pool(2);
  const auto generator = make();
  generator->write({folder / "train-images-idx3-ubyte", 1, 20, &pool});
  const std::string images = read_text_file(folder / "train-images-idx3-ubyte");
  EXPECT_EQ(images.substr(0, 16), std::string("\0\0\x08\x03\0\0\0\x14\0\0\0\x1c\0\0\0\x1c", 16));
  EXPECT_EQ(images.size(), 16u + 20 * 784);
  EXPECT_EQ(read_text_file(folder / "train-labels-idx1-ubyte").substr(0, 8),
            std::string("\0\0\x08\x01\0\0\0\x14", 8));
  generator->write({folder / "t-images-idx3-ubyte.gz", 1, 20, &pool});
  EXPECT_LT(std::filesystem::file_size(folder / "t-images-idx3-ubyte.gz"), images.size() / 2);
  const Tensor plain = read_idx(folder / "train-images-idx3-ubyte"),
               packed = read_idx(folder / "t-images-idx3-ubyte.gz");
  EXPECT_EQ(plain.shape(), (Shape{20, 28, 28}));
  EXPECT_EQ(std::memcmp(plain.bytes(), packed.bytes(), plain.byte_count()), 0);
  EXPECT_EQ(read_idx(folder / "t-labels-idx1-ubyte.gz").shape(), (Shape{20}));
}

TEST(Idx, ReadsBigEndianFloats) {
  const ScratchFolder folder;
  write_file_atomically(folder / "f", std::string_view("\0\0\x0d\x01\0\0\0\x02\x3f\x80\0\0\xc0\x20\0\0", 16));
  const Tensor values = read_idx(folder / "f");
  EXPECT_EQ(values.as<float>()[0], 1.0f);
  EXPECT_EQ(values.as<float>()[1], -2.5f);
}

TEST(Idx, RefusesDamage) {
  const ScratchFolder folder;
  const auto refused = [&](std::string_view bytes, const std::string& message) {
    write_file_atomically(folder / "bad", bytes);
    expect_error(ErrorCode::bad_file, {"bad", message}, [&] { read_idx(folder / "bad"); });
  };
  refused("", "ends too early");
  refused("hello world", "is not an IDX file");
  refused(std::string_view("\0\0\x08\x01\0\0\0\x05"
                           "abc",
                           11),
          "ends too early");
  refused(std::string_view("\0\0\x08\x01\xff\xff\xff\xff"
                           "abc",
                           11),
          "ends too early");
  refused(std::string_view("\0\0\x08\x01\0\0\0\x02"
                           "abc",
                           11),
          "is longer than its shape [2]");
  expect_error(ErrorCode::not_found, {"none"}, [&] { read_idx(folder / "none"); });
  EXPECT_THROW(IdxWriter(folder / "w", {3}).close(), Error);
  EXPECT_FALSE(std::filesystem::exists(folder / "w"));
}

}  // namespace
}  // namespace superstep::data
