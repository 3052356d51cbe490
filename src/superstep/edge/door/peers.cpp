#include "superstep/edge/door/peers.h"

#include <boost/asio/ip/address.hpp>

namespace superstep::edge {

std::string peer_of(const std::string& address) {
  boost::system::error_code failed;
  boost::asio::ip::address ip = boost::asio::ip::make_address(address, failed);
  if (failed || ip.is_v4()) return address;
  const boost::asio::ip::address_v6 v6 = ip.to_v6();
  if (v6.is_v4_mapped()) return make_address_v4(boost::asio::ip::v4_mapped, v6).to_string();
  if (v6.is_loopback()) return address;
  auto bytes = v6.to_bytes();
  std::fill(bytes.begin() + 8, bytes.end(), std::uint8_t{0});
  return boost::asio::ip::address_v6(bytes).to_string() + "/64";
}

bool PeerShares::add(const std::string& peer, std::size_t Taken::*what, std::size_t count, std::size_t most) {
  const std::scoped_lock lock(mutex_);
  const auto found = taken_.find(peer);
  const std::size_t present = found == taken_.end() ? 0 : found->second.*what;
  if (count > most || present > most - count) return false;
  taken_[peer].*what += count;
  return true;
}

void PeerShares::drop(const std::string& peer, std::size_t Taken::*what, std::size_t count) {
  const std::scoped_lock lock(mutex_);
  const auto found = taken_.find(peer);
  if (found == taken_.end()) return;
  Taken& taken = found->second;
  taken.*what -= count;
  if (taken.connections == 0 && taken.requests == 0 && taken.bytes == 0) taken_.erase(found);
}

bool PeerShares::add_connection(const std::string& peer) {
  return add(peer, &Taken::connections, 1, limits_.connections);
}
void PeerShares::drop_connection(const std::string& peer) { drop(peer, &Taken::connections, 1); }

std::size_t PeerShares::connections_of(const std::string& peer) const {
  const std::scoped_lock lock(mutex_);
  const auto found = taken_.find(peer);
  return found == taken_.end() ? 0 : found->second.connections;
}

bool PeerShares::add_request(const std::string& peer) {
  return add(peer, &Taken::requests, 1, limits_.requests);
}
void PeerShares::drop_request(const std::string& peer) { drop(peer, &Taken::requests, 1); }

bool PeerShares::take_bytes(const std::string& peer, std::size_t bytes) {
  return bytes == 0 || add(peer, &Taken::bytes, bytes, limits_.bytes);
}
void PeerShares::give_bytes(const std::string& peer, std::size_t bytes) {
  if (bytes > 0) drop(peer, &Taken::bytes, bytes);
}

}  // namespace superstep::edge
