#include "superstep/workload/pictures/atoms_in_space.h"

#include <fmt/format.h>

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "superstep/file/atoms/element.h"
#include "superstep/page/page.h"

namespace superstep::workload {
namespace {

// CSS pixels, and pixels for each A.
constexpr double pixels = 26, margin = 34, least_arrow = 2;

// Radii to draw with, A: two atoms nearer than 1.7 times their sum are joined (O-H: 1.0 of 1.36).
double radius_of(int element) { return element == 1 ? 0.28 : element <= 10 ? 0.52 : 0.7; }

const char* color_of(int element) {
  switch (element) {
    case 1: return "#e8e8e8";
    case 6: return "#555555";
    case 7: return "#3b63d6";
    case 8: return "#d8402c";
    default: return "#b48a3c";
  }
}

class Drawing {
 public:
  explicit Drawing(const data::Configuration& atoms) : atoms_(atoms) {
    turn();
    double left = INFINITY, top = INFINITY, right = -INFINITY, bottom = -INFINITY;
    for (Eigen::Index i = 0; i < at_.cols(); ++i) {
      left = std::min(left, at_(0, i)), right = std::max(right, at_(0, i));
      top = std::min(top, at_(1, i)), bottom = std::max(bottom, at_(1, i));
    }
    left_ = left, top_ = top;
    width_ = 2 * margin + pixels * (right - left), height_ = 2 * margin + pixels * (bottom - top);
  }

  std::string svg(std::span<const AtomArrows> arrows, double scale, const std::string& title) const {
    std::vector<Eigen::Index> order(static_cast<std::size_t>(at_.cols()));
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {}, [&](Eigen::Index i) { return at_(2, i); });
    std::string text = fmt::format(
        "<svg class=\"cluster\" role=\"img\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
        "{1:.0f}\" style=\"max-width: 100%\"><title>{2}</title>\n",
        width_, height_, page::escape(title));
    for (const Eigen::Index i : order) text += bonds(i) + ball(i);
    for (const AtomArrows& each : arrows)
      for (const Eigen::Index i : order) text += arrow(i, each, scale);
    return text + "</svg>\n";
  }

 private:
  int element(Eigen::Index i) const { return atoms_.elements[static_cast<std::size_t>(i)]; }
  double x(Eigen::Index i) const { return margin + pixels * (at_(0, i) - left_); }
  double y(Eigen::Index i) const { return margin + pixels * (at_(1, i) - top_); }

  // Onto its principal axes, the longest across the page.
  void turn() {
    const auto count = static_cast<Eigen::Index>(atoms_.positions.size());
    at_.resize(3, count);
    for (Eigen::Index i = 0; i < count; ++i) {
      const data::Cartesian& p = atoms_.positions[static_cast<std::size_t>(i)];
      at_.col(i) = Eigen::Vector3d(p.x, p.y, p.z);
    }
    at_.colwise() -= at_.rowwise().mean().eval();
    const Eigen::SelfAdjointEigenSolver<Eigen::Matrix3d> axes(at_ * at_.transpose());
    to_page_ = axes.eigenvectors().rowwise().reverse().transpose();
    at_ = to_page_ * at_;
  }

  // To atoms that are drawn later, so that each is drawn once and under the nearer ball.
  std::string bonds(Eigen::Index i) const {
    std::string text;
    for (Eigen::Index j = 0; j < at_.cols(); ++j) {
      const bool later = at_(2, j) > at_(2, i) || (at_(2, j) == at_(2, i) && j > i);
      if (!later || (at_.col(i) - at_.col(j)).norm() > 1.7 * (radius_of(element(i)) + radius_of(element(j))))
        continue;
      text += fmt::format(
          "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#888\" "
          "stroke-width=\"4\"/>\n",
          x(i), y(i), x(j), y(j));
    }
    return text;
  }

  std::string ball(Eigen::Index i) const {
    return fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" fill=\"{}\" stroke=\"#555\" "
        "stroke-width=\"0.6\"/>\n",
        x(i), y(i), pixels * radius_of(element(i)), color_of(element(i)));
  }

  std::string arrow(Eigen::Index i, const AtomArrows& arrows, double scale) const {
    const data::Cartesian& v = arrows.vectors[static_cast<std::size_t>(i)];
    const Eigen::Vector3d on_page = to_page_ * Eigen::Vector3d(v.x, v.y, v.z) * (scale * pixels);
    const double dx = on_page[0], dy = on_page[1], length = std::hypot(dx, dy);
    if (!(length > least_arrow)) return {};
    const double head = std::min(5.0, 0.5 * length), ux = dx / length, uy = dy / length;
    const double tip_x = x(i) + dx, tip_y = y(i) + dy;
    return fmt::format(
        "<path d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}M{:.1f} {:.1f}L{:.1f} {:.1f}L{:.1f} {:.1f}\" fill=\"none\" "
        "stroke=\"{}\" stroke-width=\"1.6\"/>\n",
        x(i), y(i), tip_x, tip_y, tip_x - head * (ux + 0.5 * uy), tip_y - head * (uy - 0.5 * ux), tip_x,
        tip_y, tip_x - head * (ux - 0.5 * uy), tip_y - head * (uy + 0.5 * ux), arrows.color);
  }

  const data::Configuration& atoms_;
  Eigen::Matrix3Xd at_;
  Eigen::Matrix3d to_page_;
  double left_ = 0, top_ = 0, width_ = 0, height_ = 0;
};

}  // namespace

std::string atoms_svg(const data::Configuration& atoms, std::span<const AtomArrows> arrows, double scale,
                      const std::string& title) {
  return Drawing(atoms).svg(arrows, scale, title);
}

}  // namespace superstep::workload
