// A model behind a server on a port of its own, and what is asked of it.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "superstep/edge/http/server.h"
#include "superstep/edge/protocol/routes.h"
#include "tests/edge/client.h"
#include "tests/edge/models.h"

namespace superstep::edge {

struct Served {
  explicit Served(ServerSettings settings = {}, DoorSettings door_settings = {}, std::size_t memory = 1 << 28,
                  const ServiceSettings& service = small_service(), const std::string& what = "mlp")
      : budget(memory), door(std::move(door_settings)), routes(repository, budget, door, {}) {
    repository.add(std::make_unique<ModelService>("m", ModelSource{.what = what}, service));
    settings.port = 0;
    server.emplace(
        settings, budget, door,
        ServerHandlers{.handle = [this](HttpRequest request,
                                        Reply reply) { routes.handle(std::move(request), std::move(reply)); },
                       .lane = Routes::lane,
                       .admit = [this](HttpRequest& request) { return routes.admit(request); }});
    repository.open();
  }
  ~Served() {
    server->stop_accepting();
    repository.drain(Clock::now() + std::chrono::seconds(30));
    server->finish(Clock::now() + std::chrono::seconds(5));
  }
  std::uint16_t port() const { return server->port(); }
  Account account() const { return repository.find("m")->batcher().account(); }
  ServedPorts ports() const { return repository.find("m")->current()->ports(); }

  MemoryBudget budget;
  Door door;
  Repository repository;
  Routes routes;
  std::optional<Server> server;
};

inline std::string infer_body(const Served& served, std::int64_t rows,
                              const nlohmann::json& parameters = nlohmann::json::object()) {
  const ServedPort port = served.ports().inputs[0];
  std::vector<std::int64_t> shape = port.shape.extents();
  shape.insert(shape.begin(), rows);
  const std::vector<float> data(static_cast<std::size_t>(rows * port.shape.element_count()), 0.5F);
  return nlohmann::json{
      {"id", "7"},
      {"parameters", parameters},
      {"inputs", {{{"name", port.name}, {"datatype", "FP32"}, {"shape", shape}, {"data", data}}}}}
      .dump();
}

inline std::string ask_once(const Served& served, const std::string& request) {
  RawClient client(served.port());
  EXPECT_TRUE(client.send(request));
  return client.receive();
}

}  // namespace superstep::edge
