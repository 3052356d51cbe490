#include "superstep/data/metal_generator.h"

#include <cmath>
#include <deque>
#include <mutex>
#include <utility>

#include "superstep/base/random.h"
#include "superstep/data/deepmd_set.h"
#include "superstep/data/element.h"
#include "superstep/data/extxyz.h"
#include "superstep/data/molecular_dynamics.h"
#include "superstep/data/ordered_samples.h"
#include "superstep/data/sample_memory.h"
#include "superstep/data/streamed_file.h"
#include "superstep/data/sutton_chen.h"

namespace superstep::data {
namespace {

constexpr std::uint64_t side_by_side = 32;  // trajectories whose frames take turns
constexpr double skin = 0.6;                // of the neighbour list, A
constexpr double friction = 0.02;           // of the heat bath, 1/fs
constexpr double smooth_part = 0.875;       // of the cutoff, where it begins to act

struct Settings {
  SuttonChen metal;
  int cells, frames;
  double low_kelvin, high_kelvin, volume_change, timestep, interval, equilibration, cutoff_in_lattices;
  int atoms() const { return 4 * cells * cells * cells; }
  SmoothCutoff cutoff() const {
    const double end = cutoff_in_lattices * metal.a;
    return {smooth_part * end, end};
  }
};

struct Frame {
  Configuration configuration;
  Evaluation evaluation;
  double kelvin = 0, volume_scale = 0, time = 0;
  std::uint64_t trajectory = 0;
};

// One trajectory, run as far as it was asked for. Its frames are functions of (seed, number) alone.
class Trajectory {
 public:
  Trajectory(const Settings& settings, std::uint64_t seed, std::uint64_t number)
      : settings_(settings),
        number_(number),
        random_(seed, number, 1),
        kelvin_(random_.uniform(settings.low_kelvin, settings.high_kelvin)),
        volume_scale_(1 + random_.uniform(-settings.volume_change, settings.volume_change)),
        crystal_(face_centred_cubic(*element_from_symbol(settings.metal.symbol),
                                    settings.metal.a * std::cbrt(volume_scale_), settings.cells)),
        list_(crystal_.cell, settings.cutoff().cutoff, skin) {}

  Frame frame(std::uint64_t place) {
    const std::lock_guard lock(mutex_);
    if (frames_.empty()) start();
    while (frames_.size() <= place) {
      run(settings_.interval);
      keep();
    }
    return frames_[place];
  }

 private:
  double evaluate(std::span<const Vector3> positions, std::span<Vector3> forces) {
    last_ = evaluate_sutton_chen(settings_.metal, settings_.cutoff(), positions, list_.pairs(positions));
    std::ranges::copy(last_.forces, forces.begin());
    return last_.energy;
  }

  void start() {
    const std::vector<double> masses(crystal_.positions.size(), element_mass(crystal_.elements[0]));
    state_ = start_motion(masses, crystal_.positions, kelvin_, random_,
                          [this](auto positions, auto forces) { return evaluate(positions, forces); });
    run(settings_.equilibration);
    keep();
  }

  void run(double femtoseconds) {
    const int steps = std::max(1, static_cast<int>(std::lround(femtoseconds / settings_.timestep)));
    for (int i = 0; i < steps; ++i)
      langevin_step(state_, settings_.timestep, kelvin_, friction, random_,
                    [this](auto positions, auto forces) { return evaluate(positions, forces); });
    time_ += steps * settings_.timestep;
  }

  void keep() {
    frames_.push_back({crystal_, last_, kelvin_, volume_scale_, time_, number_});
    frames_.back().configuration.positions = state_.positions;
  }

  const Settings& settings_;
  std::uint64_t number_;
  RandomStream random_;
  double kelvin_, volume_scale_, time_ = 0;
  Configuration crystal_;
  VerletList list_;
  MotionState state_;
  Evaluation last_;
  std::vector<Frame> frames_;
  std::mutex mutex_;
};

// The trajectories used last, so that the frames of one are not run again from its start.
class TrajectoryCache {
 public:
  explicit TrajectoryCache(const Settings& settings) : settings_(settings) {}

  std::shared_ptr<Trajectory> get(std::uint64_t seed, std::uint64_t number) {
    constexpr std::size_t most = 4 * side_by_side;
    const std::lock_guard lock(mutex_);
    for (const auto& [key, trajectory] : kept_)
      if (key == std::pair(seed, number)) return trajectory;
    kept_.emplace_back(std::pair(seed, number), std::make_shared<Trajectory>(settings_, seed, number));
    if (kept_.size() > most) kept_.pop_front();
    return kept_.back().second;
  }

 private:
  const Settings& settings_;
  std::mutex mutex_;
  std::deque<std::pair<std::pair<std::uint64_t, std::uint64_t>, std::shared_ptr<Trajectory>>> kept_;
};

std::vector<Field> fields_for(std::int64_t atoms) {
  return {
      {"coord", ElementType::f64, {3 * atoms}, "A", "positions, x y z of each atom"},
      {"box", ElementType::f64, {9}, "A", "edges of the periodic box, rows first"},
      {"energy", ElementType::f64, {}, "eV", "potential energy of all atoms"},
      {"force", ElementType::f64, {3 * atoms}, "eV/A", "forces, x y z of each atom"},
      {"virial", ElementType::f64, {9}, "eV", "-dE/d(strain), rows first"},
      {"temperature", ElementType::f32, {}, "K", "of the heat bath"},
      {"volume_scale", ElementType::f32, {}, "", "volume over the volume at the published lattice constant"},
      {"time", ElementType::f32, {}, "fs", "since the trajectory began"},
      {"trajectory", ElementType::i64, {}, "", "number of the trajectory: split by it"}};
}

void put_vectors(std::byte* memory, const std::vector<Vector3>& vectors) {
  for (const Vector3& v : vectors) {
    put_all<double>(memory, std::array{v.x, v.y, v.z});
    memory += 3 * sizeof(double);
  }
}

class MetalGenerator final : public Generator {
 public:
  explicit MetalGenerator(Settings settings)
      : settings_(std::move(settings)), fields_(fields_for(settings_.atoms())), cache_(settings_) {}

  std::string_view name() const override { return "deepmd"; }
  int version() const override { return 1; }
  std::span<const Field> fields() const override { return fields_; }

  void sample(std::uint64_t seed, std::uint64_t index, std::span<std::byte* const> out) const override {
    const Frame made = frame(seed, index);
    const Cell& cell = *made.configuration.cell;
    put_vectors(out[0], made.configuration.positions);
    put_vectors(out[1], {cell.a, cell.b, cell.c});
    put(out[2], made.evaluation.energy);
    put_vectors(out[3], made.evaluation.forces);
    put_all<double>(out[4], made.evaluation.virial);
    put(out[5], static_cast<float>(made.kelvin));
    put(out[6], static_cast<float>(made.volume_scale));
    put(out[7], static_cast<float>(made.time));
    put(out[8], static_cast<std::int64_t>(made.trajectory));
  }

  std::map<std::string, Tensor> shared_arrays(std::uint64_t) const override {
    return {{"type", Tensor(ElementType::i32, {settings_.atoms()})}};
  }

  nlohmann::json parameters() const override {
    const SuttonChen& metal = settings_.metal;
    return {{"metal", metal.symbol},
            {"type_map", {metal.symbol}},
            {"potential", "Sutton-Chen"},
            {"n", metal.n},
            {"m", metal.m},
            {"epsilon_eV", metal.epsilon},
            {"c", metal.c},
            {"a_A", metal.a},
            {"cutoff_A", settings_.cutoff().cutoff},
            {"cutoff_start_A", settings_.cutoff().start},
            {"cells", settings_.cells},
            {"frames_a_trajectory", settings_.frames},
            {"temperature_K", {settings_.low_kelvin, settings_.high_kelvin}},
            {"volume_change", settings_.volume_change},
            {"timestep_fs", settings_.timestep},
            {"interval_fs", settings_.interval},
            {"equilibration_fs", settings_.equilibration},
            {"friction_per_fs", friction}};
  }

  void write(const WriteRequest& request) const override {
    const std::string extension = request.path.extension().string();
    if (extension.empty()) return write_deepmd(request);
    if (extension == ".xyz" || extension == ".extxyz") return write_xyz(request);
    Generator::write(request);
  }

 private:
  Frame frame(std::uint64_t seed, std::uint64_t index) const {
    const auto frames = static_cast<std::uint64_t>(settings_.frames);
    const std::uint64_t block = index / (side_by_side * frames);
    return cache_.get(seed, block * side_by_side + index % side_by_side)
        ->frame(index / side_by_side % frames);
  }

  void write_deepmd(const WriteRequest& request) const {
    const std::vector<int> elements(static_cast<std::size_t>(settings_.atoms()),
                                    *element_from_symbol(settings_.metal.symbol));
    DeepmdWriter folder(request.path, elements, true);
    for_samples_in_order(
        request, [&](std::uint64_t index) { return frame(request.seed, index); },
        [&](const Frame& made) {
          folder.write(
              {made.configuration, {made.evaluation.energy, made.evaluation.forces, made.evaluation.virial}});
        });
    folder.close();
  }

  void write_xyz(const WriteRequest& request) const {
    StreamedFile file(request.path);
    for_samples_in_order(
        request, [&](std::uint64_t index) { return xyz_text(frame(request.seed, index), request.seed); },
        [&](const std::string& text) { file.write(text); });
    file.close();
  }

  std::string xyz_text(const Frame& made, std::uint64_t seed) const {
    const auto text = [](double value) { return nlohmann::json(static_cast<float>(value)).dump(); };
    return format_xyz({made.configuration,
                       {made.evaluation.energy, made.evaluation.forces, made.evaluation.virial},
                       {{"synthetic", "1"},
                        {"generator", "deepmd"},
                        {"version", std::to_string(version())},
                        {"seed", std::to_string(seed)},
                        {"temperature", text(made.kelvin)},
                        {"volume_scale", text(made.volume_scale)},
                        {"trajectory", std::to_string(made.trajectory)}}});
  }

  Settings settings_;
  std::vector<Field> fields_;
  mutable TrajectoryCache cache_;
};

std::vector<OptionSpec> metal_options() {
  return {
      {"metal", "Cu", "Al, Ni, Cu, Pd, Ag, Pt or Au"},
      {"cells", "3", "cubic cells of four atoms along each edge of the box"},
      {"frames", "10", "frames taken from each trajectory"},
      {"low", "300", "lowest temperature, K"},
      {"high", "1500", "highest temperature, K"},
      {"volume-change", "0.05", "largest relative change of the volume, up and down"},
      {"timestep", "2", "time step, fs"},
      {"interval", "50", "time between frames, fs"},
      {"equilibration", "500", "time before the first frame, fs"},
      {"cutoff", "2", "cutoff of the potential, in lattice constants"},
  };
}

std::unique_ptr<Generator> make_metal_generator(const Options& options) {
  const double low = options.number("low", 1, 10000), timestep = options.number("timestep", 0.1, 10);
  return std::make_unique<MetalGenerator>(Settings{
      find_sutton_chen(options.text("metal")), static_cast<int>(options.integer("cells", 1, 20)),
      static_cast<int>(options.integer("frames", 1, 100000)), low, options.number("high", low, 10000),
      options.number("volume-change", 0, 0.5), timestep, options.number("interval", timestep, 1e6),
      options.number("equilibration", timestep, 1e7), options.number("cutoff", 0.9, 10)});
}

}  // namespace

GeneratorEntry deepmd_generator() {
  return {"deepmd", "molecular dynamics of Sutton-Chen metals: energies, forces, virials", metal_options(),
          make_metal_generator};
}

}  // namespace superstep::data
