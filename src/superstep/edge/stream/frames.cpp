#include "superstep/edge/stream/frames.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "superstep/base/text.h"
#include "superstep/file/form.h"
#include "superstep/run/model.h"
#include "superstep/run/user/arrays.h"

namespace superstep::edge {
namespace {

Tensor generated_frames(const std::string& workload, std::int64_t count, std::uint64_t seed, int threads) {
  const run::Model model({.workload = workload, .seed = seed});
  const graph::Graph graph = model.inference()(count);
  if (graph.inputs().size() != 1)
    throw Error(ErrorCode::unsupported, "its model takes several inputs: a detector sends one", workload);
  ThreadPool pool(threads);
  const auto task =
      model.open_task({.samples = count, .seed = seed, .labels_required = false, .pool = &pool});
  const graph::ValueType& type = graph.type(graph.inputs()[0]);
  std::vector<Tensor> inputs{Tensor(type.element, type.shape)};
  std::vector<std::int64_t> indices(static_cast<std::size_t>(count));
  std::iota(indices.begin(), indices.end(), std::int64_t{0});
  for (std::int64_t& index : indices) index %= task->size();
  task->fill_inputs(indices, inputs, pool);
  return inputs[0];
}

FrameSource frames_in_file(const std::string& file, const std::string& dataset, std::int64_t most) {
  const run::NamedTensors arrays = run::read_arrays(file);
  std::vector<std::string> names;
  for (const auto& [name, array] : arrays) names.push_back(name);
  const auto position = arrays.find("position");
  if (dataset.empty() && names.size() != 1)
    throw Error(ErrorCode::invalid_argument, fmt::format("holds {}", join(names, ", ")), file,
                "name one by --dataset");
  const auto found = arrays.find(dataset.empty() ? names.at(0) : dataset);
  if (found == arrays.end())
    throw Error(ErrorCode::invalid_argument, fmt::format("has no array '{}'", dataset), file,
                unknown_name_hint(dataset, names));
  const Tensor& array = found->second;
  if (array.shape().rank() < 1 || array.shape()[0] < 1)
    throw Error(ErrorCode::invalid_argument, "has no row: frames are the rows of an array", file);
  std::vector<std::int64_t> extents = array.shape().extents();
  extents[0] = std::min(extents[0], most);
  Tensor frames(array.type(), Shape(extents));
  std::copy_n(array.bytes(), frames.byte_count(), frames.bytes());
  FrameSource source{.pixels = frames, .positions = {}};
  if (position != arrays.end() && position->second.shape() == Shape{array.shape()[0], 2})
    for (std::int64_t i = 0; i < extents[0]; ++i)
      source.positions.emplace_back(position->second.at(2 * i), position->second.at(2 * i + 1));
  return source;
}

}  // namespace

FrameSource frames_of(const std::string& what, const std::string& dataset, std::int64_t most,
                      std::uint64_t seed, int threads) {
  const bool file =
      std::filesystem::exists(what) || data::ends_in(what, {".npy", ".npz", ".h5", ".hdf5", ".safetensors"});
  if (file) return frames_in_file(what, dataset, most);
  return {.pixels = generated_frames(what, most, seed, threads), .positions = {}};
}

}  // namespace superstep::edge
