#include "superstep/run/user/user_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "superstep/base/random.h"
#include "superstep/base/text.h"

namespace superstep::run {
namespace {

constexpr std::int64_t default_batch = 32;
constexpr double default_learning_rate = 1e-4;  // of fine-tuning: weights are trained already
constexpr double default_epochs = 10;

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::int64_t extent_from(const std::string& text, const std::string& assignment) {
  std::int64_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || end != text.data() + text.size() || value < -1 || value == 0)
    throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is not an extent", text),
                "--shape " + assignment, "write NAME=N,N,... with -1 for what the file or the data say");
  return value;
}

std::vector<std::string> names_of(const std::vector<onnx::Port>& ports) {
  std::vector<std::string> names;
  for (const onnx::Port& port : ports) names.push_back(port.name);
  return names;
}

const onnx::Port* find_port(const std::vector<onnx::Port>& ports, std::string_view name) {
  const auto found = std::ranges::find(ports, name, &onnx::Port::name);
  return found == ports.end() ? nullptr : &*found;
}

bool is_open(const onnx::Extent& extent) { return extent.value < 0; }

const Tensor* array_for(const NamedTensors& arrays, const std::string& input, bool only_input) {
  if (const auto found = arrays.find(input); found != arrays.end()) return &found->second;
  return only_input && arrays.size() == 1 ? &arrays.begin()->second : nullptr;
}

workload::PortSpec port_spec(const std::string& name, const graph::ValueType& type, bool batched) {
  const auto& extents = type.shape.extents();
  const bool cut = batched && !extents.empty();
  return {.name = name,
          .element = type.element,
          .shape = Shape(std::vector<std::int64_t>(extents.begin() + (cut ? 1 : 0), extents.end())),
          .unit = {},
          .meaning = {}};
}

}  // namespace

bool is_model_file(const std::string& name) { return name.ends_with(".onnx"); }

UserModel::UserModel(UserModelSettings settings)
    : settings_(std::move(settings)), model_(onnx::Model::open(settings_.file)) {
  if (!settings_.data.empty()) arrays_ = read_arrays(settings_.data);
  find_batch();
  for (const std::string& assignment : settings_.shapes) bind(assignment);
  bind_to_data();
  find_ports();
  loss_.terms.clear();
  for (const std::string& term : split(settings_.loss.empty() ? "mse" : settings_.loss, ','))
    loss_.terms.push_back(parse_term(term));
  describe();
}

// An input carries the batch when its first extent is open; a file that opens none has the batch of its
// first input, and every input with that first extent carries it.
void UserModel::find_batch() {
  const auto& inputs = model_.inputs();
  const auto starts_open = [](const onnx::Port& port) {
    return port.has_shape && !port.extents.empty() && is_open(port.extents[0]);
  };
  if (std::ranges::none_of(inputs, starts_open))
    for (const onnx::Port& port : inputs)
      if (fixed_batch_ == 0 && port.has_shape && !port.extents.empty()) fixed_batch_ = port.extents[0].value;
  for (const onnx::Port& port : inputs) {
    batched_.push_back(fixed_batch_ == 0 ? starts_open(port)
                                         : port.has_shape && !port.extents.empty() &&
                                               port.extents[0].value == fixed_batch_);
    if (port.has_shape) shapes_[port.name] = std::vector<std::int64_t>(port.extents.size(), -1);
  }
}

void UserModel::bind(const std::string& assignment) {
  const std::size_t equals = assignment.find('=');
  const std::string name = assignment.substr(0, equals);
  std::vector<std::int64_t> extents;
  if (equals != std::string::npos)
    for (const std::string& part : split(assignment.substr(equals + 1), ','))
      extents.push_back(extent_from(part, assignment));
  const onnx::Port* port = find_port(model_.inputs(), name);
  if (port && (!port->has_shape || extents.size() == port->extents.size())) {
    shapes_[name] = extents;
    return;
  }
  if (port)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("input '{}' has {} extents, not {}", name, port->extents.size(), extents.size()),
                "--shape " + assignment);
  if (extents.size() != 1)
    throw Error(ErrorCode::invalid_argument, fmt::format("the model has no input '{}'", name),
                "--shape " + assignment, unknown_name_hint(name, names_of(model_.inputs())));
  symbols_[name] = extents[0];
}

// Open extents that nobody bound, but for the batch, are those of the data.
void UserModel::bind_to_data() {
  for (const onnx::Port& port : model_.inputs()) {
    const Tensor* array = array_for(arrays_, port.name, model_.inputs().size() == 1);
    if (!array) continue;
    auto& extents = shapes_[port.name];
    if (!port.has_shape && extents.empty()) extents.assign(array->shape().extents().size(), -1);
    if (extents.size() != array->shape().extents().size()) continue;  // the task says so with more words
    for (std::size_t axis = 0; axis < extents.size(); ++axis) {
      const bool open = !port.has_shape || is_open(port.extents[axis]);
      const bool bound =
          extents[axis] >= 0 || (port.has_shape && symbols_.contains(port.extents[axis].symbol));
      if (open && !bound) extents[axis] = array->shape()[static_cast<int>(axis)];
    }
  }
}

void UserModel::require_batch(std::int64_t batch) const {
  if (fixed_batch_ > 0 && batch != fixed_batch_)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the file fixes the batch at {}, it cannot be {}", fixed_batch_, batch),
                settings_.file.string(),
                fmt::format("use --batch {}, or export the model with an open first extent", fixed_batch_));
}

graph::Graph UserModel::build(std::int64_t batch) const {
  require_batch(batch);
  onnx::ImportOptions options{.shapes = shapes_, .symbols = symbols_, .parameters_as_state = true};
  for (std::size_t i = 0; i < batched_.size(); ++i)
    if (batched_[i]) options.shapes[model_.inputs()[i].name][0] = batch;
  return model_.import(options);
}

void UserModel::find_ports() {
  const graph::Graph graph = build(fixed_batch_ > 0 ? fixed_batch_ : 1);
  for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
    const graph::Value& value = graph.value(graph.inputs()[i]);
    inputs_.push_back({value.name, value.type, batched_.at(i)});
  }
  if (graph.outputs().empty()) throw Error(ErrorCode::bad_file, "has no outputs", settings_.file.string());
  for (const graph::Output& output : graph.outputs())
    outputs_.push_back({output.name, graph.type(output.value), graph.type(output.value).shape.rank() > 0});
}

// "KIND" of the only output, or "KIND:OUTPUT".
transform::LossTerm UserModel::parse_term(std::string_view text) const {
  const std::size_t colon = text.find(':');
  if (text.substr(0, colon).empty())
    throw Error(ErrorCode::invalid_argument, "a term has no loss", "--loss " + settings_.loss,
                fmt::format("write KIND:OUTPUT,KIND:OUTPUT, as in mse:{}", outputs_.front().name));
  transform::LossTerm term;
  term.kind = transform::loss_kind_from_name(text.substr(0, colon));
  if (colon == std::string_view::npos) {
    if (!settings_.loss.empty() && outputs_.size() > 1)
      throw Error(ErrorCode::invalid_argument, fmt::format("the model has {} outputs", outputs_.size()),
                  "--loss " + settings_.loss,
                  fmt::format("say which: --loss {}:{}", text, outputs_.front().name));
    term.output = outputs_.front().name;
    return term;
  }
  term.output = text.substr(colon + 1);
  term.target = "target." + term.output;
  output_of(term);
  return term;
}

const UserModel::Port& UserModel::output_of(const transform::LossTerm& term) const {
  std::vector<std::string> names;
  for (const Port& output : outputs_) {
    if (output.name == term.output) return output;
    names.push_back(output.name);
  }
  throw Error(ErrorCode::invalid_argument, "the model has no such output", "--loss " + settings_.loss,
              unknown_name_hint(term.output, names));
}

void UserModel::describe() {
  workload_.name = settings_.file.string();
  workload_.summary = model_.doc().empty() ? "a model file" : model_.doc();
  workload_.build = [model = *this](std::int64_t batch, const Options&, std::uint64_t) {
    return model.build(batch);
  };
  workload_.parameters = workload::count_parameters(build(fixed_batch_ > 0 ? fixed_batch_ : 1));
  for (const Port& input : inputs_)
    workload_.inputs.push_back(port_spec(input.name, input.type, input.batched));
  for (const Port& output : outputs_)
    workload_.outputs.push_back(port_spec(output.name, output.type, output.batched));
  workload_.training.batch = fixed_batch_ > 0 ? fixed_batch_ : default_batch;
  workload_.training.epochs = default_epochs;
  workload_.training.learning_rate = default_learning_rate;
  workload_.training.loss = loss_;
  workload_.metrics = metrics_of(task_spec());
}

ArrayTaskSpec UserModel::task_spec() const {
  ArrayTaskSpec spec;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const workload::PortSpec& input = workload_.inputs[i];
    spec.inputs.push_back({input.name, input.element, input.shape, inputs_[i].batched});
  }
  for (const transform::LossTerm& term : loss_.terms) {
    const Port& output = output_of(term);
    if (output.type.shape.rank() == 0) continue;  // a number for a whole batch
    ArrayTaskSpec::Target target{.names = {"target", output.name}, .type = output.type, .kind = term.kind};
    if (term.kind == transform::LossKind::cross_entropy && output.type.shape.rank() < 2)
      continue;  // no quality of something that cannot be trained: make_training_step says why
    target.type = transform::target_type(term.kind, output.type);
    if (term.kind == transform::LossKind::cross_entropy) target.classes = output.type.shape[1];
    if (!term.target.starts_with("target.")) {
      spec.targets.push_back(std::move(target));
      continue;
    }
    target.names = {term.target, output.name};
    target.label = output.name;
    spec.targets.push_back(std::move(target));
  }
  for (ArrayTaskSpec::Target& target : spec.targets)
    for (std::size_t i = 0; i < outputs_.size(); ++i)
      if (target.names.back() == outputs_[i].name) target.output = i;
  return spec;
}

NamedTensors UserModel::random_inputs(std::int64_t samples, std::uint64_t seed) const {
  NamedTensors arrays;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    std::vector<std::int64_t> extents = inputs_[i].type.shape.extents();
    if (inputs_[i].batched) extents[0] = samples;
    Tensor array(inputs_[i].type.element, Shape(extents));
    RandomStream random(seed, i);
    const bool floating = is_floating(array.type());
    for (std::int64_t k = 0; k < array.element_count(); ++k)
      array.set(k, floating ? random.uniform() : static_cast<double>(random.below(2)));
    arrays.emplace(inputs_[i].name, std::move(array));
  }
  return arrays;
}

std::unique_ptr<Task> UserModel::open_task(const TaskSettings& settings) const {
  if (settings.labels_required)
    for (const transform::LossTerm& term : loss_.terms)
      if (output_of(term).type.shape.rank() == 0)
        throw Error(ErrorCode::unsupported, "is one number for a whole batch: nothing to train towards",
                    fmt::format("{}: output '{}'", settings_.file.string(), term.output),
                    "name an output with a row for each sample, as in --loss mse:NAME");
  if (!settings_.data.empty())
    return make_array_task(task_spec(), arrays_, settings_.data.string(), settings);
  if (settings.labels_required)
    throw Error(ErrorCode::invalid_argument, "a model file is trained on data of your own", "--data",
                fmt::format("a file with the arrays {} and target, a row a sample (.npz, .h5)",
                            fmt::join(names_of(model_.inputs()), ", ")));
  const std::int64_t samples =
      settings.samples > 0 ? settings.samples : std::max<std::int64_t>(1, fixed_batch_);
  return make_array_task(task_spec(), random_inputs(samples, settings.seed), "random data", settings);
}

}  // namespace superstep::run
