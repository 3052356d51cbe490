#include "superstep/base/error.h"
#include "superstep/edge/grpc/client.h"
#include "superstep/edge/grpc/server.h"

namespace superstep::edge {

std::unique_ptr<GrpcServer> start_grpc_server(const GrpcSettings&, const Inference&, MemoryBudget&, Door&) {
  throw Error(ErrorCode::unsupported, "this program was built without gRPC", "--grpc",
              "install libgrpc++-dev and build anew; HTTP answers the same requests");
}

std::unique_ptr<GrpcClient> open_grpc_client(bool, const ClientAccess&) {
  throw Error(ErrorCode::unsupported, "this program was built without gRPC", "grpc://",
              "install libgrpc++-dev and build anew; http:// asks the same");
}

}  // namespace superstep::edge
