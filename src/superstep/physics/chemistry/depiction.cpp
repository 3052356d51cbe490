#include "superstep/physics/chemistry/depiction.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>
#include <queue>

#include "superstep/physics/chemistry/rings.h"

namespace superstep::data {
namespace {

using std::numbers::pi;

// Below this atoms that no bond joins are felt as too close: a little less than the distance of next
// neighbours in a five-membered ring is 1.6, of atoms across the bay of two fused rings 1.
constexpr double comfortable_distance = 0.95;
constexpr double crossing_cost = 0.5;   // of two bonds that cross, beside the squares of what distances lack
constexpr double straight_cost = 0.05;  // of an atom of a chain that is no corner
constexpr int most_moves = 60;          // of parts, until it is left as it is

PlanePoint operator+(PlanePoint a, PlanePoint b) { return {a.x + b.x, a.y + b.y}; }
PlanePoint operator-(PlanePoint a, PlanePoint b) { return {a.x - b.x, a.y - b.y}; }
PlanePoint operator*(PlanePoint a, double f) { return {a.x * f, a.y * f}; }
double dot(PlanePoint a, PlanePoint b) { return a.x * b.x + a.y * b.y; }
double cross(PlanePoint a, PlanePoint b) { return a.x * b.y - a.y * b.x; }
double length(PlanePoint a) { return std::hypot(a.x, a.y); }
double angle_of(PlanePoint a) { return std::atan2(a.y, a.x); }
PlanePoint towards(double angle) { return {std::cos(angle), std::sin(angle)}; }
PlanePoint turned(PlanePoint a, double angle) {
  const PlanePoint t = towards(angle);
  return {a.x * t.x - a.y * t.y, a.x * t.y + a.y * t.x};
}
PlanePoint mirrored(PlanePoint a, PlanePoint axis) {  // at a line through the origin
  return axis * (2 * dot(a, axis) / dot(axis, axis)) - a;
}

using Places = std::vector<PlanePoint>;

bool is_linear(const Molecule& m, int atom) {
  int doubles = 0, triples = 0;
  for (const Molecule::Neighbor& neighbor : m.neighbors(atom)) {
    doubles += m.bond(neighbor.bond).order == BondOrder::double_;
    triples += m.bond(neighbor.bond).order == BondOrder::triple;
  }
  return triples > 0 || doubles > 1;
}

class Layout {
 public:
  explicit Layout(const Molecule& molecule)
      : m_(molecule),
        rings_(smallest_rings(molecule)),
        at_(static_cast<std::size_t>(molecule.atom_count())),
        placed_(at_.size(), false),
        came_by_turning_(at_.size(), 1) {}

  Places run() {
    for (int atom = 0; atom < m_.atom_count(); ++atom)
      if (!is_placed(atom)) place_part(atom);
    return at_;
  }

 private:
  bool is_placed(int atom) const { return placed_[static_cast<std::size_t>(atom)]; }
  PlanePoint& at(int atom) { return at_[static_cast<std::size_t>(atom)]; }
  void put(int atom, PlanePoint where) {
    at(atom) = where;
    placed_[static_cast<std::size_t>(atom)] = true;
    waiting_.push(atom);
  }

  // A connected part: from its first ring, or its first atom, outwards; to the right of the parts before.
  void place_part(int first) {
    const std::vector<bool> before = placed_;
    int start = first;
    const std::vector<int> parts = connected_parts(m_);
    for (int atom = first; atom < m_.atom_count(); ++atom)
      if (parts[static_cast<std::size_t>(atom)] == parts[static_cast<std::size_t>(first)] &&
          m_.atom(atom).in_ring) {
        start = atom;
        break;
      }
    if (m_.atom(start).in_ring)
      place_system(start, {0, 0}, std::nullopt);
    else
      put(start, {0, 0});
    for (; !waiting_.empty(); waiting_.pop()) place_neighbors(waiting_.front());
    shift_right(before);
  }

  void shift_right(const std::vector<bool>& before) {
    double right = -INFINITY, left = INFINITY;
    for (std::size_t i = 0; i < at_.size(); ++i) {
      if (before[i]) right = std::max(right, at_[i].x);
      if (!before[i] && placed_[i]) left = std::min(left, at_[i].x);
    }
    if (!std::isfinite(right)) return;
    constexpr double gap = 1.5;
    for (std::size_t i = 0; i < at_.size(); ++i)
      if (!before[i] && placed_[i]) at_[i].x += right + gap - left;
  }

  void place_neighbors(int atom) {
    std::vector<int> next;
    for (const Molecule::Neighbor& neighbor : m_.neighbors(atom))
      if (!is_placed(neighbor.atom)) next.push_back(neighbor.atom);
    if (next.empty()) return;
    const std::vector<double> angles = free_angles(atom, static_cast<int>(next.size()));
    for (std::size_t i = 0; i < next.size(); ++i) {
      if (is_placed(next[i])) continue;  // by a ring that came with its neighbour
      const PlanePoint where = at(atom) + towards(angles[i]);
      if (m_.atom(next[i]).in_ring)
        place_system(next[i], where, at(atom));
      else
        put(next[i], where);
    }
  }

  // Where `count` more neighbours of an atom go: evenly into the widest angle that is free. A chain's next
  // atom turns by 60 degrees, to the other side than the one before.
  std::vector<double> free_angles(int atom, int count) {
    std::vector<double> taken;
    for (const Molecule::Neighbor& neighbor : m_.neighbors(atom))
      if (is_placed(neighbor.atom)) taken.push_back(angle_of(at(neighbor.atom) - at(atom)));
    if (taken.empty()) return spread(-pi / 6, 2 * pi, count, true);
    std::ranges::sort(taken);
    if (taken.size() == 1 && count == 1) return {zigzag(atom, taken[0])};
    double begin = 0, widest = -1;
    for (std::size_t i = 0; i < taken.size(); ++i) {
      const double next = i + 1 < taken.size() ? taken[i + 1] : taken[0] + 2 * pi;
      if (next - taken[i] > widest + 1e-9) widest = next - taken[i], begin = taken[i];
    }
    return spread(begin, widest, count, false);
  }

  static std::vector<double> spread(double begin, double width, int count, bool around) {
    std::vector<double> angles;
    for (int i = 0; i < count; ++i)
      angles.push_back(begin + width * (around ? i / static_cast<double>(count)
                                               : (i + 1) / static_cast<double>(count + 1)));
    return angles;
  }

  double zigzag(int atom, double back) {
    const auto i = static_cast<std::size_t>(atom);
    if (is_linear(m_, atom)) return back + pi;
    int& turn = came_by_turning_[i];
    for (const Molecule::Neighbor& neighbor : m_.neighbors(atom))
      if (is_placed(neighbor.atom)) turn = -came_by_turning_[static_cast<std::size_t>(neighbor.atom)];
    return back + pi + turn * pi / 3;
  }

  // --- rings

  // The rings that share sides with one another, beginning with those of an atom, as a drawing of its own;
  // then moved so that the atom is at `where` and the rings lie away from `from`.
  void place_system(int atom, PlanePoint where, std::optional<PlanePoint> from) {
    const std::vector<int> atoms = draw_system(atom);
    PlanePoint middle;
    for (const int each : atoms) middle = middle + drawn_[static_cast<std::size_t>(each)];
    const PlanePoint origin = drawn_[static_cast<std::size_t>(atom)];
    const PlanePoint inwards = inwards_of(atom, atoms, middle * (1.0 / static_cast<double>(atoms.size())));
    const double turn = from ? angle_of(where - *from) - angle_of(inwards) : 0;
    for (const int each : atoms)
      if (!is_placed(each)) put(each, where + turned(drawn_[static_cast<std::size_t>(each)] - origin, turn));
  }

  // From an atom into its rings: between its neighbours that are in them.
  PlanePoint inwards_of(int atom, const std::vector<int>& atoms, PlanePoint middle) const {
    PlanePoint sum;
    const PlanePoint own = drawn_[static_cast<std::size_t>(atom)];
    for (const Molecule::Neighbor& neighbor : m_.neighbors(atom))
      if (std::ranges::find(atoms, neighbor.atom) != atoms.end())
        sum = sum + (drawn_[static_cast<std::size_t>(neighbor.atom)] - own);
    return length(sum) > 1e-3 ? sum : middle - own;
  }

  static bool contains(const Ring& ring, int atom) { return std::ranges::find(ring, atom) != ring.end(); }

  // Draws into drawn_; returns the atoms.
  std::vector<int> draw_system(int atom) {
    drawn_.assign(at_.size(), {});
    std::vector<bool> is_drawn(at_.size(), false), taken(rings_.size(), false);
    std::vector<int> atoms;
    const auto draw = [&](int each, PlanePoint where) {
      if (is_drawn[static_cast<std::size_t>(each)]) return;
      is_drawn[static_cast<std::size_t>(each)] = true;
      drawn_[static_cast<std::size_t>(each)] = where;
      atoms.push_back(each);
    };
    std::size_t first = 0;
    while (!contains(rings_[first], atom)) ++first;
    draw_polygon(rings_[first], draw);
    taken[first] = true;
    for (bool more = true; more;) {
      more = false;
      for (std::size_t r = 0; r < rings_.size(); ++r)
        if (!taken[r] && shared_side(rings_[r], is_drawn)) {
          add_ring(rings_[r], is_drawn, atoms, draw);
          taken[r] = more = true;
        }
    }
    relax(atoms);
    return atoms;
  }

  template <class Draw>
  static void draw_polygon(const Ring& ring, const Draw& draw) {
    const auto n = static_cast<double>(ring.size());
    const double radius = 0.5 / std::sin(pi / n);
    for (std::size_t i = 0; i < ring.size(); ++i)
      draw(ring[i], towards(pi / 2 + 2 * pi * static_cast<double>(i) / n) * radius);
  }

  static bool shared_side(const Ring& ring, const std::vector<bool>& is_drawn) {
    for (std::size_t i = 0; i < ring.size(); ++i)
      if (is_drawn[static_cast<std::size_t>(ring[i])] &&
          is_drawn[static_cast<std::size_t>(ring[(i + 1) % ring.size()])])
        return true;
    return false;
  }

  // The atoms of a ring that are not drawn yet, on an arc between the two next to them that are, outside of
  // what is there: a regular polygon where it shares one side.
  template <class Draw>
  void add_ring(const Ring& ring, const std::vector<bool>& is_drawn, const std::vector<int>& atoms,
                const Draw& draw) {
    const std::size_t n = ring.size();
    const auto drawn = [&](std::size_t i) { return is_drawn[static_cast<std::size_t>(ring[i % n])]; };
    std::size_t begin = 0;  // the last drawn atom before those that are not
    while (begin < n && !(drawn(begin) && !drawn(begin + 1))) ++begin;
    if (begin == n) return;  // all are
    std::size_t count = 0;
    while (!drawn(begin + 1 + count)) ++count;
    const PlanePoint a = drawn_[static_cast<std::size_t>(ring[begin])],
                     b = drawn_[static_cast<std::size_t>(ring[(begin + 1 + count) % n])];
    PlanePoint middle;
    for (const int each : atoms) middle = middle + drawn_[static_cast<std::size_t>(each)];
    middle = middle * (1.0 / static_cast<double>(atoms.size()));
    const double side = cross(b - a, middle - a) > 0 ? -1 : 1;  // of the line from a to b that is free
    const Places arc = arc_between(a, b, count, side);
    for (std::size_t i = 0; i < count; ++i) draw(ring[(begin + 1 + i) % n], arc[i]);
  }

  // `count` points on a circle through a and b, bonds of length one between neighbours, on the left (side 1)
  // of the way from a to b or on its right: the angle of a bond as seen from the centre is found by halving.
  static Places arc_between(PlanePoint a, PlanePoint b, std::size_t count, double side) {
    const double chord = std::max(1e-3, length(b - a)), bonds = static_cast<double>(count + 1);
    double low = 1e-6, high = 2 * pi / bonds - 1e-6;
    const auto chord_at = [&](double step) { return std::sin(bonds * step / 2) / std::sin(step / 2); };
    for (int i = 0; i < 60; ++i) {
      const double middle = (low + high) / 2;
      (chord_at(middle) > chord ? low : high) = middle;
    }
    const double step = (low + high) / 2, radius = 0.5 / std::sin(step / 2), whole = bonds * step;
    const PlanePoint along = (b - a) * (1 / chord), up{-along.y * side, along.x * side};
    const PlanePoint centre = (a + b) * 0.5 + up * (-radius * std::cos(whole / 2));
    Places points;
    for (std::size_t i = 1; i <= count; ++i) {
      const double from_top = -whole / 2 + static_cast<double>(i) * step;
      points.push_back(centre + up * (radius * std::cos(from_top)) + along * (radius * std::sin(from_top)));
    }
    return points;
  }

  // Bonds of length one, and atoms apart: where rings share more than a side polygons alone do not fit.
  void relax(const std::vector<int>& atoms) {
    for (int round = 0; round < 300; ++round) {
      double moved = 0;
      for (std::size_t i = 0; i < atoms.size(); ++i)
        for (std::size_t j = i + 1; j < atoms.size(); ++j) moved = std::max(moved, pull(atoms[i], atoms[j]));
      if (moved < 1e-6) return;
    }
  }

  double pull(int a, int b) {
    PlanePoint &first = drawn_[static_cast<std::size_t>(a)], &second = drawn_[static_cast<std::size_t>(b)];
    const PlanePoint way = second - first;
    const double now = std::max(1e-3, length(way));
    const bool bonded = m_.bond_between(a, b) >= 0;
    if (!bonded && now >= comfortable_distance) return 0;
    const double change = 0.25 * ((bonded ? 1 : comfortable_distance) - now);
    first = first - way * (change / now);
    second = second + way * (change / now);
    return std::abs(change);
  }

  const Molecule& m_;
  std::vector<Ring> rings_;
  Places at_;
  std::vector<bool> placed_;
  std::vector<int> came_by_turning_;  // 1 or -1: to which side a chain turned at an atom
  std::queue<int> waiting_;           // placed atoms whose neighbours may not be
  Places drawn_;                      // of one system of rings
};

// --- room for all

bool do_cross(PlanePoint a, PlanePoint b, PlanePoint c, PlanePoint d) {
  const auto apart = [](double s, double t) { return s * t < -1e-9; };
  return apart(cross(b - a, c - a), cross(b - a, d - a)) && apart(cross(d - c, a - c), cross(d - c, b - c));
}

// An atom with two neighbours that lie opposite each other is no corner, and cannot be seen.
double straightness(const Molecule& m, const Places& at) {
  double cost = 0;
  for (int atom = 0; atom < m.atom_count(); ++atom) {
    const auto next = m.neighbors(atom);
    if (next.size() != 2 || is_linear(m, atom)) continue;
    const auto way = [&](std::size_t i) {
      return at[static_cast<std::size_t>(next[i].atom)] - at[static_cast<std::size_t>(atom)];
    };
    const double cosine = dot(way(0), way(1)) / std::max(1e-6, length(way(0)) * length(way(1)));
    cost += cosine < -0.9 ? straight_cost : 0;
  }
  return cost;
}

double crowding(const Molecule& m, const Places& at) {
  double cost = straightness(m, at);
  for (int i = 0; i < m.atom_count(); ++i)
    for (int j = i + 1; j < m.atom_count(); ++j) {
      const double lacking =
          comfortable_distance - length(at[static_cast<std::size_t>(i)] - at[static_cast<std::size_t>(j)]);
      if (lacking > 0 && m.bond_between(i, j) < 0) cost += lacking * lacking;
    }
  const auto end = [&](int atom) { return at[static_cast<std::size_t>(atom)]; };
  for (int i = 0; i < m.bond_count(); ++i)
    for (int j = i + 1; j < m.bond_count(); ++j) {
      const Bond &a = m.bond(i), &b = m.bond(j);
      if (a.a != b.a && a.a != b.b && a.b != b.a && a.b != b.b &&
          do_cross(end(a.a), end(a.b), end(b.a), end(b.b)))
        cost += crossing_cost;
    }
  return cost;
}

// The atoms on the far side of a bond that is in no ring.
std::vector<int> beyond(const Molecule& m, int from, int to) {
  std::vector<bool> seen(static_cast<std::size_t>(m.atom_count()), false);
  std::vector<int> atoms{to};
  seen[static_cast<std::size_t>(from)] = seen[static_cast<std::size_t>(to)] = true;
  for (std::size_t i = 0; i < atoms.size(); ++i)
    for (const Molecule::Neighbor& next : m.neighbors(atoms[i]))
      if (!seen[static_cast<std::size_t>(next.atom)]) {
        seen[static_cast<std::size_t>(next.atom)] = true;
        atoms.push_back(next.atom);
      }
  return atoms;
}

// What lies beyond a bond, mirrored at it (no angle) or turned about its near end.
Places moved_beyond(const Molecule& m, const Places& at, int from, int to, double angle) {
  Places result = at;
  const PlanePoint origin = at[static_cast<std::size_t>(from)],
                   axis = at[static_cast<std::size_t>(to)] - origin;
  for (const int atom : beyond(m, from, to)) {
    PlanePoint& place = result[static_cast<std::size_t>(atom)];
    place = origin + (angle == 0 ? mirrored(place - origin, axis) : turned(place - origin, angle));
  }
  return result;
}

// The best of all single moves, again and again, as long as one helps.
Places with_room(const Molecule& m, Places at) {
  double cost = crowding(m, at);
  for (int move = 0; move < most_moves && cost > 1e-9; ++move) {
    Places best;
    double least = cost - 1e-9;
    for (const Bond& bond : m.bonds()) {
      if (bond.in_ring) continue;
      for (const auto& [from, to] : {std::pair(bond.a, bond.b), std::pair(bond.b, bond.a)})
        for (const double angle :
             {0.0, pi / 3, -pi / 3, 2 * pi / 3, -2 * pi / 3, pi / 6, -pi / 6, pi / 12, -pi / 12}) {
          Places tried = moved_beyond(m, at, from, to, angle);
          const double found = crowding(m, tried);
          if (found < least) least = found, best = std::move(tried);
        }
    }
    if (best.empty()) break;
    at = std::move(best), cost = least;
  }
  return at;
}

}  // namespace

std::vector<PlanePoint> depict(const Molecule& molecule) {
  return with_room(molecule, Layout(molecule).run());
}

double least_distance(const Molecule& molecule, const std::vector<PlanePoint>& places) {
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < molecule.atom_count(); ++i)
    for (int j = i + 1; j < molecule.atom_count(); ++j)
      if (molecule.bond_between(i, j) < 0)
        least = std::min(least,
                         length(places[static_cast<std::size_t>(i)] - places[static_cast<std::size_t>(j)]));
  return least;
}

}  // namespace superstep::data
