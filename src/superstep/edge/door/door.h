// What stands at a server's doors, HTTP and gRPC: who may come in, with how much, and what is written down of
// it.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "superstep/edge/door/account.h"
#include "superstep/edge/door/log.h"
#include "superstep/edge/door/peers.h"
#include "superstep/edge/door/tokens.h"

namespace superstep::edge {

struct DoorSettings {
  PeerLimits peers;
  Tokens tokens;
  // Under which it is reached, beside addresses, "localhost" and the machine's own name; "*": any.
  std::vector<std::string> hosts;
  LogSettings access, audit;  // of every request; of changes, and of those that were refused
};

// Outlives the servers that use it.
struct Door {
  explicit Door(DoorSettings settings)
      : peers(settings.peers),
        hosts(std::move(settings.hosts)),
        access(std::move(settings.access)),
        audit(std::move(settings.audit)),
        tokens_(std::make_shared<const Tokens>(std::move(settings.tokens))) {}
  Door() : Door(DoorSettings{}) {}

  // `door`: "http" or "grpc".
  void connection_ended(const char* door, const std::string& peer, ConnectionEnd end);
  struct Entry {
    const char* door;
    const std::string &peer, &method, &path, &token;
    int status = 0;
    RequestEnd end = RequestEnd::answered;
    std::size_t bytes_in = 0, bytes_out = 0;
    Clock::duration took{};
  };
  void log_request(const Entry& entry);
  // A change of what is served, or that one was refused: who asked, for what, and what came of it.
  void log_change(const std::string& peer, const std::string& token, const std::string& what,
                  const std::string& outcome);

  // Those of now: who asks keeps them until it is done. Called from any thread, as renew().
  std::shared_ptr<const Tokens> tokens() const;
  void renew(Tokens tokens);

  PeerShares peers;
  const std::vector<std::string> hosts;
  DoorCounts http, grpc;
  JsonLog access, audit;

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const Tokens> tokens_;
};

}  // namespace superstep::edge
