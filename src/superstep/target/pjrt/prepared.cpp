#include "superstep/target/pjrt/prepared.h"

#include "superstep/base/error.h"

namespace superstep::target::pjrt {

bool is_prepared_at(const Place& place) {
  if (place.count > 1) return false;
  try {
    return place.client->platform() == "cpu";
  } catch (const Error&) {
    return false;  // a plug-in need not say what it is
  }
}

std::optional<std::size_t> named_device(const Place& place) {
  return place.count > 1 || place.first == 0 ? std::nullopt : std::optional(place.first);
}

void raise_refusal(const std::vector<std::string>& words, const Tensor& truths) {
  for (std::size_t i = 0; i < words.size(); ++i)
    if (truths.at(static_cast<std::int64_t>(i)) != 0) throw Error(ErrorCode::invalid_argument, words[i]);
}

PreparedArguments::PreparedArguments(const stablehlo::Program::Prepared& program, const Place& place)
    : place_(place), results_(program.results), refusals_(program.refusals) {
  if (program.text.empty()) return;
  const Client& client = *place.client;
  loaded_ = client.compile(program.text, {.any = named_device(place).has_value()});
  if (client.library().has(abi::Function::executable_memory_stats))
    bytes_ = memory_need(client.library(), client.compiled_of(loaded_)).results;
}

std::vector<abi::PjrtBuffer*> PreparedArguments::arguments(
    const DeviceStates& states, const std::vector<std::vector<Buffer>>& constants) const {
  std::vector<abi::PjrtBuffer*> arguments;
  for (std::size_t i = 0; i < states.size(); ++i) arguments.push_back(states.at(i).buffers[0].get());
  for (const std::vector<Buffer>& constant : constants) arguments.push_back(constant[0].get());
  return arguments;
}

void PreparedArguments::refresh(const DeviceStates& states,
                                const std::vector<std::vector<Buffer>>& constants) {
  if (!loaded_ || (!buffers_.empty() && made_of_ == states.settings())) return;
  buffers_.clear();  // the old ones need not lie beside the new
  const Client& client = *place_.client;
  const std::vector<std::vector<abi::PjrtBuffer*>> given = {arguments(states, constants)};
  Client::Ran ran =
      client.execute(loaded_, given, results_ + (refusals_.empty() ? 0 : 1), named_device(place_));
  for (const Event& event : ran.complete) client.await(event, "preparing the program's arguments");
  std::vector<Buffer>& made = ran.results[0];
  if (!refusals_.empty()) {
    Tensor truths(ElementType::boolean, {static_cast<std::int64_t>(refusals_.size())});
    client.await(client.download(made.back(), truths), "preparing the program's arguments");
    raise_refusal(refusals_, truths);
    made.pop_back();
  }
  buffers_ = std::move(made);
  made_of_ = states.settings();
}

}  // namespace superstep::target::pjrt
