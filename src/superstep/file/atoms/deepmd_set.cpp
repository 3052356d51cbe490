#include "superstep/file/atoms/deepmd_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/system/partial_files.h"
#include "superstep/file/atoms/element.h"
#include "superstep/file/npy.h"

namespace superstep::data {
namespace {

namespace fs = std::filesystem;

void append(std::vector<double>& into, const Cartesian& v) { into.insert(into.end(), {v.x, v.y, v.z}); }

// Elements in the order of their first atom.
std::vector<int> kinds_of(std::span<const int> elements) {
  std::vector<int> kinds;
  for (const int element : elements)
    if (std::ranges::find(kinds, element) == kinds.end()) kinds.push_back(element);
  return kinds;
}

std::vector<std::string> words_of_file(const fs::path& path) {
  const std::string text = read_text_file(path);
  std::vector<std::string> words(1);
  for (const char c : text)
    if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
      if (!words.back().empty()) words.emplace_back();
    } else {
      words.back() += c;
    }
  if (words.back().empty()) words.pop_back();
  return words;
}

int kind_number(const std::string& word, const fs::path& path) {
  int value = -1;
  const auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (code != std::errc() || end != word.data() + word.size() || value < 0)
    throw Error(ErrorCode::bad_file, fmt::format("'{}' is not the number of a type", word), path.string());
  return value;
}

// Atomic numbers by type; without a type map the types themselves cannot be named.
std::vector<int> read_type_map(const fs::path& folder) {
  const fs::path path = folder / "type_map.raw";
  if (!fs::exists(path))
    throw Error(ErrorCode::unsupported, "there is no type_map.raw, so the elements are not known",
                folder.string());
  std::vector<int> elements;
  for (const std::string& word : words_of_file(path)) {
    const std::optional<int> element = element_from_symbol(word);
    if (!element) throw Error(ErrorCode::bad_file, fmt::format("'{}' is no element", word), path.string());
    elements.push_back(*element);
  }
  return elements;
}

int element_of(int kind, const std::vector<int>& map, const fs::path& path) {
  if (kind < 0 || static_cast<std::size_t>(kind) >= map.size())
    throw Error(ErrorCode::bad_file, fmt::format("type {} is not in type_map.raw", kind), path.string());
  return map[static_cast<std::size_t>(kind)];
}

// An array of a set as f64 [frames, width]; `frames` -1 accepts any number.
std::optional<Tensor> read_array(const fs::path& path, std::int64_t frames, std::int64_t width) {
  if (!fs::exists(path)) return std::nullopt;
  const Tensor read = read_npy(path);
  const std::int64_t rows = read.shape().rank() > 0 ? read.shape()[0] : 0;
  if (read.element_count() != rows * width || (frames >= 0 && rows != frames))
    throw Error(ErrorCode::bad_file,
                fmt::format("has shape {}, not [{},{}]", to_string(read.shape()),
                            frames >= 0 ? std::to_string(frames) : "frames", width),
                path.string());
  return read.converted(ElementType::f64).reshaped(Shape{rows, width});
}

Cartesian vector_at(const Tensor& tensor, std::int64_t row, std::int64_t place) {
  const std::int64_t at = row * tensor.shape()[1] + 3 * place;
  return {tensor.at(at), tensor.at(at + 1), tensor.at(at + 2)};
}

class SetReader {
 public:
  SetReader(const fs::path& folder, std::vector<int> kinds, std::vector<int> map, bool periodic)
      : folder_(folder), kinds_(std::move(kinds)), map_(std::move(map)), periodic_(periodic) {}

  void append_to(std::vector<DeepmdFrame>& frames) const {
    const auto atoms = static_cast<std::int64_t>(kinds_.size());
    const std::optional<Tensor> coord = read_array(folder_ / "coord.npy", -1, 3 * atoms);
    if (!coord) throw Error(ErrorCode::not_found, "there is no coord.npy", folder_.string());
    const std::int64_t count = coord->shape()[0];
    const auto array = [&](const char* name, std::int64_t width) {
      return read_array(folder_ / name, count, width);
    };
    const auto box = array("box.npy", 9), energy = array("energy.npy", 1),
               force = array("force.npy", 3 * atoms), virial = array("virial.npy", 9),
               types = array("real_atom_types.npy", atoms);
    if (periodic_ && !box)
      throw Error(ErrorCode::not_found, "there is neither box.npy nor nopbc", folder_.string());
    for (std::int64_t f = 0; f < count; ++f) {
      DeepmdFrame frame;
      for (std::int64_t i = 0; i < atoms; ++i) {
        const int kind =
            types ? static_cast<int>(types->at(f * atoms + i)) : kinds_[static_cast<std::size_t>(i)];
        frame.configuration.elements.push_back(element_of(kind, map_, folder_));
        frame.configuration.positions.push_back(vector_at(*coord, f, i));
        if (force) frame.labels.forces.push_back(vector_at(*force, f, i));
      }
      if (periodic_)
        frame.configuration.cell = Cell{vector_at(*box, f, 0), vector_at(*box, f, 1), vector_at(*box, f, 2)};
      if (energy) frame.labels.energy = energy->at(f);
      if (virial) {
        frame.labels.virial.emplace();
        for (std::int64_t k = 0; k < 9; ++k)
          (*frame.labels.virial)[static_cast<std::size_t>(k)] = virial->at(9 * f + k);
      }
      frames.push_back(std::move(frame));
    }
  }

 private:
  fs::path folder_;
  std::vector<int> kinds_, map_;
  bool periodic_;
};

}  // namespace

DeepmdWriter::DeepmdWriter(fs::path path, std::span<const int> elements, bool periodic,
                           std::int64_t frames_a_set)
    : path_(std::move(path)),
      partial_(partial_name(path_)),
      elements_(elements.begin(), elements.end()),
      periodic_(periodic),
      frames_a_set_(frames_a_set) {
  if (fs::exists(path_))
    throw Error(ErrorCode::invalid_argument, "something of this name is there already", path_.string(),
                "give a folder that does not exist yet");
  make_folder(partial_);
  std::string types, names;
  const std::vector<int> kinds = kinds_of(elements_);
  for (const int element : elements_)
    types += fmt::format("{}\n", std::ranges::find(kinds, element) - kinds.begin());
  for (const int kind : kinds) names += fmt::format("{}\n", element_symbol(kind));
  write_file_atomically(partial_ / "type.raw", types);
  write_file_atomically(partial_ / "type_map.raw", names);
  if (!periodic_) write_file_atomically(partial_ / "nopbc", std::string_view());
}

DeepmdWriter::~DeepmdWriter() {
  std::error_code ignored;
  if (!closed_) fs::remove_all(partial_, ignored);
}

void DeepmdWriter::write(const DeepmdFrame& frame) {
  if (frame.configuration.elements != elements_ || !frame.labels.energy ||
      frame.labels.forces.size() != elements_.size() || frame.configuration.cell.has_value() != periodic_)
    throw Error(ErrorCode::invalid_argument,
                "a frame has other atoms than the system, or lacks energy, forces or box", path_.string());
  for (const Cartesian& p : frame.configuration.positions) append(coord_, p);
  for (const Cartesian& f : frame.labels.forces) append(force_, f);
  energy_.push_back(*frame.labels.energy);
  if (const auto& cell = frame.configuration.cell)
    for (const Cartesian* edge : {&cell->a, &cell->b, &cell->c}) append(box_, *edge);
  if (frame.labels.virial)
    virial_.insert(virial_.end(), frame.labels.virial->begin(), frame.labels.virial->end());
  if (static_cast<std::int64_t>(energy_.size()) == frames_a_set_) flush();
}

void DeepmdWriter::flush() {
  const auto frames = static_cast<std::int64_t>(energy_.size());
  if (frames == 0) return;
  const fs::path folder = partial_ / fmt::format("set.{:03}", sets_++);
  make_folder(folder);
  const auto save = [&](const char* name, std::vector<double>& values, Shape shape) {
    if (static_cast<std::int64_t>(values.size()) == shape.element_count())
      write_npy(folder / name, Tensor::from<double>(std::move(shape), values));
    values.clear();
  };
  const auto width = 3 * static_cast<std::int64_t>(elements_.size());
  save("coord.npy", coord_, {frames, width});
  save("force.npy", force_, {frames, width});
  save("energy.npy", energy_, {frames});
  save("box.npy", box_, {frames, 9});
  save("virial.npy", virial_, {frames, 9});
}

void DeepmdWriter::close() {
  flush();
  std::error_code error;
  fs::rename(partial_, path_, error);
  if (error) throw Error(ErrorCode::io, "could not be put in place: " + error.message(), path_.string());
  closed_ = true;
}

std::vector<DeepmdFrame> read_deepmd_system(const fs::path& folder) {
  std::vector<int> kinds;
  for (const std::string& word : words_of_file(folder / "type.raw"))
    kinds.push_back(kind_number(word, folder / "type.raw"));
  const bool periodic = !fs::exists(folder / "nopbc");
  const std::vector<int> map = read_type_map(folder);
  std::vector<fs::path> sets;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_directory() && entry.path().filename().string().starts_with("set."))
      sets.push_back(entry.path());
  std::ranges::sort(sets);
  if (sets.empty()) throw Error(ErrorCode::not_found, "there is no set.000", folder.string());
  std::vector<DeepmdFrame> frames;
  for (const fs::path& set : sets) SetReader(set, kinds, map, periodic).append_to(frames);
  return frames;
}

}  // namespace superstep::data
