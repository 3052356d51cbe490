#include "superstep/file/atoms/labelled_frames.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "superstep/base/error.h"
#include "superstep/base/json.h"
#include "superstep/file/atoms/ase_database.h"
#include "superstep/file/atoms/element.h"
#include "superstep/file/atoms/extxyz.h"
#include "superstep/file/form.h"
#include "superstep/file/hdf5/hdf5.h"

namespace superstep::data {
namespace {

namespace fs = std::filesystem;

std::int64_t trajectory_of(const XyzFrame& frame, std::int64_t otherwise) {
  const auto found = frame.info.find("trajectory");
  if (found == frame.info.end()) return otherwise;
  std::int64_t number = otherwise;
  std::from_chars(found->second.data(), found->second.data() + found->second.size(), number);
  return number;
}

bool is_full(const LabelledFrames& read, std::int64_t limit) {
  return limit > 0 && static_cast<std::int64_t>(read.frames.size()) >= limit;
}

void append(LabelledFrames& read, DeepmdFrame frame, std::int64_t trajectory, const std::string& where,
            std::int64_t number) {
  read.frames.push_back(std::move(frame));
  read.trajectory.push_back(trajectory);
  read.place.push_back(fmt::format("{}, frame {}", where, number));
}

LabelledFrames read_xyz_frames(const fs::path& path, std::int64_t limit) {
  LabelledFrames read;
  XyzReader reader(path);
  std::int64_t number = 0;
  for (XyzFrame frame; !is_full(read, limit) && reader.next(frame); ++number) {
    const std::int64_t trajectory = trajectory_of(frame, number);
    append(read, {std::move(frame.configuration), std::move(frame.labels)}, trajectory, path.string(),
           number + 1);
  }
  return read;
}

LabelledFrames read_ase_frames(const fs::path& path, std::int64_t limit) {
  LabelledFrames read;
  for_ase_frames(path, [&](AseFrame frame) {
    read.frames.push_back({std::move(frame.configuration), std::move(frame.labels)});
    read.trajectory.push_back(static_cast<std::int64_t>(read.trajectory.size()));
    read.place.push_back(fmt::format("{}: row {}", path.string(), frame.id));
    return !is_full(read, limit);
  });
  return read;
}

std::vector<Cartesian> vectors(const Tensor& tensor, std::int64_t row) {
  const std::int64_t width = tensor.shape()[1];
  std::vector<Cartesian> result;
  for (std::int64_t at = row * width; at + 2 < (row + 1) * width; at += 3)
    result.push_back({tensor.at(at), tensor.at(at + 1), tensor.at(at + 2)});
  return result;
}

// Of every atom, by the file's types and the names that its parameters give them.
std::vector<int> elements_of(const Hdf5File& file) {
  const auto attributes = file.attributes();
  const auto found = attributes.find("parameters");
  const auto* text = found == attributes.end() ? nullptr : std::get_if<std::string>(&found->second);
  const auto json = parse_json(text ? *text : "");
  const auto names = json.is_object() ? json.value("type_map", nlohmann::json()) : nlohmann::json();
  const Tensor types = file.read("type", ElementType::i64);
  std::vector<int> elements;
  for (std::int64_t i = 0; i < types.element_count(); ++i) {
    const double type = types.at(i);
    const bool known = names.is_array() && type >= 0 && type < static_cast<double>(names.size());
    const nlohmann::json name = known ? names[static_cast<std::size_t>(type)] : nlohmann::json();
    const auto element = name.is_string() ? element_from_symbol(name.get<std::string>()) : std::nullopt;
    if (!element)
      throw Error(ErrorCode::bad_file,
                  fmt::format("the attribute 'parameters' does not name the element of atom {}", i),
                  file.path().string());
    elements.push_back(*element);
  }
  return elements;
}

LabelledFrames read_hdf5_frames(const fs::path& path, std::int64_t limit) {
  const Hdf5File file(path);
  const std::vector<int> elements = elements_of(file);
  const Tensor energy = file.read("energy", ElementType::f64);
  const std::int64_t frames = energy.element_count(),
                     any[] = {frames, static_cast<std::int64_t>(3 * elements.size())}, nine[] = {frames, 9},
                     one[] = {frames};
  const Tensor coord = file.read("coord", ElementType::f64, any),
               force = file.read("force", ElementType::f64, any);
  const Tensor box = file.read("box", ElementType::f64, nine);
  const Tensor trajectory = file.read("trajectory", ElementType::i64, one);
  std::optional<Tensor> virial;
  if (file.contains("virial")) virial = file.read("virial", ElementType::f64, nine);
  LabelledFrames read;
  for (std::int64_t f = 0; f < frames && !is_full(read, limit); ++f) {
    DeepmdFrame frame;
    frame.configuration.positions = vectors(coord, f);
    frame.configuration.elements = elements;
    const auto edges = vectors(box, f);
    frame.configuration.cell = Cell{edges[0], edges[1], edges[2]};
    frame.labels = {energy.at(f), vectors(force, f), {}};
    if (virial) {
      frame.labels.virial.emplace();
      for (std::int64_t k = 0; k < 9; ++k)
        (*frame.labels.virial)[static_cast<std::size_t>(k)] = virial->at(9 * f + k);
    }
    append(read, std::move(frame), static_cast<std::int64_t>(trajectory.at(f)), path.string(), f + 1);
  }
  return read;
}

// The folder itself, or those below it that are systems, in the order of their names.
std::vector<fs::path> systems_of(const fs::path& folder) {
  if (fs::exists(folder / "type.raw")) return {folder};
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file() && entry.path().filename() == "type.raw")
      found.push_back(entry.path().parent_path());
  std::ranges::sort(found);
  if (found.empty())
    throw Error(ErrorCode::not_found, "neither this folder nor one in it has a type.raw", folder.string(),
                "a system of DeePMD-kit is a folder with type.raw, type_map.raw and set.000");
  return found;
}

LabelledFrames read_folder_frames(const fs::path& path, std::int64_t limit) {
  LabelledFrames read;
  for (const fs::path& system : systems_of(path)) {
    std::int64_t number = 0;
    for (DeepmdFrame& frame : read_deepmd_system(system)) {
      if (is_full(read, limit)) return read;
      append(read, std::move(frame), static_cast<std::int64_t>(read.frames.size()), system.string(),
             ++number);
    }
  }
  return read;
}

}  // namespace

LabelledFrames read_labelled_frames(const fs::path& path, std::int64_t limit) {
  return holds_ase_rows(path)                 ? read_ase_frames(path, limit)
         : fs::is_directory(path)             ? read_folder_frames(path, limit)
         : is_text(path, {".xyz", ".extxyz"}) ? read_xyz_frames(path, limit)
                                              : read_hdf5_frames(path, limit);
}

}  // namespace superstep::data
