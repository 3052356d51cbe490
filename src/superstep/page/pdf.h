// Documents for people who ask for paper: PDF 1.4 of headings, paragraphs, tables and plots, with the fonts
// that every reader has. No library, no pictures.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "superstep/page/page.h"

namespace superstep::page {

class Pdf {
 public:
  explicit Pdf(std::string title);

  Pdf& heading(std::string_view text);
  Pdf& paragraph(std::string_view text);
  Pdf& list(const std::vector<std::string>& items);
  // Columns are as wide as their words, and share what is left or lacking; cells are broken between words.
  // The header stands again on each page.
  Pdf& table(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows);
  Pdf& preformatted(std::string_view text);  // lines as they are, broken where they are too long
  Pdf& plot(const Plot& plot);               // lines and points

  // The file's bytes: the same for the same content.
  std::string to_bytes() const;

 private:
  enum class Font { regular, bold, fixed };
  void need(double height);  // a new page where so much is not left on this one
  void line(double x, std::string_view text, Font font, double size);
  std::vector<std::string> broken(std::string_view text, double width, Font font, double size) const;
  void lines(const std::vector<std::string>& words, double x, Font font, double size);
  std::vector<double> widths_of(const std::vector<std::string>& header,
                                const std::vector<std::vector<std::string>>& rows) const;
  // Cells broken into lines.
  struct Row {
    std::vector<std::vector<std::string>> cells;
    double height = 0;
  };
  Row row_of(const std::vector<std::string>& cells, const std::vector<double>& widths, Font font) const;
  void write(const Row& row, const std::vector<double>& widths, Font font);
  void rule(double from, double to, double y, double width);
  void axes(const Plot& plot, const struct PdfFrame& frame);
  void series(const Series& series, const struct PdfFrame& frame, std::size_t color);

  std::string title_;
  std::vector<std::string> pages_;  // their content
  double y_ = 0;                    // of the next line, from the foot of the page, in points
};

// Width of a text in Helvetica, in thousandths of its size.
double helvetica_width(std::string_view text, bool bold);

}  // namespace superstep::page
