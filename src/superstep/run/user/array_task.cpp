#include "superstep/run/user/array_task.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>

#include "superstep/file/check.h"
#include "superstep/file/source/fit.h"
#include "superstep/file/source/row_reader.h"
#include "superstep/file/source/sample_rows.h"
#include "superstep/workload/pictures/pictures.h"

namespace superstep::run {
namespace {

using Target = ArrayTaskSpec::Target;
using Input = ArrayTaskSpec::Input;

// Also what could not be taken for an array of numbers: the one that is looked for may be among it.
std::string what_it_has(const data::SampleSource& source) {
  std::vector<std::string> names;
  for (const data::SourceArray& array : source.arrays()) names.push_back(fmt::format("'{}'", array.name));
  std::ranges::sort(names);
  const std::vector<std::string> others = source.others();
  return fmt::format("it has {}{}{}",
                     names.empty() ? "no array of numbers" : fmt::format("{}", fmt::join(names, ", ")),
                     others.empty() ? "" : "; not numbers: ", fmt::join(others, ", "));
}

// The array of the first name there is; the array of an npy file, which has no name, stands for the only
// input. A file that has names says what they are: an array of another one, were it of the right size, would
// be other data.
std::optional<std::size_t> array_named(const data::SampleSource& source, std::span<const std::string> names,
                                       bool only) {
  const auto& arrays = source.arrays();
  for (const std::string& name : names)
    if (const std::size_t found = data::find_array(source, name); found < arrays.size()) return found;
  if (only && arrays.size() == 1 && arrays[0].name.empty()) return 0;
  return {};
}

// That its samples, or all of it, are what the model takes.
void require_shape(const data::SampleSource& source, std::size_t at, const Shape& sample, bool batched) {
  const data::SourceArray& array = source.arrays()[at];
  if (batched ? !array.single && array.row == sample : array.shape() == sample) return;
  throw Error(ErrorCode::bad_file,
              batched ? fmt::format("has shape {}, but the model takes samples of {}, one after the other "
                                    "along the first axis",
                                    to_string(array.shape()), to_string(sample))
                      : fmt::format("has shape {}, but the model takes {}", to_string(array.shape()),
                                    to_string(sample)),
              source.place(at, 0), batched ? data::hint_to_fit(array, sample.extents()) : "");
}

// What is read as samples, by every name that it may have.
std::vector<data::WantedRow> samples_of(const ArrayTaskSpec& spec) {
  std::vector<data::WantedRow> wanted;
  if (spec.one_a_call) return wanted;
  for (const Input& input : spec.inputs)
    if (input.batched) wanted.push_back({input.name, input.shape.extents()});
  for (const Target& target : spec.targets)
    for (const std::string& name : target.names) {
      const auto& extents = target.type.shape.extents();
      wanted.push_back({name, {extents.begin() + 1, extents.end()}});
    }
  return wanted;
}

std::vector<std::int64_t> numbers_below(std::int64_t count) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

// All of an array that the samples share.
Tensor whole(const data::SampleSource& source, std::size_t at, ElementType type) {
  const Tensor read = data::read_whole(source, at);
  const std::int64_t rows = read.shape().rank() == 0 ? 1 : read.shape()[0];
  return data::exactly_converted(read, type, source.place(at, 0), numbers_below(rows));
}

void copy_rows(const Tensor& array, std::span<const std::int64_t> indices, Tensor& batch) {
  const std::size_t row = array.byte_count() / static_cast<std::size_t>(array.shape()[0]);
  for (std::size_t i = 0; i < indices.size(); ++i)
    std::memcpy(batch.bytes() + i * row, array.bytes() + static_cast<std::size_t>(indices[i]) * row, row);
}

Tensor one_row(const Tensor& array) {
  std::vector<std::int64_t> extents = array.shape().extents();
  extents.insert(extents.begin(), 1);
  return array.reshaped(Shape(extents));
}

std::string labelled(const char* name, const std::string& label) {
  return label.empty() ? name : fmt::format("{}.{}", name, label);
}
std::string labelled(const char* name, const Target& target) { return labelled(name, target.label); }

constexpr const char* loss_of_its_own = "loss";  // an output that is one: its mean

double mean_of(const Tensor& rows) {
  double sum = 0;
  for (std::int64_t i = 0; i < rows.element_count(); ++i) sum += rows.at(i);
  return sum / static_cast<double>(rows.element_count());
}

Metric plain(std::string name, double value) {
  return {.name = std::move(name), .value = value, .unit = "", .samples = {}};
}

// What a batch takes an input or a target from: a column of the samples that are read, or one tensor, of
// which all samples take the same or each its row.
struct Taken {
  std::optional<std::size_t> column;
  Tensor own;
  bool numbered = true;
};

class ArrayTask : public Task {
 public:
  ArrayTask(const ArrayTaskSpec& spec, std::shared_ptr<const data::SampleSource> source,
            const std::string& where, const TaskSettings& settings)
      : spec_(spec),
        source_(data::fitted(std::move(source), samples_of(spec), settings.crop)),
        where_(where) {
    trains_ = settings.labels_required && !spec_.allow_not_finite;
    for (const Input& input : spec_.inputs) take_input(input);
    if (spec_.one_a_call && size_ < 0) size_ = 1;
    if (size_ < 1) throw Error(ErrorCode::bad_file, "holds no samples", where);
    take_targets(settings.labels_required);
    data::require_read(spec_.scalings, names_read(), where);
    if (settings.labels_required) settle_augmentation(settings.seed);
    rows_ = std::make_unique<data::SampleRows>(source_, columns_, data::data_memory(settings.data_memory));
    if (rows_->held()) check_all_labels();
    if (settings.samples > 0) size_ = std::min(size_, settings.samples);
    training_ = data::training_rows(*source_, size_, spec_.training_share);
  }

  std::int64_t size() const override { return size_; }
  bool takes_validation() const override { return true; }
  bool heeds_scalings() const override { return true; }
  std::int64_t training_count() const override {
    if (spec_.one_a_call && size_ == 1) return 1;  // the only graph there is: nothing to validate on
    return training_;
  }
  std::vector<std::string> notes() const override { return source_->notes(); }
  // Of a loss that is an output there is nothing beside the inputs.
  bool has_labels() const override {
    const bool nothing_wanted = spec_.targets.empty() && !spec_.values.empty();
    return nothing_wanted || !targets_.empty();
  }
  bool reads_as_it_goes() const override { return !rows_->held(); }
  data::ForcedOrder forced_order() const override { return rows_->forced_order(); }

  void fill(std::span<const std::int64_t> indices, std::uint64_t epoch, bool augment,
            std::span<Tensor> tensors) const override {
    fill_stored(indices, tensors);
    if (augment && !augmenter_.empty()) augmenter_.apply(indices, epoch, tensors);
  }

  void fill_inputs(std::span<const std::int64_t> indices, std::span<Tensor> inputs,
                   ThreadPool&) const override {
    fill(indices, 0, false, inputs);
  }

  std::vector<Metric> quality(std::span<const std::int64_t> indices,
                              std::span<const Tensor> outputs) const override {
    std::vector<Metric> metrics;
    for (std::size_t k = 0; k < targets_.size(); ++k)
      for (const ArrayTaskSpec::Comparison& comparison : spec_.targets[k].compared)
        for (Metric& metric : measured(k, comparison, indices, outputs)) metrics.push_back(std::move(metric));
    for (const ArrayTaskSpec::Value& value : spec_.values)
      if (value.compared)
        for (Metric& metric : measured(value, indices, outputs)) metrics.push_back(std::move(metric));
      else
        metrics.push_back(plain(labelled(loss_of_its_own, value.label), mean_of(outputs[value.output])));
    return metrics;
  }

  std::string present(const Predictions& found, ThreadPool&, page::Page& page) const override {
    for (std::size_t k = 0; k < targets_.size(); ++k) {
      const Target& target = spec_.targets[k];
      if (target.compared.empty()) continue;  // a weight, or a mask
      const Truth truth = truth_of(k, found.indices);
      if (targets_.size() > 1) page.heading(target.names.front(), 3);
      if (target.classes > 0)
        present_labels(page, truth, found, found.outputs[target.output]);
      else
        workload::present_regression(page, regression_of(target, truth, found));
    }
    return {};
  }

  nlohmann::json describe() const override {
    return {{"source", where_}, {"samples", size_}, {"training", training_count()}};
  }

 private:
  void fill_stored(std::span<const std::int64_t> indices, std::span<Tensor> tensors) const {
    const std::vector<const Taken*> taken = taken_for(tensors.size());
    const std::vector<Tensor> read = read_rows(indices, taken);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const Taken& from = *taken[i];
      if (!from.numbered)
        std::memcpy(tensors[i].bytes(), from.own.bytes(), from.own.byte_count());
      else if (!from.column)
        copy_rows(from.own, indices, tensors[i]);
      else if (rows_->held())
        copy_rows(rows_->column(*from.column), indices, tensors[i]);
      else
        std::memcpy(tensors[i].bytes(), read[i].bytes(), read[i].byte_count());
    }
  }

  // Labels of some samples: rows, and which of them are the samples'.
  struct Truth {
    Tensor rows;
    std::vector<std::int64_t> at;
  };

  // Arrays of the file that the model takes something of.
  std::vector<std::string> names_read() const {
    std::vector<std::string> names;
    for (const data::SampleRows::Column& column : columns_)
      names.push_back(source_->arrays()[column.array].name);
    for (const Input& input : spec_.inputs) names.push_back(input.name);
    for (const Target& target : spec_.targets)
      names.insert(names.end(), target.names.begin(), target.names.end());
    return names;
  }

  void settle_augmentation(std::uint64_t seed) {
    if (spec_.augmentations.empty()) return;
    if (spec_.one_a_call)
      throw Error(ErrorCode::unsupported, "a call of this model takes one sample, which is no picture",
                  "--augment", "leave it away");
    std::vector<AugmentedArray> arrays;
    for (std::size_t i = 0; i < spec_.inputs.size(); ++i) {
      const bool numbered = inputs_[i].numbered;
      arrays.push_back({.names = {numbered ? spec_.inputs[i].name : std::string()},
                        .type = spec_.inputs[i].element,
                        .row = spec_.inputs[i].shape});
    }
    for (const Target& target : spec_.targets)
      arrays.push_back({.names = target.names,
                        .type = target.type.element,
                        .row = sample_of(target),
                        .labels = target.classes > 0});
    augmenter_ = Augmenter(spec_.augmentations, arrays, seed);
  }

  void take_input(const Input& input) {
    const auto found = array_named(*source_, std::span(&input.name, 1), spec_.inputs.size() == 1);
    if (!found)
      throw Error(ErrorCode::bad_file, fmt::format("has no array '{}', an input of the model", input.name),
                  where_, what_it_has(*source_));
    const data::SourceArray& array = source_->arrays()[*found];
    const bool numbered = spec_.one_a_call ? array.shape().rank() > input.shape.rank() : input.batched;
    require_shape(*source_, *found, input.shape, numbered);
    if (numbered) {
      inputs_.push_back({.column = add_column(*found, input.element), .own = {}});
      return agree_on_size(*found);
    }
    inputs_.push_back({.column = {}, .own = whole(*source_, *found, input.element), .numbered = false});
    if (trains_) require_finite(inputs_.back().own, *found);
  }

  std::size_t add_column(std::size_t array, ElementType type) {
    columns_.push_back({.array = array, .type = type, .finite = trains_, .unless = nan_is_meant});
    return columns_.size() - 1;
  }

  void agree_on_size(std::size_t array) {
    const std::int64_t rows = source_->arrays()[array].rows;
    if (size_ >= 0 && rows != size_)
      throw Error(ErrorCode::bad_file, fmt::format("has {} samples, another array {}", rows, size_),
                  source_->place(array, 0));
    size_ = rows;
  }

  void take_targets(bool required) {
    for (const Target& target : spec_.targets) {
      const auto found = array_named(*source_, target.names, false);
      if (!found && !required) return targets_.clear();
      if (!found)
        throw Error(ErrorCode::bad_file,
                    fmt::format("has no array '{}' to train towards", fmt::join(target.names, "' or '")),
                    where_, what_it_has(*source_));
      const data::SourceArray& array = source_->arrays()[*found];
      const Shape sample = sample_of(target);
      if (spec_.one_a_call && array.shape() == sample) {
        take_only_target(target, *found);
        continue;
      }
      // Served, data may hold targets of a loss that was not named: there is no quality then.
      if (!required && (array.single || array.row != sample)) return targets_.clear();
      require_shape(*source_, *found, sample, true);
      targets_.push_back({.column = add_column(*found, target.type.element), .own = {}});
      agree_on_size(*found);
    }
  }

  // Of the only sample there is, without an axis that numbers it.
  void take_only_target(const Target& target, std::size_t array) {
    targets_.push_back({.column = {}, .own = one_row(whole(*source_, array, target.type.element))});
    if (trains_) require_finite(targets_.back().own, array);
    require_labels(targets_.back().own, numbers_below(1), target);
    if (size_ != 1)
      throw Error(ErrorCode::bad_file, fmt::format("has 1 samples, another array {}", size_),
                  source_->place(array, 0));
  }

  // One such number makes the loss, and then every parameter, one: that would look like too large a learning
  // rate.
  static constexpr const char* nan_is_meant = ", or give --allow-nan where the model takes such numbers";
  void require_finite(const Tensor& array, std::size_t at) const {
    try {
      data::require_finite(array, source_->place(at, 0));
    } catch (const Error& error) {
      throw Error(error.code(), error.message(), error.where(), error.hint() + nan_is_meant);
    }
  }

  // Inputs, then targets.
  std::vector<const Taken*> taken_for(std::size_t tensors) const {
    std::vector<const Taken*> taken;
    for (const Taken& input : inputs_) taken.push_back(&input);
    for (const Taken& target : targets_) taken.push_back(&target);
    if (tensors > taken.size()) throw Error(ErrorCode::bad_file, "has no labels to train on", where_);
    taken.resize(tensors);
    return taken;
  }

  // Of each that is read; empty for the others.
  std::vector<Tensor> read_rows(std::span<const std::int64_t> indices,
                                const std::vector<const Taken*>& taken) const {
    std::vector<Tensor> read(taken.size());
    if (rows_->held()) return read;
    std::vector<std::size_t> columns, places;
    for (std::size_t i = 0; i < taken.size(); ++i)
      if (taken[i]->column) columns.push_back(*taken[i]->column), places.push_back(i);
    const std::vector<Tensor> rows = rows_->rows(indices, columns);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      read[places[i]] = rows[i];
      if (places[i] < inputs_.size()) continue;
      require_labels(rows[i], {indices.begin(), indices.end()}, spec_.targets[places[i] - inputs_.size()]);
    }
    return read;
  }

  Truth truth_of(std::size_t k, std::span<const std::int64_t> indices) const {
    const Taken& target = targets_[k];
    if (!target.column) return {target.own, {indices.begin(), indices.end()}};
    if (rows_->held()) return {rows_->column(*target.column), {indices.begin(), indices.end()}};
    return {rows_->rows(indices, std::span(&*target.column, 1))[0],
            numbers_below(static_cast<std::int64_t>(indices.size()))};
  }

  void check_all_labels() const {
    for (std::size_t k = 0; k < targets_.size(); ++k)
      if (targets_[k].column) require_labels(rows_->column(*targets_[k].column), {}, spec_.targets[k]);
  }

  Shape sample_of(const Target& target) const {
    const auto& extents = target.type.shape.extents();
    return Shape(std::vector<std::int64_t>(extents.begin() + (spec_.one_a_call ? 0 : 1), extents.end()));
  }

  static bool is_label(double label, const Target& target) {
    if (label >= 0 && label < static_cast<double>(target.classes)) return true;
    return std::ranges::all_of(target.compared, [&](const ArrayTaskSpec::Comparison& comparison) {
      const transform::LossTerm& term = comparison.term;
      if (term.ignored) return label == static_cast<double>(*term.ignored);
      const bool pads = term.kind == transform::LossKind::ctc ||
                        term.kind == transform::LossKind::token_cross_entropy;  // not scored
      return pads && label < 0;
    });
  }

  // Of labels and lengths; `rows`: the samples that they are of, none: all, in their order.
  void require_labels(const Tensor& labels, const std::vector<std::int64_t>& rows,
                      const Target& target) const {
    if (target.classes == 0 && target.longest == 0) return;
    const std::int64_t row = labels.element_count() / std::max<std::int64_t>(1, labels.shape()[0]);
    for (std::int64_t i = 0; i < labels.element_count(); ++i) {
      const double label = labels.at(i);
      const bool fits = target.longest > 0 ? label >= 0 && label <= static_cast<double>(target.longest)
                                           : is_label(label, target);
      if (fits) continue;
      const std::int64_t element = rows.empty() ? i : rows[static_cast<std::size_t>(i / row)] * row + i % row;
      throw Error(
          ErrorCode::bad_file,
          target.longest > 0
              ? fmt::format("element {} is {}, but a length is 0 to {}", element, label, target.longest)
              : fmt::format("element {} is {}, but the model tells {} classes apart: 0 to {}", element, label,
                            target.classes, target.classes - 1),
          fmt::format("{}: array '{}'", where_, target.names.front()));
    }
  }

  std::vector<Metric> measured(std::size_t k, const ArrayTaskSpec::Comparison& comparison,
                               std::span<const std::int64_t> indices, std::span<const Tensor> outputs) const {
    const Target& target = spec_.targets[k];
    std::vector<Metric> metrics;
    if (comparison.metrics.empty()) return metrics;
    const Truth truth = truth_of(k, indices);
    const auto given = [&](const std::optional<std::size_t>& place) {
      return place ? std::optional(truth_of(*place, indices)) : std::nullopt;
    };
    const auto rows_of = [](const std::optional<Truth>& of) { return of ? &of->rows : nullptr; };
    const std::optional<Truth> mask = given(comparison.mask), frames = given(comparison.input_lengths),
                               labels = given(comparison.target_lengths);
    const std::int64_t places = truth.rows.element_count() / truth.rows.shape()[0];
    const std::vector<double> values = measure(
        comparison.metrics, {.term = comparison.term,
                             .output = outputs[target.output],
                             .truth = truth.rows,
                             .at = truth.at,
                             .mask = rows_of(mask),
                             .variance = comparison.variance ? &outputs[*comparison.variance] : nullptr,
                             .input_lengths = rows_of(frames),
                             .target_lengths = rows_of(labels),
                             .classes = target.classes,
                             .inner = inner_of(target, truth.rows, places)});
    for (std::size_t i = 0; i < values.size(); ++i)
      metrics.push_back(plain(labelled(comparison.metrics[i].c_str(), target), values[i]));
    return metrics;
  }

  // Of outputs that are compared with one another.
  std::vector<Metric> measured(const ArrayTaskSpec::Value& value, std::span<const std::int64_t> indices,
                               std::span<const Tensor> outputs) const {
    const ArrayTaskSpec::Comparison& comparison = *value.compared;
    std::optional<Truth> mask;
    if (comparison.mask && *comparison.mask < targets_.size()) mask = truth_of(*comparison.mask, indices);
    const Tensor& output = outputs[value.output];
    const std::vector<std::int64_t> at =
        mask ? mask->at : numbers_below(static_cast<std::int64_t>(indices.size()));
    const std::vector<double> values =
        measure(comparison.metrics, {.term = comparison.term,
                                     .output = output,
                                     .truth = output,
                                     .at = at,
                                     .mask = mask ? &mask->rows : nullptr,
                                     .positive = &outputs[*comparison.positive],
                                     .negative = &outputs[*comparison.negative]});
    std::vector<Metric> metrics;
    for (std::size_t i = 0; i < values.size(); ++i)
      metrics.push_back(plain(labelled(comparison.metrics[i].c_str(), value.label), values[i]));
    return metrics;
  }

  // Of the places of a sample those that are behind the axis of the classes; where a call takes one sample,
  // scores and labels have an axis in front.
  std::int64_t inner_of(const Target& target, const Tensor& truth, std::int64_t places) const {
    if (target.classes == 0 || !spec_.one_a_call) return places;
    return places / std::max<std::int64_t>(1, truth.shape()[1]);
  }

  static constexpr std::size_t most_values = 20000;  // in a drawing

  static workload::Regression regression_of(const Target& target, const Truth& truth,
                                            const Predictions& found) {
    workload::Regression regression{
        .quantity = target.names.front(), .unit = "", .truth = {}, .found = {}, .samples = {}};
    const std::int64_t row = truth.rows.element_count() / truth.rows.shape()[0];
    const Tensor& output = found.outputs[target.output];
    for (std::size_t i = 0; i < found.indices.size() && regression.truth.size() < most_values; ++i)
      for (std::int64_t k = 0; k < row && regression.truth.size() < most_values; ++k) {
        regression.truth.push_back(truth.rows.at(truth.at[i] * row + k));
        regression.found.push_back(output.at(static_cast<std::int64_t>(i) * row + k));
        regression.samples.push_back(found.indices[i]);
      }
    return regression;
  }

  // Of samples with one label each; where every pixel has one, there is no single answer to draw.
  static void present_labels(page::Page& page, const Truth& labels, const Predictions& found,
                             const Tensor& scores) {
    if (labels.rows.element_count() != labels.rows.shape()[0] || scores.type() != ElementType::f32) return;
    workload::Classification classification{.labels = {},
                                            .scores = scores.as<float>(),
                                            .samples = {found.indices.begin(), found.indices.end()},
                                            .picture = {}};
    for (const std::int64_t index : labels.at)
      classification.labels.push_back(static_cast<std::int64_t>(labels.rows.at(index)));
    workload::present_classification(page, classification);
  }

  ArrayTaskSpec spec_;
  std::shared_ptr<const data::SampleSource> source_;
  std::string where_;
  std::vector<Taken> inputs_, targets_;
  Augmenter augmenter_;
  std::vector<data::SampleRows::Column> columns_;
  std::unique_ptr<data::SampleRows> rows_;
  std::int64_t size_ = -1, training_ = 0;
  bool trains_ = false;
};

}  // namespace

std::vector<workload::MetricSpec> metrics_of(const ArrayTaskSpec& spec) {
  std::vector<workload::MetricSpec> metrics;
  for (const Target& target : spec.targets)
    for (const ArrayTaskSpec::Comparison& comparison : target.compared)
      for (const std::string& name : comparison.metrics)
        metrics.push_back({labelled(name.c_str(), target), "", higher_is_better(name)});
  for (const ArrayTaskSpec::Value& value : spec.values)
    if (value.compared)
      for (const std::string& name : value.compared->metrics)
        metrics.push_back({labelled(name.c_str(), value.label), "", higher_is_better(name)});
    else
      metrics.push_back({labelled(loss_of_its_own, value.label), ""});
  return metrics;
}

std::unique_ptr<Task> make_array_task(const ArrayTaskSpec& spec,
                                      std::shared_ptr<const data::SampleSource> source,
                                      const std::string& where, const TaskSettings& settings) {
  return std::make_unique<ArrayTask>(spec, std::move(source), where, settings);
}

std::unique_ptr<Task> make_array_task(const ArrayTaskSpec& spec, const NamedTensors& arrays,
                                      const std::string& where, const TaskSettings& settings) {
  return make_array_task(spec, data::source_of(arrays, where), where, settings);
}

}  // namespace superstep::run
