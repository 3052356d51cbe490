#include <poplar/Program.hpp>
#include <poplar/exceptions.hpp>

#include "superstep/poplar/core/guard.h"
#include "superstep/poplar/core/handles.h"
#include "superstep/poplar/core/print_format.h"
#include "superstep/poplar/replicas/program_parts.h"

namespace poplar::program {
namespace {

namespace bsp = superstep::bsp;
using core::whole_tensor;

std::shared_ptr<core::ProgramData> wrap(bsp::Program program) {
  return std::make_shared<core::ProgramData>(core::ProgramData{std::move(program), {}, {}});
}

std::shared_ptr<core::ProgramData> wrap(bsp::Sequence sequence) {
  return std::make_shared<core::ProgramData>(core::ProgramData{{}, std::move(sequence), {}});
}

// A program of the machine. What does not fit its rules is a control_program_error.
template <class F>
std::shared_ptr<core::ProgramData> made(F&& make) {
  try {
    return wrap(bsp::Program(make()));
  } catch (const superstep::Error& error) {
    throw control_program_error(error.what());
  }
}
template <class P, class... Arguments>
std::shared_ptr<core::ProgramData> make(Arguments&&... arguments) {
  return made([&] { return P(std::forward<Arguments>(arguments)...); });
}

std::shared_ptr<core::ProgramData> joined(const Program* begin, std::size_t count,
                                          const DebugContext& context) {
  bsp::Sequence sequence(context.getPathName());
  for (std::size_t i = 0; i < count; ++i) sequence.add(begin[i].data().get());
  return wrap(std::move(sequence));
}

core::Decision checked_predicate(const Tensor& predicate, const char* what) {
  const Type type = predicate.elementType();
  if (type != BOOL && type != INT && type != UNSIGNED_INT)
    throw type_error(fmt::format("{}: {} is {}, not bool, int or unsigned int", what,
                                 core::describe(predicate), type.toString()));
  return core::decision(predicate, what);
}

using Cases = std::vector<std::pair<std::int32_t, Program>>;

std::shared_ptr<core::ProgramData> make_switch(core::ProgramData::Choice choice) {
  auto data = made([&] {
    const bsp::Switch program(choice.control, choice.cases, choice.otherwise, choice.name);
    return core::Decision{choice.control, choice.check}.after_check(program);
  });
  data->choice = std::move(choice);
  return data;
}

// A loop whose condition ends with what the replicas have to agree on.
template <class Loop>
std::shared_ptr<core::ProgramData> loop_while(const Program& condition, const Tensor& predicate,
                                              const Program& body, const char* what,
                                              const DebugContext& context) {
  const core::Decision decision = checked_predicate(predicate, what);
  const bsp::Program& asked = condition.data().get();
  return make<Loop>(decision.check.empty() ? asked : bsp::Sequence({asked, decision.check}), decision.tensor,
                    body.data().get(), context.getPathName());
}

// Of each replica's predicate, where there are several.
template <class Make>
bsp::Program each_predicate(const Tensor& predicate, const char* what, Make&& of) {
  checked_predicate(predicate, what);
  bsp::Sequence all;
  const auto& replication = predicate.data().replication;
  for (std::size_t replica = 0; replica < (replication ? replication->factor() : 1); ++replica)
    all.add(of(core::machine_tensor(replication ? core::part_of(predicate, replica) : predicate)));
  return all.node().children.size() == 1 ? all.node().children[0] : bsp::Program(all);
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
  return made([&] {
    bsp::Sequence sequence(context.getPathName());
    for (std::size_t i = 0; i < inputs.size(); ++i)
      sequence.add(core::copy_out(inputs[i], DataStream(function.inputs()[i], function.handle()), {}));
    for (std::size_t i = 0; i < outputs.size(); ++i)
      sequence.add(core::copy_in(DataStream(function.outputs()[i], function.handle()), outputs[i], {}));
    return sequence;
  });
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
  const core::Decision decision = core::decision(control, "Switch");
  core::ProgramData::Choice choice{
      decision.tensor, {}, bsp::Sequence(), context.getPathName(), decision.check};
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
    : Program(made([&] {
        if (predicate.data().replication)
          throw control_program_error("Execute: " + core::describe(predicate) +
                                      " is of a replicated graph: what all vertices of its replicas say is "
                                      "one answer, for a tensor of the graph around it");
        return bsp::Execute(machine_set(set), checked_predicate(predicate, "Execute").tensor,
                            context.getPathName());
      })) {}

Copy::Copy(Tensor source, Tensor destination, bool, const DebugContext& context)
    : Program(made([&] { return core::copy(source, destination, context.getPathName()); })) {}
Copy::Copy(const DataStream& stream, Tensor destination, bool, const DebugContext& context)
    : Program(made([&] { return core::copy_in(stream, destination, context.getPathName()); })) {}
Copy::Copy(Tensor source, const DataStream& stream, bool, const DebugContext& context)
    : Program(made([&] { return core::copy_out(source, stream, context.getPathName()); })) {}
Copy::Copy(const RemoteBuffer& buffer, Tensor destination, const DebugContext& context)
    : Program(made([&] { return core::copy_in(buffer, destination, nullptr, context.getPathName()); })) {}
Copy::Copy(const RemoteBuffer& buffer, Tensor destination, Tensor offset, const DebugContext& context)
    : Program(made([&] { return core::copy_in(buffer, destination, &offset, context.getPathName()); })) {}
Copy::Copy(Tensor source, const RemoteBuffer& buffer, const DebugContext& context)
    : Program(made([&] { return core::copy_out(source, buffer, nullptr, context.getPathName()); })) {}
Copy::Copy(Tensor source, const RemoteBuffer& buffer, Tensor offset, const DebugContext& context)
    : Program(made([&] { return core::copy_out(source, buffer, &offset, context.getPathName()); })) {}

Repeat::Repeat(unsigned count, const Program& body, const DebugContext& context)
    : Program(make<bsp::Repeat>(count, body.data().get(), context.getPathName())) {}

RepeatWhileTrue::RepeatWhileTrue(const Program& condition, Tensor predicate, const Program& body,
                                 const DebugContext& context)
    : Program(loop_while<bsp::RepeatWhileTrue>(condition, predicate, body, "RepeatWhileTrue", context)) {}
RepeatWhileFalse::RepeatWhileFalse(const Program& condition, Tensor predicate, const Program& body,
                                   const DebugContext& context)
    : Program(loop_while<bsp::RepeatWhileFalse>(condition, predicate, body, "RepeatWhileFalse", context)) {}

If::If(Tensor predicate, const Program& body, const DebugContext& context)
    : If(std::move(predicate), body, Sequence(), context) {}
If::If(Tensor predicate, const Program& body, const Program& otherwise, const DebugContext& context)
    : Program(made([&] {
        const core::Decision decision = checked_predicate(predicate, "If");
        return decision.after_check(
            bsp::If(decision.tensor, body.data().get(), otherwise.data().get(), context.getPathName()));
      })) {}

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
    : Program(make<bsp::WriteUndef>(whole_tensor(tensor), context.getPathName())) {}

CrossReplicaCopy::CrossReplicaCopy(Tensor source, Tensor destination, const std::map<unsigned, unsigned>& map,
                                   const DebugContext& context)
    : Program(made(
          [&] { return core::copy_across(source, destination, sources_of(map), context.getPathName()); })) {}

PrintTensor::PrintTensor(Tensor tensor, const DebugContext& context)
    : PrintTensor(std::move(tensor), PrintTensorFmt(), context) {}
PrintTensor::PrintTensor(Tensor tensor, const PrintTensorFmt& format, const DebugContext& context)
    : PrintTensor(tensor.getVarStr(), tensor, format, context) {}
PrintTensor::PrintTensor(StringRef title, Tensor tensor, const DebugContext& context)
    : PrintTensor(title, std::move(tensor), PrintTensorFmt(), context) {}
PrintTensor::PrintTensor(StringRef title, Tensor tensor, const PrintTensorFmt& format, const DebugContext&)
    : Program(make<bsp::PrintTensor>(whole_tensor(tensor), title.cloneAsString(), core::printer(format),
                                     core::form_of(format))) {}

ErrorProgram::ErrorProgram(StringRef message, Tensor tensor, const DebugContext& context)
    : Program(make<bsp::ErrorProgram>(message.cloneAsString(), whole_tensor(tensor), context.getPathName())) {
}

Abort::Abort(const DebugContext& context) : Abort(std::string("Abort"), context) {}
Abort::Abort(const std::string& message, const DebugContext& context)
    : Program(make<bsp::ErrorProgram>(message, context.getPathName())) {}

Block::Block(const Program& body, const DebugContext& context) : Program(joined(&body, 1, context)) {}

AbortOnCondition::AbortOnCondition(Tensor predicate, const DebugContext& context)
    : AbortOnCondition(std::move(predicate), std::string(), context) {}
AbortOnCondition::AbortOnCondition(Tensor predicate, const std::string& message, const DebugContext& context)
    : Program(made([&] {
        return each_predicate(predicate, "AbortOnCondition", [&](const bsp::Tensor& one) {
          return bsp::AbortOnCondition(one, message, context.getPathName());
        });
      })) {}

AssumeEqualAcrossReplicas::AssumeEqualAcrossReplicas(Tensor tensor, const DebugContext& context)
    : Program(made([&] { return core::assume_equal(tensor, context.getPathName()); })) {}

}  // namespace poplar::program
