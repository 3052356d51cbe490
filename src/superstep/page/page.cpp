#include "superstep/page/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <numeric>
#include <utility>

#include "superstep/base/file.h"
#include "superstep/page/picture.h"
#include "superstep/page/script.h"
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

}  // namespace

Page::Page(std::string title) : title_(std::move(title)) {}

Page& Page::heading(std::string_view text, int level) {
  level = std::clamp(level, 1, 4);
  return raw(fmt::format("<h{}>{}</h{}>\n", level, escape(text), level));
}

Page& Page::paragraph(std::string_view text) { return raw("<p>" + escape(text) + "</p>\n"); }

Page& Page::preformatted(std::string_view text) { return raw("<pre>" + escape(text) + "</pre>\n"); }

Page& Page::table(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows,
                  std::span<const std::size_t> main) {
  // What scrolls can be reached by keyboard too.
  std::string html = "<div class=\"table\" tabindex=\"0\"><table><thead><tr>";
  std::vector<bool> numeric;
  for (std::size_t i = 0; i < header.size(); ++i) {
    numeric.push_back(is_numeric_column(rows, i));
    html += table_cell("th", header[i], numeric[i]);
  }
  html += "</tr></thead><tbody>\n";
  for (const auto& row : rows) {
    const auto number = static_cast<std::size_t>(&row - rows.data());
    html += std::ranges::find(main, number) != main.end() ? "<tr class=\"main\">" : "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool empty_place = i < numeric.size() && numeric[i] && row[i] == "-";
      html += table_cell("td", row[i], empty_place || starts_like_a_number(row[i]));
    }
    for (std::size_t i = row.size(); i < header.size(); ++i) html += "<td></td>";
    html += "</tr>\n";
  }
  return raw(html + "</tbody></table></div>\n");
}

Page& Page::confusion(const std::vector<std::string>& names,
                      const std::vector<std::vector<std::int64_t>>& counts) {
  std::string html =
      "<div class=\"table\" tabindex=\"0\"><table class=\"confusion\"><thead><tr><th>true \\ found</th>";
  for (const std::string& name : names) html += table_cell("th", name, true);
  html += "</tr></thead><tbody>\n";
  for (std::size_t row = 0; row < counts.size(); ++row) {
    const double all = static_cast<double>(std::accumulate(counts[row].begin(), counts[row].end(), 0LL));
    html += "<tr>" + table_cell("th", names[row], false);
    for (std::size_t column = 0; column < counts[row].size(); ++column) {
      const std::int64_t count = counts[row][column];
      html += fmt::format("<td class=\"number {}\" style=\"--part:{:.3f}\">{}</td>",
                          row == column ? "right" : "wrong", static_cast<double>(count) / std::max(all, 1.0),
                          count == 0 ? "" : std::to_string(count));
    }
    html += "</tr>\n";
  }
  return raw(html + "</tbody></table></div>\n");
}

Page& Page::bars(const std::vector<Bar>& bars) {
  std::string html = "<div class=\"barlist\">\n";
  for (const Bar& bar : bars) {
    const double length = std::clamp(bar.length, 0.0, 1.0), full = std::clamp(bar.full, 0.0, length);
    html += fmt::format(
        "<div class=\"bar s{}\" title=\"{}\"><span>{}</span><i style=\"--length:{:.2f}%;--full:{:.2f}%\"></i>"
        "<em>{}</em></div>\n",
        bar.color, escape(bar.title), escape(bar.label), 100 * length, length > 0 ? 100 * full / length : 0,
        escape(bar.text));
  }
  return raw(html + "</div>\n");
}

Page& Page::facts(const std::vector<std::vector<std::string>>& rows) {
  std::string html = "<div class=\"table facts\" tabindex=\"0\"><table><tbody>\n";
  for (const auto& row : rows) {
    html += "<tr>";
    for (const std::string& cell : row) html += table_cell("td", cell, false);
    html += "</tr>\n";
  }
  return raw(html + "</tbody></table></div>\n");
}

Page& Page::pictures(const std::vector<Picture>& pictures) { return raw(group_of(pictures)); }

Page& Page::begin_row() { return raw("<div class=\"row\">\n"); }
Page& Page::end_row() { return raw("</div>\n"); }
Page& Page::begin_column() { return raw("<div class=\"column\">\n"); }
Page& Page::end_column() { return raw("</div>\n"); }

Page& Page::plot(const Plot& plot) { return raw("<figure class=\"plot\">" + to_svg(plot) + "</figure>\n"); }

Page& Page::raw(std::string_view html) {
  body_ += html;
  return *this;
}

Page& Page::reloaded_every(int seconds) {
  reload_seconds_ = seconds;
  return *this;
}

std::string Page::to_html() const {
  std::string html =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n";
  if (reload_seconds_ > 0)
    html += fmt::format("<meta http-equiv=\"refresh\" content=\"{}\">\n", reload_seconds_);
  html += fmt::format("<title>{}</title>\n<style>", escape(title_));
  html += stylesheet;
  html += fmt::format("</style>\n</head>\n<body>\n<h1>{}</h1>\n", escape(title_));
  html += body_;
  html += "<script id=\"reading\">";
  html += script;
  return html + "</script>\n</body>\n</html>\n";
}

void Page::write(const std::filesystem::path& path) const { write_file_atomically(path, to_html()); }

}  // namespace superstep::page
