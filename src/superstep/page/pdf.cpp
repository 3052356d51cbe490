#include "superstep/page/pdf.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "superstep/base/text.h"
#include "superstep/page/axis.h"
#include "superstep/page/curve.h"

namespace superstep::page {

// A plot's rectangle on the paper; its axes.
struct PdfFrame {
  Frame frame;
  double foot;  // of the rectangle
  double across(double value) const { return frame.across(value); }
  double up(double value) const { return foot + frame.height * frame.y.position(value); }
};

namespace {

// A4 in points, with margins that letter paper has as well.
constexpr double paper_width = 595, paper_height = 842, margin = 56, inner_width = paper_width - 2 * margin;
constexpr double text_size = 9.5, small_size = 8, title_size = 16, heading_size = 12, leading = 1.35;
constexpr double fixed_letter = 0.6;  // of Courier, as a share of its size
constexpr double gap = 8;             // between two columns, and around blocks

// Of series: blue, orange, green, red, violet, brown, pink, gray, as a page's plots have them on white.
constexpr std::array<const char*, 8> colors{"0.12 0.47 0.71", "0.90 0.45 0.05", "0.17 0.55 0.17",
                                            "0.80 0.15 0.15", "0.50 0.35 0.70", "0.50 0.32 0.28",
                                            "0.80 0.42 0.70", "0.40 0.40 0.40"};

// UTF-8 as Windows' Latin alphabet, which the fonts are asked for; what it lacks is a question mark.
std::string latin(std::string_view text) {
  std::string letters;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto lead = static_cast<unsigned char>(text[i]);
    if (lead < 0x80) {
      letters += lead < 0x20 ? ' ' : text[i];
    } else if ((lead == 0xC2 || lead == 0xC3) && i + 1 < text.size()) {
      letters +=
          static_cast<char>((static_cast<unsigned char>(text[i + 1]) & 0x3F) | (lead == 0xC3 ? 0xC0 : 0x80));
      ++i;
    } else if ((lead & 0xC0) == 0xC0) {
      letters += '?';
      while (i + 1 < text.size() && (static_cast<unsigned char>(text[i + 1]) & 0xC0) == 0x80) ++i;
    }
  }
  return letters;
}

std::string in_brackets(std::string_view text) {
  std::string text_in = "(";
  for (const char letter : latin(text)) {
    if (letter == '(' || letter == ')' || letter == '\\') text_in += '\\';
    text_in += letter;
  }
  return text_in + ")";
}

// Of lines and points.
Frame frame_of(const Plot& plot) {
  Extent x, y;
  for (const Series& series : plot.series) {
    check_lengths(series);
    for (std::size_t i = 0; i < series.x.size(); ++i)
      if (drawable(series.x[i], plot.log_x) && drawable(series.y[i], plot.log_y))
        x.include(series.x[i]), y.include(series.y[i]);
  }
  for (const Plot::Line& line : plot.horizontal)
    if (drawable(line.value, plot.log_y)) y.include(line.value);
  constexpr double height = 180, room_for_labels = 44;
  return {.x = Axis(x, plot.log_x, 6, 0.03),
          .y = Axis(y, plot.log_y, 5, 0.05),
          .left = margin + room_for_labels,
          .top = 0,
          .width = inner_width - room_for_labels,
          .height = height,
          .log_x = plot.log_x,
          .log_y = plot.log_y};
}

// A word that is longer than the line is broken anywhere.
std::size_t letters_that_fit(std::string_view word, double width, const auto& measure) {
  std::size_t count = 1;
  while (count < word.size() && measure(word.substr(0, count + 1)) <= width) ++count;
  return count;
}

}  // namespace

Pdf::Pdf(std::string title) : title_(std::move(title)) {
  need(paper_height);
  line(margin, title_, Font::bold, title_size);
  y_ -= gap;
}

void Pdf::need(double height) {
  if (!pages_.empty() && y_ - height >= margin) return;
  pages_.emplace_back();
  y_ = paper_height - margin;
}

void Pdf::line(double x, std::string_view text, Font font, double size) {
  need(size * leading);
  y_ -= size * leading;
  pages_.back() += fmt::format("BT /F{} {} Tf {:.2f} {:.2f} Td {} Tj ET\n", static_cast<int>(font) + 1, size,
                               x, y_, in_brackets(text));
}

std::vector<std::string> Pdf::broken(std::string_view text, double width, Font font, double size) const {
  const auto measure = [&](std::string_view part) {
    if (font == Font::fixed) return fixed_letter * size * static_cast<double>(latin(part).size());
    return helvetica_width(latin(part), font == Font::bold) * size / 1000;
  };
  std::vector<std::string> all{""};
  for (std::string_view word : split(text, ' ')) {
    const std::string longer = all.back().empty() ? std::string(word) : all.back() + " " + std::string(word);
    if (measure(longer) <= width) {
      all.back() = longer;
      continue;
    }
    if (!all.back().empty()) all.emplace_back();
    while (measure(word) > width && word.size() > 1) {
      const std::size_t count = letters_that_fit(word, width, measure);
      all.back() = std::string(word.substr(0, count));
      all.emplace_back();
      word.remove_prefix(count);
    }
    all.back() = std::string(word);
  }
  return all;
}

void Pdf::lines(const std::vector<std::string>& words, double x, Font font, double size) {
  for (const std::string& each : words) line(x, each, font, size);
}

Pdf& Pdf::heading(std::string_view text) {
  constexpr double following = 60;  // a heading does not stand alone at the foot of a page
  need(following);
  y_ -= gap;
  line(margin, text, Font::bold, heading_size);
  y_ -= gap / 2;
  return *this;
}

Pdf& Pdf::paragraph(std::string_view text) {
  lines(broken(text, inner_width, Font::regular, text_size), margin, Font::regular, text_size);
  y_ -= gap / 2;
  return *this;
}

Pdf& Pdf::list(const std::vector<std::string>& items) {
  constexpr double indent = 12;
  for (const std::string& item : items) {
    const auto words = broken(item, inner_width - indent, Font::regular, text_size);
    line(margin, "-", Font::regular, text_size);
    y_ += text_size * leading;
    lines(words, margin + indent, Font::regular, text_size);
  }
  y_ -= gap / 2;
  return *this;
}

Pdf& Pdf::preformatted(std::string_view text) {
  for (const std::string& each : split(text, '\n'))
    lines(broken(each, inner_width, Font::fixed, small_size), margin, Font::fixed, small_size);
  y_ -= gap / 2;
  return *this;
}

std::vector<double> Pdf::widths_of(const std::vector<std::string>& header,
                                   const std::vector<std::vector<std::string>>& rows) const {
  std::vector<double> widths(header.size());
  const auto widen = [&](const std::vector<std::string>& cells, bool bold) {
    for (std::size_t i = 0; i < std::min(cells.size(), widths.size()); ++i)
      widths[i] = std::max(widths[i], helvetica_width(latin(cells[i]), bold) * small_size / 1000 + gap);
  };
  widen(header, true);
  for (const std::vector<std::string>& cells : rows) widen(cells, false);
  double sum = 0;
  for (const double width : widths) sum += width;
  // The widest give way first.
  while (sum > inner_width) {
    double& widest = *std::ranges::max_element(widths);
    const double less = std::min(sum - inner_width, widest / 10);
    widest -= less;
    sum -= less;
  }
  return widths;
}

void Pdf::rule(double from, double to, double y, double width) {
  pages_.back() += fmt::format("{} w 0.5 G {:.2f} {:.2f} m {:.2f} {:.2f} l S 0 G\n", width, from, y, to, y);
}

Pdf::Row Pdf::row_of(const std::vector<std::string>& cells, const std::vector<double>& widths,
                     Font font) const {
  Row row;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    row.cells.push_back(broken(i < cells.size() ? cells[i] : "", widths[i] - gap, font, small_size));
    row.height = std::max(row.height, static_cast<double>(row.cells.back().size()) * small_size * leading);
  }
  return row;
}

void Pdf::write(const Row& row, const std::vector<double>& widths, Font font) {
  const double top = y_;
  double x = margin;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    y_ = top;
    lines(row.cells[i], x, font, small_size);
    x += widths[i];
  }
  y_ = top - row.height;
}

Pdf& Pdf::table(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows) {
  const std::vector<double> widths = widths_of(header, rows);
  double width = 0;
  for (const double each : widths) width += each;
  const auto head = [&] {
    write(row_of(header, widths, Font::bold), widths, Font::bold);
    rule(margin, margin + width - gap, y_ - 3, 0.7);
    y_ -= 4;
  };
  constexpr double header_and_row = 40;
  need(header_and_row);
  head();
  for (const std::vector<std::string>& cells : rows) {
    const Row row = row_of(cells, widths, Font::regular);
    const std::size_t page = pages_.size();
    need(row.height);
    if (pages_.size() > page) head();
    write(row, widths, Font::regular);
  }
  y_ -= gap;
  return *this;
}

void Pdf::axes(const Plot& plot, const PdfFrame& place) {
  const Frame& frame = place.frame;
  const double right = frame.left + frame.width, top = place.foot + frame.height;
  const auto text = [&](double x, double y, std::string_view words) {
    pages_.back() +=
        fmt::format("BT /F1 {} Tf {:.2f} {:.2f} Td {} Tj ET\n", small_size, x, y, in_brackets(words));
  };
  const auto width = [&](std::string_view words) {
    return helvetica_width(latin(words), false) * small_size / 1000;
  };
  for (const Tick& tick : frame.y.ticks()) {
    const double y = place.up(tick.value);
    pages_.back() +=
        fmt::format("0.3 w 0.85 G {:.2f} {:.2f} m {:.2f} {:.2f} l S 0 G\n", frame.left, y, right, y);
    text(frame.left - width(tick.label) - 4, y - small_size / 3, tick.label);
  }
  for (const Tick& tick : frame.x.ticks()) {
    const double x = place.across(tick.value);
    pages_.back() +=
        fmt::format("0.5 w {:.2f} {:.2f} m {:.2f} {:.2f} l S\n", x, place.foot, x, place.foot - 3);
    text(x - width(tick.label) / 2, place.foot - small_size - 4, tick.label);
  }
  pages_.back() += fmt::format("0.7 w {:.2f} {:.2f} {:.2f} {:.2f} re S\n", frame.left, place.foot,
                               frame.width, frame.height);
  text(frame.left + frame.width / 2 - width(plot.x_label) / 2, place.foot - 2 * small_size - 8, plot.x_label);
  text(margin, top + 5, plot.y_label);
}

void Pdf::series(const Series& series, const PdfFrame& place, std::size_t color) {
  std::string& page = pages_.back();
  const char* const ink = colors[color % colors.size()];
  page += fmt::format("{} RG {} rg 1.2 w\n", ink, ink);
  bool open = false;
  for (std::size_t i = 0; i < series.x.size(); ++i) {
    if (!place.frame.shows(series.x[i], series.y[i])) {
      open = false;
      continue;
    }
    const double x = place.across(series.x[i]), y = place.up(series.y[i]);
    if (series.style == Series::Style::points) {
      page += fmt::format("{:.2f} {:.2f} 3 3 re f\n", x - 1.5, y - 1.5);
      continue;
    }
    page += fmt::format("{:.2f} {:.2f} {} ", x, y, open ? "l" : "m");
    open = true;
  }
  page += series.style == Series::Style::points ? "0 G 0 g\n" : "S 0 G 0 g\n";
}

Pdf& Pdf::plot(const Plot& plot) {
  PdfFrame place{.frame = frame_of(plot), .foot = 0};
  constexpr double under = 36, over = 16;  // axis' labels
  need(place.frame.height + under + over +
       small_size * leading * static_cast<double>(plot.series.size() + 1));
  if (!plot.title.empty()) line(margin, plot.title, Font::bold, text_size);
  place.foot = y_ - over - place.frame.height;
  axes(plot, place);
  for (std::size_t i = 0; i < plot.series.size(); ++i) series(plot.series[i], place, i);
  y_ = place.foot - under;
  for (std::size_t i = 0; i < plot.series.size(); ++i) {
    if (plot.series[i].label.empty()) continue;
    line(margin + 20, plot.series[i].label, Font::regular, small_size);
    pages_.back() += fmt::format("{} RG 2 w {:.2f} {:.2f} m {:.2f} {:.2f} l S 0 G\n",
                                 colors[i % colors.size()], margin, y_ + 3, margin + 14, y_ + 3);
  }
  y_ -= gap;
  return *this;
}

std::string Pdf::to_bytes() const {
  constexpr std::size_t before = 5;  // objects: catalog, pages, three fonts; then two for each page
  std::vector<std::string> objects{
      "<< /Type /Catalog /Pages 2 0 R >>", "",
      "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
      "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica-Bold /Encoding /WinAnsiEncoding >>",
      "<< /Type /Font /Subtype /Type1 /BaseFont /Courier /Encoding /WinAnsiEncoding >>"};
  std::string kids;
  for (std::size_t i = 0; i < pages_.size(); ++i) {
    kids += fmt::format("{} 0 R ", before + 2 * i + 1);
    std::string content = pages_[i];
    content += fmt::format("BT /F1 {} Tf {} {} Td {} Tj ET\n", small_size, margin, margin / 2,
                           in_brackets(fmt::format("{}, page {} of {}", title_, i + 1, pages_.size())));
    objects.push_back(
        fmt::format("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {} {}] /Contents {} 0 R "
                    "/Resources << /Font << /F1 3 0 R /F2 4 0 R /F3 5 0 R >> >> >>",
                    paper_width, paper_height, before + 2 * i + 2));
    objects.push_back(fmt::format("<< /Length {} >>\nstream\n{}endstream", content.size(), content));
  }
  objects[1] = fmt::format("<< /Type /Pages /Kids [ {}] /Count {} >>", kids, pages_.size());
  objects.push_back(fmt::format("<< /Title {} /Producer (superstep) >>", in_brackets(title_)));
  std::string file = "%PDF-1.4\n%\xE2\xE3\xCF\xD3\n", table;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    table += fmt::format("{:010} 00000 n \n", file.size());
    file += fmt::format("{} 0 obj\n{}\nendobj\n", i + 1, objects[i]);
  }
  const std::size_t start = file.size();
  return file + fmt::format(
                    "xref\n0 {}\n0000000000 65535 f \n{}trailer\n<< /Size {} /Root 1 0 R /Info {} 0 R "
                    ">>\nstartxref\n{}\n%%EOF\n",
                    objects.size() + 1, table, objects.size() + 1, objects.size(), start);
}

}  // namespace superstep::page
