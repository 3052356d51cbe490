#include "superstep/physics/materials/metal_generator.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>

#include "superstep/base/random.h"
#include "superstep/file/atoms/deepmd_set.h"
#include "superstep/file/atoms/element.h"
#include "superstep/file/atoms/extxyz.h"
#include "superstep/file/streamed_file.h"
#include "superstep/physics/materials/crystal_potential.h"
#include "superstep/physics/materials/molecular_dynamics.h"
#include "superstep/physics/ordered_samples.h"
#include "superstep/physics/sample_memory.h"

namespace superstep::data {
namespace {

constexpr std::uint64_t side_by_side = 32;  // trajectories whose frames take turns
constexpr double skin = 0.6;                // of the neighbour list, A
constexpr double friction = 0.02;           // of the heat bath, 1/fs
constexpr double smooth_part = 0.875;       // of the cutoff, where it begins to act

struct Settings {
  std::shared_ptr<const CrystalPotential> potential;
  int cells, frames;
  double low_kelvin, high_kelvin, volume_change, timestep, interval, equilibration, cutoff_in_lattices;
  int atoms() const { return 4 * cells * cells * cells; }
  SmoothCutoff cutoff() const {
    const double end = cutoff_in_lattices * potential->lattice();
    return {smooth_part * end, end};
  }
  // The place of each atom's element among the potential's symbols, in their order.
  std::vector<int> types() const {
    std::vector<int> all(static_cast<std::size_t>(atoms()), 0);
    const auto first = std::lround(potential->shares()[0] * atoms());
    std::fill(all.begin() + first, all.end(), potential->shares().size() > 1 ? 1 : 0);
    return all;
  }
  std::vector<int> elements() const {
    std::vector<int> all;
    for (const int type : types())
      all.push_back(*element_from_symbol(potential->symbols()[static_cast<std::size_t>(type)]));
    return all;
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
        crystal_(
            face_centred_cubic(0, settings.potential->lattice() * std::cbrt(volume_scale_), settings.cells)),
        types_(settings.types()),
        list_(crystal_.cell, settings.cutoff().cutoff, skin) {
    crystal_.elements = settings.elements();
    if (settings.potential->shares().size() > 1) shuffle_sites();
  }

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
  // Atoms of an alloy sit on sites drawn at random; their order, by elements, stays.
  void shuffle_sites() {
    for (std::size_t left = crystal_.positions.size(); left > 1; --left)
      std::swap(crystal_.positions[left - 1], crystal_.positions[random_.below(left)]);
  }

  double evaluate(std::span<const Cartesian> positions, std::span<Cartesian> forces) {
    last_ = settings_.potential->evaluate(settings_.cutoff(), positions, types_, list_.pairs(positions));
    std::ranges::copy(last_.forces, forces.begin());
    return last_.energy;
  }

  void start() {
    std::vector<double> masses;
    for (const int element : crystal_.elements) masses.push_back(element_mass(element));
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
  std::vector<int> types_;
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

void put_vectors(std::byte* memory, const std::vector<Cartesian>& vectors) {
  for (const Cartesian& v : vectors) {
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
    const std::vector<int> types = settings_.types();
    return {{"type", Tensor::from<std::int32_t>({settings_.atoms()}, {types.begin(), types.end()})}};
  }

  nlohmann::json parameters() const override {
    nlohmann::json all = settings_.potential->parameters();
    all.update({{"type_map", settings_.potential->symbols()},
                {"cutoff_A", settings_.cutoff().cutoff},
                {"cutoff_start_A", settings_.cutoff().start},
                {"cells", settings_.cells},
                {"frames_a_trajectory", settings_.frames},
                {"temperature_K", {settings_.low_kelvin, settings_.high_kelvin}},
                {"volume_change", settings_.volume_change},
                {"timestep_fs", settings_.timestep},
                {"interval_fs", settings_.interval},
                {"equilibration_fs", settings_.equilibration},
                {"friction_per_fs", friction}});
    return all;
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
    DeepmdWriter folder(request.path, settings_.elements(), true);
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
      {"metal", "Cu",
       "Al, Ni, Cu, Pd, Ag, Pt or Au (Sutton-Chen); NiCu (alloy); Cu-Morse, Ar (Lennard-Jones): pair "
       "potentials"},
      {"nickel", "0.5", "share of nickel atoms in NiCu, which sit on random sites"},
      {"cells", "2", "cubic cells of four atoms along each edge of the box"},
      {"frames", "10", "frames taken from each trajectory"},
      {"low", "auto", "lowest temperature, K; auto: 300, of argon 10"},
      {"high", "auto", "highest temperature, K; auto: 1500, of argon 80, of Cu-Morse 1200"},
      {"volume-change", "0.05", "largest relative change of the volume, up and down"},
      {"timestep", "2", "time step, fs"},
      {"interval", "50", "time between frames, fs"},
      {"equilibration", "500", "time before the first frame, fs"},
      {"cutoff", "2", "cutoff of the potential, in lattice constants"},
  };
}

std::unique_ptr<Generator> make_metal_generator(const Options& options) {
  std::shared_ptr<const CrystalPotential> potential =
      make_crystal_potential(options.text("metal"), options.number("nickel", 0.01, 0.99));
  const auto kelvin = [&](const char* name, double usual, double lowest) {
    return options.text(name) == "auto" ? usual : options.number(name, lowest, 10000);
  };
  const double low = kelvin("low", potential->low_kelvin(), 1);
  const double high = kelvin("high", std::max(low, potential->high_kelvin()), low);
  const double timestep = options.number("timestep", 0.1, 10);
  return std::make_unique<MetalGenerator>(
      Settings{std::move(potential), static_cast<int>(options.integer("cells", 1, 20)),
               static_cast<int>(options.integer("frames", 1, 100000)), low, high,
               options.number("volume-change", 0, 0.5), timestep, options.number("interval", timestep, 1e6),
               options.number("equilibration", timestep, 1e7), options.number("cutoff", 0.9, 10)});
}

}  // namespace

GeneratorEntry deepmd_generator() {
  return {"deepmd", "molecular dynamics of metals, an alloy and argon: energies, forces, virials",
          metal_options(), make_metal_generator};
}

}  // namespace superstep::data
