#include "superstep/op/custom/operator_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <list>
#include <memory>
#include <utility>

#include "superstep/base/error.h"
#include "superstep/op/batch/rules.h"
#include "superstep/op/core/definition.h"
#include "superstep/operator.h"

namespace superstep::op {
namespace {

// An operator as its library describes it, with texts of our own.
struct Custom {
  superstep_operator described{};
  std::string name, domain, attributes, gradient;  // `name` and `gradient` with their domain
};

// --- a call of the library

struct Call : superstep_operator_call {
  const Attributes* attributes = nullptr;
  std::string why, text_found;
  bool failed = false;
};

std::int64_t integer_of(const superstep_operator_call* call, const char* name, std::int64_t otherwise) {
  return static_cast<const Call*>(call)->attributes->integer(name, otherwise);
}
double number_of(const superstep_operator_call* call, const char* name, double otherwise) {
  return static_cast<const Call*>(call)->attributes->number(name, otherwise);
}
const char* text_of(const superstep_operator_call* call, const char* name, const char* otherwise) {
  const graph::Attribute* found = static_cast<const Call*>(call)->attributes->find(name);
  const std::string* text = found ? std::get_if<std::string>(found) : nullptr;
  return text ? text->c_str() : otherwise;
}
void note_failure(superstep_operator_call* call, const char* why) {
  auto* own = static_cast<Call*>(call);
  own->failed = true;
  own->why = why ? why : "it says no reason";
}

superstep_operand operand_of(const Custom& custom, const ValueType& type, void* data) {
  if (type.shape.rank() > SUPERSTEP_MAX_RANK)
    throw Error(
        ErrorCode::unsupported,
        fmt::format("has {} axes, and operators of libraries take {}", type.shape.rank(), SUPERSTEP_MAX_RANK),
        custom.name);
  superstep_operand operand{.element = static_cast<superstep_element>(type.element),
                            .rank = static_cast<std::int32_t>(type.shape.rank()),
                            .shape = {},
                            .data = data};
  std::ranges::copy(type.shape.extents(), operand.shape);
  return operand;
}

superstep_operand left_out() { return {.element = SUPERSTEP_F32, .rank = -1, .shape = {}, .data = nullptr}; }

void run(const Custom& custom, const Attributes& attributes, const std::vector<superstep_operand>& inputs,
         std::vector<superstep_operand>& outputs, void (*function)(superstep_operator_call*)) {
  Call call;
  call.size = sizeof(superstep_operator_call);
  call.input_count = static_cast<std::int32_t>(inputs.size());
  call.output_count = static_cast<std::int32_t>(outputs.size());
  call.inputs = inputs.data();
  call.outputs = outputs.data();
  call.integer = integer_of, call.number = number_of, call.text = text_of, call.fail = note_failure;
  call.attributes = &attributes;
  function(&call);
  if (call.failed) throw Error(ErrorCode::bad_graph, call.why, custom.name);
}

ValueType type_of(const Custom& custom, const superstep_operand& operand, std::size_t output) {
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorCode::bad_graph, fmt::format("its library gives output {} {}", output, what),
                custom.name);
  };
  if (operand.rank < 0 || operand.rank > SUPERSTEP_MAX_RANK) refuse(fmt::format("{} axes", operand.rank));
  if (operand.element < SUPERSTEP_F64 || operand.element > SUPERSTEP_BOOL)
    refuse(fmt::format("element type {}", static_cast<int>(operand.element)));
  const std::vector<std::int64_t> extents(operand.shape, operand.shape + operand.rank);
  for (const std::int64_t extent : extents)
    if (extent < 0) refuse(fmt::format("an extent of {}", extent));
  return {static_cast<ElementType>(operand.element), Shape(extents)};
}

std::vector<ValueType> infer(const Custom& custom, const InferContext& context) {
  std::vector<superstep_operand> inputs, outputs;
  for (const ValueType* type : context.inputs)
    inputs.push_back(type ? operand_of(custom, *type, nullptr) : left_out());
  outputs.assign(static_cast<std::size_t>(custom.described.outputs), left_out());
  run(custom, context.attributes, inputs, outputs, custom.described.infer);
  std::vector<ValueType> types;
  for (std::size_t i = 0; i < outputs.size(); ++i) types.push_back(type_of(custom, outputs[i], i));
  return types;
}

// Outputs that nobody wants get memory all the same: the library fills all.
void evaluate(const Custom& custom, const EvaluateContext& context) {
  std::vector<superstep_operand> inputs, outputs;
  for (const Tensor* tensor : context.inputs)
    inputs.push_back(tensor
                         ? operand_of(custom, {tensor->type(), tensor->shape()},
                                      const_cast<std::byte*>(tensor->bytes()))  // NOLINT: C has no const here
                         : left_out());
  InferContext types{.attributes = context.attributes,
                     .inputs = {},
                     .constants = {},
                     .output_count = context.outputs.size()};
  std::list<ValueType> given;
  for (const Tensor* tensor : context.inputs)
    types.inputs.push_back(tensor ? &given.emplace_back(ValueType{tensor->type(), tensor->shape()})
                                  : nullptr);
  std::list<Tensor> unwanted;
  const std::vector<ValueType> wanted = infer(custom, types);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    Tensor& tensor =
        context.wants(i) ? context.output(i) : unwanted.emplace_back(wanted[i].element, wanted[i].shape);
    outputs.push_back(operand_of(custom, wanted[i], tensor.bytes()));
  }
  run(custom, context.attributes, inputs, outputs, custom.described.evaluate);
}

std::vector<Var> derive(const Custom& custom, const DerivativeContext& context,
                        std::span<const Var> cotangents, const std::vector<bool>& wanted) {
  std::vector<Var> inputs = context.inputs;
  inputs.insert(inputs.end(), context.outputs.begin(), context.outputs.end());
  for (std::size_t i = 0; i < cotangents.size(); ++i) {
    const Var output = context.outputs[i];
    inputs.push_back(cotangents[i].valid()
                         ? cotangents[i]
                         : context.builder.constant(Tensor(output.element(), output.shape())));
  }
  std::vector<Var> found = context.builder.node(custom.gradient, inputs, context.attributes,
                                                static_cast<int>(context.inputs.size()));
  for (std::size_t i = 0; i < found.size(); ++i)
    if (!wanted[i] || !context.has(i)) found[i] = Var();
  return found;
}

// Chosen derivatives have no forward rule; whoever asks for one is told whose it is.
[[noreturn]] void refuse_tangents(const Custom& custom) {
  throw Error(ErrorCode::unsupported,
              "has no forward-mode derivative: its library says how gradients go back alone", custom.name,
              "train with --gradient reverse");
}

// --- definitions, whose rules are functions without a place for what they are of: one set for each number

constexpr std::size_t most_operators = 64;  // chosen: of all libraries of a program together
std::array<std::unique_ptr<Custom>, most_operators>& customs() {
  static std::array<std::unique_ptr<Custom>, most_operators> all;
  return all;
}

template <std::size_t I>
struct Rules {
  static std::vector<ValueType> infer_types(const InferContext& context) {
    return infer(*customs()[I], context);
  }
  static void compute(const EvaluateContext& context) { evaluate(*customs()[I], context); }
  static std::vector<Var> vjp(const DerivativeContext& context, std::span<const Var> cotangents,
                              const std::vector<bool>& wanted) {
    return derive(*customs()[I], context, cotangents, wanted);
  }
  static std::vector<Var> jvp(const DerivativeContext&, std::span<const Var>) {
    refuse_tangents(*customs()[I]);
  }
};

struct RuleSet {
  decltype(Definition::infer) infer;
  decltype(Definition::evaluate) evaluate;
  decltype(Definition::vjp) vjp;
  decltype(Definition::jvp) jvp;
};

template <std::size_t... I>
constexpr std::array<RuleSet, sizeof...(I)> rule_sets(std::index_sequence<I...>) {
  return {RuleSet{Rules<I>::infer_types, Rules<I>::compute, Rules<I>::vjp, Rules<I>::jvp}...};
}
constexpr auto rules = rule_sets(std::make_index_sequence<most_operators>{});

struct Loaded {
  std::vector<std::string> files;
  std::vector<std::unique_ptr<AddedOperator>> operators;
  std::vector<std::string> names;
};
Loaded& loaded() {
  static auto* all = new Loaded;  // until the program ends, after everything that reads definitions
  return *all;
}

// --- what a library describes

[[noreturn]] void refuse(const std::filesystem::path& library, const std::string& what,
                         const std::string& why) {
  throw Error(ErrorCode::invalid_argument, why, fmt::format("{}: {}", library.string(), what));
}

bool is_name(std::string_view text, std::string_view more = "_") {
  return !text.empty() && std::isalpha(static_cast<unsigned char>(text.front())) != 0 &&
         std::ranges::all_of(text, [&](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0 || more.find(c) != std::string_view::npos;
         });
}

Custom checked(const superstep_operator& o, const std::filesystem::path& library) {
  const std::string name = o.name ? o.name : "", domain = o.domain ? o.domain : "";
  const std::string what = name.empty() ? "an operator without a name" : domain + "." + name;
  if (o.size != sizeof(superstep_operator))
    refuse(library, what, "is of another version of superstep/operator.h");
  if (!is_name(name)) refuse(library, what, "a name has letters, figures and _");
  if (!is_name(domain, "_.-") || domain.starts_with("ai.onnx") || domain == "superstep" ||
      domain == "com.microsoft")
    refuse(library, what, "a domain is one of its own, as com.example");
  if (!o.infer || !o.evaluate) refuse(library, what, "has no infer or no evaluate");
  if (o.min_inputs < 0 || o.max_inputs < std::max(1, o.min_inputs) || o.outputs < 1)
    refuse(library, what,
           fmt::format("takes {} to {} inputs and gives {} outputs", o.min_inputs, o.max_inputs, o.outputs));
  return {.described = o,
          .name = custom_name(domain, name),
          .domain = domain,
          .attributes = o.attributes ? o.attributes : "",
          .gradient = o.gradient ? custom_name(domain, o.gradient) : ""};
}

// That what gives a gradient takes and gives as many as that needs.
void require_gradients(const std::vector<Custom>& all, const std::filesystem::path& library) {
  for (const Custom& custom : all) {
    if (custom.gradient.empty()) continue;
    const auto found = std::ranges::find(all, custom.gradient, &Custom::name);
    if (found == all.end())
      refuse(library, custom.name, fmt::format("its gradient {} is not in the library", custom.gradient));
    const superstep_operator &of = custom.described, &gradient = found->described;
    const std::int32_t most = of.max_inputs + 2 * of.outputs, least = of.min_inputs + 2 * of.outputs;
    if (gradient.max_inputs < most || gradient.min_inputs > least || gradient.outputs != of.max_inputs)
      refuse(
          library, custom.gradient,
          fmt::format("as the gradient of {} it takes {} to {} inputs (inputs, outputs, derivatives by the "
                      "outputs) and gives {}",
                      custom.name, least, most, of.max_inputs));
  }
}

// A library is taken as a whole or not at all.
void require_new(const std::vector<Custom>& all, const std::filesystem::path& library) {
  const std::size_t place = loaded().operators.size();
  if (place + all.size() > most_operators)
    throw Error(ErrorCode::unsupported,
                fmt::format("with its {} operators there would be {}, and {} at most can be", all.size(),
                            place + all.size(), most_operators),
                library.string());
  for (const Custom& custom : all) {
    if (find(custom.name)) refuse(library, custom.name, "there is an operator of this name");
    if (std::ranges::count(all, custom.name, &Custom::name) > 1)
      refuse(library, custom.name, "stands twice in its list");
  }
}

void add(Custom custom) {
  Loaded& all = loaded();
  const std::size_t place = all.operators.size();
  customs()[place] = std::make_unique<Custom>(std::move(custom));
  const Custom& own = *customs()[place];
  const RuleSet& rule = rules[place];
  Definition definition{.name = own.name,
                        .since_opset = 1,  // of its own domain
                        .min_inputs = own.described.min_inputs,
                        .max_inputs = own.described.max_inputs,
                        .min_outputs = 1,
                        .max_outputs = own.described.outputs};
  definition.traits = {.elements = Elements::any,
                       .work = WorkKind::unsupported,
                       .domain = own.domain,
                       .attributes = own.attributes};
  if (own.described.sample_by_sample != 0) definition.traits.batch = batch::sample_by_sample;
  definition.infer = rule.infer;
  definition.evaluate = rule.evaluate;
  if (!own.gradient.empty()) definition.vjp = rule.vjp, definition.jvp = rule.jvp;
  all.operators.push_back(std::make_unique<AddedOperator>(definition));
  all.names.push_back(own.name);
}

}  // namespace

std::string custom_name(std::string_view domain, std::string_view name) {
  return fmt::format("{}.{}", domain, name);
}

std::vector<std::string> loaded_operators() { return loaded().names; }

bool is_custom(std::string_view op) { return std::ranges::find(loaded().names, op) != loaded().names.end(); }

void load_operators(const std::filesystem::path& library) {
  if (!std::filesystem::is_regular_file(library))
    throw Error(ErrorCode::not_found, "there is no such library", library.string());
  const std::string file = std::filesystem::canonical(library).string();
  if (std::ranges::find(loaded().files, file) != loaded().files.end()) return;
  void* handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    throw Error(ErrorCode::bad_file, fmt::format("cannot be loaded: {}", ::dlerror()), library.string());
  const auto list = reinterpret_cast<decltype(&superstep_operators)>(::dlsym(handle, "superstep_operators"));
  if (!list)
    throw Error(ErrorCode::bad_file, "exports no superstep_operators()", library.string(),
                "write it as superstep/operator.h says, and do not hide it");
  std::size_t count = 0;
  const superstep_operator* described = list(SUPERSTEP_OPERATOR_ABI, &count);
  if (!described || count == 0)
    throw Error(
        ErrorCode::bad_file,
        fmt::format("has no operators for version {} of superstep/operator.h", SUPERSTEP_OPERATOR_ABI),
        library.string(), "build it with the header of this program");
  std::vector<Custom> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(checked(described[i], library));
  require_gradients(all, library);
  require_new(all, library);
  for (Custom& custom : all) add(std::move(custom));
  loaded().files.push_back(file);
}

}  // namespace superstep::op
