#include <fmt/format.h>

#include "superstep/base/error.h"
#include "superstep/baseline/materials/metal_fit.h"

namespace superstep::baseline {
namespace {

using data::DeepmdFrame;

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
  MetalFrames read = data::read_labelled_frames(path);
  for (std::size_t i = 0; i < read.frames.size(); ++i)
    require_one_metal(read.frames[i], read.frames[0].configuration.elements.at(0), read.place[i]);
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
