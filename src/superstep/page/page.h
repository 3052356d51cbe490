// Self-contained HTML pages: headings, text, tables, pictures and plots in one file, readable in light and
// dark, on paper and without a network. Pictures are inline PNG, plots inline SVG; no script is needed to
// read a page. With one, tables sort and filter, and plots tell their values and enlarge (script.h).
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace superstep::page {

// Text with &, <, >, " and ' made safe for HTML; control characters and bytes that are not UTF-8 become
// U+FFFD.
std::string escape(std::string_view text);

// A picture of 8-bit RGB pixels, row-major from the top left.
struct Image {
  int width = 0, height = 0;
  std::vector<std::uint8_t> rgb;
};

// `phase` is cyclic: for angles in [-pi, pi]; `difference` is white at zero, blue below and red above.
enum class Colormap { gray, viridis, phase, difference };

using Color = std::array<std::uint8_t, 3>;  // red, green, blue
inline constexpr Color wrong_color = {255, 0, 255}, no_value_color = {136, 136, 136};

// The smallest and largest finite value; 0 and 1 where there is none.
struct ValueRange {
  float low, high;
};
ValueRange finite_range(std::span<const float> values);

// Maps values (row-major, height x width) to colours, `low` to the first and `high` to the last; without
// them the smallest and largest finite value (`phase`: -pi and pi; `difference`: as far on both sides of
// zero). NaN is drawn in `missing`: as a mistake, unless the caller means it. Throws Error (invalid_argument)
// when the number of values is not width x height.
Image colored(std::span<const float> values, int width, int height, Colormap map,
              std::optional<float> low = {}, std::optional<float> high = {}, Color missing = wrong_color);

// A PNG file of the picture. Throws Error (invalid_argument) for a picture without pixels.
std::vector<std::byte> encode_png(const Image& image);

// A mark on a picture, in pixel coordinates of the picture: (0, 0) is the centre of the first pixel.
struct Mark {
  enum class Shape { cross, circle, plus } shape = Shape::cross;
  double x = 0, y = 0;
  std::string color;  // a CSS colour
  std::string label;  // shown in the legend under the group of pictures; once a label
};

// What the colours of a picture mean: its map, with words at either end ("-pi", "0.8").
struct ColorBar {
  Colormap map = Colormap::viridis;
  std::string low, high, label;  // the label: "phase, rad"
};
ColorBar phase_bar();  // of angles, -pi to pi

// A square part of a picture, in its pixel coordinates, drawn again beside it at the size of the whole.
struct Inset {
  double x = 0, y = 0, side = 1;  // the centre, and pixels across
};

// The smallest inset with all marks well inside it, but not below `least` pixels across.
Inset inset_around(std::span<const Mark> marks, double least);

struct Picture {
  Image image;
  std::string caption;
  std::vector<Mark> marks;
  int scale = 1;                     // CSS pixels a pixel; shown without smoothing
  std::optional<ColorBar> bar = {};  // in the legend under the group of pictures; equal ones once
  std::optional<Inset> inset = {};   // has a line of a round length in pixels
  // Side by side in the image, and shown one after another, again and again; the first alone on paper and to
  // readers who want no motion, and whichever there is while the pointer rests on it.
  int frames = 1;
};

struct Series {
  std::string label;
  std::vector<double> x, y;
  std::vector<double> low, high;  // a band around y; may be empty
  // An area is the full band alone: series that stand on each other are stacked.
  enum class Style { line, points, steps, bars, area } style = Style::line;
  double bar_width = 0;  // in units of x; 0 takes the smallest distance between two x
};

struct Plot {
  std::string title, x_label, y_label;
  bool log_x = false, log_y = false;
  std::vector<Series> series;
  struct Line {
    double value;
    std::string label;
  };
  std::vector<Line> horizontal, vertical;  // reference lines (a target, a peak)
};

// Counts of `values` in `bins` equal bins over [low, high], as a bar series. Values outside and NaN are not
// counted; a value on the edge of two bins belongs to the upper one, `high` to the last. When low == high
// the bins lie around that value.
Series histogram(std::string label, std::span<const double> values, double low, double high, int bins);

// Areas on top of each other, the first at the foot: y[k] of every series is its own share. Series without
// any are left out.
std::vector<Series> stacked(const std::vector<Series>& shares);

// An SVG drawing of the plot for a page, whose stylesheet gives it its colours: axes with round tick values
// (whole ones where all values are: epochs, tiles, counts), a legend, colours that can be told apart in
// light, dark and grey. Values that are not finite, and on a logarithmic axis those that are not positive,
// are left out and counted in a remark. Long series are thinned to what can be seen. Throws Error
// (invalid_argument) when x, y, low and high differ in length.
std::string to_svg(const Plot& plot);

// A bar of a list: `length` of the longest, of which `full` is drawn full and the rest faint.
struct Bar {
  std::string label, text;  // to its left and to its right
  double length = 1, full = 1;
  int color = 0;      // of a plot's series: 0 to 7
  std::string title;  // what the pointer on it tells
};

class Page {
 public:
  explicit Page(std::string title);

  Page& heading(std::string_view text, int level = 2);
  Page& paragraph(std::string_view text);  // plain text
  Page& preformatted(std::string_view text);
  // Cells that start like a number and are no sentence are set to the right. `main` are the rows that matter
  // most: they stand out.
  Page& table(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows,
              std::span<const std::size_t> main = {});
  // Samples of class `row` that were taken for class `column`, shaded by their share of the row.
  Page& confusion(const std::vector<std::string>& names,
                  const std::vector<std::vector<std::int64_t>>& counts);
  Page& bars(const std::vector<Bar>& bars);
  // Names and what is to be said of them, without a header.
  Page& facts(const std::vector<std::vector<std::string>>& rows);
  Page& pictures(const std::vector<Picture>& pictures);  // a group, wrapped like words, with one legend
  Page& plot(const Plot& plot);
  // What is added between the two stands side by side where there is room, one below the other where not.
  Page& begin_row();
  Page& end_row();
  // A group of one row that belongs together, top to bottom: what explains a plot beneath it.
  Page& begin_column();
  Page& end_column();
  Page& raw(std::string_view html);  // trusted HTML

  // Browsers read the page again after so many seconds: of what is still going on.
  Page& reloaded_every(int seconds);

  std::string to_html() const;
  void write(const std::filesystem::path& path) const;  // atomically; throws Error (io)

 private:
  std::string title_, body_;
  int reload_seconds_ = 0;  // 0: never
};

}  // namespace superstep::page
