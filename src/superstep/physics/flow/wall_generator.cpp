#include "superstep/physics/flow/wall_generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <nlohmann/json.hpp>

#include "superstep/base/progress.h"
#include "superstep/file/csv.h"
#include "superstep/physics/flow/wall_flow.h"
#include "superstep/physics/flow/wall_law.h"
#include "superstep/physics/sample_memory.h"

namespace superstep::data {
namespace {

enum Purpose : std::uint32_t { flow_stream, point_stream };

struct Settings {
  std::string level;
  double blowing, height, noise;
  int stencil;
};

// What a sample is before it is stored.
struct WallSample {
  std::vector<double> features;
  double stress = 0;
  Vector3 position{};
};

constexpr double x_low = 3.2, x_high = 19.6, z_reach = 3;

void append(const WallPoint& point, std::vector<double>& features) {
  features.insert(features.end(), point.velocity.begin(), point.velocity.end());
  for (const Vector3& row : point.gradient) features.insert(features.end(), row.begin(), row.end());
  features.insert(features.end(), point.pressure_gradient.begin(), point.pressure_gradient.end());
  features.push_back(point.density);
}

// Level A: the kinematic flow. Points of one snapshot share it.
constexpr std::uint64_t points_a_snapshot = 4096;
constexpr double stencil_step = 0.1;

WallSample sample_of_flow(const WallFlow& flow, const Settings& settings, RandomStream& random) {
  WallSample sample;
  sample.position = {random.uniform(x_low, x_high), settings.height, random.uniform(-z_reach, z_reach)};
  constexpr double offsets[][2] = {{0, 0}, {1, 0}, {-1, 0}, {0, 1}, {0, -1}};
  for (int k = 0; k < settings.stencil; ++k) {
    Vector3 position = sample.position;
    position[0] += stencil_step * offsets[k][0], position[2] += stencil_step * offsets[k][1];
    append(flow.at(position), sample.features);
  }
  sample.stress = flow.shear_stress(sample.position[0], sample.position[2]);
  return sample;
}

// Level B: a column of the wall equation, turned by a random angle.
WallSample sample_of_column(const Settings& settings, RandomStream& random) {
  WallSample sample;
  sample.position = {random.uniform(x_low, x_high), settings.height, random.uniform(-z_reach, z_reach)};
  WallColumn column{.height = settings.height, .viscosity = wall_viscosity};
  column.speed = 0.65 * std::exp(0.15 * random.normal());
  column.density = 1 + 0.5 * settings.blowing * random.uniform() * std::exp(-sample.position[0] / 12);
  // Sources in units of equilibrium stress over height, kept below what separates the flow.
  const double friction = friction_velocity(column.speed, column.height, column.viscosity);
  const double scale = column.density * friction * friction / column.height;
  column.pressure_gradient = scale * random.uniform(-1.5, 0.4);
  column.acceleration = scale / (column.density * column.speed) * random.uniform(-1.5, 0.2);
  const WallProfile profile = solve_wall_column(column);
  const double angle = 0.2 * random.normal(), c = std::cos(angle), s = std::sin(angle);
  WallPoint point;
  point.velocity = {column.speed * c, 0, column.speed * s};
  point.density = column.density;
  point.pressure_gradient = {column.pressure_gradient * c, 0, column.pressure_gradient * s};
  // Changes along the flow and across the height; the direction is the same everywhere.
  point.gradient[0] = {column.acceleration * c * c, profile.slope_at_height * c, column.acceleration * c * s};
  point.gradient[2] = {column.acceleration * s * c, profile.slope_at_height * s, column.acceleration * s * s};
  append(point, sample.features);
  sample.stress = profile.shear_stress * c;
  return sample;
}

// Typical sizes of the features, for noise in proportion.
double feature_scale(std::size_t feature) {
  if (feature < 3) return 0.65;
  if (feature < 12) return (feature - 3) % 3 == 1 ? 1.5 : 0.05;  // changes with y are the large ones
  return feature < 15 ? 0.01 : 1;
}

class WallGenerator final : public Generator {
 public:
  explicit WallGenerator(const Settings& settings) : settings_(settings) {
    const auto count = static_cast<std::int64_t>(wall_features) * settings.stencil;
    fields_ = {{"features",
                ElementType::f32,
                {count},
                "",
                "velocity 3, gradient 9, pressure gradient 3, density; of every stencil point"},
               {"tau",
                ElementType::f32,
                {},
                "",
                "shear stress at the wall along x, in densities times velocities squared of the free stream"},
               {"position", ElementType::f32, {3}, "hole diameters", "x, y, z of the point"},
               {"snapshot", ElementType::i32, {}, "", "points of one snapshot share a flow; split by it"}};
  }
  std::string_view name() const override { return "wallmodel"; }
  int version() const override { return 1; }
  std::span<const Field> fields() const override { return fields_; }

  void sample(std::uint64_t seed, std::uint64_t index, std::span<std::byte* const> out) const override {
    RandomStream random(seed, index, point_stream);
    const std::uint64_t snapshot = index / points_a_snapshot;
    WallSample point = settings_.level == "a" ? sample_of_flow(*flow(seed, snapshot), settings_, random)
                                              : sample_of_column(settings_, random);
    for (std::size_t k = 0; k < point.features.size(); ++k)
      point.features[k] += settings_.noise * feature_scale(k % wall_features) * random.normal();
    put_all<float>(out[0], point.features);
    put(out[1], static_cast<float>(point.stress));
    put_all<float>(out[2], point.position);
    put(out[3], static_cast<std::int32_t>(settings_.level == "a" ? snapshot : index));
  }

  nlohmann::json parameters() const override {
    return {{"level", settings_.level}, {"blowing", settings_.blowing}, {"height", settings_.height},
            {"noise", settings_.noise}, {"stencil", settings_.stencil}, {"viscosity", wall_viscosity}};
  }

  void write(const WriteRequest& request) const override {
    if (request.path.extension() == ".csv" || request.path.extension() == ".tsv")
      write_table(request);
    else
      Generator::write(request);
  }

 private:
  // The flow of a snapshot, kept while its points are made.
  std::shared_ptr<const WallFlow> flow(std::uint64_t seed, std::uint64_t snapshot) const {
    const std::lock_guard lock(mutex_);
    if (!cached_ || cached_seed_ != seed || cached_snapshot_ != snapshot) {
      RandomStream random(seed, snapshot, flow_stream);
      cached_ = std::make_shared<const WallFlow>(random, settings_.blowing);
      cached_seed_ = seed, cached_snapshot_ = snapshot;
    }
    return cached_;
  }

  void write_table(const WriteRequest& request) const {
    std::vector<std::string> header{"x", "y", "z", "snapshot"};
    for (int k = 0; k < settings_.stencil; ++k)
      for (const std::string& feature : wall_feature_names())
        header.push_back(k ? fmt::format("{}_{}", feature, k) : feature);
    header.emplace_back("tau");
    CsvWriter table(request.path, header);
    Progress progress("generating wallmodel", static_cast<double>(request.samples), "points");
    constexpr std::uint64_t block_samples = 4096;
    const auto features = static_cast<std::size_t>(wall_features * settings_.stencil);
    for (std::uint64_t first = 0; first < request.samples; first += block_samples) {
      const std::uint64_t count = std::min(block_samples, request.samples - first);
      const auto block = generate_in_memory(*this, request.seed, first, count, *request.pool);
      for (std::size_t k = 0; k < count; ++k) {
        for (float value : block[2].as<float>().subspan(3 * k, 3)) table.cell(value);
        table.cell(std::int64_t{block[3].as<std::int32_t>()[k]});
        for (float value : block[0].as<float>().subspan(features * k, features)) table.cell(value);
        table.cell(block[1].as<float>()[k]).end_row();
      }
      progress.update(static_cast<double>(first + count));
    }
    table.close();
  }

  Settings settings_;
  std::vector<Field> fields_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const WallFlow> cached_;
  mutable std::uint64_t cached_seed_ = 0, cached_snapshot_ = 0;
};

std::unique_ptr<Generator> make(const Options& options) {
  static const std::string levels[] = {"a", "b"};
  Settings settings{levels[options.choice("level", levels)], options.number("blowing", 0, 3),
                    options.number("height", 0.01, 0.5), options.number("noise", 0, 1),
                    static_cast<int>(options.integer("stencil", 1, 5))};
  if (settings.level == "b" && settings.stencil != 1)
    throw Error(ErrorCode::invalid_argument, "a column has no neighbors: level b goes with stencil=1",
                "option stencil");
  return std::make_unique<WallGenerator>(settings);
}

}  // namespace

std::vector<std::string> wall_feature_names() {
  std::vector<std::string> names{"u", "v", "w"};
  for (const char* component : {"u", "v", "w"})
    for (const char* direction : {"x", "y", "z"})
      names.push_back(fmt::format("d{}_d{}", component, direction));
  for (const char* direction : {"x", "y", "z"}) names.push_back(fmt::format("dp_d{}", direction));
  names.emplace_back("rho");
  return names;
}

GeneratorEntry wall_generator() {
  return {"wallmodel",
          "flow above a film-cooled wall and the shear stress at it",
          {{"level", "b",
            "a: kinematic flow with streaks, eddies and a vortex pair; b: columns of the wall equation"},
           {"blowing", "1", "blowing ratio of the jet"},
           {"height", "0.1", "of the points above the wall, in hole diameters"},
           {"noise", "0.01", "of the features, relative to their typical size"},
           {"stencil", "1", "level a: points per sample, 1 to 5: the point and its neighbors along x and z"}},
          make};
}

}  // namespace superstep::data
