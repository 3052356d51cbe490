// What a request says it gives, held against what a model takes: before memory is taken for any of it.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/base/tensor.h"
#include "superstep/edge/model/blueprint.h"

namespace superstep::edge {

inline constexpr std::size_t most_extents = 32;  // of a tensor in a request
inline constexpr std::size_t longest_id = 1024;  // bytes
inline constexpr std::chrono::hours most_timeout{1};

// Throws Error (invalid_argument).
[[noreturn]] void refuse_request(std::string message, std::string where = {}, std::string hint = {});

// The inputs of a request, one after the other. All throw Error (invalid_argument), naming the input.
class InputCheck {
 public:
  explicit InputCheck(const ServedPorts& ports) : ports_(ports), seen_(ports.inputs.size()) {}

  // The port's index.
  std::size_t take(const std::string& name, std::string_view datatype,
                   const std::vector<std::int64_t>& extents);
  // When all were taken: the rows that each of them has.
  std::int64_t rows() const;

 private:
  const ServedPorts& ports_;
  std::vector<char> seen_;
  std::int64_t rows_ = -1;
};

Tensor input_tensor(const ServedPorts& ports, std::size_t index, std::int64_t rows);
std::size_t input_index(const ServedPorts& ports, const std::string& name);
std::size_t output_index(const ServedPorts& ports, const std::string& name);

// Truth is 0 or 1: other bytes are no bool of this language.
void check_booleans(const Tensor& tensor, const std::string& where);

}  // namespace superstep::edge
