#include "superstep/workload/pictures/molecule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "superstep/file/atoms/element.h"
#include "superstep/page/page.h"
#include "superstep/physics/chemistry/depiction.h"

namespace superstep::workload {
namespace {

using data::BondOrder;
using data::PlanePoint;

// CSS pixels.
constexpr double bond_length = 26, margin = 20, disc_radius = 12, half_gap = 2.2, letter_room = 8;

class Formula {
 public:
  explicit Formula(const data::Molecule& molecule) : m_(molecule), at_(data::depict(molecule)) {
    double left = INFINITY, top = INFINITY;
    for (const PlanePoint& place : at_) left = std::min(left, place.x), top = std::min(top, place.y);
    for (PlanePoint& place : at_) {
      place = {margin + (place.x - left) * bond_length, margin + (place.y - top) * bond_length};
      width_ = std::max(width_, place.x + margin), height_ = std::max(height_, place.y + margin);
    }
  }

  std::string svg(std::span<const double> shares, double most, const std::string& title) const {
    std::string text = fmt::format(
        "<svg class=\"molecule\" role=\"img\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
        "{1:.0f}\" "
        "style=\"max-width: 100%\"><title>{2}</title>\n",
        width_, height_, page::escape(title));
    for (std::size_t i = 0; i < shares.size(); ++i) text += disc(i, shares[i], most);
    text += "<g stroke=\"var(--ink)\" stroke-width=\"1.4\" stroke-linecap=\"round\">\n";
    for (const data::Bond& bond : m_.bonds()) text += lines(bond);
    text +=
        "</g>\n<g fill=\"var(--ink)\" font-size=\"13\" text-anchor=\"middle\" "
        "dominant-baseline=\"central\">\n";
    for (int atom = 0; atom < m_.atom_count(); ++atom) text += letters(atom);
    return text + "</g></svg>\n";
  }

 private:
  const PlanePoint& at(int atom) const { return at_[static_cast<std::size_t>(atom)]; }

  std::string disc(std::size_t atom, double share, double most) const {
    const double opacity = most > 0 ? std::clamp(std::abs(share) / most, 0.0, 1.0) : 0.0;
    return fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"{}\" fill-opacity=\"{:.2f}\"/>\n",
                       at_[atom].x, at_[atom].y, disc_radius, share > 0 ? "#d43d2a" : "#2a62d4",
                       0.75 * opacity);
  }

  bool has_letters(int atom) const {
    const data::Atom& a = m_.atom(atom);
    return a.element != 6 || a.charge != 0 || m_.degree(atom) == 0;
  }

  static std::string line(PlanePoint a, PlanePoint b, const char* dashes = "") {
    return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"{}/>\n", a.x, a.y, b.x,
                       b.y, dashes);
  }

  // The side of a bond on which its ring, or what else hangs on it, lies: where a second line goes.
  double inner_side(const data::Bond& bond, PlanePoint normal) const {
    double sum = 0;
    for (const int end : {bond.a, bond.b})
      for (const data::Molecule::Neighbor& next : m_.neighbors(end))
        if (next.atom != bond.a && next.atom != bond.b)
          sum += (at(next.atom).x - at(end).x) * normal.x + (at(next.atom).y - at(end).y) * normal.y;
    return sum < 0 ? -1 : 1;
  }

  std::string lines(const data::Bond& bond) const {
    const PlanePoint a = at(bond.a), b = at(bond.b);
    const double reach = std::max(1e-3, std::hypot(b.x - a.x, b.y - a.y));
    const PlanePoint along{(b.x - a.x) / reach, (b.y - a.y) / reach}, normal{-along.y, along.x};
    const auto moved = [&](PlanePoint p, double by, double aside) {
      return PlanePoint{p.x + along.x * by + normal.x * aside, p.y + along.y * by + normal.y * aside};
    };
    const double from_a = has_letters(bond.a) ? letter_room : 0,
                 from_b = has_letters(bond.b) ? -letter_room : 0;
    const auto parallel = [&](double aside, double shorter = 0, const char* dashes = "") {
      return line(moved(a, from_a + shorter, aside), moved(b, from_b - shorter, aside), dashes);
    };
    const double inner = inner_side(bond, normal) * 2 * half_gap;
    switch (bond.order) {
      case BondOrder::single: return parallel(0);
      case BondOrder::double_:
        return bond.in_ring ? parallel(0) + parallel(inner, 3) : parallel(half_gap) + parallel(-half_gap);
      case BondOrder::aromatic: return parallel(0) + parallel(inner, 3, " stroke-dasharray=\"3 3\"");
      default: return parallel(0) + parallel(1.5 * half_gap) + parallel(-1.5 * half_gap);
    }
  }

  // "OH", "NH2", "O-": carbon is a corner, and only that.
  std::string letters(int atom) const {
    if (!has_letters(atom)) return {};
    const data::Atom& a = m_.atom(atom);
    std::string text(data::element_symbol(a.element));
    if (a.hydrogens > 0) text += "H";
    if (a.hydrogens > 1) text += fmt::format("<tspan font-size=\"9\" dy=\"3\">{}</tspan>", a.hydrogens);
    if (a.charge != 0) text += a.charge > 0 ? "+" : "-";
    return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", at(atom).x, at(atom).y, text);
  }

  const data::Molecule& m_;
  std::vector<PlanePoint> at_;
  double width_ = 2 * margin, height_ = 2 * margin;
};

}  // namespace

std::string molecule_svg(const data::Molecule& molecule, std::span<const double> shares, double most,
                         const std::string& title) {
  return Formula(molecule).svg(shares, most, title);
}

}  // namespace superstep::workload
