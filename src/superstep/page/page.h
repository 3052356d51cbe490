// Self-contained HTML pages: headings, text, tables, pictures and plots in one file, readable in light and
// dark, on paper and without a network. Pictures are inline PNG, plots inline SVG; no script is needed to
// read a page.
#pragma once

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

enum class Colormap { gray, viridis, phase };  // `phase` is cyclic: for angles in [-pi, pi]

// Maps values (row-major, height x width) to colours, `low` to the first and `high` to the last; without
// them the smallest and largest finite value (`phase`: -pi and pi). NaN is drawn in magenta. Throws Error
// (invalid_argument) when the number of values is not width x height.
Image colored(std::span<const float> values, int width, int height, Colormap map,
              std::optional<float> low = {}, std::optional<float> high = {});

// A PNG file of the picture. Throws Error (invalid_argument) for a picture without pixels.
std::vector<std::byte> encode_png(const Image& image);

// A mark on a picture, in pixel coordinates of the picture: (0, 0) is the centre of the first pixel.
struct Mark {
  enum class Shape { cross, circle, plus } shape = Shape::cross;
  double x = 0, y = 0;
  std::string color;  // a CSS colour
  std::string label;  // shown in the legend under the group of pictures; once a label
};

struct Picture {
  Image image;
  std::string caption;
  std::vector<Mark> marks;
  int scale = 1;  // CSS pixels a pixel; shown without smoothing
};

struct Series {
  std::string label;
  std::vector<double> x, y;
  std::vector<double> low, high;  // a band around y; may be empty
  enum class Style { line, points, steps, bars } style = Style::line;
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

// An SVG drawing of the plot for a page, whose stylesheet gives it its colours: axes with round tick values,
// a legend, colours that can be told apart in light, dark and grey. Values that are not finite, and on a
// logarithmic axis those that are not positive, are left out and counted in a remark. Long series are
// thinned to what can be seen. Throws Error (invalid_argument) when x, y, low and high differ in length.
std::string to_svg(const Plot& plot);

class Page {
 public:
  explicit Page(std::string title);

  Page& heading(std::string_view text, int level = 2);
  Page& paragraph(std::string_view text);  // plain text
  Page& preformatted(std::string_view text);
  // Cells that start like a number and are no sentence are set to the right.
  Page& table(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows);
  Page& pictures(const std::vector<Picture>& pictures);  // a group, wrapped like words, with one legend
  Page& plot(const Plot& plot);
  Page& raw(std::string_view html);  // trusted HTML

  std::string to_html() const;
  void write(const std::filesystem::path& path) const;  // atomically; throws Error (io)

 private:
  std::string title_, body_;
};

}  // namespace superstep::page
