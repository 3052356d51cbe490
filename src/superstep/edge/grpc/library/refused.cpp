#include "superstep/edge/grpc/library/refused.h"

#include <grpc/grpc.h>
#include <grpc/support/alloc.h>

#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>

#include "superstep/base/json.h"

namespace superstep::edge {
namespace {

using nlohmann::json;

json read(char* text) {
  const std::unique_ptr<char, void (*)(void*)> owned(text, gpr_free);
  return owned ? parse_json(owned.get()) : json();
}

// Protobuf's JSON writes 64-bit numbers as text.
std::uint64_t number_at(const json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  if (!object.is_object() || found == object.end() || !found->is_string()) return 0;
  return std::strtoull(found->get_ref<const std::string&>().c_str(), nullptr, 10);
}

const json& member(const json& object, const char* name) {
  static const json nothing;
  return object.is_object() && object.contains(name) ? object[name] : nothing;
}

std::intptr_t newest_server() {
  std::intptr_t newest = 0;
  for (;;) {
    const json page = read(grpc_channelz_get_servers(newest + 1));
    const json& servers = member(page, "server");
    if (!servers.is_array() || servers.empty()) return newest;
    for (const json& server : servers)
      newest = std::max(newest, static_cast<std::intptr_t>(number_at(member(server, "ref"), "serverId")));
  }
}

std::uint64_t began(std::intptr_t server) {
  const json found = read(grpc_channelz_get_server(server));
  return number_at(member(member(found, "server"), "data"), "callsStarted");
}

}  // namespace

RefusedByLibrary::RefusedByLibrary() : server_(newest_server()) {}

std::uint64_t RefusedByLibrary::untold(std::uint64_t began, std::uint64_t came_to_a_method) {
  const std::uint64_t refused = began > came_to_a_method ? began - came_to_a_method : 0;
  if (refused <= told_) return 0;
  return refused - std::exchange(told_, refused);
}

std::uint64_t RefusedByLibrary::news(std::uint64_t came_to_a_method) {
  const std::uint64_t before = began_before_;
  began_before_ = began(server_);
  return untold(before, came_to_a_method);
}

std::uint64_t RefusedByLibrary::rest(std::uint64_t came_to_a_method) {
  return untold(began(server_), came_to_a_method);
}

std::optional<RefusedByLibrary> counted(const std::function<bool()>& build) {
  static std::mutex one_at_a_time;
  const std::scoped_lock lock(one_at_a_time);
  if (!build()) return std::nullopt;
  return RefusedByLibrary();
}

}  // namespace superstep::edge
