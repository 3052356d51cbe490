// A request and its answer, as far as the routes need to know.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "superstep/edge/door/account.h"
#include "superstep/edge/service/memory_budget.h"

namespace superstep::edge {

struct HttpRequest {
  std::string method, path;               // the path without a query
  std::string authorization;              // the header
  std::string host;                       // the header, "HOST:PORT": where the client reaches this server
  bool secure = false;                    // by TLS
  std::string peer;                       // "ADDRESS:PORT" of who asks
  std::string token;                      // the name of the token that let it in; empty: none was needed
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
  RequestEnd end = RequestEnd::answered;  // another one where the request was let in no further
};

// Bytes that a request with such a body takes while it is read, beside the tensors: a text that grows is in
// memory twice for a moment.
constexpr std::size_t bytes_of_request(std::size_t body_bytes) { return body_bytes * 2; }

// Which thread a request is handled by: what takes long must not keep others from being read.
enum class Lane {
  at_once,  // by who read it
  parse,    // by one of some that read long texts
  change,   // by one alone, one after the other
};

// Called once, by any thread.
using Reply = std::function<void(HttpResponse response)>;

}  // namespace superstep::edge
