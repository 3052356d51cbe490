// Widths of Helvetica's letters, from the font metrics that Adobe publishes (AFM, 1997): every reader has the
// font, and lays out by these numbers.
#include <array>

#include "superstep/page/pdf.h"

namespace superstep::page {
namespace {

constexpr int first_letter = 32;
// From the space to the tilde.
constexpr std::array<short, 95> regular = {
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333,  278, 278, 556, 556, 556,
    556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667,
    611, 778, 722, 278, 500, 667, 556, 833, 722, 778, 667, 778, 722, 667,  611, 722, 667, 944, 667,
    667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556, 556, 278,  556, 556, 222, 222, 500,
    222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500,  500, 334, 260, 334, 584};
constexpr std::array<short, 95> bold_widths = {
    278, 333, 474, 556, 556, 889, 722, 238, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556,
    556, 556, 556, 556, 556, 556, 556, 333, 333, 584, 584, 584, 611, 975, 722, 722, 722, 722, 667,
    611, 778, 722, 278, 556, 722, 611, 833, 722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667,
    667, 611, 333, 278, 333, 584, 556, 333, 556, 611, 556, 611, 556, 333, 611, 611, 278, 278, 556,
    278, 889, 611, 611, 611, 611, 389, 556, 333, 611, 556, 778, 556, 556, 500, 389, 280, 389, 584};
constexpr double usual_width = 556;  // of letters beyond ASCII: about that of a digit

}  // namespace

double helvetica_width(std::string_view text, bool bold) {
  double width = 0;
  for (const char letter : text) {
    const int place = static_cast<unsigned char>(letter) - first_letter;
    const bool known = place >= 0 && place < static_cast<int>(regular.size());
    width += known ? (bold ? bold_widths : regular)[static_cast<std::size_t>(place)] : usual_width;
  }
  return width;
}

}  // namespace superstep::page
