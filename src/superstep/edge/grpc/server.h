// The Open Inference Protocol over gRPC: inference.GRPCInferenceService, for the same models as HTTP.
//
// gRPC's library is optional: a program that was built without it says so when it is asked for.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "superstep/edge/door/door.h"
#include "superstep/edge/http/tls.h"
#include "superstep/edge/protocol/inference.h"

namespace superstep::edge {

struct GrpcSettings {
  std::string address = "127.0.0.1";
  std::uint16_t port = 8001;  // 0: any that is free
  std::size_t most_message_bytes = std::size_t{64} << 20;
  std::size_t memory = std::size_t{1} << 30;  // of what gRPC itself holds of messages on their way
  std::size_t most_connections = 1024;  // one more takes the place of who never asked or is quiet longest
  int most_streams = 256;               // calls at the same time, of a connection
  std::chrono::milliseconds handshake_time{10'000}, idle_time{300'000};
  std::string server_version;
  TlsFiles tls;  // none: in the clear
};

class GrpcServer {
 public:
  virtual ~GrpcServer() = default;
  virtual std::uint16_t port() const = 0;
  // Waits for answers that are being sent, until `until` at most, and ends every call and connection.
  virtual void finish(std::chrono::steady_clock::time_point until) = 0;
};

// Listens and answers from then on; `inference`, `budget` and `door` must outlive it. Throws Error:
// unsupported (the program was built without gRPC), io (the address cannot be listened at), what read_tls()
// throws.
std::unique_ptr<GrpcServer> start_grpc_server(const GrpcSettings& settings, const Inference& inference,
                                              MemoryBudget& budget, Door& door);

}  // namespace superstep::edge
