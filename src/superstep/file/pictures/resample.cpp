#include "superstep/file/pictures/resample.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace superstep::data {
namespace {

// Weights are integers, in units of 2^-22: what leaves room for the sum of bytes times weights in 32 bits.
constexpr int weight_bits = 32 - 8 - 2;

// Which pixels of a line make one of another, and how much of each.
struct Taps {
  int first = 0;
  std::vector<std::int32_t> weights;
};

// Of the output pixels [begin, end) of a line of `to` that is made of a line of `from`.
std::vector<Taps> taps_of(int from, std::int64_t to, std::int64_t begin, std::int64_t end) {
  const double scale = static_cast<double>(from) / static_cast<double>(to), width = std::max(scale, 1.0);
  std::vector<Taps> all;
  for (std::int64_t at = begin; at < end; ++at) {
    const double middle = (static_cast<double>(at) + 0.5) * scale;
    const int first = std::max(0, static_cast<int>(middle - width + 0.5));
    const int last = std::min(from, static_cast<int>(middle + width + 0.5));
    std::vector<double> weights;
    double sum = 0;
    for (int x = first; x < last; ++x) {
      weights.push_back(std::max(0.0, 1 - std::abs((x - middle + 0.5) * (1 / width))));
      sum += weights.back();
    }
    Taps taps{.first = first, .weights = {}};
    for (const double weight : weights)
      taps.weights.push_back(static_cast<std::int32_t>(0.5 + weight / sum * (1 << weight_bits)));
    all.push_back(std::move(taps));
  }
  return all;
}

std::uint8_t rounded(std::int32_t sum) {
  return static_cast<std::uint8_t>(std::clamp(sum >> weight_bits, 0, 255));
}

// Rows [first_row, first_row + rows) of a picture, each made of its pixels by the taps.
Picture across(const Picture& picture, const std::vector<Taps>& taps, int first_row, int rows) {
  Picture made{
      .width = static_cast<int>(taps.size()), .height = rows, .channels = picture.channels, .pixels = {}};
  const auto channels = static_cast<std::size_t>(picture.channels);
  made.pixels.resize(taps.size() * static_cast<std::size_t>(rows) * channels);
  std::uint8_t* to = made.pixels.data();
  for (int y = 0; y < rows; ++y) {
    const std::uint8_t* line = picture.pixels.data() + static_cast<std::size_t>(first_row + y) *
                                                           static_cast<std::size_t>(picture.width) * channels;
    for (const Taps& tap : taps)
      for (std::size_t c = 0; c < channels; ++c) {
        const std::uint8_t* from = line + static_cast<std::size_t>(tap.first) * channels + c;
        std::int32_t sum = 1 << (weight_bits - 1);
        for (const std::int32_t weight : tap.weights) sum += *from * weight, from += channels;
        *to++ = rounded(sum);
      }
  }
  return made;
}

// Each row made of the rows of `picture`, which begin with row `first_row` of the whole.
Picture down(const Picture& picture, const std::vector<Taps>& taps, int first_row) {
  Picture made{.width = picture.width,
               .height = static_cast<int>(taps.size()),
               .channels = picture.channels,
               .pixels = {}};
  const std::size_t row =
      static_cast<std::size_t>(picture.width) * static_cast<std::size_t>(picture.channels);
  made.pixels.resize(taps.size() * row);
  std::vector<std::int32_t> sums(row);
  std::uint8_t* to = made.pixels.data();
  for (const Taps& tap : taps) {
    std::ranges::fill(sums, 1 << (weight_bits - 1));
    const std::uint8_t* from = picture.pixels.data() + static_cast<std::size_t>(tap.first - first_row) * row;
    for (const std::int32_t weight : tap.weights) {
      for (std::size_t i = 0; i < row; ++i) sums[i] += from[i] * weight;
      from += row;
    }
    for (const std::int32_t sum : sums) *to++ = rounded(sum);
  }
  return made;
}

// Columns [left, left + columns) and rows [top, top + rows) of the picture resized to width x height; what
// lies outside is not made.
struct Window {
  std::int64_t left, top, columns, rows;
};

Picture resized_window(const Picture& picture, std::int64_t width, std::int64_t height,
                       const Window& window) {
  const auto columns = taps_of(picture.width, width, window.left, window.left + window.columns);
  const auto rows = taps_of(picture.height, height, window.top, window.top + window.rows);
  const int first_row = rows.front().first;
  const int last_row = rows.back().first + static_cast<int>(rows.back().weights.size());
  return down(across(picture, columns, first_row, last_row - first_row), rows, first_row);
}

// The size that a picture is brought to, and which part of it is taken.
struct Fit {
  std::int64_t width, height;
  Window window;
};

// Half of what is too much, ties to the even number, as torchvision's CenterCrop has it.
std::int64_t half_of(std::int64_t extra) {
  return static_cast<std::int64_t>(std::nearbyint(static_cast<double>(extra) / 2));
}

Fit fit_of(const Picture& picture, std::int64_t width, std::int64_t height) {
  Fit fit{.width = width, .height = height, .window = {0, 0, width, height}};
  if (width * picture.height >= height * picture.width)
    fit.height = width * picture.height / picture.width;
  else
    fit.width = height * picture.width / picture.height;
  fit.window.left = half_of(fit.width - width);
  fit.window.top = half_of(fit.height - height);
  return fit;
}

}  // namespace

Picture resized(const Picture& picture, int width, int height) {
  if (picture.width == width && picture.height == height) return picture;
  return resized_window(picture, width, height, {0, 0, width, height});
}

Picture covering(const Picture& picture, int width, int height) {
  if (picture.width == width && picture.height == height) return picture;
  const Fit fit = fit_of(picture, width, height);
  return resized_window(picture, fit.width, fit.height, fit.window);
}

Picture covering_nearest(const Picture& picture, int width, int height) {
  const Fit fit = fit_of(picture, width, height);
  Picture made{.width = width, .height = height, .channels = picture.channels, .pixels = {}};
  const auto place = [](std::int64_t at, std::int64_t from, std::int64_t to) {
    return static_cast<std::size_t>((2 * at + 1) * from / (2 * to));
  };
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      const std::size_t row = place(y + fit.window.top, picture.height, fit.height),
                        column = place(x + fit.window.left, picture.width, fit.width);
      const auto from = picture.pixels.begin() +
                        static_cast<std::ptrdiff_t>((row * static_cast<std::size_t>(picture.width) + column) *
                                                    static_cast<std::size_t>(picture.channels));
      made.pixels.insert(made.pixels.end(), from, from + picture.channels);
    }
  return made;
}

}  // namespace superstep::data
