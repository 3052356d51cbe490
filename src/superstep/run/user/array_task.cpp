#include "superstep/run/user/array_task.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "superstep/file/check.h"
#include "superstep/workload/pictures/pictures.h"

namespace superstep::run {
namespace {

using Target = ArrayTaskSpec::Target;
using Input = ArrayTaskSpec::Input;

std::vector<std::string> names_of(const NamedTensors& arrays) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : arrays) names.push_back(fmt::format("'{}'", name));
  return names;
}

// Also what could not be taken for an array of numbers: the one that is looked for may be among it.
std::string what_it_has(const NamedTensors& arrays, const std::string& file) {
  const std::vector<std::string> names = names_of(arrays), others = other_arrays(file);
  return fmt::format("it has {}{}{}",
                     names.empty() ? "no array of numbers" : fmt::format("{}", fmt::join(names, ", ")),
                     others.empty() ? "" : "; not numbers: ", fmt::join(others, ", "));
}

// The array of the first name there is; the array of an npy file, which has no name, stands for the only
// input. A file that has names says what they are: an array of another one, were it of the right size, would
// be other data.
const Tensor* find_array(const NamedTensors& arrays, std::span<const std::string> names, bool only) {
  for (const std::string& name : names)
    if (const auto found = arrays.find(name); found != arrays.end()) return &found->second;
  return only && arrays.size() == 1 && arrays.begin()->first.empty() ? &arrays.begin()->second : nullptr;
}

std::vector<std::int64_t> row_shape(const Tensor& array) {
  const auto& extents = array.shape().extents();
  return extents.empty() ? std::vector<std::int64_t>{}
                         : std::vector<std::int64_t>(extents.begin() + 1, extents.end());
}

Tensor converted(const Tensor& array, ElementType type, const std::string& name, const std::string& where) {
  if (array.type() == type) return array;
  data::require_integers_of(type, array, fmt::format("{}: array '{}'", where, name));
  return array.converted(type);
}

Tensor checked(const Tensor& array, ElementType type, const Shape& sample, bool batched,
               const std::string& name, const std::string& where) {
  const Shape found = batched ? Shape(row_shape(array)) : array.shape();
  if (found != sample || (batched && array.shape().rank() == 0))
    throw Error(ErrorCode::bad_file,
                batched ? fmt::format("has shape {}, but the model takes samples of {}, one after the other "
                                      "along the first axis",
                                      to_string(array.shape()), to_string(sample))
                        : fmt::format("has shape {}, but the model takes {}", to_string(array.shape()),
                                      to_string(sample)),
                fmt::format("{}: array '{}'", where, name));
  return converted(array, type, name, where);
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

std::string labelled(const char* name, const Target& target) {
  return target.label.empty() ? name : fmt::format("{}.{}", name, target.label);
}

Metric plain(std::string name, double value) {
  return {.name = std::move(name), .value = value, .unit = "", .samples = {}};
}

class ArrayTask : public Task {
 public:
  ArrayTask(const ArrayTaskSpec& spec, const NamedTensors& arrays, const std::string& where,
            const TaskSettings& settings)
      : spec_(spec), where_(where) {
    trains_ = settings.labels_required && !spec_.allow_not_finite;
    for (const Input& input : spec_.inputs) take_input(input, arrays);
    if (spec_.one_a_call && size_ < 0) size_ = 1;
    if (size_ < 1) throw Error(ErrorCode::bad_file, "holds no samples", where);
    take_targets(arrays, settings.labels_required);
    if (settings.samples > 0) size_ = std::min(size_, settings.samples);
  }

  std::int64_t size() const override { return size_; }
  std::int64_t training_count() const override {
    if (spec_.one_a_call && size_ == 1) return 1;  // the only graph there is: nothing to validate on
    return static_cast<std::int64_t>(spec_.training_share * static_cast<double>(size_));
  }
  bool has_labels() const override { return !targets_.empty(); }

  void fill(std::span<const std::int64_t> indices, std::uint64_t, bool,
            std::span<Tensor> tensors) const override {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (numbered_[i])
        copy_rows(inputs_[i], indices, tensors[i]);
      else
        std::memcpy(tensors[i].bytes(), inputs_[i].bytes(), inputs_[i].byte_count());
    }
    for (std::size_t i = inputs_.size(); i < tensors.size(); ++i)
      copy_rows(targets_.at(i - inputs_.size()), indices, tensors[i]);
  }

  void fill_inputs(std::span<const std::int64_t> indices, std::span<Tensor> inputs,
                   ThreadPool&) const override {
    fill(indices, 0, false, inputs);
  }

  std::vector<Metric> quality(std::span<const std::int64_t> indices,
                              std::span<const Tensor> outputs) const override {
    std::vector<Metric> metrics;
    for (std::size_t k = 0; k < targets_.size(); ++k) {
      const Target& target = spec_.targets[k];
      const Tensor& output = outputs[target.output];
      const auto found = target.kind == transform::LossKind::cross_entropy
                             ? classification(target, targets_[k], indices, output)
                             : regression(target, targets_[k], indices, output);
      metrics.insert(metrics.end(), found.begin(), found.end());
    }
    return metrics;
  }

  std::string present(const Predictions& found, ThreadPool&, page::Page& page) const override {
    for (std::size_t k = 0; k < targets_.size(); ++k) {
      const Target& target = spec_.targets[k];
      if (targets_.size() > 1) page.heading(target.names.front(), 3);
      if (target.kind == transform::LossKind::cross_entropy)
        present_labels(page, targets_[k], found, found.outputs[target.output]);
      else
        workload::present_regression(page, regression_of(target, targets_[k], found));
    }
    return {};
  }

  nlohmann::json describe() const override {
    return {{"source", where_}, {"samples", size_}, {"training", training_count()}};
  }

 private:
  void take_input(const Input& input, const NamedTensors& arrays) {
    const Tensor* array = find_array(arrays, std::span(&input.name, 1), spec_.inputs.size() == 1);
    if (!array)
      throw Error(ErrorCode::bad_file, fmt::format("has no array '{}', an input of the model", input.name),
                  where_, what_it_has(arrays, where_));
    const bool numbered = spec_.one_a_call ? array->shape().rank() > input.shape.rank() : input.batched;
    inputs_.push_back(checked(*array, input.element, input.shape, numbered, input.name, where_));
    require_finite(inputs_.back(), input.name);
    numbered_.push_back(numbered);
    if (numbered) agree_on_size(array->shape()[0], input.name);
  }

  void agree_on_size(std::int64_t rows, const std::string& name) {
    if (size_ >= 0 && rows != size_)
      throw Error(ErrorCode::bad_file, fmt::format("has {} samples, another array {}", rows, size_),
                  fmt::format("{}: array '{}'", where_, name));
    size_ = rows;
  }

  void take_targets(const NamedTensors& arrays, bool required) {
    for (const Target& target : spec_.targets) {
      const Tensor* array = find_array(arrays, target.names, false);
      if (!array && !required) return targets_.clear();
      if (!array)
        throw Error(ErrorCode::bad_file,
                    fmt::format("has no array '{}' to train towards", fmt::join(target.names, "' or '")),
                    where_, what_it_has(arrays, where_));
      const Shape sample = sample_of(target);
      const Tensor rows = spec_.one_a_call && array->shape() == sample ? one_row(*array) : *array;
      // Served, data may hold targets of a loss that was not named: there is no quality then.
      if (!required && Shape(row_shape(rows)) != sample) return targets_.clear();
      targets_.push_back(checked(rows, target.type.element, sample, true, target.names.front(), where_));
      require_finite(targets_.back(), target.names.front());
      if (target.classes > 0) require_labels(targets_.back(), target);
      agree_on_size(rows.shape()[0], target.names.front());
    }
  }

  // One such number makes the loss, and then every parameter, one: that would look like too large a learning
  // rate.
  void require_finite(const Tensor& array, const std::string& name) const {
    if (!trains_) return;
    try {
      data::require_finite(array, fmt::format("{}: array '{}'", where_, name));
    } catch (const Error& error) {
      throw Error(error.code(), error.message(), error.where(),
                  error.hint() + ", or give --allow-nan where the model takes such numbers");
    }
  }

  Shape sample_of(const Target& target) const {
    const auto& extents = target.type.shape.extents();
    return Shape(std::vector<std::int64_t>(extents.begin() + (spec_.one_a_call ? 0 : 1), extents.end()));
  }

  void require_labels(const Tensor& labels, const Target& target) const {
    for (std::int64_t i = 0; i < labels.element_count(); ++i)
      if (const double label = labels.at(i); label < 0 || label >= static_cast<double>(target.classes))
        throw Error(ErrorCode::bad_file,
                    fmt::format("element {} is {}, but the model tells {} classes apart: 0 to {}", i, label,
                                target.classes, target.classes - 1),
                    fmt::format("{}: array '{}'", where_, target.names.front()));
  }

  static std::vector<Metric> regression(const Target& target, const Tensor& truth,
                                        std::span<const std::int64_t> indices, const Tensor& output) {
    const std::int64_t row = truth.element_count() / truth.shape()[0];
    double squares = 0, distances = 0;
    for (std::size_t i = 0; i < indices.size(); ++i)
      for (std::int64_t k = 0; k < row; ++k) {
        const double error =
            output.at(static_cast<std::int64_t>(i) * row + k) - truth.at(indices[i] * row + k);
        squares += error * error;
        distances += std::abs(error);
      }
    const double count = static_cast<double>(row) * static_cast<double>(indices.size());
    return {plain(labelled("rmse", target), std::sqrt(squares / count)),
            plain(labelled("mae", target), distances / count)};
  }

  static constexpr std::size_t most_values = 20000;  // in a drawing

  static workload::Regression regression_of(const Target& target, const Tensor& truth,
                                            const Predictions& found) {
    workload::Regression regression{
        .quantity = target.names.front(), .unit = "", .truth = {}, .found = {}, .samples = {}};
    const std::int64_t row = truth.element_count() / truth.shape()[0];
    const Tensor& output = found.outputs[target.output];
    for (std::size_t i = 0; i < found.indices.size() && regression.truth.size() < most_values; ++i)
      for (std::int64_t k = 0; k < row && regression.truth.size() < most_values; ++k) {
        regression.truth.push_back(truth.at(found.indices[i] * row + k));
        regression.found.push_back(output.at(static_cast<std::int64_t>(i) * row + k));
        regression.samples.push_back(found.indices[i]);
      }
    return regression;
  }

  // Of samples with one label each; where every pixel has one, there is no single answer to draw.
  static void present_labels(page::Page& page, const Tensor& labels, const Predictions& found,
                             const Tensor& scores) {
    if (labels.element_count() != labels.shape()[0] || scores.type() != ElementType::f32) return;
    workload::Classification classification{.labels = {},
                                            .scores = scores.as<float>(),
                                            .samples = {found.indices.begin(), found.indices.end()},
                                            .picture = {}};
    for (const std::int64_t index : found.indices)
      classification.labels.push_back(static_cast<std::int64_t>(labels.at(index)));
    workload::present_classification(page, classification);
  }

  // Scores [N, C, ...] against labels [N, ...]; where a call takes one sample both have an axis in front.
  std::vector<Metric> classification(const Target& target, const Tensor& truth,
                                     std::span<const std::int64_t> indices, const Tensor& output) const {
    const std::int64_t classes = target.classes;
    const std::int64_t places = truth.element_count() / truth.shape()[0];
    // Of the places of a sample those that are behind the axis of the classes.
    const std::int64_t inner =
        spec_.one_a_call ? places / std::max<std::int64_t>(1, truth.shape()[1]) : places;
    double right = 0, loss = 0;
    for (std::size_t i = 0; i < indices.size(); ++i)
      for (std::int64_t place = 0; place < places; ++place) {
        const std::int64_t group = static_cast<std::int64_t>(i) * (places / inner) + place / inner;
        const auto score = [&](std::int64_t c) {
          return output.at((group * classes + c) * inner + place % inner);
        };
        double highest = score(0), sum = 0;
        // NaN is the highest: then nothing is right, nor wrong.
        for (std::int64_t c = 1; c < classes; ++c)
          if (score(c) > highest || std::isnan(score(c))) highest = score(c);
        for (std::int64_t c = 0; c < classes; ++c) sum += std::exp(score(c) - highest);
        const double own = score(static_cast<std::int64_t>(truth.at(indices[i] * places + place)));
        right += std::isnan(highest) ? highest : static_cast<double>(own == highest);
        loss += std::log(sum) + highest - own;
      }
    const double count = static_cast<double>(places) * static_cast<double>(indices.size());
    return {plain(labelled("cross_entropy", target), loss / count),
            plain(labelled("accuracy", target), right / count)};
  }

  ArrayTaskSpec spec_;
  std::string where_;
  std::vector<Tensor> inputs_, targets_;
  std::vector<bool> numbered_;  // by input: its first axis numbers the samples
  std::int64_t size_ = -1;
  bool trains_ = false;
};

}  // namespace

std::vector<workload::MetricSpec> metrics_of(const ArrayTaskSpec& spec) {
  std::vector<workload::MetricSpec> metrics;
  for (const Target& target : spec.targets) {
    const bool classes = target.kind == transform::LossKind::cross_entropy;
    metrics.push_back({labelled(classes ? "cross_entropy" : "rmse", target), ""});
    metrics.push_back({labelled(classes ? "accuracy" : "mae", target), "", classes});
  }
  return metrics;
}

std::unique_ptr<Task> make_array_task(const ArrayTaskSpec& spec, const NamedTensors& arrays,
                                      const std::string& where, const TaskSettings& settings) {
  return std::make_unique<ArrayTask>(spec, arrays, where, settings);
}

}  // namespace superstep::run
