#include <poplar/Program.hpp>
#include <poplar/exceptions.hpp>

#include "superstep/poplar/core/guard.h"
#include "superstep/poplar/core/handles.h"
#include "superstep/poplar/core/print_format.h"

namespace poplar::program {
namespace {

namespace bsp = superstep::bsp;
using core::machine_tensor;

std::shared_ptr<core::ProgramData> wrap(bsp::Program program) {
  return std::make_shared<core::ProgramData>(core::ProgramData{std::move(program), {}, {}});
}

std::shared_ptr<core::ProgramData> wrap(bsp::Sequence sequence) {
  return std::make_shared<core::ProgramData>(core::ProgramData{{}, std::move(sequence), {}});
}

// A program of the machine. What does not fit its rules is a control_program_error.
template <class P, class... Arguments>
std::shared_ptr<core::ProgramData> make(Arguments&&... arguments) {
  try {
    return wrap(bsp::Program(P(std::forward<Arguments>(arguments)...)));
  } catch (const superstep::Error& error) {
    throw control_program_error(error.what());
  }
}

std::shared_ptr<core::ProgramData> joined(const Program* begin, std::size_t count,
                                          const DebugContext& context) {
  bsp::Sequence sequence(context.getPathName());
  for (std::size_t i = 0; i < count; ++i) sequence.add(begin[i].data().get());
  return wrap(std::move(sequence));
}

bsp::DataStream machine_stream(const DataStream& stream) {
  if (stream.getId() == core::NO_ELEMENT) throw control_program_error("a copy of a stream that is not there");
  return {bsp::StreamId(stream.getId())};
}

bsp::RemoteBuffer machine_buffer(const RemoteBuffer& buffer) {
  if (buffer.getId() == core::NO_ELEMENT)
    throw control_program_error("a copy of a remote buffer that is not there");
  return {bsp::RemoteBufferId(buffer.getId())};
}

const bsp::Tensor& checked_predicate(const Tensor& predicate, const char* what) {
  const Type type = predicate.elementType();
  if (type != BOOL && type != INT && type != UNSIGNED_INT)
    throw type_error(fmt::format("{}: {} is {}, not bool, int or unsigned int", what,
                                 core::describe(predicate), type.toString()));
  return machine_tensor(predicate);
}

using Cases = std::vector<std::pair<std::int32_t, Program>>;

std::shared_ptr<core::ProgramData> make_switch(core::ProgramData::Choice choice) {
  auto data = make<bsp::Switch>(choice.control, choice.cases, choice.otherwise, choice.name);
  data->choice = std::move(choice);
  return data;
}

bsp::ComputeSet machine_set(const ComputeSet& set) {
  if (set.getId() == core::NO_ELEMENT)
    throw control_program_error("Execute of a compute set that is not there");
  return {bsp::ComputeSetId(set.getId())};
}

bsp::Function machine_function(const Function& function) {
  if (function.getId() == core::NO_ELEMENT)
    throw control_program_error("Call of a function that is not there");
  return {bsp::FunctionId(function.getId())};
}

std::shared_ptr<core::ProgramData> called(const HostFunction& function, ArrayRef<Tensor> inputs,
                                          ArrayRef<Tensor> outputs, const DebugContext& context) {
  if (function.handle().empty())
    throw control_program_error("Call of a function of the host that is not there");
  if (inputs.size() != function.inputs().size() || outputs.size() != function.outputs().size())
    throw control_program_error(fmt::format("Call of '{}': it takes {} inputs and {} outputs, not {} and {}",
                                            function.handle(), function.inputs().size(),
                                            function.outputs().size(), inputs.size(), outputs.size()));
  bsp::Sequence sequence(context.getPathName());
  try {
    for (std::size_t i = 0; i < inputs.size(); ++i)
      sequence.add(
          bsp::Copy(machine_tensor(inputs[i]), bsp::DataStream{bsp::StreamId(function.inputs()[i])}));
    for (std::size_t i = 0; i < outputs.size(); ++i)
      sequence.add(
          bsp::Copy(bsp::DataStream{bsp::StreamId(function.outputs()[i])}, machine_tensor(outputs[i])));
  } catch (const superstep::Error& error) {
    throw control_program_error(error.what());
  }
  return wrap(std::move(sequence));
}

std::vector<std::uint32_t> sources_of(const std::map<unsigned, unsigned>& map) {
  std::vector<std::uint32_t> from;
  for (const auto& [replica, other] : map) {
    if (replica != from.size())
      throw control_program_error(fmt::format("CrossReplicaCopy: the map has no replica {}", from.size()));
    from.push_back(other);
  }
  return from;
}

std::shared_ptr<core::ProgramData> chosen(const Tensor& control, const Cases& cases, const Program* otherwise,
                                          const DebugContext& context) {
  if (control.elementType() != INT && control.elementType() != UNSIGNED_INT)
    throw type_error(fmt::format("Switch: {} is {}, not int or unsigned int", core::describe(control),
                                 control.elementType().toString()));
  core::ProgramData::Choice choice{machine_tensor(control), {}, bsp::Sequence(), context.getPathName()};
  for (const auto& [value, body] : cases) choice.cases.emplace_back(value, body.data().get());
  if (otherwise) choice.otherwise = otherwise->data().get();
  return make_switch(std::move(choice));
}

}  // namespace

Program::Program() : data_(wrap(bsp::Sequence())) {}
Program::Program(std::shared_ptr<core::ProgramData> data) : data_(std::move(data)) {}
Program::~Program() = default;
Program::Program(const Program&) = default;
Program::Program(Program&& other) noexcept = default;
Program& Program::operator=(const Program&) = default;
Program& Program::operator=(Program&&) noexcept = default;
bool Program::isEmpty() const { return data_->get().empty(); }

Sequence::Sequence(const DebugContext& context) : Program(joined(nullptr, 0, context)) {}
Sequence::Sequence(std::initializer_list<Program> programs, const DebugContext& context)
    : Program(joined(programs.begin(), programs.size(), context)) {}
Sequence::Sequence(const Program& program, const DebugContext& context)
    : Program(joined(&program, 1, context)) {}
Sequence::Sequence(ArrayRef<Program> programs, const DebugContext& context)
    : Program(joined(programs.data(), programs.size(), context)) {}

void Sequence::add(const Program& program) {
  const bsp::Program added = program.data().get();
  if (data_.use_count() > 1) data_ = std::make_shared<core::ProgramData>(*data_);
  data_->sequence->add(added);
}

Execute::Execute(ComputeSet set, const DebugContext& context)
    : Program(make<bsp::Execute>(machine_set(set), context.getPathName())) {}

Execute::Execute(ComputeSet set, Tensor predicate, const DebugContext& context)
    : Program(make<bsp::Execute>(machine_set(set), checked_predicate(predicate, "Execute"),
                                 context.getPathName())) {}

Copy::Copy(Tensor source, Tensor destination, bool, const DebugContext& context)
    : Program(make<bsp::Copy>(machine_tensor(source), machine_tensor(destination), context.getPathName())) {}
Copy::Copy(const DataStream& stream, Tensor destination, bool, const DebugContext& context)
    : Program(make<bsp::Copy>(machine_stream(stream), machine_tensor(destination), context.getPathName())) {}
Copy::Copy(Tensor source, const DataStream& stream, bool, const DebugContext& context)
    : Program(make<bsp::Copy>(machine_tensor(source), machine_stream(stream), context.getPathName())) {}
Copy::Copy(const RemoteBuffer& buffer, Tensor destination, const DebugContext& context)
    : Program(make<bsp::Copy>(machine_buffer(buffer), machine_tensor(destination), context.getPathName())) {}
Copy::Copy(const RemoteBuffer& buffer, Tensor destination, Tensor offset, const DebugContext& context)
    : Program(make<bsp::Copy>(machine_buffer(buffer), machine_tensor(destination), machine_tensor(offset),
                              context.getPathName())) {}
Copy::Copy(Tensor source, const RemoteBuffer& buffer, const DebugContext& context)
    : Program(make<bsp::Copy>(machine_tensor(source), machine_buffer(buffer), context.getPathName())) {}
Copy::Copy(Tensor source, const RemoteBuffer& buffer, Tensor offset, const DebugContext& context)
    : Program(make<bsp::Copy>(machine_tensor(source), machine_buffer(buffer), machine_tensor(offset),
                              context.getPathName())) {}

Repeat::Repeat(unsigned count, const Program& body, const DebugContext& context)
    : Program(make<bsp::Repeat>(count, body.data().get(), context.getPathName())) {}

RepeatWhileTrue::RepeatWhileTrue(const Program& condition, Tensor predicate, const Program& body,
                                 const DebugContext& context)
    : Program(make<bsp::RepeatWhileTrue>(condition.data().get(),
                                         checked_predicate(predicate, "RepeatWhileTrue"), body.data().get(),
                                         context.getPathName())) {}
RepeatWhileFalse::RepeatWhileFalse(const Program& condition, Tensor predicate, const Program& body,
                                   const DebugContext& context)
    : Program(make<bsp::RepeatWhileFalse>(condition.data().get(),
                                          checked_predicate(predicate, "RepeatWhileFalse"), body.data().get(),
                                          context.getPathName())) {}

If::If(Tensor predicate, const Program& body, const DebugContext& context)
    : If(std::move(predicate), body, Sequence(), context) {}
If::If(Tensor predicate, const Program& body, const Program& otherwise, const DebugContext& context)
    : Program(make<bsp::If>(checked_predicate(predicate, "If"), body.data().get(), otherwise.data().get(),
                            context.getPathName())) {}

Switch::Switch(Tensor control, const DebugContext& context)
    : Program(chosen(control, {}, nullptr, context)) {}
Switch::Switch(Tensor control, const Cases& cases, const DebugContext& context)
    : Program(chosen(control, cases, nullptr, context)) {}
Switch::Switch(Tensor control, const Program& otherwise, const DebugContext& context)
    : Program(chosen(control, {}, &otherwise, context)) {}
Switch::Switch(Tensor control, const Cases& cases, const Program& otherwise, const DebugContext& context)
    : Program(chosen(control, cases, &otherwise, context)) {}

Switch& Switch::add(std::int32_t value, const Program& body) {
  core::ProgramData::Choice choice = *data_->choice;
  choice.cases.emplace_back(value, body.data().get());
  data_ = make_switch(std::move(choice));
  return *this;
}

Switch Switch::switchWithBoundsChecking(Tensor control, const Cases& cases, const DebugContext& context) {
  return Switch(control, cases, ErrorProgram("Switch: the value is no case", control, context), context);
}
Switch Switch::switchWithUnreachableDefault(Tensor control, const DebugContext& context) {
  return Switch(std::move(control), context);
}

Call::Call(Function function, const DebugContext& context)
    : Program(make<bsp::Call>(machine_function(function), context.getPathName())) {}

Call::Call(const HostFunction& function, ArrayRef<Tensor> inputs, ArrayRef<Tensor> outputs,
           const DebugContext& context)
    : Program(called(function, inputs, outputs, context)) {}

Sync::Sync(SyncType type, const DebugContext& context)
    : Program(make<bsp::Sync>(type == SyncType::INTERNAL ? bsp::SyncType::internal : bsp::SyncType::external,
                              context.getPathName())) {}

WriteUndef::WriteUndef(Tensor tensor, const DebugContext& context)
    : Program(make<bsp::WriteUndef>(machine_tensor(tensor), context.getPathName())) {}

CrossReplicaCopy::CrossReplicaCopy(Tensor source, Tensor destination, const std::map<unsigned, unsigned>& map,
                                   const DebugContext& context)
    : Program(make<bsp::CrossReplicaCopy>(machine_tensor(source), machine_tensor(destination),
                                          sources_of(map), context.getPathName())) {}

PrintTensor::PrintTensor(Tensor tensor, const DebugContext& context)
    : PrintTensor(std::move(tensor), PrintTensorFmt(), context) {}
PrintTensor::PrintTensor(Tensor tensor, const PrintTensorFmt& format, const DebugContext& context)
    : PrintTensor(tensor.getVarStr(), tensor, format, context) {}
PrintTensor::PrintTensor(StringRef title, Tensor tensor, const DebugContext& context)
    : PrintTensor(title, std::move(tensor), PrintTensorFmt(), context) {}
PrintTensor::PrintTensor(StringRef title, Tensor tensor, const PrintTensorFmt& format, const DebugContext&)
    : Program(make<bsp::PrintTensor>(machine_tensor(tensor), title.cloneAsString(), core::printer(format),
                                     core::form_of(format))) {}

ErrorProgram::ErrorProgram(StringRef message, Tensor tensor, const DebugContext& context)
    : Program(
          make<bsp::ErrorProgram>(message.cloneAsString(), machine_tensor(tensor), context.getPathName())) {}

Abort::Abort(const DebugContext& context) : Abort(std::string("Abort"), context) {}
Abort::Abort(const std::string& message, const DebugContext& context)
    : Program(make<bsp::ErrorProgram>(message, context.getPathName())) {}

Block::Block(const Program& body, const DebugContext& context) : Program(joined(&body, 1, context)) {}

AbortOnCondition::AbortOnCondition(Tensor predicate, const DebugContext& context)
    : AbortOnCondition(std::move(predicate), std::string(), context) {}
AbortOnCondition::AbortOnCondition(Tensor predicate, const std::string& message, const DebugContext& context)
    : Program(make<bsp::AbortOnCondition>(checked_predicate(predicate, "AbortOnCondition"), message,
                                          context.getPathName())) {}

AssumeEqualAcrossReplicas::AssumeEqualAcrossReplicas(Tensor tensor, const DebugContext& context)
    : Program(make<bsp::AssumeEqualAcrossReplicas>(machine_tensor(tensor), context.getPathName())) {}

}  // namespace poplar::program
