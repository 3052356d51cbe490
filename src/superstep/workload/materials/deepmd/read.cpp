// Frames of files, and generated ones.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "superstep/file/atoms/element.h"
#include "superstep/workload/generated.h"
#include "superstep/workload/materials/deepmd/deepmd.h"

namespace superstep::workload {
namespace {

using data::DeepmdFrame, data::LabelledFrames;

constexpr std::int64_t default_crystals = 640, default_clusters = 640;

std::vector<std::string> symbols_of(const DeepmdSizes& sizes) {
  std::vector<std::string> symbols;
  for (const int element : sizes.elements) symbols.emplace_back(data::element_symbol(element));
  std::ranges::sort(symbols);
  return symbols;
}

std::vector<data::Cartesian> vectors(const Tensor& tensor, std::int64_t row, std::int64_t count) {
  std::vector<data::Cartesian> all;
  const std::int64_t width = tensor.element_count() / tensor.shape()[0];
  for (std::int64_t i = 0, at = row * width; i < count; ++i, at += 3)
    all.push_back({tensor.at(at), tensor.at(at + 1), tensor.at(at + 2)});
  return all;
}

void append(LabelledFrames& all, DeepmdFrame frame, std::int64_t trajectory, const std::string& source) {
  all.frames.push_back(std::move(frame));
  all.trajectory.push_back(trajectory);
  all.place.push_back(fmt::format("{}, frame {}", source, all.frames.size()));
}

// Metals, the alloy NiCu and argon.
LabelledFrames crystals(const TaskSettings& settings, const Options& model, const std::string& material) {
  const std::vector<std::string> choices{"metal=" + material,
                                         fmt::format("cells={}", model.integer("box", 1, 20)),
                                         fmt::format("frames={}", model.integer("trajectory", 1, 100000))};
  const auto generator = make_generator("deepmd", choices);
  const Fields fields = generated_fields(*generator, settings, default_crystals);
  const Tensor types = generator->shared_arrays(settings.seed).at("type");
  const auto names = generator->parameters().at("type_map").get<std::vector<std::string>>();
  DeepmdFrame frame;
  for (std::int64_t i = 0; i < types.element_count(); ++i)
    frame.configuration.elements.push_back(
        *data::element_from_symbol(names.at(static_cast<std::size_t>(types.at(i)))));
  LabelledFrames all;
  const std::int64_t atoms = types.element_count();
  for (std::int64_t i = 0; i < fields.at("energy").element_count(); ++i) {
    frame.configuration.positions = vectors(fields.at("coord"), i, atoms);
    const auto edges = vectors(fields.at("box"), i, 3);
    frame.configuration.cell = data::Cell{edges[0], edges[1], edges[2]};
    frame.labels = {fields.at("energy").at(i), vectors(fields.at("force"), i, atoms), {}};
    frame.labels.virial.emplace();
    for (std::int64_t k = 0; k < 9; ++k)
      (*frame.labels.virial)[static_cast<std::size_t>(k)] = fields.at("virial").at(9 * i + k);
    append(all, frame, static_cast<std::int64_t>(fields.at("trajectory").at(i)), generated_source(settings));
  }
  return all;
}

// Clusters of SPC/Fw water in open space, of as many molecules as there is room for.
LabelledFrames water(const TaskSettings& settings, const DeepmdSizes& sizes) {
  const auto oxygen = static_cast<std::size_t>(std::ranges::find(sizes.elements, 8) - sizes.elements.begin());
  const std::int64_t most = std::min(sizes.atoms[oxygen], sizes.atoms[1 - oxygen] / 2);
  if (most < 1)
    throw Error(ErrorCode::invalid_argument, "there is no room for a molecule of water", "--set atoms",
                "with --set types=O,H for example --set atoms=8,16");
  const std::vector<std::string> choices{fmt::format("least={}", std::min<std::int64_t>(3, most)),
                                         fmt::format("most={}", most), "thermal=0.9"};
  const Fields fields = generated_fields(*make_generator("schnet", choices), settings, default_clusters);
  const Tensor& z = fields.at("z");
  LabelledFrames all;
  for (std::int64_t i = 0; i < z.shape()[0]; ++i) {
    DeepmdFrame frame;
    for (std::int64_t a = i * z.shape()[1]; a < (i + 1) * z.shape()[1] && z.at(a) != 0; ++a)
      frame.configuration.elements.push_back(static_cast<int>(z.at(a)));
    const auto atoms = static_cast<std::int64_t>(frame.configuration.elements.size());
    frame.configuration.positions = vectors(fields.at("pos"), i, atoms);
    frame.labels = {fields.at("energy").at(i), vectors(fields.at("forces"), i, atoms), {}};
    append(all, std::move(frame), i, generated_source(settings));
  }
  return all;
}

LabelledFrames generated(const TaskSettings& settings, const Options& model, const DeepmdSizes& sizes) {
  const std::vector<std::string> symbols = symbols_of(sizes);
  if (symbols == std::vector<std::string>{"H", "O"}) return water(settings, sizes);
  if (symbols == std::vector<std::string>{"Cu", "Ni"}) return crystals(settings, model, "NiCu");
  if (symbols.size() == 1) return crystals(settings, model, symbols[0]);
  throw Error(ErrorCode::invalid_argument, "frames of these elements are not generated", "--set types",
              "give --data with frames of your own: a folder of DeePMD-kit, or extended XYZ");
}

bool counts(const Prefactor& prefactor) { return prefactor.start > 0 || prefactor.limit > 0; }

void check_labels(const DeepmdFrame& frame, const std::string& place, const DeepmdSizes& sizes,
                  bool required) {
  const auto refuse = [&](const std::string& message, const std::string& hint = {}) {
    throw Error(ErrorCode::bad_file, message, place, hint);
  };
  const auto& [energy, forces, virial] = frame.labels;
  if (energy && !std::isfinite(*energy)) refuse("its energy is not finite");
  for (std::size_t i = 0; i < forces.size(); ++i)
    if (!std::isfinite(data::norm(forces[i])))
      refuse(fmt::format("the force on atom {} is not finite", i + 1));
  if (virial && !std::ranges::all_of(*virial, [](double v) { return std::isfinite(v); }))
    refuse("its virial is not finite");
  if (!required) return;
  if (!energy) refuse("has no energy to learn from", "energy.npy, or energy=... in extended XYZ, in eV");
  if (forces.empty() && counts(sizes.force))
    refuse("has no forces to learn from", "--set force=0 learns from energies alone");
  if (!virial && counts(sizes.virial)) refuse("has no virial to learn from", "--set virial=0 learns without");
}

}  // namespace

std::vector<PlacedFrame> read_frames(const TaskSettings& settings, const Options& model) {
  const DeepmdSizes sizes = deepmd_sizes(model);
  LabelledFrames read = settings.data.empty() ? generated(settings, model, sizes)
                                              : data::read_labelled_frames(settings.data, settings.samples);
  if (read.frames.empty()) throw Error(ErrorCode::bad_file, "has no frames", settings.data.string());
  for (std::size_t i = 0; i < read.frames.size(); ++i)
    check_labels(read.frames[i], read.place[i], sizes, settings.labels_required);
  std::vector<PlacedFrame> frames(read.frames.size());
  settings.pool->parallel_for(static_cast<std::int64_t>(frames.size()), [&](std::int64_t i, int) {
    const auto at = static_cast<std::size_t>(i);
    frames[at] = place_frame(std::move(read.frames[at]), read.place[at], sizes);
    frames[at].trajectory = read.trajectory[at];
  });
  return frames;
}

}  // namespace superstep::workload
