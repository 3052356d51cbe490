// Answers to frames, as they are made, to whoever listens: superstep-answer/1, a JSON object and a part for
// every output.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "superstep/base/tensor.h"
#include "superstep/edge/model/version.h"
#include "superstep/edge/stream/ends.h"

namespace superstep::edge {

class Publisher {
 public:
  // Throws what open_publisher() throws. Over Kafka the outputs are one part, one behind the other: a message
  // has one value.
  explicit Publisher(const std::string& address, CurvePointer curve = nullptr);

  std::string endpoint() const { return outlet_->endpoint(); }
  std::uint64_t refused() const { return outlet_->refused(); }
  // Waits for room where there is none and the outlet loses nothing, until `should_end`. Throws Error (io).
  void publish(const std::string& series, std::uint64_t frame, const std::string& model,
               const Version& version, const std::vector<Tensor>& outputs,
               const std::function<bool()>& should_end);
  // All that was published has arrived. Throws Error (io).
  void flush();

 private:
  std::unique_ptr<Outlet> outlet_;
  bool one_value_;
};

}  // namespace superstep::edge
