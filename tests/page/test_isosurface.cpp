// Surfaces beside closed forms: areas, volumes, closedness, the Euler characteristic; and what is drawn of
// them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <utility>

#include "superstep/base/error.h"
#include "superstep/base/random.h"
#include "superstep/page/isosurface.h"

namespace superstep::page {
namespace {

constexpr double pi = std::numbers::pi;

template <class Value>
std::vector<float> volume(int width, int height, int depth, Value value) {
  std::vector<float> values;
  for (int z = 0; z < depth; ++z)
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x) values.push_back(static_cast<float>(value(x, y, z)));
  return values;
}

std::vector<float> ball(int side, double radius) {
  const double middle = 0.5 * (side - 1);
  return volume(side, side, side, [&](int x, int y, int z) {
    return radius - std::sqrt(std::pow(x - middle, 2) + std::pow(y - middle, 2) + std::pow(z - middle, 2));
  });
}

Mesh ball_surface(int side, double radius) { return isosurface(ball(side, radius), side, side, side, 0.0f); }

using Edge = std::pair<std::uint32_t, std::uint32_t>;

std::map<Edge, int> directed_edges(const Mesh& mesh) {
  std::map<Edge, int> edges;
  for (const auto& [a, b, c] : mesh.triangles)
    for (const Edge& edge : {Edge{a, b}, Edge{b, c}, Edge{c, a}}) ++edges[edge];
  return edges;
}

// Every edge is met once in each direction.
bool is_closed(const Mesh& mesh) {
  const auto edges = directed_edges(mesh);
  return std::ranges::all_of(edges, [&](const auto& edge) {
    const auto back = edges.find({edge.first.second, edge.first.first});
    return edge.second == 1 && back != edges.end() && back->second == 1;
  });
}

// Points - edges + faces: 2 for each ball, 0 for each ring.
std::int64_t euler_characteristic(const Mesh& mesh) {
  return static_cast<std::int64_t>(mesh.points.size()) -
         static_cast<std::int64_t>(directed_edges(mesh).size() / 2) +
         static_cast<std::int64_t>(mesh.triangles.size());
}

TEST(Isosurface, OfABallHasItsAreaAndVolume) {
  double coarse = 0;
  for (const double radius : {5.0, 10.0, 20.0}) {
    const Mesh mesh = ball_surface(static_cast<int>(2 * radius) + 6, radius);
    const double area = area_of(mesh) / (4 * pi * radius * radius),
                 enclosed = volume_of(mesh) / (4 * pi / 3 * std::pow(radius, 3));
    EXPECT_NEAR(area, 1, 0.6 / (radius * radius)) << radius;
    EXPECT_NEAR(enclosed, 1, 0.6 / (radius * radius)) << radius;
    EXPECT_LT(enclosed, 1);  // chords lie inside
    if (coarse > 0) {
      EXPECT_NEAR((1 - enclosed) / coarse, 0.25, 0.05) << "second order: " << radius;
    }
    coarse = 1 - enclosed;
    EXPECT_NEAR(radius_of(mesh, {static_cast<float>(radius) + 2.5f, static_cast<float>(radius) + 2.5f,
                                 static_cast<float>(radius) + 2.5f}),
                radius, 0.05);
    EXPECT_TRUE(is_closed(mesh));
    EXPECT_EQ(euler_characteristic(mesh), 2);
  }
}

// Of a linear field the surface is a plane, wherever it lies: a slab of voxels in a long box.
TEST(Isosurface, OfALinearFieldIsExact) {
  // |x - 4.3| <= 2.1 within y and z of 0 to 5, closed at the sides of the volume.
  const auto values =
      volume(10, 6, 6, [](int x, int, int) { return std::min(2.1 - std::abs(x - 4.3), 1.0); });
  const Mesh mesh = isosurface(values, 10, 6, 6, 0.0f);
  ASSERT_TRUE(is_closed(mesh));
  double low = 1e9, high = -1e9;
  for (const Point& point : mesh.points)
    if (point[1] >= 1 && point[1] <= 4 && point[2] >= 1 && point[2] <= 4) {
      low = std::min(low, double{point[0]}), high = std::max(high, double{point[0]});
      EXPECT_TRUE(std::abs(point[0] - 2.2) < 1e-5 || std::abs(point[0] - 6.4) < 1e-5) << point[0];
    }
  EXPECT_NEAR(low, 2.2, 1e-5);
  EXPECT_NEAR(high, 6.4, 1e-5);
}

// The order of x, y and z: a box of different sides keeps them.
TEST(Isosurface, KnowsWhichAxisIsWhich) {
  const auto values = volume(9, 11, 13, [](int x, int y, int z) {
    return x >= 2 && x <= 4 && y >= 2 && y <= 6 && z >= 2 && z <= 9 ? 1.0 : 0.0;
  });
  const Mesh mesh = isosurface(values, 9, 11, 13, 0.5f);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const auto [low, high] =
        std::ranges::minmax(mesh.points, {}, [&](const Point& point) { return point[axis]; });
    EXPECT_NEAR(low[axis], 1.5, 1e-6);
    EXPECT_NEAR(high[axis], (std::array{4.5, 6.5, 9.5})[axis], 1e-6);
  }
}

TEST(Isosurface, OfARingHasAHole) {
  const auto values = volume(30, 30, 14, [](int x, int y, int z) {
    return 3 - std::hypot(std::hypot(x - 14.5, y - 14.5) - 9, z - 6.5);
  });
  const Mesh mesh = isosurface(values, 30, 30, 14, 0.0f);
  EXPECT_TRUE(is_closed(mesh));
  EXPECT_EQ(euler_characteristic(mesh), 0);
  EXPECT_NEAR(volume_of(mesh) / (2 * pi * pi * 9 * 9), 1, 0.05);
  EXPECT_NEAR(area_of(mesh) / (4 * pi * pi * 9 * 3), 1, 0.05);
}

// Noise has every case of a cube, and reaches the sides; values that lie at the level belong inside.
TEST(Isosurface, IsClosedWhateverTheValues) {
  RandomStream random(7);
  for (const int levels : {2, 3, 1000}) {
    const auto values = volume(9, 8, 7, [&](int, int, int) {
      return static_cast<double>(random.below(static_cast<std::uint64_t>(levels)));
    });
    const Mesh mesh = isosurface(values, 9, 8, 7, static_cast<float>(levels) / 2);
    EXPECT_TRUE(is_closed(mesh)) << levels;
    EXPECT_GT(mesh.triangles.size(), 1000U);
  }
  Mesh open = ball_surface(12, 4);
  open.triangles.pop_back();
  EXPECT_FALSE(is_closed(open));  // the control
}

TEST(Isosurface, OfNothingIsEmptyAndOfAllIsTheBox) {
  EXPECT_TRUE(isosurface(std::vector<float>(27, 0), 3, 3, 3, 0.5f).triangles.empty());
  const Mesh all = isosurface(std::vector<float>(60, 1), 3, 4, 5, 0.5f);
  EXPECT_TRUE(is_closed(all));
  EXPECT_EQ(euler_characteristic(all), 2);
  EXPECT_GT(volume_of(all), 2 * 3 * 4);  // to the middles of the voxels at the sides, and half way on
  EXPECT_LT(volume_of(all), 3 * 4 * 5);
}

TEST(Isosurface, HasNormalsThatPointOutwards) {
  const Mesh mesh = ball_surface(24, 8);
  for (std::size_t p = 0; p < mesh.points.size(); ++p) {
    double outwards = 0;
    for (std::size_t axis = 0; axis < 3; ++axis)
      outwards += (mesh.points[p][axis] - 11.5) / 8 * mesh.normals[p][axis];
    ASSERT_NEAR(outwards, 1, 0.02);
  }
}

// Angles go the short way round, over minus pi as well, and count what lies inside most.
TEST(Isosurface, TakesAnglesFromAComplexVolume) {
  const Mesh mesh = ball_surface(16, 5);
  std::vector<std::complex<float>> field;
  for (const float depth : ball(16, 5)) field.push_back(std::polar(depth >= 0 ? 1.0f : 1e-4f, 3.1f));
  for (std::size_t i = 0; i < field.size(); i += 2) field[i] *= std::polar(1.0f, 0.08f);  // 3.18: -3.10
  for (const float angle : angles_on(mesh, field)) ASSERT_GT(std::abs(angle), 3.09f);
}

TEST(Isosurface, RefusesWhatIsNoVolume) {
  const auto message = [](const std::vector<float>& values, int width) -> std::string {
    try {
      isosurface(values, width, 2, 2, 0.5f);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_NE(message(std::vector<float>(7), 2).find("7 values"), std::string::npos);
  EXPECT_NE(message(std::vector<float>(8), 0).find("2 x 2 x 0"), std::string::npos);
  EXPECT_NE(message({0, 0, 0, NAN, 0, 0, 0, 0}, 2).find("voxel 3 is nan"), std::string::npos);
}

// --- pictures

// Pixels of a frame that are not ground.
int covered(const Image& strip, int frame) {
  int pixels = 0;
  for (int y = 0; y < strip.height; ++y)
    for (int x = frame * strip.height; x < (frame + 1) * strip.height; ++x) {
      const auto at = 3 * (static_cast<std::size_t>(y) * static_cast<std::size_t>(strip.width) +
                           static_cast<std::size_t>(x));
      pixels +=
          std::abs(strip.rgb[at] - 38) + std::abs(strip.rgb[at + 1] - 43) + std::abs(strip.rgb[at + 2] - 49) >
          30;
    }
  return pixels;
}

TEST(Turning, ShowsABallAsADiscFromEverySide) {
  const Mesh mesh = ball_surface(24, 8);
  const std::vector<float> angles(mesh.points.size(), 1.0f);
  const Turning how{.centre = {11.5f, 11.5f, 11.5f}, .reach = 10, .frames = 5, .pixels = 60};
  const Image strip = turning(mesh, angles, how);
  ASSERT_EQ(strip.width, 300);
  ASSERT_EQ(strip.height, 60);
  const double disc = pi * std::pow(8.0 / 10 * 30, 2);
  for (int frame = 0; frame < 5; ++frame) EXPECT_NEAR(covered(strip, frame) / disc, 1, 0.05) << frame;
}

// A bar along x, seen level: as long as it is, then from its end.
TEST(Turning, TurnsAroundTheAxisOfZ) {
  const auto values = volume(31, 31, 31, [](int x, int y, int z) {
    return std::abs(x - 15) <= 10 && std::abs(y - 15) <= 2 && std::abs(z - 15) <= 2 ? 1.0 : 0.0;
  });
  const Mesh mesh = isosurface(values, 31, 31, 31, 0.5f);
  const Image strip = turning(mesh, std::vector<float>(mesh.points.size()),
                              {.centre = {15, 15, 15}, .reach = 15, .frames = 4, .pixels = 90, .tilt = 0});
  const double voxel = 3.0 * 3.0;                      // pixels
  EXPECT_NEAR(covered(strip, 0) / voxel, 21 * 5, 10);  // half a pixel all around
  EXPECT_NEAR(covered(strip, 1) / voxel, 5 * 5, 5);
  EXPECT_NEAR(covered(strip, 2) / voxel, 21 * 5, 10);
}

// What is in front hides what is behind, whatever the order of the triangles.
TEST(Turning, HidesWhatLiesBehind) {
  const auto values = volume(21, 21, 21, [](int x, int y, int z) {
    const bool front = y <= 6 && y >= 4, back = y >= 14 && y <= 16;
    return (front || back) && std::abs(x - 10) <= 4 && std::abs(z - 10) <= 4 ? 1.0 : 0.0;
  });
  Mesh mesh = isosurface(values, 21, 21, 21, 0.5f);
  std::vector<float> angles;
  for (const Point& point : mesh.points) angles.push_back(point[1] < 10 ? 0.0f : 2.0f);
  const Turning how{.centre = {10, 10, 10}, .reach = 12, .frames = 2, .pixels = 41, .tilt = 0};
  const auto middle = [&](const Image& strip, int frame) {
    const auto at = 3 * static_cast<std::size_t>(20 * strip.width + frame * 41 + 20);
    return std::vector<int>{strip.rgb[at], strip.rgb[at + 1], strip.rgb[at + 2]};
  };
  const Image strip = turning(mesh, angles, how);
  EXPECT_NE(middle(strip, 0), middle(strip, 1));  // from the front and from behind
  std::ranges::reverse(mesh.triangles);
  EXPECT_EQ(turning(mesh, angles, how).rgb, strip.rgb);
}

TEST(Turning, IsOneMovingPictureOfAPage) {
  const Mesh mesh = ball_surface(12, 4);
  const std::vector<float> angles(mesh.points.size());
  const Image strip =
      turning(mesh, angles, {.centre = {5.5f, 5.5f, 5.5f}, .reach = 6, .frames = 6, .pixels = 40});
  const std::string html =
      Page("x").pictures({{.image = strip, .caption = "a ball", .marks = {}, .frames = 6}}).to_html();
  EXPECT_NE(html.find("<div class=\"moving\" style=\"width:40px;height:40px\">"), std::string::npos);
  EXPECT_NE(html.find("width=\"240\" height=\"40\" style=\"--frames:6\" alt=\"a ball\""), std::string::npos);
  EXPECT_NE(html.find("prefers-reduced-motion"), std::string::npos);
  EXPECT_THROW(turning(mesh, std::vector<float>(3), {}), Error);
  EXPECT_THROW(turning(mesh, angles, {.reach = 0}), Error);
  EXPECT_EQ(covered(turning({}, {}, {.frames = 1, .pixels = 20}), 0), 0);
}

}  // namespace
}  // namespace superstep::page
