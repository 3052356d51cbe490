#include "superstep/edge/protocol/inference.h"

#include <fmt/format.h>

#include "superstep/base/text.h"

namespace superstep::edge {
namespace {

std::optional<Clock::time_point> deadline_of(const Inference::Question& question, const InferRequest& request,
                                             Nanoseconds otherwise) {
  if (request.timeout) return Clock::now() + *request.timeout;
  if (question.deadline) return question.deadline;
  return otherwise.count() > 0 ? std::optional(Clock::now() + otherwise) : std::nullopt;
}

}  // namespace

ModelService& Inference::model(std::string_view name) const {
  if (ModelService* found = repository_.find(name)) return *found;
  std::vector<std::string> names;
  for (const auto& [known, service] : repository_.models()) names.push_back(known);
  throw StatusError{status::not_found, fmt::format("there is no model '{}' ({})", name,
                                                   unknown_name_hint(std::string(name), names))};
}

std::shared_ptr<Version> Inference::version_of(const ModelService& model, std::string_view id) {
  std::shared_ptr<Version> version = model.find(id);
  if (version) return version;
  const auto present = model.current();
  if (!present) throw StatusError{status::unavailable, fmt::format("model '{}' is unloaded", model.name())};
  throw StatusError{status::not_found,
                    fmt::format("model '{}' has no version '{}' in memory; it answers with '{}'",
                                model.name(), id, present->id())};
}

MemoryBudget::Share Inference::admitted(const BatcherSettings& limits, const ServedPorts& ports,
                                        std::int64_t rows) const {
  if (rows > limits.queue_rows)
    throw StatusError{status::too_large,
                      fmt::format("a request has at most {} rows here, not {}", limits.queue_rows, rows)};
  // Outputs are in memory twice, and as text in JSON.
  MemoryBudget::Share share =
      budget_.take(static_cast<std::size_t>(rows) * (ports.input_bytes() + 5 * ports.output_bytes()));
  if (!share)
    throw StatusError{status::unavailable, "the server has no memory left for this request; try again"};
  return share;
}

void Inference::ask(const Question& question, Decode decode, std::function<void(Answer answer)> tell) const {
  ModelService& service = model(question.model);
  if (!repository_.is_open())
    throw StatusError{status::unavailable, "the server is shutting down, or not ready yet"};
  std::shared_ptr<Version> version = version_of(service, question.version);
  auto answer = std::make_shared<Answer>(Answer{.model = service.name(), .version = version});
  InferRequest decoded;
  try {
    decoded = decode(version->ports(), [&](std::int64_t rows) {
      answer->memory = admitted(service.batcher().settings(), version->ports(), rows);
    });
  } catch (...) {
    service.batcher().count_invalid();
    throw;
  }
  auto job = std::make_shared<Job>();
  job->version = version;
  job->rows = decoded.rows;
  job->inputs = std::move(decoded.inputs);
  job->outputs = make_outputs(version->ports(), decoded.rows);
  job->deadline = deadline_of(question, decoded, deadline_);
  answer->id = std::move(decoded.id);
  answer->wanted = std::move(decoded.outputs);
  job->done = [answer, tell = std::move(tell)](Job& done, Outcome outcome, const std::string& why) {
    if (outcome == Outcome::served)
      answer->outputs = std::move(done.outputs);
    else
      answer->failure = status_error(outcome, why);
    tell(std::move(*answer));
  };
  if (service.batcher().submit(job)) return;
  if (repository_.is_open()) throw StatusError{status::too_many, "the queue is full; try again"};
  throw StatusError{status::unavailable, "the server is shutting down"};
}

}  // namespace superstep::edge
