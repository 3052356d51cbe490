#include "superstep/run/user/user_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "superstep/base/random.h"
#include "superstep/base/text.h"
#include "superstep/base/wildcard.h"
#include "superstep/file/source/forms.h"
#include "superstep/file/source/validated.h"
#include "superstep/transform/training/loss_text.h"

namespace superstep::run {
namespace {

constexpr std::int64_t default_batch = 32;
constexpr std::size_t most_imports = 2;  // a batch, and the one beside it that shows which extents follow it
constexpr double default_learning_rate = 1e-4;  // of fine-tuning: weights are trained already
constexpr double default_epochs = 10;

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

bool has_axes(const onnx::Port& port) { return port.has_shape && !port.extents.empty(); }

bool starts_open(const onnx::Port& port) { return has_axes(port) && is_open(port.extents[0]); }

const data::SourceArray* array_for(const data::SampleSource* source, const std::string& input,
                                   bool only_input) {
  if (!source) return nullptr;
  const auto& arrays = source->arrays();
  if (const std::size_t found = data::find_array(*source, input); found < arrays.size())
    return &arrays[found];
  return only_input && arrays.size() == 1 ? arrays.data() : nullptr;
}

Shape without_first(const Shape& shape) {
  return Shape(std::vector<std::int64_t>(shape.extents().begin() + 1, shape.extents().end()));
}

// Extents of an input by the file and `bindings` ("x=-1,3,224,224", "length=64"); -1: open.
std::vector<std::int64_t> extents_with(const onnx::Port& port, const std::vector<std::string>& bindings) {
  std::vector<onnx::Extent> extents = port.extents;
  for (const std::string& assignment : bindings) {
    const std::size_t equals = assignment.find('=');
    if (equals == std::string::npos) continue;
    const std::vector<std::string> given = split(std::string_view(assignment).substr(equals + 1), ',');
    const std::string name = assignment.substr(0, equals);
    for (std::size_t axis = 0; axis < extents.size(); ++axis)
      if (name == port.name && given.size() == extents.size())
        extents[axis].value = std::max(extents[axis].value, extent_from(given[axis], assignment));
      else if (!name.empty() && name == port.extents[axis].symbol && given.size() == 1)
        extents[axis].value = extent_from(given[0], assignment);
  }
  std::vector<std::int64_t> known;
  for (const onnx::Extent& extent : extents) known.push_back(is_open(extent) ? -1 : extent.value);
  return known;
}

// The shape of a sample, where all of it is known.
std::optional<Shape> known_row(const onnx::Port& port, const std::vector<std::string>& bindings) {
  if (!has_axes(port)) return std::nullopt;
  const std::vector<std::int64_t> extents = extents_with(port, bindings);
  const std::vector<std::int64_t> row(extents.begin() + 1, extents.end());
  if (std::ranges::any_of(row, [](std::int64_t extent) { return extent < 0; })) return std::nullopt;
  return Shape(row);
}

// Of pictures: bytes where the model counts, else shares of white.
ElementType stored_type(const onnx::Port& port) {
  return port.element && is_integer(*port.element) ? ElementType::u8 : ElementType::f32;
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

onnx::Bound bound_from(const std::string& text) {
  const std::size_t equals = text.rfind('=');
  const std::string most = equals == std::string::npos ? "" : text.substr(equals + 1);
  onnx::Bound bound{.name = text.substr(0, equals)};
  if (most == "all" && equals > 0) return bound;
  const auto [end, failed] = std::from_chars(most.data(), most.data() + most.size(), bound.most);
  if (most.empty() || equals == 0 || failed != std::errc() || end != most.data() + most.size() ||
      bound.most < 1)
    throw Error(ErrorCode::invalid_argument, fmt::format("'{}' says no bound", text), "--bound " + text,
                "write NODE=N with the greatest length of the node's result, or NODE=all; * in a name is any "
                "letters");
  return bound;
}

bool is_model_file(const std::string& name) { return onnx::is_model_file(name); }

UserModel::UserModel(UserModelSettings settings)
    : settings_(std::move(settings)), model_(onnx::Model::open(settings_.file)) {
  if (!settings_.data.empty()) source_ = data::fitted(open_data(), samples_wanted(), settings_.crop);
  take_given_defaults();
  find_batch();
  for (const std::string& assignment : settings_.shapes) bind(assignment);
  for (const std::string& text : settings_.bounds) bounds_.push_back(bound_from(text));
  bind_to_data();
  find_ports();
  loss_.terms = transform::loss_from_text(settings_.loss);
  for (transform::LossTerm& term : loss_.terms) settle(term);
  describe();
}

// What forms with a choice (the size of pictures, the columns of a table) make of their samples: the inputs
// whose extents are known, and what the only term of the loss compares the first output with.
data::SourceRequest UserModel::wanted_data() const {
  data::SourceRequest request{.wanted = {}, .options = {}, .skip_broken = settings_.skip_broken};
  request.scalings = settings_.scalings;
  for (const onnx::Port& port : model_.inputs())
    if (const auto row = known_row(port, settings_.shapes))
      request.wanted.push_back({.name = port.name, .type = stored_type(port), .row = *row});
  const std::vector<transform::LossTerm> terms = transform::loss_from_text(settings_.loss);
  if (model_.outputs().empty() || terms.size() > 1 || !terms.front().output.empty()) return request;
  if (terms.front().kind == transform::LossKind::ctc) return request;  // as many labels as the data have
  std::optional<Shape> row = known_row(model_.outputs().front(), {});
  const bool classes = transform::takes_labels(terms.front().kind);
  if (classes) row = !row || row->rank() < 2 ? Shape{} : without_first(*row);
  if (!row) return request;
  const ElementType bytes = row->rank() == 0 ? ElementType::i64 : ElementType::u8;
  request.wanted.push_back({.name = "target", .type = classes ? bytes : ElementType::f32, .row = *row});
  return request;
}

std::unique_ptr<data::SampleSource> UserModel::open_data() const {
  const data::SourceRequest request = wanted_data();
  auto source = data::open_source(settings_.data, request);
  if (settings_.validation.empty()) return source;
  return data::with_validation(std::move(source), settings_.data.string(),
                               data::open_source(settings_.validation, request),
                               settings_.validation.string());
}

// Samples of inputs whose first extent is open, as far as their extents are known: arrays that have them with
// other axes of one element are taken for these. Where first extents are fixed, an axis more numbers calls.
std::vector<data::WantedRow> UserModel::samples_wanted() const {
  std::vector<data::WantedRow> wanted;
  for (const onnx::Port& port : model_.inputs())
    if (starts_open(port)) {
      const std::vector<std::int64_t> extents = extents_with(port, settings_.shapes);
      wanted.push_back({port.name, {extents.begin() + 1, extents.end()}});
    }
  return wanted;
}

// An input with an initialiser is what an array of its name, or a binding of its extents, gives.
void UserModel::take_given_defaults() {
  for (const onnx::Port& port : model_.defaults()) {
    const auto is_bound = [&](const std::string& assignment) {
      return assignment.starts_with(port.name + "=");
    };
    if (array_for(source_.get(), port.name, false) || std::ranges::any_of(settings_.shapes, is_bound))
      given_.insert(port.name);
  }
  if (!given_.empty()) model_ = onnx::Model::open(settings_.file, {given_.begin(), given_.end()});
}

// A default of fixed extents is the same for all samples.
bool UserModel::is_whole(const onnx::Port& port) const {
  return given_.contains(port.name) && !starts_open(port);
}

// An input carries the batch when its first extent is open; a file that opens none has the batch of its
// first input.
void UserModel::find_batch() {
  const auto& inputs = model_.inputs();
  for (const onnx::Port& port : inputs)
    if (port.has_shape) shapes_[port.name] = std::vector<std::int64_t>(port.extents.size(), -1);
  if (takes_one_a_call()) return take_one_a_call();
  const auto may_have_rows = [&](const onnx::Port& port) { return !is_whole(port); };
  if (std::ranges::none_of(inputs,
                           [&](const onnx::Port& port) { return may_have_rows(port) && starts_open(port); }))
    for (const onnx::Port& port : inputs)
      if (fixed_batch_ == 0 && may_have_rows(port) && has_axes(port)) fixed_batch_ = port.extents[0].value;
  for (const onnx::Port& port : inputs)
    batched_.push_back(may_have_rows(port) && (fixed_batch_ == 0 ? starts_open(port) : has_axes(port)));
}

void UserModel::take_one_a_call() {
  one_a_call_ = true;
  fixed_batch_ = 1;
  imports_->latest.clear();  // they were of other extents
  batched_.assign(model_.inputs().size(), false);
}

// First extents that differ number different things, and where an input beside the batch has open extents of
// its own (the edges beside the nodes of a graph) the first ones number no samples.
bool UserModel::takes_one_a_call() const {
  if (arrays_have_an_axis_more()) return true;
  std::set<std::string> symbols;
  std::set<std::int64_t> extents;
  bool open = false, others_open = false;
  for (const onnx::Port& port : model_.inputs()) {
    if (!has_axes(port) || is_whole(port)) continue;
    if (starts_open(port)) {
      if (!port.extents[0].symbol.empty()) symbols.insert(port.extents[0].symbol);
      open = true;
      continue;
    }
    extents.insert(port.extents[0].value);
    others_open = others_open || std::ranges::any_of(port.extents, is_open);
  }
  return symbols.size() > 1 || (open ? others_open : extents.size() > 1);
}

bool UserModel::arrays_have_an_axis_more() const {
  for (const onnx::Port& port : model_.inputs())
    if (const data::SourceArray* array = array_for(source_.get(), port.name, model_.inputs().size() == 1);
        array && port.has_shape && !given_.contains(port.name) &&
        array->shape().rank() == static_cast<int>(port.extents.size()) + 1)
      return true;
  return false;
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
    const data::SourceArray* array = array_for(source_.get(), port.name, model_.inputs().size() == 1);
    if (!array) continue;
    std::vector<std::int64_t> given = array->shape().extents();
    auto& extents = shapes_[port.name];
    if (one_a_call_ && port.has_shape && given.size() == extents.size() + 1) given.erase(given.begin());
    if (!port.has_shape && extents.empty()) extents.assign(given.size(), -1);
    if (extents.size() != given.size()) continue;  // the task says so with more words
    for (std::size_t axis = 0; axis < extents.size(); ++axis) {
      const bool open = !port.has_shape || is_open(port.extents[axis]);
      const bool bound =
          extents[axis] >= 0 || (port.has_shape && symbols_.contains(port.extents[axis].symbol));
      if (open && !bound) extents[axis] = given[axis];
    }
  }
}

void UserModel::require_batch(std::int64_t batch) const {
  if (one_a_call_ && batch != 1)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("all that the model takes is one sample, a batch cannot have {}", batch),
                settings_.file.string(), "use --batch 1");
  if (fixed_batch_ > 0 && batch != fixed_batch_)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the file fixes the batch at {}, it cannot be {}", fixed_batch_, batch),
                settings_.file.string(),
                fmt::format("use --batch {}, or export the model with an open first extent", fixed_batch_));
}

onnx::ImportOptions UserModel::options(std::int64_t batch) const {
  onnx::ImportOptions options{.shapes = shapes_,
                              .symbols = symbols_,
                              .parameters_as_state = true,
                              .choice = settings_.choice,
                              .bounds = bounds_};
  for (std::size_t i = 0; i < batched_.size(); ++i)
    if (batched_[i]) options.shapes[model_.inputs()[i].name][0] = batch;
  return options;
}

onnx::Model::WithInitializers UserModel::imported(std::int64_t batch) const {
  const std::lock_guard lock(imports_->mutex);
  auto& latest = imports_->latest;
  const auto found = std::ranges::find(latest, batch, [](const auto& import) { return import.first; });
  if (found != latest.end()) return found->second;
  if (latest.size() == most_imports) latest.erase(latest.begin());
  latest.emplace_back(batch, model_.import_with_initializers(options(batch)));
  keep_values(latest.back().second.graph);
  return latest.back().second;
}

// Makes outputs of what is asked for: of computed values by their names, and of all that a node of a name
// gives.
void UserModel::keep_values(graph::Graph& graph) const {
  for (const std::string& pattern : settings_.keep) {
    std::vector<std::string> names;
    std::vector<graph::ValueId> found;
    for (const graph::Node& node : graph.nodes())
      for (const graph::ValueId id : node.outputs) {
        if (!id.valid()) continue;
        names.push_back(graph.value(id).name);
        if (fits(pattern, names.back()) || fits(pattern, node.name)) found.push_back(id);
        if (!node.name.empty()) names.push_back(node.name);
      }
    if (found.empty())
      throw Error(ErrorCode::invalid_argument, "no value and no node of the model has this name",
                  "--keep " + pattern, unknown_name_hint(pattern, names));
    for (const graph::ValueId id : found)
      if (!graph.find_output(graph.value(id).name).valid()) graph.add_output(graph.value(id).name, id);
  }
}

graph::Graph UserModel::build(std::int64_t batch) const {
  require_batch(batch);
  return imported(batch).graph;
}

void UserModel::find_ports() {
  settle_batch();
  const std::int64_t batch = smallest_batch();
  require_batch(batch);
  const auto [graph, initializers] = imported(batch);
  initializers_ = initializers;
  for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
    const graph::Value& value = graph.value(graph.inputs()[i]);
    inputs_.push_back({value.name, value.type, batched_.at(i)});
  }
  if (graph.outputs().empty()) throw Error(ErrorCode::bad_file, "has no outputs", settings_.file.string());
  for (const graph::Output& output : graph.outputs()) {
    const bool batched = has_rows(output.name, graph.type(output.value).shape, batch);
    outputs_.push_back({output.name, graph.type(output.value), batched});
    if (batched) continue;
    if (is_training_step(graph))
      why_not_served_ = fmt::format("output '{}' is of a training step: nothing to serve", output.name);
    else
      whole_outputs_.push_back(output.name);
  }
}

// What `superstep onnx export --with train-step` writes gives next values of its initialisers: nothing to
// serve.
bool UserModel::is_training_step(const graph::Graph& graph) const {
  return std::ranges::any_of(graph.outputs(), [&](const graph::Output& output) {
    return std::ranges::any_of(initializers_, [&](const onnx::Initializer& initializer) {
      return output.name == initializer.name + ".next";
    });
  });
}

// A file that leaves the batch open may hold for one sample at a time alone, or have a first extent that is
// not that of any output: then it numbers the parts of one sample.
void UserModel::settle_batch() {
  if (fixed_batch_ > 0) return;
  const graph::Graph one = build(1);
  try {
    const graph::Graph two = build(2);
    for (std::size_t i = 0; i < one.outputs().size(); ++i) {
      const Shape &of_one = one.type(one.outputs()[i].value).shape,
                  &of_two = two.type(two.outputs()[i].value).shape;
      if (of_one.rank() > 0 && of_one[0] == 1 && of_two.rank() > 0 && of_two[0] == 2)
        rows_.insert(one.outputs()[i].name);
    }
  } catch (const Error& error) {
    fixed_batch_ = 1;
    why_fixed_ = error.what();
    return;
  }
  if (!rows_.empty()) return;
  take_one_a_call();
  bind_to_data();
}

bool UserModel::has_rows(const std::string& output, const Shape& shape, std::int64_t batch) const {
  if (one_a_call_) return false;
  return fixed_batch_ > 0 ? shape.rank() > 0 && shape[0] == batch : rows_.contains(output);
}

// The outputs of a term, and the names of what it is compared with.
void UserModel::settle(transform::LossTerm& term) const {
  if (!term.output.empty()) {
    term.target = "target." + term.output;
    output_of(term.output);
  } else if (!settings_.loss.empty() && outputs_.size() > 1) {
    throw Error(ErrorCode::invalid_argument, fmt::format("the model has {} outputs", outputs_.size()),
                "--loss " + settings_.loss,
                fmt::format("say which: --loss {}:{}", settings_.loss, outputs_.front().name));
  } else {
    term.output = outputs_.front().name;
  }
  for (const std::string* name : {&term.variance, &term.positive, &term.negative})
    if (!name->empty()) output_of(*name);
  if (term.kind == transform::LossKind::ctc && !term.longest) term.longest = longest_labels(term);
}

// Of a sample, as the data have room for; without data as many as there are frames.
std::int64_t UserModel::longest_labels(const transform::LossTerm& term) const {
  const Port& output = output_of(term.output);
  for (const std::string& name : {term.target, output.name})
    if (const data::SourceArray* array = array_for(source_.get(), name, false);
        array && !array->single && array->row.rank() == 1 && array->row[0] > 0)
      return array->row[0];
  return output.type.shape.rank() == 3 ? output.type.shape[1] : 1;
}

const UserModel::Port& UserModel::output_of(const std::string& name, const std::string& where) const {
  std::vector<std::string> names;
  for (const Port& output : outputs_) {
    if (output.name == name) return output;
    names.push_back(output.name);
  }
  throw Error(ErrorCode::invalid_argument, "the model has no such output",
              where.empty() ? "--loss " + settings_.loss : where, unknown_name_hint(name, names));
}

// As large as the training samples allow.
std::int64_t UserModel::usual_batch() const {
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    if (const data::SourceArray* array = array_for(source_.get(), inputs_[i].name, inputs_.size() == 1);
        array && inputs_[i].batched && !array->single) {
      const std::int64_t training =
          settings_.folds > 1 ? array->rows - (array->rows + settings_.folds - 1) / settings_.folds
                              : data::training_rows(*source_, array->rows, ArrayTaskSpec().training_share);
      return std::clamp<std::int64_t>(training, 1, default_batch);
    }
  return default_batch;
}

void UserModel::describe() {
  workload_.name = settings_.file.string();
  workload_.summary = model_.doc().empty() ? "a model file" : model_.doc();
  workload_.build = [model = *this](std::int64_t batch, const Options&, std::uint64_t) {
    return model.build(batch);
  };
  workload_.parameters = workload::count_parameters(build(smallest_batch()));
  for (const Port& input : inputs_)
    workload_.inputs.push_back(port_spec(input.name, input.type, input.batched));
  for (const Port& output : outputs_)
    workload_.outputs.push_back(port_spec(output.name, output.type, output.batched));
  workload_.training.batch = fixed_batch_ > 0 ? fixed_batch_ : usual_batch();
  workload_.training.epochs = default_epochs;
  workload_.training.learning_rate = default_learning_rate;
  workload_.training.loss = loss_;
  workload_.metrics = metrics_of(task_spec());
}

NamedTensors UserModel::random_inputs(std::int64_t samples, std::uint64_t seed) const {
  NamedTensors arrays;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    std::vector<std::int64_t> extents = inputs_[i].type.shape.extents();
    if (inputs_[i].batched) extents[0] = samples;
    if (one_a_call_) extents.insert(extents.begin(), samples);
    Tensor array(inputs_[i].type.element, Shape(extents));
    RandomStream random(seed, i);
    const bool floating = is_floating(array.type());
    for (std::int64_t k = 0; k < array.element_count(); ++k)
      array.set(k, floating ? random.uniform() : static_cast<double>(random.below(2)));
    arrays.emplace(inputs_[i].name, std::move(array));
  }
  return arrays;
}

void UserModel::require_trainable() const {
  for (const transform::LossTerm& term : loss_.terms) {
    const Port& output = output_of(term.output);
    if (one_a_call_ || output.batched) continue;
    const bool number = output.type.shape.rank() == 0;
    throw Error(ErrorCode::unsupported,
                fmt::format("is {} for a whole batch: nothing to train towards",
                            number ? "one number" : graph::to_string(output.type)),
                fmt::format("{}: output '{}'", settings_.file.string(), term.output),
                transform::needs_target(term.kind)
                    ? "name an output with a row for each sample, as in --loss mse:NAME"
                    : "give the loss of each sample (of PyTorch: reduction='none'); the library trains on "
                      "one number, too: Model.trainer, Model.gradient");
  }
  const auto trained = [](const onnx::Initializer& initializer) {
    return initializer.kind == onnx::Initializer::Kind::trained;
  };
  if (std::ranges::none_of(initializers_, trained))
    throw Error(ErrorCode::unsupported, "has nothing to train", settings_.file.string(),
                fmt::format("{}; name what is to be trained: --train NAME, or --train '*'",
                            onnx::to_string(initializers_)));
}

std::unique_ptr<Task> UserModel::open_task(const TaskSettings& settings) const {
  if (!settings.validation.empty() && settings_.data.empty())
    throw Error(ErrorCode::invalid_argument, "there are no samples to train on", "--validation",
                "give --data, too");
  if (settings.labels_required) require_trainable();
  if (!settings_.data.empty())
    return make_array_task(task_spec(), source_, settings_.data.string(), settings);
  if (settings.labels_required)
    throw Error(ErrorCode::invalid_argument, "a model file is trained on data of your own", "--data",
                fmt::format("files with the arrays {} and target, a row a sample: docs/your-data.md",
                            fmt::join(names_of(model_.inputs()), ", ")));
  const std::int64_t samples =
      settings.samples > 0 ? settings.samples : std::max<std::int64_t>(1, fixed_batch_);
  return make_array_task(task_spec(), random_inputs(samples, settings.seed), "random data", settings);
}

}  // namespace superstep::run
