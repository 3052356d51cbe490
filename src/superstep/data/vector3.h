// Points and directions in space.
#pragma once

#include <cmath>

namespace superstep::data {

struct Vector3 {
  double x = 0, y = 0, z = 0;
  Vector3& operator+=(const Vector3& b) { return *this = {x + b.x, y + b.y, z + b.z}; }
  Vector3& operator-=(const Vector3& b) { return *this = {x - b.x, y - b.y, z - b.z}; }
  Vector3& operator*=(double s) { return *this = {x * s, y * s, z * s}; }
  friend Vector3 operator+(Vector3 a, const Vector3& b) { return a += b; }
  friend Vector3 operator-(Vector3 a, const Vector3& b) { return a -= b; }
  friend Vector3 operator*(Vector3 a, double s) { return a *= s; }
  friend Vector3 operator*(double s, Vector3 a) { return a *= s; }
  friend Vector3 operator-(const Vector3& a) { return {-a.x, -a.y, -a.z}; }
  friend bool operator==(const Vector3&, const Vector3&) = default;
};

inline double dot(const Vector3& a, const Vector3& b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
inline double norm(const Vector3& a) { return std::sqrt(dot(a, a)); }
inline Vector3 cross(const Vector3& a, const Vector3& b) {
  return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

}  // namespace superstep::data
