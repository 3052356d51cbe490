#include "superstep/edge/door/door.h"

#include <nlohmann/json.hpp>

namespace superstep::edge {

std::shared_ptr<const Tokens> Door::tokens() const {
  const std::scoped_lock lock(mutex_);
  return tokens_;
}

void Door::renew(Tokens tokens) {
  auto renewed = std::make_shared<const Tokens>(std::move(tokens));
  const std::scoped_lock lock(mutex_);
  tokens_ = std::move(renewed);
}

void Door::connection_ended(const char* door, const std::string& peer, ConnectionEnd end) {
  (std::string_view(door) == "grpc" ? grpc : http).connection_ended(end);
  // Those that asked something have lines of their requests.
  const bool says_nothing_new =
      end == ConnectionEnd::closed || end == ConnectionEnd::idle || end == ConnectionEnd::stopped;
  if (access.is_written() && !says_nothing_new)
    access.add({{"door", door}, {"peer", peer}, {"connection", name_of(end)}});
}

void Door::log_request(const Entry& entry) {
  if (!access.is_written()) return;
  access.add({{"door", entry.door},
              {"peer", entry.peer},
              {"method", entry.method},
              {"path", entry.path},
              {"token", entry.token},
              {"status", entry.status},
              {"end", name_of(entry.end)},
              {"bytes_in", entry.bytes_in},
              {"bytes_out", entry.bytes_out},
              {"seconds", std::chrono::duration<double>(entry.took).count()}});
}

void Door::log_change(const std::string& peer, const std::string& token, const std::string& what,
                      const std::string& outcome) {
  if (audit.is_written()) audit.add({{"peer", peer}, {"token", token}, {"what", what}, {"outcome", outcome}});
}

}  // namespace superstep::edge
