// What became of every connection and of every request at a server's doors, HTTP and gRPC: each ends in
// exactly one counter, also what never came so far as to a model.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

namespace superstep::edge {

enum class ConnectionEnd : std::uint8_t {
  closed,      // by who asked, or after the last answer that was asked for
  idle,        // nothing was asked for so long
  made_room,   // its place was needed: it said nothing, or was the slowest
  peer_share,  // one address has as many as it may
  full,        // all places were taken by others who were at work
  slow,        // a header, a body or a handshake took too long
  lost,        // ended in the middle of a request or of its answer
  refused,     // after a request that cannot be followed by another
  no_tls,      // the handshake failed
  no_call,  // over gRPC: over before a call; what the library refuses (no TLS, no HTTP/2) is not told apart
  stopped,  // the server ended
};
inline constexpr std::array all_connection_ends{
    ConnectionEnd::closed, ConnectionEnd::idle,    ConnectionEnd::made_room, ConnectionEnd::peer_share,
    ConnectionEnd::full,   ConnectionEnd::slow,    ConnectionEnd::lost,      ConnectionEnd::refused,
    ConnectionEnd::no_tls, ConnectionEnd::no_call, ConnectionEnd::stopped};
const char* name_of(ConnectionEnd end);

enum class RequestEnd : std::uint8_t {
  answered,    // by what was asked, whatever the status
  malformed,   // no HTTP, or two ways to say where it ends
  no_length,   // without a Content-Length
  too_large,   // body or header
  encoded,     // a compressed body
  no_memory,   // the server's memory for requests is spoken for
  peer_share,  // one address has as much under way as it may
  host,        // meant for another server: Host
  origin,      // sent by a page of another place: Origin
  no_token,    // without a token, or with one for something else
  slow,        // its body took too long
  lost,        // who asked left before the body was there
  unsent,      // who asked left before the answer was sent
  no_message,  // over gRPC: the message was larger than is taken, or who asked left first: not told apart
  not_begun,   // over gRPC: refused by the library before it had a method, as for a header that is too large
};
inline constexpr std::array all_request_ends{
    RequestEnd::answered, RequestEnd::malformed,  RequestEnd::no_length,  RequestEnd::too_large,
    RequestEnd::encoded,  RequestEnd::no_memory,  RequestEnd::peer_share, RequestEnd::host,
    RequestEnd::origin,   RequestEnd::no_token,   RequestEnd::slow,       RequestEnd::lost,
    RequestEnd::unsent,   RequestEnd::no_message, RequestEnd::not_begun};
const char* name_of(RequestEnd end);

// connections = open + the sum of their ends; requests = under_way + the sum of theirs, at every instant.
struct DoorAccount {
  std::uint64_t connections = 0, open = 0, requests = 0, under_way = 0;
  std::array<std::uint64_t, all_connection_ends.size()> connection_ends{};
  // By how they ended and the status of the answer, 0: none.
  std::map<std::pair<RequestEnd, int>, std::uint64_t> request_ends;

  std::uint64_t of(ConnectionEnd end) const { return connection_ends[static_cast<std::size_t>(end)]; }
  std::uint64_t of(RequestEnd end) const;
  std::uint64_t unanswered() const {
    return of(RequestEnd::slow) + of(RequestEnd::lost) + of(RequestEnd::unsent) + of(RequestEnd::no_message);
  }
  bool balances() const;
};

// Counts of one door, from any thread.
class DoorCounts {
 public:
  void connection_began();
  void connection_ended(ConnectionEnd end);
  void request_began();
  void request_ended(RequestEnd end, int status);
  DoorAccount account() const;

 private:
  mutable std::mutex mutex_;
  DoorAccount account_;
};

}  // namespace superstep::edge
