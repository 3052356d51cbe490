#include "superstep/page/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "superstep/base/base64.h"
#include "superstep/base/file.h"
#include "superstep/page/stylesheet.h"

namespace superstep::page {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// A number, perhaps with a unit, or a range of numbers; a sentence or a unit that begins with a digit is not.
bool starts_like_a_number(std::string_view cell) {
  const std::string_view first = cell.substr(0, cell.find(' '));
  if (std::ranges::count(cell, ' ') > 2 || first.find('/') != first.npos) return false;
  if (cell.starts_with("\u2212")) cell.remove_prefix(3);  // a minus sign
  if (!cell.empty() && (cell[0] == '-' || cell[0] == '+')) cell.remove_prefix(1);
  if (!cell.empty() && cell[0] == '.') cell.remove_prefix(1);
  return cell == "nan" || cell == "inf" || (!cell.empty() && is_digit(cell[0]));
}

bool says_nothing(std::string_view cell) { return cell.empty() || cell == "-"; }

// A column of numbers has its heading to the right as well, and the places where there is none.
bool is_numeric_column(const std::vector<std::vector<std::string>>& rows, std::size_t column) {
  bool any = false;
  for (const auto& row : rows) {
    if (column >= row.size() || says_nothing(row[column])) continue;
    if (!starts_like_a_number(row[column])) return false;
    any = true;
  }
  return any;
}

std::string table_cell(const char* tag, std::string_view text, bool number) {
  return fmt::format("<{}{}>{}</{}>", tag, number ? " class=\"number\"" : "", escape(text), tag);
}

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
std::string mark_strokes(const Mark& mark) {
  const char* const path = outline(mark.shape);
  return fmt::format("<path class=\"halo\" d=\"{}\"/><path class=\"mark\" d=\"{}\" style=\"stroke:{}\"/>",
                     path, path, escape(mark.color));
}

// The overlay counts CSS pixels of the enlarged picture; the centre of the first pixel is (0, 0) of a mark.
std::string overlay(const Picture& picture) {
  const int scale = picture.scale;
  std::string svg = fmt::format("<svg viewBox=\"0 0 {} {}\" aria-hidden=\"true\">",
                                picture.image.width * scale, picture.image.height * scale);
  for (const Mark& mark : picture.marks)
    svg += fmt::format("<g transform=\"translate({:.2f} {:.2f})\">{}</g>", (mark.x + 0.5) * scale,
                       (mark.y + 0.5) * scale, mark_strokes(mark));
  return svg + "</svg>";
}

std::string figure(const Picture& picture) {
  const std::string data = base64_encode(encode_png(picture.image));
  const std::string caption =
      picture.caption.empty() ? "" : "<figcaption>" + escape(picture.caption) + "</figcaption>";
  return fmt::format(
      "<figure style=\"width:{}px\"><div class=\"picture\" style=\"width:{}px\"><img{} width=\"{}\" "
      "height=\"{}\" "
      "alt=\"{}\" src=\"data:image/png;base64,{}\">{}</div>{}</figure>",
      picture.image.width * picture.scale, picture.image.width * picture.scale,
      picture.scale > 1 ? " class=\"enlarged\"" : "", picture.image.width, picture.image.height,
      escape(picture.caption), data, picture.marks.empty() ? "" : overlay(picture), caption);
}

// One entry for every label, in the order they first appear.
std::string legend(const std::vector<Picture>& pictures) {
  std::vector<std::string> seen;
  std::string html;
  for (const Picture& picture : pictures)
    for (const Mark& mark : picture.marks) {
      if (mark.label.empty() || std::ranges::find(seen, mark.label) != seen.end()) continue;
      seen.push_back(mark.label);
      html += fmt::format("<span><svg viewBox=\"-8 -8 16 16\" aria-hidden=\"true\">{}</svg>{}</span>",
                          mark_strokes(mark), escape(mark.label));
    }
  return html.empty() ? "" : "<div class=\"legend\">" + html + "</div>";
}

}  // namespace

Page::Page(std::string title) : title_(std::move(title)) {}

Page& Page::heading(std::string_view text, int level) {
  level = std::clamp(level, 1, 4);
  return raw(fmt::format("<h{}>{}</h{}>\n", level, escape(text), level));
}

Page& Page::paragraph(std::string_view text) { return raw("<p>" + escape(text) + "</p>\n"); }

Page& Page::preformatted(std::string_view text) { return raw("<pre>" + escape(text) + "</pre>\n"); }

Page& Page::table(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows) {
  std::string html = "<div class=\"table\"><table><thead><tr>";
  std::vector<bool> numeric;
  for (std::size_t i = 0; i < header.size(); ++i) {
    numeric.push_back(is_numeric_column(rows, i));
    html += table_cell("th", header[i], numeric[i]);
  }
  html += "</tr></thead><tbody>\n";
  for (const auto& row : rows) {
    html += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool empty_place = i < numeric.size() && numeric[i] && row[i] == "-";
      html += table_cell("td", row[i], empty_place || starts_like_a_number(row[i]));
    }
    for (std::size_t i = row.size(); i < header.size(); ++i) html += "<td></td>";
    html += "</tr>\n";
  }
  return raw(html + "</tbody></table></div>\n");
}

Page& Page::pictures(const std::vector<Picture>& pictures) {
  std::string html = "<div class=\"pictures\">";
  for (const Picture& picture : pictures) html += figure(picture) + "\n";
  return raw(html + legend(pictures) + "</div>\n");
}

Page& Page::plot(const Plot& plot) { return raw("<figure class=\"plot\">" + to_svg(plot) + "</figure>\n"); }

Page& Page::raw(std::string_view html) {
  body_ += html;
  return *this;
}

std::string Page::to_html() const {
  std::string html =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n";
  html += fmt::format("<title>{}</title>\n<style>", escape(title_));
  html += stylesheet;
  html += fmt::format("</style>\n</head>\n<body>\n<h1>{}</h1>\n", escape(title_));
  return html + body_ + "</body>\n</html>\n";
}

void Page::write(const std::filesystem::path& path) const { write_file_atomically(path, to_html()); }

}  // namespace superstep::page
