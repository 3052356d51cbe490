#include "superstep/physics/materials/water_generator.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "superstep/base/random.h"
#include "superstep/file/atoms/extxyz.h"
#include "superstep/file/streamed_file.h"
#include "superstep/physics/materials/molecular_dynamics.h"
#include "superstep/physics/materials/water.h"
#include "superstep/physics/ordered_samples.h"
#include "superstep/physics/sample_memory.h"

namespace superstep::data {
namespace {

constexpr double friction = 0.05;  // of the heat bath, 1/fs

struct Settings {
  int least, most;  // molecules
  double thermal_fraction, low_kelvin, high_kelvin, timestep, heating;
  double force_limit;
  int relax_steps;
};

struct Cluster {
  int molecules = 0;
  double kelvin = 0;  // 0: at a minimum
  std::vector<Cartesian> positions, forces;
  double energy = 0;
};

// Positions as a float file holds them: the labels belong to exactly these. By way of an array of floats,
// because g++ 12 at -O2 drops the rounding of double to float and back where it vectorises three in a row.
void round_to_float(std::vector<Cartesian>& positions) {
  std::vector<float> rounded;
  for (const Cartesian& p : positions)
    for (const double each : {p.x, p.y, p.z}) rounded.push_back(static_cast<float>(each));
  for (std::size_t i = 0; i < positions.size(); ++i)
    positions[i] = {rounded[3 * i], rounded[3 * i + 1], rounded[3 * i + 2]};
}

void centre(std::vector<Cartesian>& positions) {
  Cartesian sum;
  for (const Cartesian& p : positions) sum += p;
  sum *= 1.0 / static_cast<double>(positions.size());
  for (Cartesian& p : positions) p -= sum;
}

std::vector<Field> fields_for(const Settings& settings) {
  const std::int64_t atoms = 3 * settings.most;
  return {{"z", ElementType::i32, {atoms}, "", "atomic numbers, 0 beyond the last atom"},
          {"pos", ElementType::f32, {atoms, 3}, "A", "positions"},
          {"forces", ElementType::f32, {atoms, 3}, "eV/A", "forces at these positions"},
          {"energy", ElementType::f64, {}, "eV", "energy of the cluster at these positions: the label"},
          {"molecules", ElementType::i32, {}, "", "number of water molecules"},
          {"temperature", ElementType::f32, {}, "K", "of the heat bath; 0: at a minimum"}};
}

class WaterGenerator final : public Generator {
 public:
  explicit WaterGenerator(const Settings& settings) : settings_(settings), fields_(fields_for(settings)) {}

  std::string_view name() const override { return "schnet"; }
  int version() const override { return 1; }
  std::span<const Field> fields() const override { return fields_; }

  void sample(std::uint64_t seed, std::uint64_t index, std::span<std::byte* const> out) const override {
    const Cluster made = cluster(seed, index);
    put_all<std::int32_t>(out[0], water_elements(made.molecules));
    put_vectors(out[1], made.positions);
    put_vectors(out[2], made.forces);
    put(out[3], made.energy);
    put(out[4], static_cast<std::int32_t>(made.molecules));
    put(out[5], static_cast<float>(made.kelvin));
  }

  nlohmann::json parameters() const override {
    return {{"potential", "SPC/Fw"},
            {"molecules", {settings_.least, settings_.most}},
            {"thermal_fraction", settings_.thermal_fraction},
            {"temperature_K", {settings_.low_kelvin, settings_.high_kelvin}},
            {"timestep_fs", settings_.timestep},
            {"heating_fs", settings_.heating},
            {"friction_per_fs", friction},
            {"force_limit_eV_per_A", settings_.force_limit},
            {"relax_steps", settings_.relax_steps}};
  }

  void write(const WriteRequest& request) const override {
    const std::string extension = request.path.extension().string();
    if (extension != ".xyz" && extension != ".extxyz") return Generator::write(request);
    StreamedFile file(request.path);
    for_samples_in_order(
        request, [&](std::uint64_t index) { return xyz_text(cluster(request.seed, index), request.seed); },
        [&](const std::string& text) { file.write(text); });
    file.close();
  }

 private:
  static void put_vectors(std::byte* memory, const std::vector<Cartesian>& vectors) {
    for (const Cartesian& v : vectors) {
      put_all<float>(memory, std::array{v.x, v.y, v.z});
      memory += 3 * sizeof(float);
    }
  }

  Cluster cluster(std::uint64_t seed, std::uint64_t index) const {
    RandomStream random(seed, index);
    Cluster made;
    made.molecules =
        settings_.least +
        static_cast<int>(random.below(static_cast<std::uint64_t>(settings_.most - settings_.least + 1)));
    if (random.uniform() < settings_.thermal_fraction)
      made.kelvin = random.uniform(settings_.low_kelvin, settings_.high_kelvin);
    const auto field = [this](std::span<const Cartesian> positions, std::span<Cartesian> forces) {
      return evaluate_water(model_, positions, forces);
    };
    MotionState state = start_motion(water_masses(made.molecules), pack_water(model_, made.molecules, random),
                                     0, random, field);
    relax(state, settings_.force_limit, settings_.relax_steps, field);
    if (made.kelvin > 0) heat(state, made.kelvin, random, field);
    centre(state.positions);
    round_to_float(state.positions);
    made.positions = std::move(state.positions);
    made.forces.resize(made.positions.size());
    made.energy = field(made.positions, made.forces);
    return made;
  }

  void heat(MotionState& state, double kelvin, RandomStream& random, ForceField field) const {
    std::ranges::fill(state.velocities, Cartesian{});
    const int steps = static_cast<int>(std::lround(settings_.heating / settings_.timestep));
    for (int i = 0; i < steps; ++i) langevin_step(state, settings_.timestep, kelvin, friction, random, field);
  }

  std::string xyz_text(const Cluster& made, std::uint64_t seed) const {
    return format_xyz({{water_elements(made.molecules), made.positions, {}},
                       {made.energy, made.forces, {}},
                       {{"synthetic", "1"},
                        {"generator", "schnet"},
                        {"version", std::to_string(version())},
                        {"seed", std::to_string(seed)},
                        {"molecules", std::to_string(made.molecules)},
                        {"temperature", nlohmann::json(static_cast<float>(made.kelvin)).dump()}}});
  }

  Settings settings_;
  std::vector<Field> fields_;
  SpcFw model_;
};

std::vector<OptionSpec> water_options() {
  return {
      {"least", "3", "smallest number of molecules"},
      {"most", "30", "largest number of molecules"},
      {"thermal", "0.5", "fraction of thermal snapshots; the rest are minima"},
      {"low", "100", "lowest temperature of a snapshot, K"},
      {"high", "400", "highest temperature of a snapshot, K"},
      {"timestep", "0.5", "time step, fs"},
      {"heating", "250", "time in the heat bath before the snapshot, fs"},
      {"force-limit", "0.02", "a minimum has no larger force, eV/A"},
      {"relax-steps", "1000", "at most so many steps are spent on a minimum"},
  };
}

std::unique_ptr<Generator> make_water_generator(const Options& options) {
  const int least = static_cast<int>(options.integer("least", 1, 1000));
  const double low = options.number("low", 1, 2000);
  return std::make_unique<WaterGenerator>(
      Settings{least, static_cast<int>(options.integer("most", least, 1000)), options.number("thermal", 0, 1),
               low, options.number("high", low, 2000), options.number("timestep", 0.05, 2),
               options.number("heating", 0, 1e6), options.number("force-limit", 1e-8, 10),
               static_cast<int>(options.integer("relax-steps", 1, 1000000))});
}

}  // namespace

GeneratorEntry schnet_generator() {
  return {"schnet", "clusters of flexible water (SPC/Fw): energies and forces", water_options(),
          make_water_generator};
}

}  // namespace superstep::data
