// Points and directions in space by their Cartesian components.
#pragma once

#include <cmath>

namespace superstep::data {

struct Cartesian {
  double x = 0, y = 0, z = 0;
  Cartesian& operator+=(const Cartesian& b) { return *this = {x + b.x, y + b.y, z + b.z}; }
  Cartesian& operator-=(const Cartesian& b) { return *this = {x - b.x, y - b.y, z - b.z}; }
  Cartesian& operator*=(double s) { return *this = {x * s, y * s, z * s}; }
  friend Cartesian operator+(Cartesian a, const Cartesian& b) { return a += b; }
  friend Cartesian operator-(Cartesian a, const Cartesian& b) { return a -= b; }
  friend Cartesian operator*(Cartesian a, double s) { return a *= s; }
  friend Cartesian operator*(double s, Cartesian a) { return a *= s; }
  friend Cartesian operator-(const Cartesian& a) { return {-a.x, -a.y, -a.z}; }
  friend bool operator==(const Cartesian&, const Cartesian&) = default;
};

inline double dot(const Cartesian& a, const Cartesian& b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
inline double norm(const Cartesian& a) { return std::sqrt(dot(a, a)); }
inline Cartesian cross(const Cartesian& a, const Cartesian& b) {
  return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

}  // namespace superstep::data
