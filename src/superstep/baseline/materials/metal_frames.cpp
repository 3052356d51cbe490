#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/baseline/materials/metal_fit.h"
#include "superstep/file/atoms/element.h"
#include "superstep/file/atoms/extxyz.h"
#include "superstep/file/hdf5/hdf5.h"

namespace superstep::baseline {
namespace {

using data::DeepmdFrame;

std::int64_t trajectory_of(const data::XyzFrame& frame, std::int64_t otherwise) {
  const auto found = frame.info.find("trajectory");
  if (found == frame.info.end()) return otherwise;
  std::int64_t number = otherwise;
  std::from_chars(found->second.data(), found->second.data() + found->second.size(), number);
  return number;
}

MetalFrames read_xyz_frames(const std::filesystem::path& path) {
  MetalFrames read;
  data::XyzReader reader(path);
  for (data::XyzFrame frame; reader.next(frame);) {
    read.trajectory.push_back(trajectory_of(frame, static_cast<std::int64_t>(read.frames.size())));
    read.frames.push_back({std::move(frame.configuration), std::move(frame.labels)});
  }
  return read;
}

std::vector<data::Cartesian> vectors(const Tensor& tensor, std::int64_t row) {
  const std::int64_t width = tensor.shape()[1];
  std::vector<data::Cartesian> result;
  for (std::int64_t at = row * width; at + 2 < (row + 1) * width; at += 3)
    result.push_back({tensor.at(at), tensor.at(at + 1), tensor.at(at + 2)});
  return result;
}

// Of every atom, by the file's types and the names that its parameters give them.
std::vector<int> elements_of(const data::Hdf5File& file) {
  const auto attributes = file.attributes();
  const auto found = attributes.find("parameters");
  const auto* text = found == attributes.end() ? nullptr : std::get_if<std::string>(&found->second);
  const auto json = nlohmann::json::parse(text ? *text : "", nullptr, false);
  const auto names = json.is_object() ? json.value("type_map", nlohmann::json()) : nlohmann::json();
  const Tensor types = file.read("type", ElementType::i64);
  std::vector<int> elements;
  for (std::int64_t i = 0; i < types.element_count(); ++i) {
    const double type = types.at(i);
    const bool known = names.is_array() && type >= 0 && type < static_cast<double>(names.size());
    const nlohmann::json name = known ? names[static_cast<std::size_t>(type)] : nlohmann::json();
    const auto element = name.is_string() ? data::element_from_symbol(name.get<std::string>()) : std::nullopt;
    if (!element)
      throw Error(ErrorCode::bad_file,
                  fmt::format("the attribute 'parameters' does not name the element of atom {}", i),
                  file.path().string());
    elements.push_back(*element);
  }
  return elements;
}

MetalFrames read_hdf5_frames(const std::filesystem::path& path) {
  const data::Hdf5File file(path);
  const std::vector<int> elements = elements_of(file);
  const Tensor energy = file.read("energy", ElementType::f64);
  const std::int64_t frames = energy.element_count(),
                     any[] = {frames, static_cast<std::int64_t>(3 * elements.size())}, nine[] = {frames, 9},
                     one[] = {frames};
  const Tensor coord = file.read("coord", ElementType::f64, any),
               force = file.read("force", ElementType::f64, any);
  const Tensor box = file.read("box", ElementType::f64, nine);
  const Tensor trajectory = file.read("trajectory", ElementType::i64, one);
  MetalFrames read;
  for (std::int64_t f = 0; f < frames; ++f) {
    DeepmdFrame frame;
    frame.configuration.positions = vectors(coord, f);
    frame.configuration.elements = elements;
    const auto edges = vectors(box, f);
    frame.configuration.cell = data::Cell{edges[0], edges[1], edges[2]};
    frame.labels = {energy.at(f), vectors(force, f), {}};
    read.frames.push_back(std::move(frame));
    read.trajectory.push_back(static_cast<std::int64_t>(trajectory.at(f)));
  }
  return read;
}

MetalFrames read_folder_frames(const std::filesystem::path& path) {
  MetalFrames read{data::read_deepmd_system(path), {}};
  for (std::size_t i = 0; i < read.frames.size(); ++i)
    read.trajectory.push_back(static_cast<std::int64_t>(i));
  return read;
}

void require_one_metal(const DeepmdFrame& frame, int element, const std::string& place) {
  const auto& [elements, positions, cell] = frame.configuration;
  if (!frame.labels.energy || frame.labels.forces.size() != positions.size() || positions.empty())
    throw Error(ErrorCode::bad_file, "a frame without energy and forces", place);
  if (!cell) throw Error(ErrorCode::bad_file, "a frame without a periodic box", place);
  for (const int each : elements)
    if (each != element) throw Error(ErrorCode::bad_file, "more than one element", place);
}

}  // namespace

MetalFrames read_metal_frames(const std::filesystem::path& path) {
  const std::string extension = path.extension().string();
  MetalFrames read = std::filesystem::is_directory(path)             ? read_folder_frames(path)
                     : extension == ".xyz" || extension == ".extxyz" ? read_xyz_frames(path)
                                                                     : read_hdf5_frames(path);
  for (std::size_t i = 0; i < read.frames.size(); ++i)
    require_one_metal(read.frames[i], read.frames[0].configuration.elements.at(0),
                      fmt::format("{}, frame {}", path.string(), i));
  return read;
}

std::vector<FramePair> frame_pairs(const data::Configuration& configuration,
                                   const data::SmoothCutoff& cutoff) {
  std::vector<FramePair> pairs;
  const auto& positions = configuration.positions;
  for (const auto& [i, j, shift] : data::neighbor_pairs(positions, configuration.cell, cutoff.cutoff)) {
    const data::Cartesian r =
        positions[static_cast<std::size_t>(j)] + shift - positions[static_cast<std::size_t>(i)];
    const double distance = data::norm(r);
    pairs.push_back({i, j, distance, cutoff.value(distance), cutoff.slope(distance), r * (1 / distance)});
  }
  return pairs;
}

}  // namespace superstep::baseline
