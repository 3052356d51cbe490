#include "superstep/show/layout.h"

#include <vector>

namespace superstep::show {
namespace {

constexpr std::int64_t smallest_picture = 5, smallest_complex = 16, widest_table = 16, most_channels = 8;

bool pictorial(std::int64_t height, std::int64_t width) {
  return height >= smallest_picture && width >= smallest_picture;
}

std::optional<PictureLayout> matrix(const Shape& s) {
  const bool square = s[0] == s[1];
  if (!pictorial(s[0], s[1]) || (s[1] <= widest_table && !square)) return {};
  return PictureLayout{};
}

std::optional<PictureLayout> of_three_axes(const Shape& s, ElementType type) {
  if (s[2] == 3 && type == ElementType::u8 && pictorial(s[0], s[1]))
    return PictureLayout{{}, 2, {}, 0, 1, true, false};
  if (!pictorial(s[1], s[2])) return {};
  if (s[0] == s[1] && s[1] == s[2]) return PictureLayout{{}, {}, 0, 1, 2, false, false};
  return PictureLayout{0, {}, {}, 1, 2, false, false};
}

std::optional<PictureLayout> of_four_axes(const Shape& s, ElementType type) {
  if (s[3] == 3 && type == ElementType::u8 && pictorial(s[1], s[2]))
    return PictureLayout{0, 3, {}, 1, 2, true, false};
  if (!pictorial(s[2], s[3])) return {};
  if (s[1] > most_channels) return PictureLayout{0, {}, 1, 2, 3, false, false};
  return PictureLayout{0, 1, {}, 2, 3, s[1] == 3, false};
}

std::optional<PictureLayout> of_five_axes(const Shape& s) {
  if (!pictorial(s[3], s[4]) || s[1] > most_channels) return {};
  return PictureLayout{0, 1, 2, 3, 4, false, false};
}

std::optional<PictureLayout> of_real_array(const Shape& shape, ElementType type) {
  switch (shape.rank()) {
    case 2: return matrix(shape);
    case 3: return of_three_axes(shape, type);
    case 4: return of_four_axes(shape, type);
    case 5: return of_five_axes(shape);
    default: return {};
  }
}

std::optional<PictureLayout> of_pairs(const Shape& shape, ElementType type) {
  std::vector<std::int64_t> outer = shape.extents();
  outer.pop_back();
  auto layout = of_real_array(Shape(outer), type);
  if (layout) layout->complex_pairs = true, layout->color = false;
  return layout;
}

bool look_like_pairs(const Shape& s, ElementType type) {
  const int rank = s.rank();
  return rank >= 3 && s[rank - 1] == 2 && is_floating(type) && s[rank - 2] >= smallest_complex &&
         s[rank - 3] >= smallest_complex;
}

// A cube that turns out to be as many pictures.
void take_as_stack(PictureLayout& layout) {
  if (layout.depth == 0) layout.sample = layout.depth, layout.depth.reset();
}

}  // namespace

std::optional<PictureLayout> picture_layout(const Shape& shape, ElementType type, bool complex,
                                            bool rows_are_samples) {
  if (shape.element_count() == 0) return {};
  const bool pairs = complex || look_like_pairs(shape, type);
  auto layout = pairs ? of_pairs(shape, type) : of_real_array(shape, type);
  if (layout && rows_are_samples) take_as_stack(*layout);
  return layout;
}

}  // namespace superstep::show
