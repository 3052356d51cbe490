// Calls of the Open Inference Protocol's service over gRPC, as a client. The library is optional: a program
// that was built without it says so when it is asked for.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "superstep/edge/load/access.h"

namespace superstep::edge {

// A connection of its own. Its end gives up the call that is on its way, whose `done` is not told any more.
class GrpcChannel {
 public:
  // The status as HTTP has it (protocol/status.h), 0: the connection is lost; and the answer, or why there
  // is none. Told by a thread of the client's, which must not be kept waiting.
  using Done = std::function<void(int status, const std::string& answer)>;

  virtual ~GrpcChannel() = default;
  // "ModelInfer" and its message; one call at a time.
  virtual void call(const std::string& method, const std::string& message, Done done) = 0;
};

// Outlives its channels.
class GrpcClient {
 public:
  virtual ~GrpcClient() = default;
  virtual std::unique_ptr<GrpcChannel> connect(
      const std::string& where) = 0;  // "HOST:PORT"; throws Error (io)
};

// `secure`: with TLS. Throws Error: unsupported (built without gRPC), what read_access() throws.
std::unique_ptr<GrpcClient> open_grpc_client(bool secure, const ClientAccess& access);

}  // namespace superstep::edge
