#include "superstep/bsp/graph/program.h"

#include <fmt/format.h>

#include "superstep/base/error.h"

namespace superstep::bsp {
namespace {

ProgramNode make(ProgramKind kind, std::string name) {
  ProgramNode node;
  node.kind = kind;
  node.name = std::move(name);
  return node;
}

ProgramNode make(ProgramKind kind, std::string name, std::vector<Tensor> tensors,
                 std::vector<Program> children = {}) {
  ProgramNode node = make(kind, std::move(name));
  for (const Tensor& tensor : tensors)
    if (!tensor.valid())
      throw Error(ErrorCode::invalid_argument, "a tensor that is not there",
                  fmt::format("program {} '{}'", name_of(kind), node.name));
  node.tensors = std::move(tensors);
  node.children = std::move(children);
  return node;
}

void require_scalar(const ProgramNode& node, const Tensor& tensor, const char* what) {
  if (tensor.num_elements() != 1)
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{} must have one element; {} has {}", what, tensor.name(), tensor.num_elements()),
        fmt::format("program {} '{}'", name_of(node.kind), node.name));
  if (tensor.element_type() == Type::f16 || tensor.element_type() == Type::f32)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} must be bool or integer; {} is {}", what, tensor.name(),
                            device_name(tensor.element_type())),
                fmt::format("program {} '{}'", name_of(node.kind), node.name));
}

ProgramNode control(ProgramKind kind, std::string name, const Tensor& predicate,
                    std::vector<Program> children) {
  ProgramNode node = make(kind, std::move(name), {predicate}, std::move(children));
  require_scalar(node, predicate, "a predicate");
  return node;
}

void require_same(const ProgramNode& node) {
  const Tensor &a = node.tensors[0], &b = node.tensors[1];
  if (a.num_elements() == b.num_elements() && a.element_type() == b.element_type()) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} {}{} does not fit {} {}{}", device_name(a.element_type()), a.name(),
                          a.shape_to_string(), device_name(b.element_type()), b.name(), b.shape_to_string()),
              fmt::format("program {} '{}'", name_of(node.kind), node.name),
              "as many elements, of the same type");
}

ProgramNode stream(ProgramKind kind, StreamId id, const Tensor& tensor, std::string name) {
  ProgramNode node = make(kind, std::move(name), {tensor});
  node.stream = id;
  return node;
}

ProgramNode remote(ProgramKind kind, RemoteBufferId id, std::vector<Tensor> tensors, std::string name) {
  ProgramNode node = make(kind, std::move(name), std::move(tensors));
  node.buffer = id;
  return node;
}

ProgramNode while_loop(const Program& condition, const Tensor& predicate, const Program& body, bool wanted,
                       std::string name) {
  ProgramNode node = control(ProgramKind::repeat_while, std::move(name), predicate, {condition, body});
  node.wanted = wanted;
  return node;
}

}  // namespace

const char* name_of(ProgramKind kind) {
  switch (kind) {
    case ProgramKind::sequence: return "Sequence";
    case ProgramKind::execute: return "Execute";
    case ProgramKind::copy: return "Copy";
    case ProgramKind::stream_in: return "StreamCopyIn";
    case ProgramKind::stream_out: return "StreamCopyOut";
    case ProgramKind::remote_read: return "RemoteRead";
    case ProgramKind::remote_write: return "RemoteWrite";
    case ProgramKind::repeat: return "Repeat";
    case ProgramKind::repeat_while: return "RepeatWhile";
    case ProgramKind::branch: return "If";
    case ProgramKind::switch_case: return "Switch";
    case ProgramKind::call: return "Call";
    case ProgramKind::sync: return "Sync";
    case ProgramKind::write_undef: return "WriteUndef";
    case ProgramKind::cross_replica_copy: return "CrossReplicaCopy";
    case ProgramKind::print_tensor: return "PrintTensor";
    case ProgramKind::abort_on_condition: return "AbortOnCondition";
    case ProgramKind::error: return "ErrorProgram";
    case ProgramKind::assume_equal: return "AssumeEqualAcrossReplicas";
    case ProgramKind::count_cycles: return "CountCycles";
  }
  return "?";
}

Program::Program() : Program(ProgramNode{}) {}

ProgramNode& Program::edit() {
  if (node_.use_count() > 1) node_ = std::make_shared<ProgramNode>(*node_);
  return *node_;
}

Sequence::Sequence(std::string name) : Program(make(ProgramKind::sequence, std::move(name))) {}

Sequence::Sequence(std::initializer_list<Program> programs, std::string name)
    : Program(make(ProgramKind::sequence, std::move(name), {}, programs)) {}

void Sequence::add(const Program& program) {
  const Program added = program;  // it may be this very sequence
  edit().children.push_back(added);
}

Execute::Execute(ComputeSet set, std::string name) : Program(make(ProgramKind::execute, std::move(name))) {
  edit().compute_set = set.id;
}
Execute::Execute(ComputeSet set, const Tensor& status, std::string name)
    : Program(control(ProgramKind::execute, std::move(name), status, {})) {
  edit().compute_set = set.id;
}

Copy::Copy(const Tensor& source, const Tensor& destination, std::string name)
    : Program(make(ProgramKind::copy, std::move(name), {source, destination})) {
  require_same(node());
}
Copy::Copy(DataStream from, const Tensor& destination, std::string name)
    : Program(stream(ProgramKind::stream_in, from.id, destination, std::move(name))) {}
Copy::Copy(const Tensor& source, DataStream to, std::string name)
    : Program(stream(ProgramKind::stream_out, to.id, source, std::move(name))) {}
Copy::Copy(RemoteBuffer buffer, const Tensor& destination, std::string name)
    : Program(remote(ProgramKind::remote_read, buffer.id, {destination}, std::move(name))) {}
Copy::Copy(RemoteBuffer buffer, const Tensor& destination, const Tensor& offset, std::string name)
    : Program(remote(ProgramKind::remote_read, buffer.id, {destination, offset}, std::move(name))) {}
Copy::Copy(const Tensor& source, RemoteBuffer buffer, std::string name)
    : Program(remote(ProgramKind::remote_write, buffer.id, {source}, std::move(name))) {}
Copy::Copy(const Tensor& source, RemoteBuffer buffer, const Tensor& offset, std::string name)
    : Program(remote(ProgramKind::remote_write, buffer.id, {source, offset}, std::move(name))) {}

Repeat::Repeat(std::uint64_t count, const Program& body, std::string name)
    : Program(make(ProgramKind::repeat, std::move(name), {}, {body})) {
  edit().count = count;
}

RepeatWhileTrue::RepeatWhileTrue(const Program& condition, const Tensor& predicate, const Program& body,
                                 std::string name)
    : Program(while_loop(condition, predicate, body, true, std::move(name))) {}
RepeatWhileFalse::RepeatWhileFalse(const Program& condition, const Tensor& predicate, const Program& body,
                                   std::string name)
    : Program(while_loop(condition, predicate, body, false, std::move(name))) {}

If::If(const Tensor& predicate, const Program& when_true, const Program& when_false, std::string name)
    : Program(control(ProgramKind::branch, std::move(name), predicate, {when_true, when_false})) {}

Switch::Switch(const Tensor& value, std::vector<std::pair<std::int64_t, Program>> cases,
               const Program& otherwise, std::string name)
    : Program(control(ProgramKind::switch_case, std::move(name), value, {})) {
  ProgramNode& node = edit();
  for (const auto& [number, program] : cases) {
    for (const std::int64_t taken : node.cases)
      if (taken == number)
        throw Error(ErrorCode::invalid_argument, fmt::format("case {} stands twice", number),
                    fmt::format("program Switch '{}'", node.name));
    node.cases.push_back(number);
    node.children.push_back(program);
  }
  node.children.push_back(otherwise);
}

Call::Call(Function function, std::string name) : Program(make(ProgramKind::call, std::move(name))) {
  edit().function = function.id;
}

Sync::Sync(SyncType type, std::string name) : Program(make(ProgramKind::sync, std::move(name))) {
  edit().sync = type;
}

WriteUndef::WriteUndef(const Tensor& tensor, std::string name)
    : Program(make(ProgramKind::write_undef, std::move(name), {tensor})) {}

CrossReplicaCopy::CrossReplicaCopy(const Tensor& source, const Tensor& destination,
                                   std::vector<std::uint32_t> map, std::string name)
    : Program(make(ProgramKind::cross_replica_copy, std::move(name), {source, destination})) {
  require_same(node());
  edit().replica_map = std::move(map);
}

PrintTensor::PrintTensor(const Tensor& tensor, std::string title, TensorPrinter printer, std::string form)
    : Program(make(ProgramKind::print_tensor, std::move(title), {tensor})) {
  edit().printer = std::move(printer);
  edit().message = std::move(form);
}

AbortOnCondition::AbortOnCondition(const Tensor& predicate, std::string message, std::string name)
    : Program(control(ProgramKind::abort_on_condition, std::move(name), predicate, {})) {
  edit().message = std::move(message);
}

ErrorProgram::ErrorProgram(std::string message, const Tensor& debug, std::string name)
    : Program(make(ProgramKind::error, std::move(name), {debug})) {
  edit().message = std::move(message);
}
ErrorProgram::ErrorProgram(std::string message, std::string name)
    : Program(make(ProgramKind::error, std::move(name))) {
  edit().message = std::move(message);
}

CountCycles::CountCycles(const Tensor& count, bool begins, std::string name)
    : Program(make(ProgramKind::count_cycles, std::move(name), {count})) {
  if (count.num_elements() != 2 || count.element_type() != Type::u32)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a count of cycles is two unsigned int; {} is {} {}", count.name(),
                            count.num_elements(), device_name(count.element_type())),
                "program CountCycles '" + node().name + "'");
  edit().wanted = begins;
}

AssumeEqualAcrossReplicas::AssumeEqualAcrossReplicas(const Tensor& tensor, std::string name)
    : AssumeEqualAcrossReplicas(tensor, 1, std::move(name)) {}
AssumeEqualAcrossReplicas::AssumeEqualAcrossReplicas(const Tensor& tensor, std::uint64_t replicas,
                                                     std::string name)
    : Program(make(ProgramKind::assume_equal, std::move(name), {tensor})) {
  edit().count = replicas;
}

}  // namespace superstep::bsp
