// A request and its answer, as far as the routes need to know.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "superstep/edge/service/memory_budget.h"

namespace superstep::edge {

struct HttpRequest {
  std::string method, path;               // the path without a query
  std::string authorization;              // the header
  bool from_a_page = false;               // a browser sent it for some page (Origin)
  std::optional<std::size_t> json_bytes;  // Inference-Header-Content-Length
  std::string body;
  MemoryBudget::Share memory;  // what the body takes; the answer holds it until it is sent
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::optional<std::size_t> json_bytes;
  MemoryBudget::Share memory;
};

// Bytes that a request with such a body takes while it is worked on: a number of JSON takes 16 where its text
// takes two at least, beside the text and the tensor.
constexpr std::size_t bytes_of_request(std::size_t body_bytes, bool has_tensors) {
  return body_bytes * (has_tensors ? 2 : 10);
}

// Called once, by any thread.
using Reply = std::function<void(HttpResponse response)>;

}  // namespace superstep::edge
