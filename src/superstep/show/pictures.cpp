#include "superstep/show/pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>
#include <utility>

#include "superstep/show/plane.h"

namespace superstep::show {
namespace {

// CSS pixels: small pictures are enlarged to about the first, large ones reduced to at most the second.
constexpr int usual_size = 128, largest_size = 400;
// Larger planes are cut to their middle before they are read.
constexpr std::int64_t largest_extent = 4096;
// A mean this far below the largest value leaves a linear picture black.
constexpr double high_contrast = 30;
// A patch with one peak is shown with the peak's own pixels magnified; a frame with many is not.
constexpr int smallest_frame = 64;
constexpr double inset_side = 3;  // px across

// One plane of a data set: an index for the axes that have been fixed.
struct Cut {
  std::vector<std::pair<int, std::int64_t>> fixed;
  std::string caption;

  Cut with(std::optional<int> axis, std::int64_t index, const std::string& words) const {
    Cut cut = *this;
    if (axis) cut.fixed.emplace_back(*axis, index);
    if (!words.empty()) cut.caption += (caption.empty() ? "" : ", ") + words;
    return cut;
  }
};

// How numbers become colours, for every picture of a data set alike.
struct Coloring {
  page::Colormap map = page::Colormap::viridis;
  bool logarithmic = false;
};

struct Source {
  const ArrayFile& file;
  const data::DataSetInfo& info;
  const PictureLayout& layout;
  Shape shape;  // of the elements: without the axis that complex numbers add
};

std::int64_t extent(const Source& source, std::optional<int> axis) { return axis ? source.shape[*axis] : 1; }

// The part of the data set that `cut` leaves, cut to the middle where it is very large.
Tensor read(const Source& source, const Cut& cut, ElementType type) {
  std::vector<std::int64_t> first(static_cast<std::size_t>(source.shape.rank())),
      count = source.shape.extents();
  for (std::size_t axis = 0; axis < count.size(); ++axis) {
    const bool pairs = source.layout.complex_pairs && !source.info.complex && axis + 1 == count.size();
    if (pairs || count[axis] <= largest_extent) continue;
    first[axis] = (count[axis] - largest_extent) / 2;
    count[axis] = largest_extent;
  }
  for (const auto& [axis, index] : cut.fixed) {
    first[static_cast<std::size_t>(axis)] = index;
    count[static_cast<std::size_t>(axis)] = 1;
  }
  return source.file.read_block(source.info, type, first, count);
}

// Pixels of the plane for one of the picture.
int reduction(int width, int height) { return (std::max(width, height) + largest_size - 1) / largest_size; }

int enlargement(int width, int height) { return std::max(1, usual_size / std::max(width, height)); }

std::string range_text(const Plane& plane) {
  float low = INFINITY, high = -INFINITY;
  for (float value : plane.values)
    if (std::isfinite(value)) low = std::min(low, value), high = std::max(high, value);
  return low <= high ? fmt::format("{:.4g} to {:.4g}", low, high) : "no numbers";
}

// Every picture has its own range, which its caption tells.
page::ColorBar bar_of(const Coloring& coloring) {
  if (coloring.map == page::Colormap::phase) return page::phase_bar();
  return {coloring.map, coloring.logarithmic ? "10⁻⁴ of the most" : "least", "most",
          coloring.logarithmic ? "of a picture, logarithmic" : "of a picture"};
}

page::Picture picture_of(const Plane& plane, Coloring coloring, std::string caption) {
  const Plane small = reduced(plane, reduction(plane.width, plane.height));
  const Plane shown = coloring.logarithmic ? logarithm(small) : small;
  caption += (caption.empty() ? "" : ": ") + range_text(plane);
  return {page::colored(shown.values, shown.width, shown.height, coloring.map),
          std::move(caption),
          {},
          enlargement(shown.width, shown.height),
          bar_of(coloring)};
}

std::vector<page::Picture> real_pictures(const Source& source, const Cut& cut, Coloring coloring) {
  return {picture_of(plane_of(read(source, cut, ElementType::f32)), coloring, cut.caption)};
}

std::vector<page::Picture> complex_pictures(const Source& source, const Cut& cut, Coloring coloring) {
  const ComplexPlane plane = complex_plane_of(read(source, cut, ElementType::f32));
  const std::string prefix = cut.caption.empty() ? "" : cut.caption + ", ";
  return {picture_of(plane.amplitude, {page::Colormap::viridis, coloring.logarithmic}, prefix + "amplitude"),
          picture_of(plane.phase, {page::Colormap::phase, false}, prefix + "phase")};
}

// Colours of 0 to 255 for bytes, of 0 to 1 for everything else that fits, of the whole range otherwise.
std::pair<double, double> color_range(const Source& source, const Statistics& statistics) {
  if (source.info.type == ElementType::u8) return {0, 255};
  if (statistics.low >= 0 && statistics.high <= 1) return {0, 1};
  return {statistics.low, statistics.high};
}

page::Picture color_picture(const Source& source, const Cut& cut, const Statistics& statistics) {
  const auto [low, high] = color_range(source, statistics);
  page::Image image;
  for (std::size_t c = 0; c < 3; ++c) {
    const Tensor tensor =
        read(source, cut.with(source.layout.channel, static_cast<std::int64_t>(c), ""), ElementType::f32);
    const Plane full = plane_of(tensor), plane = reduced(full, reduction(full.width, full.height));
    const auto gray = page::colored(plane.values, plane.width, plane.height, page::Colormap::gray,
                                    static_cast<float>(low), static_cast<float>(high));
    image.width = gray.width, image.height = gray.height;
    image.rgb.resize(gray.rgb.size());
    for (std::size_t i = c; i < gray.rgb.size(); i += 3) image.rgb[i] = gray.rgb[i];
  }
  const int scale = enlargement(image.width, image.height);
  return {std::move(image), cut.caption, {}, scale};
}

// The planes of one sample: every channel, of volumes the three central slices.
std::vector<Cut> planes_of(const Source& source, const Cut& sample) {
  const PictureLayout& layout = source.layout;
  std::vector<Cut> cuts;
  const std::int64_t channels = extent(source, layout.channel);
  for (std::int64_t c = 0; c < channels; ++c) {
    const Cut channel = sample.with(layout.channel, c, channels > 1 ? fmt::format("channel {}", c) : "");
    if (!layout.depth) cuts.push_back(channel);
    for (const auto& [axis, name] : {std::pair{layout.depth, 'z'}, {layout.row, 'y'}, {layout.column, 'x'}})
      if (layout.depth)
        cuts.push_back(channel.with(axis, extent(source, axis) / 2,
                                    fmt::format("{} = {}", name, extent(source, axis) / 2)));
  }
  return cuts;
}

std::vector<page::Picture> pictures_of_sample(const Source& source, const Cut& sample,
                                              const Coloring& coloring, const Statistics& statistics) {
  if (source.layout.color) return {color_picture(source, sample, statistics)};
  std::vector<page::Picture> pictures;
  for (const Cut& cut : planes_of(source, sample))
    for (page::Picture& picture : source.layout.complex_pairs ? complex_pictures(source, cut, coloring)
                                                              : real_pictures(source, cut, coloring))
      pictures.push_back(std::move(picture));
  return pictures;
}

std::vector<std::int64_t> spread(std::int64_t count, std::int64_t wanted) {
  wanted = std::clamp<std::int64_t>(wanted, 1, count);
  std::set<std::int64_t> indices;
  for (std::int64_t i = 0; i < wanted; ++i) indices.insert(wanted == 1 ? 0 : (count - 1) * i / (wanted - 1));
  return {indices.begin(), indices.end()};
}

double contrast(const Plane& plane) {
  double largest = 0, sum = 0, count = 0;
  for (float value : plane.values) {
    if (!std::isfinite(value)) continue;
    largest = std::max<double>(largest, value), sum += value, ++count;
  }
  return sum > 0 ? largest * count / sum : 0;
}

bool is_high_contrast(const Source& source, const Cut& cut) {
  const Tensor tensor = read(source, cut, ElementType::f32);
  return contrast(source.layout.complex_pairs ? complex_plane_of(tensor).amplitude : plane_of(tensor)) >
         high_contrast;
}

bool is_angle(const Source& source, const Statistics& statistics, const std::string& unit) {
  // Phases that were rounded to f32 may exceed pi by a few units in the last place.
  const bool within_pi = std::max(-statistics.low, statistics.high) <= std::numbers::pi + 1e-5;
  const bool named = unit == "rad" || (unit.empty() && source.info.name.find("phase") != std::string::npos);
  return named && within_pi && !source.layout.complex_pairs && is_floating(*source.info.type);
}

// Masks and classes have no decades.
bool may_be_logarithmic(const Source& source, const Statistics& statistics) {
  if (source.layout.color) return false;
  if (source.layout.complex_pairs) return true;
  return statistics.low >= 0 && (is_floating(*source.info.type) || statistics.high > 16);
}

// Decided on the first plane, for all pictures alike.
Coloring coloring_of(const Source& source, const Statistics& statistics, const std::string& unit) {
  if (is_angle(source, statistics, unit)) return {page::Colormap::phase, false};
  const Cut first = planes_of(source, Cut().with(source.layout.sample, 0, "")).front();
  return {page::Colormap::viridis, may_be_logarithmic(source, statistics) && is_high_contrast(source, first)};
}

// Marks of the array's pixels on a picture that was reduced.
std::vector<page::Mark> placed(std::vector<page::Mark> marks, int factor) {
  for (page::Mark& mark : marks)
    mark.x = (mark.x + 0.5) / factor - 0.5, mark.y = (mark.y + 0.5) / factor - 0.5;
  return marks;
}

std::string remark_on(const Source& source, const Coloring& coloring, std::size_t shown, bool several) {
  std::string text;
  if (const std::int64_t samples = extent(source, source.layout.sample);
      samples > static_cast<std::int64_t>(shown))
    text += fmt::format("{} of {} samples, evenly spread. ", shown, samples);
  const std::int64_t height = source.shape[source.layout.row], width = source.shape[source.layout.column];
  if (std::max(height, width) > largest_extent)
    text += fmt::format("Only the middle {} pixels of a longer side are drawn. ", largest_extent);
  const int factor = reduction(static_cast<int>(std::min(width, largest_extent)),
                               static_cast<int>(std::min(height, largest_extent)));
  if (factor > 1) text += fmt::format("A pixel of a picture is the mean of {0} x {0}. ", factor);
  if (coloring.logarithmic) text += "Colors are logarithmic over four decades. ";
  if (several && !source.layout.color) text += "Each picture has its own range of colors, given below it.";
  return text;
}

}  // namespace

PictureGroup draw_pictures(const ArrayFile& file, const data::DataSetInfo& info, const PictureLayout& layout,
                           const Statistics& statistics, const std::string& unit, const PeakMarks& marks,
                           int wanted) {
  const Source source{file, info, layout, shape_of_elements(info)};
  const Coloring coloring = coloring_of(source, statistics, unit);
  const auto per_sample =
      layout.color ? 1
                   : extent(source, layout.channel) * (layout.depth ? 3 : 1) * (layout.complex_pairs ? 2 : 1);
  const auto width = static_cast<int>(source.shape[layout.column]),
             height = static_cast<int>(source.shape[layout.row]);
  const auto samples = spread(extent(source, layout.sample), wanted / per_sample);
  PictureGroup group{{}, remark_on(source, coloring, samples.size(), samples.size() * per_sample > 1)};
  for (std::int64_t index : samples) {
    const Cut sample = Cut().with(layout.sample, index, layout.sample ? fmt::format("#{}", index) : "");
    auto pictures = pictures_of_sample(source, sample, coloring, statistics);
    for (page::Picture& picture : pictures) {
      picture.marks = placed(marks.on(info.name, index), reduction(width, height));
      if (picture.marks.size() == 1 && picture.image.width <= smallest_frame)
        picture.inset = page::inset_around(picture.marks, inset_side);
    }
    std::ranges::move(pictures, std::back_inserter(group.pictures));
  }
  return group;
}

}  // namespace superstep::show
