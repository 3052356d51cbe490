#include "superstep/edge/door/account.h"

#include <numeric>

namespace superstep::edge {

const char* name_of(ConnectionEnd end) {
  switch (end) {
    case ConnectionEnd::closed: return "closed";
    case ConnectionEnd::idle: return "idle";
    case ConnectionEnd::made_room: return "made_room";
    case ConnectionEnd::peer_share: return "peer_share";
    case ConnectionEnd::full: return "full";
    case ConnectionEnd::slow: return "slow";
    case ConnectionEnd::lost: return "lost";
    case ConnectionEnd::refused: return "refused";
    case ConnectionEnd::no_tls: return "no_tls";
    case ConnectionEnd::no_call: return "no_call";
    case ConnectionEnd::stopped: return "stopped";
  }
  return "?";
}

const char* name_of(RequestEnd end) {
  switch (end) {
    case RequestEnd::answered: return "answered";
    case RequestEnd::malformed: return "malformed";
    case RequestEnd::no_length: return "no_length";
    case RequestEnd::too_large: return "too_large";
    case RequestEnd::encoded: return "encoded";
    case RequestEnd::no_memory: return "no_memory";
    case RequestEnd::peer_share: return "peer_share";
    case RequestEnd::host: return "host";
    case RequestEnd::origin: return "origin";
    case RequestEnd::no_token: return "no_token";
    case RequestEnd::slow: return "slow";
    case RequestEnd::lost: return "lost";
    case RequestEnd::unsent: return "unsent";
    case RequestEnd::no_message: return "no_message";
    case RequestEnd::not_begun: return "not_begun";
  }
  return "?";
}

std::uint64_t DoorAccount::of(RequestEnd end) const {
  std::uint64_t sum = 0;
  for (const auto& [key, count] : request_ends)
    if (key.first == end) sum += count;
  return sum;
}

bool DoorAccount::balances() const {
  std::uint64_t ended = under_way;
  for (const auto& [key, count] : request_ends) ended += count;
  return connections == std::accumulate(connection_ends.begin(), connection_ends.end(), open) &&
         requests == ended;
}

void DoorCounts::connection_began() {
  const std::scoped_lock lock(mutex_);
  ++account_.connections;
  ++account_.open;
}

void DoorCounts::connection_ended(ConnectionEnd end) {
  const std::scoped_lock lock(mutex_);
  --account_.open;
  ++account_.connection_ends[static_cast<std::size_t>(end)];
}

void DoorCounts::request_began() {
  const std::scoped_lock lock(mutex_);
  ++account_.requests;
  ++account_.under_way;
}

void DoorCounts::request_ended(RequestEnd end, int status) {
  const std::scoped_lock lock(mutex_);
  --account_.under_way;
  ++account_.request_ends[{end, status}];
}

DoorAccount DoorCounts::account() const {
  const std::scoped_lock lock(mutex_);
  return account_;
}

}  // namespace superstep::edge
