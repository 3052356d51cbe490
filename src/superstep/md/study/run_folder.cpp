#include "superstep/md/study/run_folder.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/json.h"
#include "superstep/file/safetensors.h"
#include "superstep/physics/materials/atomic_units.h"

namespace superstep::md {
namespace {

constexpr const char* settings_file = "run.json";
constexpr const char* start_file = "start.xyz";
constexpr const char* state_file = "state.safetensors";

Tensor tensor_of(std::span<const Cartesian> vectors) {
  Tensor tensor(ElementType::f64, {static_cast<std::int64_t>(vectors.size()), 3});
  const auto values = tensor.as<double>();
  for (std::size_t i = 0; i < vectors.size(); ++i)
    values[3 * i] = vectors[i].x, values[3 * i + 1] = vectors[i].y, values[3 * i + 2] = vectors[i].z;
  return tensor;
}

Tensor tensor_of(const Cell& cell) { return tensor_of(std::array{cell.a, cell.b, cell.c}); }

// What a file of state holds, with what is missing named.
class StateFile {
 public:
  StateFile(const std::filesystem::path& path, std::size_t atoms)
      : file_(data::read_safetensors(path)),
        where_(path.string()),
        atoms_(static_cast<std::int64_t>(atoms)) {}

  std::vector<Cartesian> vectors(const char* name) const { return cartesian(find(name, {atoms_, 3})); }
  std::optional<Cell> cell(const char* name) const {
    if (!file_.tensors.contains(name)) return std::nullopt;
    const auto rows = cartesian(find(name, {3, 3}));
    return Cell{rows[0], rows[1], rows[2]};
  }
  bool has(const char* name) const { return file_.tensors.contains(name); }
  double number(const char* name) const { return find(name, {}).as<double>()[0]; }
  std::array<double, 9> nine(const char* name) const {
    std::array<double, 9> values{};
    std::ranges::copy(find(name, {9}).as<double>(), values.begin());
    return values;
  }
  // Steps and bytes: whole, and exact below 2^53.
  std::uint64_t count(const char* name) const {
    const double value = number(name);
    if (!(value >= 0 && value < 9e15) || value != std::floor(value))
      refuse(fmt::format("'{}' is no count", name));
    return static_cast<std::uint64_t>(value);
  }

 private:
  const Tensor& find(const char* name, const Shape& shape) const {
    const auto found = file_.tensors.find(name);
    if (found == file_.tensors.end()) refuse(fmt::format("has no '{}'", name));
    if (found->second.type() != ElementType::f64 || found->second.shape() != shape)
      refuse(fmt::format("'{}' belongs to another simulation: it is {}, not {}", name,
                         to_string(found->second.shape()), to_string(shape)));
    return found->second;
  }
  [[noreturn]] void refuse(const std::string& why) const { throw Error(ErrorCode::bad_file, why, where_); }
  static std::vector<Cartesian> cartesian(const Tensor& tensor) {
    const auto values = tensor.as<double>();
    std::vector<Cartesian> vectors;
    for (std::size_t i = 0; i + 2 < values.size(); i += 3)
      vectors.push_back({values[i], values[i + 1], values[i + 2]});
    return vectors;
  }

  data::SafetensorsFile file_;
  std::string where_;
  std::int64_t atoms_;
};

std::string number_or_nan(double value) { return std::isfinite(value) ? fmt::format("{}", value) : "nan"; }

}  // namespace

const char* const thermo_header =
    "step,time_fs,temperature_K,pressure_bar,potential_eV,kinetic_eV,conserved_eV,volume_A3\n";

std::string thermo_row(const State& state, const Reading& reading, double timestep) {
  return fmt::format("{},{},{},{},{},{},{},{}\n", state.step, static_cast<double>(state.step) * timestep,
                     reading.temperature,
                     number_or_nan(reading.pressure * data::bar_per_ev_per_cubic_angstrom), reading.potential,
                     reading.kinetic, reading.conserved, number_or_nan(reading.volume));
}

data::XyzFrame frame_of(const State& state, const std::vector<int>& elements, const Reading& reading,
                        double timestep) {
  data::XyzFrame frame{.configuration = {elements, state.motion.positions, state.cell},
                       .labels = {state.motion.potential_energy, state.motion.forces, std::nullopt},
                       .info = {{"step", std::to_string(state.step)},
                                {"time_fs", fmt::format("{}", static_cast<double>(state.step) * timestep)},
                                {"temperature_K", fmt::format("{:.6g}", reading.temperature)}},
                       .velocities = state.motion.velocities};
  if (std::isfinite(reading.pressure)) {
    frame.labels.virial = state.virial;
    std::string stress;
    for (const double each : state.virial)
      stress += fmt::format("{}{}", stress.empty() ? "" : " ", -each / reading.volume);
    frame.info["stress"] = stress;
  }
  return frame;
}

RunFolder::RunFolder(std::filesystem::path path, Settings settings)
    : path_(std::move(path)), settings_(std::move(settings)), lock_(std::make_shared<FolderLock>(path_)) {}

void RunFolder::refuse_existing(const std::filesystem::path& folder) {
  if (std::filesystem::exists(folder / settings_file))
    throw Error(ErrorCode::invalid_argument, "holds a simulation already", folder.string(),
                fmt::format("superstep md --resume {} goes on with it", folder.string()));
}

RunFolder RunFolder::create(const std::filesystem::path& folder, const Settings& settings,
                            const Structure& start) {
  refuse_existing(folder);
  make_folder(folder);
  RunFolder made(folder, settings);
  refuse_existing(folder);  // another process may have been quicker
  data::XyzFrame frame{
      .configuration = start.atoms, .labels = {}, .info = {}, .velocities = start.velocities};
  write_file_atomically(folder / start_file, data::format_xyz(frame));
  write_file_atomically(folder / settings_file, to_json(settings).dump(2) + "\n");
  return made;
}

RunFolder RunFolder::open(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / settings_file;
  if (!std::filesystem::exists(file))
    throw Error(ErrorCode::not_found, "holds no simulation", folder.string(),
                "superstep md POTENTIAL --out FOLDER begins one");
  const nlohmann::json json = parse_json(read_text_file(file));
  if (json.is_discarded()) throw Error(ErrorCode::bad_file, "is no JSON", file.string());
  return RunFolder(folder, settings_from_json(json, file.string()));
}

void RunFolder::change_steps(std::int64_t steps) {
  if (steps == settings_.steps) return;
  settings_.steps = steps;
  write_file_atomically(path_ / settings_file, to_json(settings_).dump(2) + "\n");
}

Structure RunFolder::start() const { return read_structure(path_ / start_file, 1); }

std::optional<Checkpoint> RunFolder::checkpoint(std::size_t atoms) const {
  if (!std::filesystem::exists(path_ / state_file)) return std::nullopt;
  const StateFile file(path_ / state_file, atoms);
  Checkpoint found;
  State& state = found.state;
  state.step = static_cast<std::int64_t>(file.count("step"));
  state.motion.positions = file.vectors("positions");
  state.motion.velocities = file.vectors("velocities");
  state.motion.forces = file.vectors("forces");
  state.motion.potential_energy = file.number("potential_energy");
  state.cell = file.cell("cell");
  state.virial = file.nine("virial");
  state.bath_energy = file.number("bath_energy");
  if (file.has("origin")) found.origin = {file.vectors("origin"), file.cell("origin_cell")};
  found.trajectory_bytes = file.count("trajectory_bytes");
  found.thermo_bytes = file.count("thermo_bytes");
  return found;
}

void RunFolder::save(const Checkpoint& checkpoint) const {
  const State& state = checkpoint.state;
  const auto number = [](double value) { return Tensor::scalar<double>(value); };
  data::SafetensorsFile file;
  auto& tensors = file.tensors;
  tensors["step"] = number(static_cast<double>(state.step));
  tensors["positions"] = tensor_of(state.motion.positions);
  tensors["velocities"] = tensor_of(state.motion.velocities);
  tensors["forces"] = tensor_of(state.motion.forces);
  tensors["potential_energy"] = number(state.motion.potential_energy);
  if (state.cell) tensors["cell"] = tensor_of(*state.cell);
  tensors["virial"] = Tensor::from<double>({9}, {state.virial.begin(), state.virial.end()});
  tensors["bath_energy"] = number(state.bath_energy);
  if (!checkpoint.origin.positions.empty()) tensors["origin"] = tensor_of(checkpoint.origin.positions);
  if (checkpoint.origin.cell) tensors["origin_cell"] = tensor_of(*checkpoint.origin.cell);
  tensors["trajectory_bytes"] = number(static_cast<double>(checkpoint.trajectory_bytes));
  tensors["thermo_bytes"] = number(static_cast<double>(checkpoint.thermo_bytes));
  data::write_safetensors(path_ / state_file, file);
}

}  // namespace superstep::md
