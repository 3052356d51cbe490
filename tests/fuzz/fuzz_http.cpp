// Any bytes at the HTTP door are answered or the connection ends, every request is counted once, and who asks
// properly beside them is answered: a server of a small model on a port of its own.
#include <cstdio>
#include <cstdlib>

#include "superstep/edge/http/server.h"
#include "superstep/edge/protocol/routes.h"
#include "tests/fuzz/raw_connection.h"

namespace {

using namespace superstep;

struct Served {
  Served() : budget(std::size_t{1} << 26), routes(repository, budget, door, {}) {
    edge::ServiceSettings service;
    service.workers = 1;
    service.batcher.max_batch = 4;
    repository.add(std::make_unique<edge::ModelService>("m", edge::ModelSource{.what = "mlp"}, service));
    edge::ServerSettings settings;
    settings.port = 0;
    settings.most_body_bytes = std::size_t{1} << 20;
    server.emplace(
        settings, budget, door,
        edge::ServerHandlers{
            .handle = [this](edge::HttpRequest request,
                             edge::Reply reply) { routes.handle(std::move(request), std::move(reply)); },
            .lane = edge::Routes::lane,
            .admit = [this](edge::HttpRequest& request) { return routes.admit(request); }});
    repository.open();
  }
  edge::MemoryBudget budget;
  edge::Door door;
  edge::Repository repository;
  edge::Routes routes;
  std::optional<edge::Server> server;
};

void require(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

void require_in_order(Served& served) {
  constexpr std::string_view good =
      "GET /v2/models/m HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  const std::string said =
      exchange(served.server->port(), reinterpret_cast<const unsigned char*>(good.data()), good.size());
  require(said.starts_with("HTTP/1.1 200"), "a proper request was not answered");
  const edge::DoorAccount account = served.server->account();
  std::uint64_t ended = account.under_way;
  for (const auto& [end, count] : account.request_ends) ended += count;
  require(ended == account.requests, "requests are not counted once");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  static Served* const served = new Served;
  static std::uint64_t number = 0;
  exchange(served->server->port(), data, size);
  if (++number % 256 == 0) require_in_order(*served);
  return 0;
}
