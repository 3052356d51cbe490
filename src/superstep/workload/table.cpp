#include "superstep/workload/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "superstep/base/system/free_memory.h"
#include "superstep/file/check.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/workload/metrics.h"

namespace superstep::workload {
namespace {

// The fields a task needs, each once.
std::vector<std::string> wanted_fields(const TableSpec& spec) {
  std::vector<std::string> names = spec.more;
  for (const auto* columns : {&spec.inputs, &spec.targets})
    for (const Column& column : *columns) names.push_back(column.field);
  if (!spec.group.empty()) names.push_back(spec.group);
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

// Those, and what the references need.
std::vector<std::string> known_fields(const TableSpec& spec) {
  std::vector<std::string> names = wanted_fields(spec);
  names.insert(names.end(), spec.reference_fields.begin(), spec.reference_fields.end());
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

// The fields that the task needs, of all that the generator makes.
Fields generate(const TableSpec& spec, const TaskSettings& settings) {
  Fields fields =
      generated_fields(*make_generator(spec.generator, spec.settings), settings, spec.default_samples);
  const std::vector<std::string> wanted = known_fields(spec);
  std::erase_if(fields, [&](const auto& field) { return !std::ranges::binary_search(wanted, field.first); });
  return fields;
}

// Those of the generator's fields that are read: the file has them, or must.
std::vector<data::Field> fields_to_read(const TableSpec& spec, const TaskSettings& settings,
                                        const data::Hdf5File& file) {
  const auto generator = make_generator(spec.generator, spec.settings);
  const std::vector<std::string> wanted = wanted_fields(spec), known = known_fields(spec);
  std::set<std::string> names;
  for (const data::DataSetInfo& info : file.data_sets()) names.insert(info.name);
  std::vector<data::Field> fields;
  for (const data::Field& field : generator->fields()) {
    if (!std::ranges::binary_search(known, field.name)) continue;
    const bool optional = !std::ranges::binary_search(wanted, field.name);
    if (optional && !names.contains(field.name)) continue;
    const bool target_only =
        std::ranges::none_of(spec.inputs, [&](const Column& column) { return column.field == field.name; });
    if (target_only && !settings.labels_required && !names.contains(field.name)) continue;
    fields.push_back(field);
  }
  return fields;
}

// Names, shapes and the memory that all of them take, before the first is read.
void require_fields(const std::vector<data::Field>& fields, const data::Hdf5File& file) {
  std::int64_t samples = -1;
  double bytes = 0;
  for (const data::Field& field : fields) {
    std::vector<std::int64_t> extents{samples};
    extents.insert(extents.end(), field.shape.begin(), field.shape.end());
    const data::DataSetInfo info = file.require_shape(field.name, extents);
    samples = info.shape[0];
    bytes += static_cast<double>(info.shape.element_count()) * static_cast<double>(size_in_bytes(field.type));
  }
  require_memory(bytes, file.path().string());
}

Fields read(const TableSpec& spec, const TaskSettings& settings) {
  const data::Hdf5File file(settings.data);
  const std::vector<data::Field> wanted = fields_to_read(spec, settings, file);
  require_fields(wanted, file);
  Fields fields;
  for (const data::Field& field : wanted) {
    const Tensor tensor = file.read(field.name, field.type);
    data::require_finite(tensor, fmt::format("{}: data set '{}'", settings.data.string(), field.name));
    fields.emplace(field.name, tensor);
  }
  return fields;
}

// Copies the rows of a field, converted, into a tensor with as many elements a row.
template <class T>
void fill_column(const Tensor& field, const Column& column, std::span<const std::int64_t> indices,
                 std::span<T> to) {
  const std::int64_t row = field.element_count() / std::max<std::int64_t>(1, field.shape()[0]);
  if (static_cast<std::int64_t>(to.size()) != row * static_cast<std::int64_t>(indices.size()))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("has {} values a sample, the model takes {}", row, to.size() / indices.size()),
                "field " + column.field, "generate data of the model's size");
  if (!column.convert && field.type() == element_type_of<T>) {
    for (std::size_t k = 0; k < indices.size(); ++k)
      std::copy_n(field.as<T>().begin() + indices[k] * row, row,
                  to.begin() + static_cast<std::int64_t>(k) * row);
    return;
  }
  std::size_t at = 0;
  for (const std::int64_t index : indices)
    for (std::int64_t i = 0; i < row; ++i) {
      const double value = field.at(index * row + i);
      to[at++] = static_cast<T>(column.convert ? column.convert(value) : value);
    }
}

// Streams of augmentation are numbered from here on, one an epoch: the generators of the same samples take
// those below.
constexpr std::uint32_t augmentation_purpose = 1000;

class TableTask : public Task {
 public:
  TableTask(TableSpec spec, Fields fields, std::int64_t limit, std::uint64_t seed, std::string source)
      : spec_(std::move(spec)), fields_(std::move(fields)), source_(std::move(source)), seed_(seed) {
    if (spec_.prepare) spec_.prepare(spec_, fields_);
    size_ = fields_.at(spec_.inputs[0].field).shape()[0];
    if (limit > 0) size_ = std::min(size_, limit);
    training_ = training_split();
  }

  std::int64_t size() const override { return size_; }
  std::int64_t training_count() const override { return training_; }

  void fill(std::span<const std::int64_t> indices, std::uint64_t epoch, bool augment,
            std::span<Tensor> tensors) const override {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const bool input = i < spec_.inputs.size();
      fill_one(input ? spec_.inputs[i] : spec_.targets[i - spec_.inputs.size()], indices, tensors[i]);
    }
    for (std::size_t row = 0; augment && spec_.augment && row < indices.size(); ++row) {
      RandomStream random(seed_, static_cast<std::uint64_t>(indices[row]),
                          augmentation_purpose + static_cast<std::uint32_t>(epoch));
      spec_.augment(fields_, training_, random, tensors, row);
    }
  }

  void fill_inputs(std::span<const std::int64_t> indices, std::span<Tensor> inputs,
                   ThreadPool&) const override {
    fill(indices, 0, false, inputs);
  }

  std::vector<Metric> quality(std::span<const std::int64_t> indices,
                              std::span<const Tensor> outputs) const override {
    return spec_.quality ? spec_.quality(fields_, indices, outputs) : std::vector<Metric>();
  }

  std::vector<Metric> spread_quality(std::span<const std::int64_t> indices, std::span<const Tensor> mean,
                                     std::span<const Tensor> spread) const override {
    if (spec_.spread_of.empty()) return {};
    const Tensor& truth = fields_.at(spec_.spread_of);
    std::vector<double> errors, spreads;
    for (std::size_t i = 0; i < indices.size(); ++i) {
      errors.push_back(mean[0].at(static_cast<std::int64_t>(i)) - truth.at(indices[i]));
      spreads.push_back(spread[0].at(static_cast<std::int64_t>(i)));
    }
    return spread_metrics(errors, spreads);
  }

  std::string present(const Predictions& found, ThreadPool&, page::Page& page) const override {
    return spec_.present ? spec_.present(fields_, found, page) : std::string();
  }

  References references(std::span<const std::int64_t> indices, ThreadPool& pool) const override {
    const auto there = [&](const std::string& field) { return fields_.contains(field); };
    if (!spec_.references || indices.empty() || training_ < 1 ||
        !std::ranges::all_of(known_fields(spec_), there))
      return {};
    return spec_.references({fields_, training_, indices, pool});
  }
  double reference_seconds() const override { return spec_.reference_seconds; }

  ForecastReferences forecast_references(std::span<const std::int64_t> indices) const override {
    if (!spec_.forecast_references || indices.empty() || training_ < 1 || !has_labels()) return {};
    return spec_.forecast_references(fields_, training_, indices);
  }

  std::int64_t used_length(std::int64_t index) const override {
    if (spec_.mask.empty()) return Task::used_length(index);
    const Tensor& mask = fields_.at(spec_.mask);
    std::int64_t used = mask.shape()[1];
    while (used > 0 && mask.at(index * mask.shape()[1] + used - 1) == 0) --used;
    return used;
  }

  // Where nothing is judged, nothing is known of the truth.
  bool has_labels() const override {
    if (!spec_.quality) return false;
    const auto there = [&](const std::string& field) { return fields_.contains(field); };
    return std::ranges::all_of(wanted_fields(spec_), there);
  }

  nlohmann::json describe() const override {
    return {{"source", source_}, {"samples", size_}, {"training", training_}, {"generator", spec_.settings}};
  }

 private:
  void fill_one(const Column& column, std::span<const std::int64_t> indices, Tensor& tensor) const {
    const Tensor& field = fields_.at(column.field);
    if (column.make) {
      make_rows(column, field, indices, tensor);
    } else if (tensor.type() == ElementType::i64)
      fill_column(field, column, indices, tensor.as<std::int64_t>());
    else
      fill_column(field, column, indices, tensor.as<float>());
  }

  static void make_rows(const Column& column, const Tensor& field, std::span<const std::int64_t> indices,
                        Tensor& tensor) {
    const std::size_t row =
        static_cast<std::size_t>(tensor.element_count()) / std::max<std::size_t>(1, indices.size());
    std::vector<float> made(tensor.type() == ElementType::f32 ? 0 : row);
    for (std::size_t k = 0; k < indices.size(); ++k) {
      if (tensor.type() == ElementType::f32) {
        column.make(field, indices[k], tensor.as<float>().subspan(k * row, row));
        continue;
      }
      column.make(field, indices[k], made);
      std::ranges::transform(made, tensor.as<std::int64_t>().begin() + static_cast<std::ptrdiff_t>(k * row),
                             [](float value) { return static_cast<std::int64_t>(value); });
    }
  }

  // The share of the samples, less what would cut a group in two.
  std::int64_t training_split() const {
    auto count = static_cast<std::int64_t>(spec_.training_share * static_cast<double>(size_));
    const auto group = fields_.find(spec_.group);
    if (group == fields_.end()) return count;
    const auto same = [&](std::int64_t a, std::int64_t b) {
      return group->second.at(a) == group->second.at(b);
    };
    std::int64_t whole = count;
    while (whole > 0 && whole < size_ && same(whole - 1, whole)) --whole;
    return whole > 0 ? whole : count;  // one group alone has to be cut
  }

  TableSpec spec_;
  Fields fields_;
  std::string source_;
  std::uint64_t seed_;  // of the augmentation
  std::int64_t size_ = 0, training_ = 0;
};

}  // namespace

std::unique_ptr<Task> open_table_task(TableSpec spec, const TaskSettings& settings) {
  if (settings.data.empty()) {
    Fields fields = generate(spec, settings);
    return std::make_unique<TableTask>(std::move(spec), std::move(fields), 0, settings.seed,
                                       generated_source(settings));
  }
  Fields fields = read(spec, settings);
  return open_table_task(std::move(spec), std::move(fields), settings);
}

std::unique_ptr<Task> open_table_task(TableSpec spec, Fields fields, const TaskSettings& settings) {
  return std::make_unique<TableTask>(std::move(spec), std::move(fields), settings.samples, settings.seed,
                                     settings.data.string());
}

}  // namespace superstep::workload
