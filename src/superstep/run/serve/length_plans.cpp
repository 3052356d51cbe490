#include "superstep/run/serve/length_plans.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <nlohmann/json.hpp>

#include "superstep/base/options.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/text.h"
#include "superstep/run/model.h"

namespace superstep::run {
namespace {

constexpr const char* option = "length";

// A task whose sequences are cut where a shorter plan ends.
class CutTask final : public Task {
 public:
  CutTask(const Task& whole, std::int64_t full) : whole_(whole), full_(full) {}

  std::int64_t size() const override { return whole_.size(); }
  std::int64_t training_count() const override { return whole_.training_count(); }
  void fill(std::span<const std::int64_t> indices, std::uint64_t epoch, bool augment,
            std::span<Tensor> tensors) const override {
    whole_.fill(indices, epoch, augment, tensors);
  }
  void fill_inputs(std::span<const std::int64_t> indices, std::span<Tensor> inputs,
                   ThreadPool& pool) const override {
    std::vector<Tensor> full;
    for (const Tensor& input : inputs) full.emplace_back(input.type(), with_length(input.shape(), full_));
    whole_.fill_inputs(indices, full, pool);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const auto rows = static_cast<std::size_t>(inputs[i].shape()[0]);
      const std::size_t from = full[i].byte_count() / rows, to = inputs[i].byte_count() / rows;
      for (std::size_t row = 0; row < rows; ++row)
        std::memcpy(inputs[i].bytes() + row * to, full[i].bytes() + row * from, to);
    }
  }
  std::vector<Metric> quality(std::span<const std::int64_t> indices,
                              std::span<const Tensor> outputs) const override {
    return whole_.quality(indices, outputs);
  }
  nlohmann::json describe() const override { return whole_.describe(); }

  static Shape with_length(const Shape& shape, std::int64_t length) {
    std::vector<std::int64_t> extents = shape.extents();
    extents[1] = length;
    return Shape(extents);
  }

 private:
  const Task& whole_;
  std::int64_t full_;
};

std::int64_t full_length(const TrainSettings& settings) {
  const Model model(settings);
  const auto& options = model.workload().options;
  if (std::ranges::find(options, option, &OptionSpec::name) == options.end())
    throw Error(ErrorCode::unsupported,
                fmt::format("'{}' is not of sequences: it has no option '{}'", settings.workload, option),
                "--lengths");
  return Options(options, model.settings().model_options).integer(option, 1, 1 << 20);
}

Model model_at(TrainSettings settings, std::int64_t length) {
  std::erase_if(settings.model_options, [](const std::string& each) { return each.starts_with("length="); });
  settings.model_options.push_back(fmt::format("{}={}", option, length));
  return Model(std::move(settings));
}

// Rows of whatever else a model says, or of places that not all tokens have, cannot be cut where a sequence
// ends.
void require_sequences(const graph::Graph& graph, std::int64_t length) {
  const auto check = [&](const std::string& name, const Shape& shape) {
    if (shape.rank() < 2 || shape[1] != length)
      throw Error(ErrorCode::unsupported,
                  fmt::format("'{}' is {}: no row of {} tokens", name, to_string(shape), length), "--lengths",
                  "plans of several lengths are for models whose inputs and outputs have a place a token");
  };
  for (const graph::ValueId input : graph.inputs()) check(graph.value(input).name, graph.type(input).shape);
  for (const graph::Output& output : graph.outputs()) check(output.name, graph.type(output.value).shape);
}

// Row `row` of `from` begins row `to_row` of `to`, whose rows are longer.
void put_row(const Tensor& from, std::int64_t row, Tensor& to, std::int64_t to_row) {
  const std::size_t bytes = from.byte_count() / static_cast<std::size_t>(from.shape()[0]),
                    wider = to.byte_count() / static_cast<std::size_t>(to.shape()[0]);
  std::memcpy(to.bytes() + static_cast<std::size_t>(to_row) * wider,
              from.bytes() + static_cast<std::size_t>(row) * bytes, bytes);
}

}  // namespace

std::vector<std::int64_t> usual_lengths(std::int64_t full) {
  std::vector<std::int64_t> lengths;
  for (const std::int64_t length : {64, 128, 256, 384})
    if (length < full) lengths.push_back(length);
  return lengths;
}

std::vector<std::int64_t> lengths_from_text(const std::string& text) {
  std::vector<std::int64_t> lengths;
  for (const std::string& part : split(text, ',')) {
    std::int64_t length = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), length);
    if (error != std::errc() || end != part.data() + part.size() || length < 1)
      throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is no number of tokens", part), "--lengths",
                  "give whole numbers with commas between them: 64,128,256");
    lengths.push_back(length);
  }
  return lengths;
}

LengthPlans::LengthPlans(const Settings& settings) {
  const std::int64_t full = full_length(settings.model);
  std::vector<std::int64_t> lengths = settings.lengths.empty() ? usual_lengths(full) : settings.lengths;
  for (const std::int64_t length : lengths)
    if (length > full)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} is longer than the model's sequences of {}", length, full), "--lengths");
  lengths.push_back(full);
  for (const std::int64_t length : lengths) {
    const Model model = model_at(settings.model, length);
    const auto graph_at = model.inference(settings.target);
    const graph::Graph graph = graph_at(1);
    require_sequences(graph, length);
    if (length == full && outputs_.empty())
      for (const graph::Output& output : graph.outputs()) outputs_.push_back(graph.type(output.value));
    plans_[length] = std::make_unique<Evaluator>(*settings.target, graph_at, settings.compile, true);
  }
}

void LengthPlans::set_parameters(const std::map<std::string, Tensor>& states, const std::string& where) {
  for (auto& [length, plan] : plans_) plan->set_parameters(states, where);
}

std::int64_t LengthPlans::length_for(std::int64_t tokens) const {
  const auto plan = plans_.lower_bound(tokens);
  return plan == plans_.end() ? full() : plan->first;
}

std::vector<Tensor> LengthPlans::predict(const Task& task, std::span<const std::int64_t> indices,
                                         ThreadPool& pool) {
  std::vector<Tensor> joined;
  for (const graph::ValueType& type : outputs_) {
    std::vector<std::int64_t> extents = type.shape.extents();
    extents[0] = static_cast<std::int64_t>(indices.size());
    joined.push_back(Tensor::full(type.element, Shape(extents), padding_score));
  }
  std::map<std::int64_t, std::vector<std::int64_t>> places;  // in `indices`, by length
  for (std::size_t i = 0; i < indices.size(); ++i)
    places[length_for(task.used_length(indices[i]))].push_back(static_cast<std::int64_t>(i));
  const CutTask cut(task, full());
  for (const auto& [length, own] : places) {
    std::vector<std::int64_t> samples;
    for (const std::int64_t place : own) samples.push_back(indices[static_cast<std::size_t>(place)]);
    Evaluator& plan = *plans_.at(length);
    const Stopwatch watch;
    plan.executable();
    compile_seconds_ += watch.seconds();
    const std::vector<Tensor> found = plan.predict(cut, samples, pool);
    used_[length] += static_cast<std::int64_t>(own.size());
    for (std::size_t i = 0; i < found.size(); ++i)
      for (std::size_t row = 0; row < own.size(); ++row)
        put_row(found[i], static_cast<std::int64_t>(row), joined[i], own[row]);
  }
  return joined;
}

}  // namespace superstep::run
