// What a load is sent to: a model of a server that speaks the Open Inference Protocol, and a request to it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "superstep/base/element_type.h"
#include "superstep/base/random.h"
#include "superstep/base/tensor.h"
#include "superstep/edge/load/access.h"

namespace superstep::edge {

struct LoadPort {
  std::string name;
  ElementType element = ElementType::f32;
  std::vector<std::int64_t> extents;  // -1: any
};

enum class Transport { http, grpc };

struct LoadTarget {
  std::string host, port, model;
  Transport transport = Transport::http;
  bool secure = false;  // with TLS
  ClientAccess access{};
  std::string version;
  std::vector<LoadPort> inputs;

  std::string url() const;  // without the model
};

// "http://HOST:PORT/v2/models/NAME", or http://HOST:PORT of a server with one model, which is asked what it
// takes; "grpc://HOST:PORT/NAME" over gRPC, which has no list of models; https and grpcs with TLS. Throws
// Error: invalid_argument (no such address, several models), io (nobody answers), bad_file (it speaks
// something else), unsupported (built without gRPC).
LoadTarget open_target(const std::string& url, const ClientAccess& access = {});

// What the server says of its own times so far; zero where it says nothing, as over gRPC.
struct ServerTimes {
  std::uint64_t requests = 0, batches = 0, rows = 0;
  double queue = 0, compute = 0;  // seconds, of all of them
};
ServerTimes server_times(const LoadTarget& target);

// A whole request of so many rows of normal random numbers (whole numbers: of zeros): of HTTP with its head,
// of gRPC the message, whose tensors are always binary.
std::string infer_message(const LoadTarget& target, std::int64_t rows, bool binary, std::uint64_t seed);

// What the files of both transports share: an input's numbers and its extents, and the type by its name in
// the protocol (throws Error, unsupported).
Tensor random_values(const LoadPort& port, std::int64_t rows, RandomStream& random);
std::vector<std::int64_t> extents_of(const LoadPort& port, std::int64_t rows);
ElementType element_of(const std::string& datatype, const std::string& name);
// target_grpc.cpp: asks the server for the inputs; ModelInferRequest.
void ask_inputs_over_grpc(LoadTarget& target);
std::string infer_message_for_grpc(const LoadTarget& target, std::int64_t rows, std::uint64_t seed);

}  // namespace superstep::edge
