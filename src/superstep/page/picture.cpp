#include "superstep/page/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "superstep/base/encoding/base64.h"

namespace superstep::page {
namespace {

// The strokes of a mark around (0, 0), about ten units across.
const char* outline(Mark::Shape shape) {
  switch (shape) {
    case Mark::Shape::cross: return "M-4 -4L4 4M-4 4L4 -4";
    case Mark::Shape::plus: return "M-5 0H5M0 -5V5";
    case Mark::Shape::circle: return "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0";
  }
  return "";
}

// A dark halo keeps a bright mark visible on a bright picture.
std::string strokes(const std::string& path, const std::string& color) {
  return fmt::format("<path class=\"halo\" d=\"{}\"/><path class=\"mark\" d=\"{}\" style=\"stroke:{}\"/>",
                     path, path, escape(color));
}

std::string mark_strokes(const Mark& mark) { return strokes(outline(mark.shape), mark.color); }

std::string png_address(const Image& image) {
  return "data:image/png;base64," + base64_encode(encode_png(image));
}

// Where an inset lies in its picture, in pixels from the picture's left and top edges, and how many units of
// its drawing a pixel has.
struct View {
  double left, top, side, zoom, size;
  View(const Inset& inset, double drawing)
      : left(inset.x + 0.5 - inset.side / 2),
        top(inset.y + 0.5 - inset.side / 2),
        side(inset.side),
        zoom(drawing / inset.side),
        size(drawing) {}
};

std::string marks_at(const std::vector<Mark>& marks, double left, double top, double zoom) {
  std::string svg;
  for (const Mark& mark : marks)
    svg += fmt::format("<g transform=\"translate({:.2f} {:.2f})\">{}</g>", (mark.x + 0.5 - left) * zoom,
                       (mark.y + 0.5 - top) * zoom, mark_strokes(mark));
  return svg;
}

// The overlay counts CSS pixels of the enlarged picture; the centre of the first pixel is (0, 0) of a mark.
std::string overlay(const Picture& picture) {
  const int scale = picture.scale;
  std::string svg = fmt::format("<svg viewBox=\"0 0 {} {}\" aria-hidden=\"true\">",
                                picture.image.width * scale, picture.image.height * scale);
  if (picture.inset) {
    const View view(*picture.inset, picture.inset->side * scale);
    for (const char* line : {"halo", "frame"})  // the frame may lie in a white pixel
      svg += fmt::format("<rect class=\"{}\" x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\"/>",
                         line, view.left * scale, view.top * scale, view.size, view.size);
  } else {
    svg += marks_at(picture.marks, 0, 0, scale);
  }
  return svg + "</svg>";
}

// A length of about a third of the inset, 1, 2 or 5 times a power of ten.
double round_length(double side) {
  const double third = side / 3, decade = std::pow(10, std::floor(std::log10(third)));
  return decade * (third / decade < 2 ? 1 : third / decade < 5 ? 2 : 5);
}

std::string scale_line(const View& view) {
  const double length = round_length(view.side), y = view.size - 7;
  return strokes(fmt::format("M7 {:.1f}h{:.1f}", y, length * view.zoom), "#fff") +
         fmt::format("<text class=\"scale\" x=\"7\" y=\"{:.1f}\">{:g} px</text>", y - 5, length);
}

std::string inset(const Picture& picture, const std::string& address) {
  const double drawing = picture.image.height * picture.scale;
  const View view(*picture.inset, drawing);
  return fmt::format(
      "<svg class=\"inset\" viewBox=\"0 0 {0:g} {0:g}\" role=\"img\" aria-label=\"magnified\">"
      "<image href=\"{1}\" x=\"{2:.2f}\" y=\"{3:.2f}\" width=\"{4:.2f}\" height=\"{5:.2f}\" "
      "preserveAspectRatio=\"none\"/>{6}{7}</svg>",
      drawing, address, -view.left * view.zoom, -view.top * view.zoom, picture.image.width * view.zoom,
      picture.image.height * view.zoom, marks_at(picture.marks, view.left, view.top, view.zoom),
      scale_line(view));
}

// A window as wide as a frame, behind which the strip of all frames moves on by one at a time.
std::string moving(const Picture& picture, const std::string& caption) {
  const int width = picture.image.width / picture.frames * picture.scale;
  const int height = picture.image.height * picture.scale;
  return fmt::format(
      "<figure style=\"width:{0}px\"><div class=\"moving\" style=\"width:{0}px;height:{1}px\">"
      "<img width=\"{2}\" height=\"{1}\" style=\"--frames:{3}\" alt=\"{4}\" src=\"{5}\"></div>{6}</figure>",
      width, height, width * picture.frames, picture.frames, escape(picture.caption),
      png_address(picture.image), caption);
}

std::string figure(const Picture& picture) {
  const std::string caption =
      picture.caption.empty() ? "" : "<figcaption>" + escape(picture.caption) + "</figcaption>";
  if (picture.frames > 1) return moving(picture, caption);
  const std::string address = png_address(picture.image);
  const int width = picture.image.width * picture.scale, height = picture.image.height * picture.scale;
  const bool drawn = !picture.marks.empty() || picture.inset;
  const std::string image = fmt::format(
      "<div class=\"picture\" style=\"width:{}px\"><img{} width=\"{}\" height=\"{}\" alt=\"{}\" "
      "src=\"{}\">{}</div>",
      width, picture.scale > 1 ? " class=\"enlarged\"" : "", picture.image.width, picture.image.height,
      escape(picture.caption), address, drawn ? overlay(picture) : "");
  if (!picture.inset) return fmt::format("<figure style=\"width:{}px\">{}{}</figure>", width, image, caption);
  constexpr int gap = 4;
  return fmt::format(
      "<figure style=\"width:{}px\"><div class=\"pair\">{}<div style=\"width:{}px\">{}</div>"
      "</div>{}</figure>",
      width + gap + height, image, height, inset(picture, address), caption);
}

// One entry for every label, in the order they first appear.
std::string marks_legend(const std::vector<Picture>& pictures) {
  std::vector<std::string> seen;
  std::string html;
  for (const Picture& picture : pictures)
    for (const Mark& mark : picture.marks) {
      if (mark.label.empty() || std::ranges::find(seen, mark.label) != seen.end()) continue;
      seen.push_back(mark.label);
      html += fmt::format("<span><svg viewBox=\"-8 -8 16 16\" aria-hidden=\"true\">{}</svg>{}</span>",
                          mark_strokes(mark), escape(mark.label));
    }
  return html;
}

std::string strip_of(const ColorBar& bar) {
  std::vector<float> ramp;
  for (int i = 0; i < 128; ++i) ramp.push_back(static_cast<float>(i));
  return png_address(colored(ramp, 128, 1, bar.map, 0.0f, 127.0f));
}

std::string bars_legend(const std::vector<Picture>& pictures) {
  std::vector<std::tuple<Colormap, std::string, std::string, std::string>> seen;
  std::string html;
  for (const Picture& picture : pictures) {
    if (!picture.bar) continue;
    const ColorBar& bar = *picture.bar;
    const std::tuple entry(bar.map, bar.low, bar.high, bar.label);
    if (std::ranges::find(seen, entry) != seen.end()) continue;
    seen.push_back(entry);
    html += fmt::format("<span class=\"colors\">{} <img alt=\"to\" src=\"{}\"> {}{}</span>", escape(bar.low),
                        strip_of(bar), escape(bar.high), bar.label.empty() ? "" : ": " + escape(bar.label));
  }
  return html;
}

}  // namespace

ColorBar phase_bar() { return {Colormap::phase, "\u2212π", "π", "phase, rad"}; }

Inset inset_around(std::span<const Mark> marks, double least) {
  if (marks.empty()) return {0, 0, least};
  const auto [left, right] = std::ranges::minmax_element(marks, {}, &Mark::x);
  const auto [top, bottom] = std::ranges::minmax_element(marks, {}, &Mark::y);
  const double extent = std::max(right->x - left->x, bottom->y - top->y);
  return {(left->x + right->x) / 2, (top->y + bottom->y) / 2, std::max(least, 1.6 * extent)};
}

std::string group_of(const std::vector<Picture>& pictures) {
  std::string html = "<div class=\"pictures\">";
  for (const Picture& picture : pictures) html += figure(picture) + "\n";
  const std::string legend = marks_legend(pictures) + bars_legend(pictures);
  return html + (legend.empty() ? "" : "<div class=\"legend\">" + legend + "</div>") + "</div>\n";
}

}  // namespace superstep::page
