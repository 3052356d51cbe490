// Slices of brains with the true and the found lesion.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "superstep/run/task/pictures.h"

namespace superstep::run {
namespace {

constexpr std::size_t each = 2;
constexpr int picture_pixels = 160;

// One slice: bytes of three planes, mask, probability.
struct Slice {
  int size = 0;
  std::vector<float> image, truth, found;

  double dice() const {
    double both = 0, either = 0;
    for (std::size_t i = 0; i < truth.size(); ++i) {
      const bool marked = found[i] >= 0.5f, lesion = truth[i] != 0;
      both += marked && lesion;
      either += static_cast<int>(marked) + static_cast<int>(lesion);
    }
    return either > 0 ? 2 * both / either : 1;
  }
  bool has_lesion() const {
    return std::ranges::any_of(truth, [](float value) { return value != 0; });
  }
};

Slice slice_at(const Fields& fields, const Predictions& found, std::size_t at) {
  const Tensor &images = fields.at("image"), &masks = fields.at("mask");
  Slice slice{.size = static_cast<int>(images.shape()[images.shape().rank() - 1]),
              .image = {},
              .truth = {},
              .found = {}};
  const auto pixels = std::int64_t{slice.size} * slice.size;
  const std::int64_t planes = images.element_count() / images.shape()[0] / pixels, index = found.indices[at];
  const auto probabilities = found.outputs[0].as<float>();
  for (std::int64_t k = 0; k < pixels; ++k) {
    // The middle plane is FLAIR, on which lesions are bright.
    slice.image.push_back(static_cast<float>(images.at((index * planes + planes / 2) * pixels + k)));
    slice.truth.push_back(static_cast<float>(masks.at(index * pixels + k)));
    slice.found.push_back(probabilities[at * static_cast<std::size_t>(pixels) + static_cast<std::size_t>(k)]);
  }
  return slice;
}

// Grey where both agree that there is nothing; green found, red missed, blue wrongly marked.
page::Image overlap(const Slice& slice) {
  page::Image image = page::colored(slice.image, slice.size, slice.size, page::Colormap::gray, 0.0f, 255.0f);
  const auto tint = [&](std::size_t pixel, std::array<int, 3> color) {
    for (std::size_t c = 0; c < 3; ++c) {
      std::uint8_t& channel = image.rgb[3 * pixel + c];
      channel = static_cast<std::uint8_t>((channel + 2 * color[c]) / 3);
    }
  };
  for (std::size_t i = 0; i < slice.truth.size(); ++i) {
    const bool marked = slice.found[i] >= 0.5f, lesion = slice.truth[i] != 0;
    if (marked && lesion) tint(i, {60, 200, 90});
    if (lesion && !marked) tint(i, {235, 50, 50});
    if (marked && !lesion) tint(i, {60, 130, 255});
  }
  return image;
}

void add_slice(page::Page& page, const Slice& slice, const std::string& title) {
  const int size = slice.size, scale = std::max(1, picture_pixels / size);
  const auto picture = [&](page::Image image, std::string caption) {
    return page::Picture{
        .image = std::move(image), .caption = std::move(caption), .marks = {}, .scale = scale};
  };
  using page::Colormap;
  std::vector<page::Picture> pictures{
      picture(page::colored(slice.image, size, size, Colormap::gray, 0.0f, 255.0f), "slice"),
      picture(page::colored(slice.truth, size, size, Colormap::gray, 0.0f, 1.0f), "true lesion"),
      picture(page::colored(slice.found, size, size, Colormap::viridis, 0.0f, 1.0f), "predicted"),
      picture(overlap(slice), "green: found, red: missed, blue: wrongly marked")};
  pictures[2].bar = page::ColorBar{Colormap::viridis, "0", "1", "probability of lesion"};
  page.begin_column().heading(title, 4).pictures(pictures).end_column();
}

}  // namespace

std::string present_lesions(const Fields& fields, const Predictions& found, page::Page& page) {
  std::vector<std::size_t> shown;
  std::vector<double> errors, overlaps;
  for (std::size_t i = 0; i < found.indices.size(); ++i) {
    const Slice slice = slice_at(fields, found, i);
    if (!slice.has_lesion()) continue;
    shown.push_back(i);
    overlaps.push_back(slice.dice());
    errors.push_back(1 - overlaps.back());
  }
  if (shown.empty()) {
    page.paragraph("None of these slices has a lesion.");
    return {};
  }
  page.plot({.title = "Dice of the slices with a lesion",
             .x_label = "Dice",
             .y_label = "slices",
             .series = {page::histogram("", overlaps, 0, 1, 25)}});
  page.begin_row();
  for (const Chosen& chosen : best_median_worst(errors, each)) {
    const std::size_t at = shown[chosen.at];
    add_slice(page, slice_at(fields, found, at),
              fmt::format("{}: sample {}, Dice {:.3f}", chosen.why, found.indices[at], overlaps[chosen.at]));
  }
  page.end_row();
  return {};
}

}  // namespace superstep::run
