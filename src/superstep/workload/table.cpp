#include "superstep/workload/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "superstep/file/source/fit.h"
#include "superstep/file/source/forms.h"
#include "superstep/file/source/validated.h"
#include "superstep/workload/field_rows.h"
#include "superstep/workload/metrics.h"
#include "superstep/workload/texts.h"

namespace superstep::workload {
namespace {

// The fields a task needs, each once.
std::vector<std::string> wanted_fields(const TableSpec& spec) {
  std::vector<std::string> names = spec.more;
  for (const auto* columns : {&spec.inputs, &spec.targets})
    for (const Column& column : *columns) names.push_back(column.field);
  if (!spec.group.empty() && spec.group_required) names.push_back(spec.group);
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

// Those, and what the references need.
std::vector<std::string> known_fields(const TableSpec& spec) {
  std::vector<std::string> names = wanted_fields(spec);
  names.insert(names.end(), spec.reference_fields.begin(), spec.reference_fields.end());
  if (!spec.group.empty()) names.push_back(spec.group);
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

// Those of the generator's fields that are read: the source has them, or must.
std::vector<data::Field> fields_to_read(const TableSpec& spec, const TaskSettings& settings,
                                        const data::SampleSource& source) {
  const auto generator = make_generator(spec.generator, spec.settings);
  const std::vector<std::string> wanted = wanted_fields(spec), known = known_fields(spec);
  std::vector<data::Field> fields;
  for (const data::Field& field : generator->fields()) {
    if (!std::ranges::binary_search(known, field.name)) continue;
    const bool there = data::find_array(source, field.name) < source.arrays().size();
    const bool optional = !std::ranges::binary_search(wanted, field.name);
    if (optional && !there) continue;
    const bool target_only =
        std::ranges::none_of(spec.inputs, [&](const Column& column) { return column.field == field.name; });
    if (target_only && !settings.labels_required && !there) continue;
    fields.push_back(field);
  }
  return fields;
}

// What a form with a choice makes (the size of pictures).
data::SourceRequest request_of(const TableSpec& spec, const TaskSettings& settings) {
  data::SourceRequest request{.wanted = {}, .options = {}, .skip_broken = settings.skip_broken};
  request.scalings = settings.scalings;
  const auto generator = make_generator(spec.generator, spec.settings);
  const std::vector<std::string> known = known_fields(spec);
  for (const data::Field& field : generator->fields())
    if (std::ranges::binary_search(known, field.name))
      request.wanted.push_back({.name = field.name, .type = field.type, .row = Shape(field.shape)});
  if (spec.inputs.size() == 1) request.unnamed = spec.inputs[0].field;
  return request;
}

// Of the shape that the generator makes, -1 any, and as many as the others.
std::size_t require_field(const data::SampleSource& source, const data::Field& field, std::int64_t& samples,
                          const std::string& where) {
  const std::size_t at = data::require_array(source, field.name, where);
  const data::SourceArray& array = source.arrays()[at];
  const bool fits =
      std::ranges::equal(array.row.extents(), field.shape,
                         [](std::int64_t is, std::int64_t want) { return want < 0 || is == want; });
  if (!array.single && fits && (samples < 0 || array.rows == samples)) {
    samples = array.rows;
    return at;
  }
  std::vector<std::string> wanted{samples < 0 ? "any" : std::to_string(samples)};
  for (const std::int64_t extent : field.shape) wanted.push_back(extent < 0 ? "any" : std::to_string(extent));
  throw Error(ErrorCode::bad_file,
              fmt::format("its shape is {}, not [{}]", to_string(array.shape()), fmt::join(wanted, ",")),
              source.place(at, 0), data::hint_to_fit(array, field.shape.extents()));
}

std::string advice_for_classes(const TableSpec& spec, std::int64_t classes) {
  return spec.classes_option.empty()
             ? "a model that tells more apart has an option for how many: superstep list"
             : fmt::format("--set {}={}", spec.classes_option, classes);
}

// Where the files name their classes, there are no more than the model tells apart.
void require_named_classes(const TableSpec& spec, const data::SampleSource& source, std::size_t label) {
  const auto found = static_cast<std::int64_t>(source.arrays()[label].classes.size());
  if (found > spec.classes)
    throw Error(ErrorCode::bad_file,
                fmt::format("has {} classes, the model tells {} apart", found, spec.classes),
                source.place(label, 0), advice_for_classes(spec, found));
}

std::vector<data::WantedRow> wanted_rows(const data::SourceRequest& request) {
  std::vector<data::WantedRow> rows;
  for (const data::SourceArray& wanted : request.wanted) rows.push_back({wanted.name, wanted.row.extents()});
  return rows;
}

// Held where they fit into the memory for data, and where all samples must be seen before the first is given.
FieldRows read(const TableSpec& spec, const TaskSettings& settings) {
  const data::SourceRequest request = request_of(spec, settings);
  const auto open = [&](const std::filesystem::path& data) {
    return settings.tokenizer.empty() ? data::open_source(data, request)
                                      : open_texts(data, settings.tokenizer, request);
  };
  if (!settings.tokenizer.empty() && !settings.scalings.empty())
    throw Error(ErrorCode::invalid_argument, "is of numbers, and these data are texts", "--scale, --offset",
                "leave it away");
  std::unique_ptr<data::SampleSource> opened = open(settings.data);
  if (!settings.validation.empty())
    opened = data::with_validation(std::move(opened), settings.data.string(), open(settings.validation),
                                   settings.validation.string());
  const std::shared_ptr<const data::SampleSource> source =
      data::fitted(std::move(opened), wanted_rows(request), settings.crop);
  std::vector<data::SampleRows::Column> columns;
  std::vector<std::string> names;
  std::int64_t samples = -1;
  for (const data::Field& field : fields_to_read(spec, settings, *source)) {
    const std::size_t at = require_field(*source, field, samples, settings.data.string());
    const bool labels = field.name == spec.labels;
    if (labels) require_named_classes(spec, *source, at);
    // Generated classes are few; those of files may be more than the type of the generator's holds.
    columns.push_back({at, labels ? ElementType::i64 : field.type});
    names.push_back(field.name);
  }
  data::require_read(settings.scalings, names, settings.data.string());
  const double most = spec.prepare || spec.looks_at_all ? std::numeric_limits<double>::infinity()
                                                        : data::data_memory(settings.data_memory);
  return {std::make_shared<data::SampleRows>(source, std::move(columns), most), std::move(names)};
}

// Copies the rows of a field, converted, into a tensor with as many elements a row.
template <class T>
void fill_column(const Tensor& field, const Column& column, std::span<const std::int64_t> indices,
                 std::span<T> to) {
  const std::int64_t row = field.element_count() / std::max<std::int64_t>(1, field.shape()[0]);
  if (static_cast<std::int64_t>(to.size()) != row * static_cast<std::int64_t>(indices.size()))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("has {} values per sample, the model takes {}", row, to.size() / indices.size()),
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

// Fields with the samples that something is asked of, and their numbers in them.
struct Looked {
  const Fields* all = nullptr;  // null: those that were read for this
  std::span<const std::int64_t> indices;
  Fields own = {};
  std::vector<std::int64_t> numbers = {};
  const Fields& fields() const { return all ? *all : own; }
};

class TableTask : public Task {
 public:
  TableTask(TableSpec spec, FieldRows fields, const TaskSettings& settings, std::int64_t limit,
            std::string source)
      : spec_(std::move(spec)),
        fields_(std::move(fields)),
        source_(std::move(source)),
        seed_(settings.seed),
        trains_(settings.labels_required) {
    most_bytes_ = data::data_memory(settings.data_memory);
    if (spec_.prepare) spec_.prepare(spec_, fields_.all());
    size_ = fields_.shape(spec_.inputs[0].field)[0];
    if (limit > 0) size_ = std::min(size_, limit);
    if (fields_.held() && fields_.contains(spec_.labels)) require_labels(fields_.all(), {});
    training_ = training_split();
    for (const Column& column : spec_.inputs) input_fields_.push_back(column.field);
    filled_fields_ = input_fields_;
    for (const Column& column : spec_.targets) filled_fields_.push_back(column.field);
    for (auto* names : {&input_fields_, &filled_fields_}) {
      std::ranges::sort(*names);
      names->erase(std::unique(names->begin(), names->end()), names->end());
    }
  }

  std::int64_t size() const override { return size_; }
  std::int64_t training_count() const override { return training_; }
  bool takes_validation() const override { return true; }
  bool heeds_scalings() const override { return fields_.source() != nullptr; }
  bool follows_on(std::int64_t index) const override {
    return is_grouped() && group_of(index - 1) == group_of(index);
  }
  std::string augments_by() const override {
    return spec_.augment && spec_.augments_by_others ? "draws on the samples that train by default" : "";
  }
  bool reads_as_it_goes() const override { return !fields_.held(); }
  data::ForcedOrder forced_order() const override { return fields_.forced_order(); }

  void fill(std::span<const std::int64_t> indices, std::uint64_t epoch, bool augment,
            std::span<Tensor> tensors) const override {
    const Looked looked =
        look(indices, tensors.size() > spec_.inputs.size() ? filled_fields_ : input_fields_);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const bool input = i < spec_.inputs.size();
      fill_one(input ? spec_.inputs[i] : spec_.targets[i - spec_.inputs.size()], looked, tensors[i]);
    }
    for (std::size_t row = 0; augment && spec_.augment && row < indices.size(); ++row) {
      RandomStream random(seed_, static_cast<std::uint64_t>(indices[row]),
                          augmentation_purpose + static_cast<std::uint32_t>(epoch));
      spec_.augment(fields_.all(), training_, random, tensors, row);
    }
  }

  void fill_inputs(std::span<const std::int64_t> indices, std::span<Tensor> inputs,
                   ThreadPool&) const override {
    fill(indices, 0, false, inputs);
  }

  std::vector<Metric> quality(std::span<const std::int64_t> indices,
                              std::span<const Tensor> outputs) const override {
    if (!spec_.quality) return {};
    const Looked looked = look(indices, there(known_fields(spec_)));
    return spec_.quality(looked.fields(), looked.indices, outputs);
  }

  std::vector<Metric> spread_quality(std::span<const std::int64_t> indices, std::span<const Tensor> mean,
                                     std::span<const Tensor> spread) const override {
    if (spec_.spread_of.empty()) return {};
    const Looked looked = look(indices, {&spec_.spread_of, 1});
    const Tensor& truth = looked.fields().at(spec_.spread_of);
    std::vector<double> errors, spreads;
    for (std::size_t i = 0; i < indices.size(); ++i) {
      errors.push_back(mean[0].at(static_cast<std::int64_t>(i)) - truth.at(looked.indices[i]));
      spreads.push_back(spread[0].at(static_cast<std::int64_t>(i)));
    }
    return spread_metrics(errors, spreads);
  }

  std::string present(const Predictions& found, ThreadPool&, page::Page& page) const override {
    if (!spec_.present) return {};
    if (fields_.held()) return spec_.present(fields_.all(), found, page);
    return spec_.present(fields_.among_all(found.indices, there(known_fields(spec_))), found, page);
  }

  References references(std::span<const std::int64_t> indices, ThreadPool& pool) const override {
    if (!spec_.references || indices.empty() || training_ < 1 ||
        there(known_fields(spec_)).size() != known_fields(spec_).size())
      return {};
    const Learnt learnt = learnt_and(indices);
    return spec_.references({learnt.looked.fields(), learnt.training, learnt.looked.indices, pool});
  }
  double reference_seconds() const override { return spec_.reference_seconds; }

  ForecastReferences forecast_references(std::span<const std::int64_t> indices) const override {
    if (!spec_.forecast_references || indices.empty() || training_ < 1 || !has_labels()) return {};
    const Learnt learnt = learnt_and(indices);
    return spec_.forecast_references(learnt.looked.fields(), learnt.training, learnt.looked.indices);
  }

  std::int64_t used_length(std::int64_t index) const override {
    if (spec_.mask.empty()) return Task::used_length(index);
    const Looked looked = look({&index, 1}, {&spec_.mask, 1});
    const Tensor& mask = looked.fields().at(spec_.mask);
    std::int64_t used = mask.shape()[1];
    while (used > 0 && mask.at(looked.indices[0] * mask.shape()[1] + used - 1) == 0) --used;
    return used;
  }

  // Where nothing is judged, nothing is known of the truth.
  bool has_labels() const override {
    if (!spec_.quality) return false;
    return there(wanted_fields(spec_)).size() == wanted_fields(spec_).size();
  }

  std::vector<std::string> notes() const override {
    if (!fields_.source()) return {};
    std::vector<std::string> notes = fields_.source()->notes();
    const std::size_t label = data::find_array(*fields_.source(), spec_.labels);
    if (!trains_ || spec_.classes_option.empty() || label == fields_.source()->arrays().size()) return notes;
    const auto classes = static_cast<std::int64_t>(fields_.source()->arrays()[label].classes.size());
    if (classes > 0 && classes < spec_.classes)
      notes.push_back(
          fmt::format("the data have {} classes, and the model tells {} apart: {} makes it theirs", classes,
                      spec_.classes, advice_for_classes(spec_, classes)));
    return notes;
  }

  nlohmann::json describe() const override {
    return {{"source", source_}, {"samples", size_}, {"training", training_}, {"generator", spec_.settings}};
  }

 private:
  // Those of these fields that the data have.
  std::vector<std::string> there(std::vector<std::string> fields) const {
    std::erase_if(fields, [&](const std::string& field) { return !fields_.contains(field); });
    return fields;
  }

  Looked look(std::span<const std::int64_t> indices, std::span<const std::string> fields) const {
    Looked looked{.all = fields_.held() ? &fields_.all() : nullptr, .indices = indices};
    if (looked.all) return looked;
    looked.own = fields_.of(indices, fields);
    if (looked.own.contains(spec_.labels)) require_labels(looked.own, indices);
    looked.numbers.resize(indices.size());
    std::iota(looked.numbers.begin(), looked.numbers.end(), 0);
    looked.indices = looked.numbers;
    return looked;
  }

  // `rows` number the samples; none: they are all.
  void require_labels(const Fields& fields, std::span<const std::int64_t> rows) const {
    const Tensor& labels = fields.at(spec_.labels);
    const std::int64_t count =
        std::min(labels.element_count(), rows.empty() ? size_ : labels.element_count());
    for (std::int64_t i = 0; i < count; ++i) {
      const double label = labels.at(i);
      if (label >= 0 && label < static_cast<double>(spec_.classes)) continue;
      const std::int64_t row = rows.empty() ? i : rows[static_cast<std::size_t>(i)];
      const data::SampleSource* source = fields_.source();
      throw Error(ErrorCode::bad_file,
                  fmt::format("the class of sample {} is {}, and the model tells {} apart: 0 to {}", row,
                              label, spec_.classes, spec_.classes - 1),
                  source ? source->place(data::find_array(*source, spec_.labels), row) : source_,
                  label < 0 ? "classes are numbered from 0 on"
                            : advice_for_classes(spec_, static_cast<std::int64_t>(label) + 1));
    }
  }

  struct Learnt {
    Looked looked;
    std::int64_t training = 0;
  };
  // Training samples in front of those that are judged: all of them, or as many as the memory for data takes.
  Learnt learnt_and(std::span<const std::int64_t> indices) const {
    if (fields_.held()) return {look(indices, {}), training_};
    const std::vector<std::string> fields = known_fields(spec_);
    double row = 1;
    for (const std::string& field : fields)
      row += 8.0 * static_cast<double>(fields_.shape(field).element_count()) /
             static_cast<double>(std::max<std::int64_t>(1, fields_.shape(field)[0]));
    const auto most = static_cast<std::int64_t>(std::max(1.0, most_bytes_ / row));
    Learnt learnt{.looked = {}, .training = std::min(training_, most)};
    std::vector<std::int64_t> numbers(static_cast<std::size_t>(learnt.training));
    std::iota(numbers.begin(), numbers.end(), 0);
    numbers.insert(numbers.end(), indices.begin(), indices.end());
    learnt.looked = look(numbers, fields);
    learnt.looked.indices = learnt.looked.indices.subspan(static_cast<std::size_t>(learnt.training));
    return learnt;
  }

  void fill_one(const Column& column, const Looked& looked, Tensor& tensor) const {
    const Tensor& field = looked.fields().at(column.field);
    if (column.make) {
      make_rows(column, field, looked.indices, tensor);
    } else if (tensor.type() == ElementType::i64)
      fill_column(field, column, looked.indices, tensor.as<std::int64_t>());
    else
      fill_column(field, column, looked.indices, tensor.as<float>());
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
    if (fields_.source() && fields_.source()->training_rows())
      return std::min(*fields_.source()->training_rows(), size_);
    auto count = static_cast<std::int64_t>(spec_.training_share * static_cast<double>(size_));
    std::int64_t whole = count;
    while (whole > 0 && whole < size_ && follows_on(whole)) --whole;
    return whole > 0 ? whole : count;  // one group alone has to be cut
  }

  bool is_grouped() const { return !spec_.group.empty() && fields_.contains(spec_.group); }
  double group_of(std::int64_t index) const {
    const Looked looked = look({&index, 1}, {&spec_.group, 1});
    return looked.fields().at(spec_.group).at(looked.indices[0]);
  }

  TableSpec spec_;
  FieldRows fields_;
  std::string source_;
  std::uint64_t seed_;  // of the augmentation
  bool trains_;
  double most_bytes_ = 0;
  std::int64_t size_ = 0, training_ = 0;
  std::vector<std::string> input_fields_, filled_fields_;
};

}  // namespace

std::unique_ptr<Task> open_table_task(TableSpec spec, const TaskSettings& settings) {
  if (settings.data.empty()) {
    Fields fields = generate(spec, settings);
    return std::make_unique<TableTask>(std::move(spec), FieldRows(std::move(fields)), settings, 0,
                                       generated_source(settings));
  }
  FieldRows fields = read(spec, settings);
  return std::make_unique<TableTask>(std::move(spec), std::move(fields), settings, settings.samples,
                                     settings.data.string());
}

std::unique_ptr<Task> open_table_task(TableSpec spec, Fields fields, const TaskSettings& settings) {
  return std::make_unique<TableTask>(std::move(spec), FieldRows(std::move(fields)), settings,
                                     settings.samples, settings.data.string());
}

}  // namespace superstep::workload
