#include "superstep/physics/xray/bragg_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <utility>

#include "superstep/base/json.h"
#include "superstep/base/progress.h"
#include "superstep/base/text.h"
#include "superstep/file/check.h"
#include "superstep/file/form.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/file/source/forms.h"
#include "superstep/file/source/paths.h"
#include "superstep/physics/xray/bragg_patches.h"

namespace superstep::data {
namespace {

constexpr std::uint32_t shift_purpose = 0x73686966;  // keeps the shifts apart from the generator's streams
constexpr int largest_size = 512;

[[noreturn]] void refuse(const std::filesystem::path& path, std::string_view name, std::string message,
                         std::string hint = {}) {
  throw Error(ErrorCode::bad_file, std::move(message), place(path, name), std::move(hint));
}

std::vector<float> take(const Tensor& tensor) {
  const auto values = tensor.as<float>();
  return {values.begin(), values.end()};
}

// [n,s,s] or [n,1,s,s]: the size s.
int stored_size(const SampleSource& source, std::size_t patch) {
  const Shape& row = source.arrays()[patch].row;
  const int rank = row.rank();
  const bool square = (rank == 2 || (rank == 3 && row[0] == 1)) && row[rank - 1] == row[rank - 2];
  if (!square || row[rank - 1] < 3 || row[rank - 1] > largest_size)
    throw Error(
        ErrorCode::bad_file,
        fmt::format("its shape is {}, not [n,s,s] or [n,1,s,s]", to_string(source.arrays()[patch].shape())),
        source.place(patch, 0));
  return static_cast<int>(row[rank - 1]);
}

// The margin that the generator of the file left around the patches; 0 for files of others.
int stored_margin(const std::filesystem::path& path) {
  const std::filesystem::path first = named_paths(path)[0];
  if (form_of(first) != FileForm::hdf5) return 0;
  const auto attributes = Hdf5File(first).attributes();
  const auto found = attributes.find("parameters");
  if (found == attributes.end() || !std::holds_alternative<std::string>(found->second)) return 0;
  const auto parameters = parse_json(std::get<std::string>(found->second));
  if (!parameters.is_object() || !parameters.contains("margin") || !parameters["margin"].is_number_integer())
    return 0;
  return parameters["margin"].get<int>();
}

// The margin around patches of the size wanted; `wanted` 0 takes the size the file was made for.
int margin_for(const std::filesystem::path& path, const std::string& place, int stored, int& wanted) {
  if (wanted == 0) wanted = stored - 2 * stored_margin(path);
  const int extra = stored - wanted;
  if (wanted < 3 || extra < 0 || extra % 2 != 0)
    throw Error(ErrorCode::bad_file,
                fmt::format("its patches of {} px cannot give patches of {} px", stored, wanted), place,
                fmt::format("generate them with --set patch_size={}", wanted));
  return extra / 2;
}

void require_labels_in_range(const Tensor& ploc, const std::string& where) {
  try {
    require_in_range(ploc, 0, 1, where);
  } catch (const Error& error) {
    throw Error(error.code(), error.message(), error.where(),
                "ploc is (column, row) of the center divided by the patch size, without the -0.5");
  }
}

struct PeakTable {
  Tensor row, column, frame, peaks, deviation;
  std::int64_t size() const { return row.element_count(); }
  std::int64_t frame_of(std::int64_t i) const {
    return frame.as<std::int64_t>()[static_cast<std::size_t>(i)];
  }
  bool selected(std::int64_t i) const {
    return peaks.at(i) == 1 && deviation.at(i) >= 0 && deviation.at(i) < 1;
  }
};

Tensor read_column(const Hdf5File& file, const char* name, ElementType type, std::int64_t count) {
  const std::int64_t shape[] = {count};
  Tensor values = file.read(name, type, shape);
  require_finite(values, place(file.path(), name));
  return values;
}

PeakTable read_table(const Hdf5File& file, const Shape& frames) {
  PeakTable table;
  table.row = read_column(file, "peak_row", ElementType::f64, -1);
  const std::int64_t n = table.row.element_count();
  table.column = read_column(file, "peak_col", ElementType::f64, n);
  table.frame = read_column(file, "peak_fidx", ElementType::i64, n);
  table.peaks = read_column(file, "npeaks", ElementType::i64, n);
  table.deviation = read_column(file, "deviations", ElementType::f64, n);
  const auto place_of = [&](const char* name) { return place(file.path(), name); };
  require_in_range(table.row, -0.5, static_cast<double>(frames[1]) - 0.5, place_of("peak_row"));
  require_in_range(table.column, -0.5, static_cast<double>(frames[2]) - 0.5, place_of("peak_col"));
  require_in_range(table.frame, 0, static_cast<double>(frames[0] - 1), place_of("peak_fidx"));
  return table;
}

std::vector<std::int64_t> selected_rows(const PeakTable& table) {
  std::vector<std::int64_t> rows;
  for (std::int64_t i = 0; i < table.size(); ++i)
    if (table.selected(i)) rows.push_back(i);
  return rows;
}

// Positions in `rows`, in the order of the frames they are in, so that every frame is read once.
std::vector<std::size_t> by_frame(const PeakTable& table, const std::vector<std::int64_t>& rows) {
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return table.frame_of(rows[i]); });
  return order;
}

// Reads frames one after the other, each once as long as they are asked for in order.
class FrameReader {
 public:
  FrameReader(const Hdf5File& file, std::int64_t frames)
      : file_(file), progress_("reading frames", static_cast<double>(frames), "frames") {}
  std::span<const float> read(std::int64_t index) {
    if (index != loaded_) {
      frame_ = file_.read_rows("frames", ElementType::f32, index, 1);
      require_finite(frame_, place(file_.path(), "frames"), index);
      loaded_ = index;
      progress_.update(static_cast<double>(index + 1));
    }
    return std::as_const(frame_).as<float>();
  }

 private:
  const Hdf5File& file_;
  Progress progress_;
  Tensor frame_;
  std::int64_t loaded_ = -1;
};

}  // namespace

BraggDataset BraggDataset::open(const std::filesystem::path& path, const BraggDatasetSettings& settings) {
  BraggDataset dataset;
  dataset.settings_ = settings;
  const bool frames = form_of(path) == FileForm::hdf5 && Hdf5File(path).contains("frames");
  frames ? dataset.read_frames(path) : dataset.read_patches(path);
  return dataset;
}

void BraggDataset::read_patches(const std::filesystem::path& path) {
  const std::shared_ptr<const SampleSource> source =
      open_source(path, {.unnamed = "patch", .signal = "patch"});
  const std::size_t patch = require_array(*source, "patch", path.string());
  const std::string where = source->place(patch, 0);
  margin_ = margin_for(path, where, stored_size(*source, patch), settings_.patch_size);
  file_rows_ = source->arrays()[patch].rows;
  if (file_rows_ == 0) throw Error(ErrorCode::bad_file, "it holds no patches", where);
  const std::vector<SampleRows::Column> columns{{.array = patch, .type = ElementType::f32}};
  stored_ = std::make_shared<SampleRows>(source, columns, data_memory(settings_.memory));
  rows_.resize(static_cast<std::size_t>(file_rows_));
  std::iota(rows_.begin(), rows_.end(), 0);
  if (!settings_.labels.empty())
    read_labels(*open_source(settings_.labels), settings_.labels);
  else if (settings_.labels_required || find_array(*source, "ploc") < source->arrays().size())
    read_labels(*source, path);
}

void BraggDataset::read_labels(const SampleSource& source, const std::filesystem::path& path) {
  const std::size_t ploc = require_array(source, "ploc", path.string());
  const std::string where = source.place(ploc, 0);
  const SourceArray& array = source.arrays()[ploc];
  if (array.row != Shape{2} || array.rows != file_rows_)
    throw Error(ErrorCode::bad_file,
                fmt::format("its shape is {}, not [{},2]", to_string(array.shape()), file_rows_), where);
  const Tensor labels = read_whole(source, ploc).converted(ElementType::f32);
  require_finite(labels, where);
  require_labels_in_range(labels, where);
  positions_ = take(labels);
  for (float& value : positions_) value *= static_cast<float>(settings_.patch_size + 2 * margin_);
}

void BraggDataset::read_frames(const std::filesystem::path& path) {
  const Hdf5File file(path);
  if (!settings_.labels.empty())
    throw Error(ErrorCode::invalid_argument, "labels of another file go with patches, not with frames",
                path.string());
  const std::int64_t any[] = {-1, -1, -1};
  const Shape frames = file.require_shape("frames", any).shape;
  if (settings_.patch_size == 0) settings_.patch_size = 11;
  margin_ = settings_.frame_margin;
  clean_ = true;
  const PeakTable table = read_table(file, frames);
  file_rows_ = table.size();
  rows_ = selected_rows(table);
  if (rows_.empty()) refuse(path, "npeaks", "no peak is alone in its patch (npeaks = 1, 0 <= deviation < 1)");
  const int stored = settings_.patch_size + 2 * margin_;
  const auto area = static_cast<std::size_t>(stored) * static_cast<std::size_t>(stored);
  patches_ = Tensor(ElementType::f32, {static_cast<std::int64_t>(rows_.size()), stored, stored});
  positions_.resize(rows_.size() * 2);
  FrameReader reader(file, frames[0]);
  for (const std::size_t i : by_frame(table, rows_)) {
    const std::span<const float> frame = reader.read(table.frame_of(rows_[i]));
    const double column = table.column.at(rows_[i]), row = table.row.at(rows_[i]);
    const int first_column = crop_origin(column, stored), first_row = crop_origin(row, stored);
    crop(frame, static_cast<int>(frames[2]), static_cast<int>(frames[1]), first_column, first_row, stored,
         patches_.as<float>().subspan(i * area, area));
    positions_[2 * i] = static_cast<float>(column - first_column);
    positions_[2 * i + 1] = static_cast<float>(row - first_row);
  }
}

BraggDataset BraggDataset::generate(const BraggPatchSettings& patches, std::uint64_t seed,
                                    std::uint64_t first, std::uint64_t count, ThreadPool& pool,
                                    const BraggDatasetSettings& settings) {
  const std::vector<Tensor> made = generate_in_memory(BraggPatchGenerator(patches), seed, first, count, pool);
  BraggDataset dataset;
  dataset.settings_ = settings;
  dataset.settings_.patch_size = patches.patch_size;
  dataset.margin_ = patches.margin;
  dataset.file_rows_ = static_cast<std::int64_t>(count);
  dataset.rows_.resize(count);
  std::iota(dataset.rows_.begin(), dataset.rows_.end(), 0);
  dataset.patches_ = made[0];
  dataset.positions_ = take(made[1]);
  for (float& value : dataset.positions_) value *= static_cast<float>(patches.stored_size());
  return dataset;
}

std::int64_t BraggDataset::training_count(double share) const {
  const double limit = share * static_cast<double>(file_rows_);
  return std::ranges::count_if(rows_, [&](std::int64_t row) { return static_cast<double>(row) < limit; });
}

BraggDataset::Stored BraggDataset::stored_of(std::span<const std::int64_t> indices) const {
  if (!stored_) return {patches_};
  if (stored_->held()) return {stored_->column(0)};
  constexpr std::size_t patch[] = {0};
  return {stored_->rows(indices, patch)[0], false};
}

void BraggDataset::cut(const Stored& from, std::size_t at, std::int64_t index, std::array<int, 2> shift,
                       std::span<float> patch) const {
  const int stored = settings_.patch_size + 2 * margin_;
  const auto area = static_cast<std::size_t>(stored) * static_cast<std::size_t>(stored);
  const std::size_t place = from.all ? static_cast<std::size_t>(index) : at;
  crop(from.patches.as<float>().subspan(place * area, area), stored, stored, margin_ + shift[0],
       margin_ + shift[1], settings_.patch_size, patch);
  if (clean_) keep_central_component(patch, settings_.patch_size);
}

void BraggDataset::fill(std::span<const std::int64_t> indices, std::uint64_t seed, std::uint64_t epoch,
                        float* patches, float* labels, bool augment) const {
  if (augment && !can_shift())
    throw Error(ErrorCode::invalid_argument, "there is no room around the patches to shift the crop",
                "augmentation", "generate them with --set margin=1");
  if (labels && !has_labels()) throw Error(ErrorCode::invalid_argument, "the data has no labels", "ploc");
  const auto area =
      static_cast<std::size_t>(settings_.patch_size) * static_cast<std::size_t>(settings_.patch_size);
  const Stored stored = stored_of(indices);
  for (std::size_t item = 0; item < indices.size(); ++item) {
    std::array<int, 2> shift{};
    if (augment) {
      RandomStream random(seed, static_cast<std::uint64_t>(indices[item]),
                          shift_purpose + static_cast<std::uint32_t>(epoch));
      for (int& s : shift) s = static_cast<int>(random.below(3)) - 1;
    }
    const std::span<float> patch(patches + item * area, area);
    cut(stored, item, indices[item], shift, patch);
    scale_to_unit(patch);
    for (std::size_t axis = 0; labels && axis < 2; ++axis) {
      const float position = positions_[2 * static_cast<std::size_t>(indices[item]) + axis];
      const float label =
          (position - static_cast<float>(margin_ + shift[axis])) / static_cast<float>(settings_.patch_size);
      labels[2 * item + axis] = settings_.centered_labels ? label - 0.5f : label;
    }
  }
}

void BraggDataset::raw(std::int64_t index, std::span<float> patch) const {
  cut(stored_of({&index, 1}), 0, index, {0, 0}, patch);
}

std::array<double, 2> BraggDataset::position(std::int64_t index) const {
  const std::size_t at = 2 * static_cast<std::size_t>(index);
  return {double{positions_[at]} - margin_, double{positions_[at + 1]} - margin_};
}

}  // namespace superstep::data
