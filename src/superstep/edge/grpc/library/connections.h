// Connections of the gRPC door: taken in here, so that they are counted, have their shares and give way, and
// handed to the library, which speaks with them.
#pragma once

#include <functional>
#include <memory>

#include "superstep/edge/grpc/server.h"

namespace superstep::edge {

// Listens from its construction on and takes connections in from start() on. The library closes them when it
// likes: a second descriptor of each tells that it is over.
//
// A question belongs to the connection of its peer, as the library names it ("ipv4:127.0.0.1:1234"). How a
// connection ended follows from its questions and from the clock: the library does not say.
class GrpcConnections {
 public:
  // Throws Error (io): the address cannot be listened at.
  GrpcConnections(const GrpcSettings& settings, Door& door);
  ~GrpcConnections();
  GrpcConnections(const GrpcConnections&) = delete;
  GrpcConnections& operator=(const GrpcConnections&) = delete;

  std::uint16_t port() const;
  // `hand_over` owns the descriptor; `each_while` is called about four times a second. Both on a thread of
  // this object.
  void start(std::function<void(int descriptor)> hand_over, std::function<void()> each_while);
  // Takes no further connection.
  void stop_accepting();
  // Every connection that is still there counts as stopped from now on. Called once the library has shut
  // down.
  void end();

  // From any thread. `cut`: it had no answer because who asked was gone.
  void question_began(const std::string& peer);
  void question_ended(const std::string& peer, bool cut);
  void stream_began(const std::string& peer);

 private:
  class Implementation;
  const std::unique_ptr<Implementation> implementation_;
};

}  // namespace superstep::edge
