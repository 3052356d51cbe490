// A question to a model, whatever protocol it came by: which model, whether there is room for it, and its
// answer.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/base/function_ref.h"
#include "superstep/edge/protocol/infer_codec.h"
#include "superstep/edge/protocol/status.h"
#include "superstep/edge/service/memory_budget.h"
#include "superstep/edge/service/repository.h"

namespace superstep::edge {

class Inference {
 public:
  // Both must outlive it. `deadline`: of requests that give none; 0: none.
  Inference(const Repository& repository, MemoryBudget& budget, Nanoseconds deadline)
      : repository_(repository), budget_(budget), deadline_(deadline) {}

  const Repository& repository() const { return repository_; }
  // Throw StatusError, naming what there is.
  ModelService& model(std::string_view name) const;
  static std::shared_ptr<Version> version_of(const ModelService& model, std::string_view id);

  // Reads the request for a model's ports; `admit` hears its rows before memory is taken for them.
  using Decode = FunctionRef<InferRequest(const ServedPorts& ports, FunctionRef<void(std::int64_t)> admit)>;
  struct Answer {
    std::string model, id;
    std::vector<WantedOutput> wanted;
    std::shared_ptr<Version> version;
    std::vector<Tensor> outputs;
    MemoryBudget::Share memory;          // that it takes: held until it is sent
    std::optional<StatusError> failure;  // in place of outputs
  };
  struct Question {
    std::string_view model, version;            // version "": the present one
    std::optional<Clock::time_point> deadline;  // of the protocol; the request's own timeout goes before it
  };
  // `tell` is called once, by any thread, which must not be kept waiting. What is refused before it is
  // queued is thrown instead: StatusError, and what `decode` throws.
  void ask(const Question& question, Decode decode, std::function<void(Answer answer)> tell) const;

 private:
  MemoryBudget::Share admitted(const BatcherSettings& limits, const ServedPorts& ports,
                               std::int64_t rows) const;

  const Repository& repository_;
  MemoryBudget& budget_;
  const Nanoseconds deadline_;
};

}  // namespace superstep::edge
