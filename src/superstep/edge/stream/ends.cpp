#include "superstep/edge/stream/ends.h"

#include <utility>

#include "superstep/base/error.h"
#include "superstep/edge/kafka/kafka.h"
#include "superstep/edge/stream/acknowledged.h"

namespace superstep::edge {
namespace {

class PullInlet : public Inlet {
 public:
  PullInlet(const std::string& address, const Socket::Settings& settings)
      : socket_(SocketKind::pull, address, settings) {}
  std::string endpoint() const override { return socket_.endpoint(); }
  std::uint64_t refused() const override { return socket_.refused(); }
  bool receive(MessageParts& parts, std::chrono::milliseconds wait) override {
    return socket_.receive(parts, wait);
  }

 private:
  Socket socket_;
};

class RouterInlet : public Inlet {
 public:
  RouterInlet(const std::string& address, const Socket::Settings& settings)
      : socket_(SocketKind::router, address, settings) {}
  std::string endpoint() const override { return socket_.endpoint(); }
  std::uint64_t refused() const override { return socket_.refused(); }
  bool receive(MessageParts& parts, std::chrono::milliseconds wait) override {
    if (!socket_.receive(parts, wait)) return false;
    if (!acknowledgements_.take(parts)) parts.clear();
    return true;
  }
  bool has_unkept() const override { return !acknowledgements_.empty(); }
  bool is_due() const override { return acknowledgements_.are_due(); }
  void acknowledge() override { acknowledgements_.send(socket_); }

 private:
  Socket socket_;
  Acknowledgements acknowledgements_;
};

class SocketOutlet : public Outlet {
 public:
  SocketOutlet(SocketKind kind, const std::string& address, const Socket::Settings& settings)
      : socket_(kind, address, settings) {}
  std::string endpoint() const override { return socket_.endpoint(); }
  std::uint64_t refused() const override { return socket_.refused(); }
  bool send(std::span<const std::string> parts, std::chrono::milliseconds wait) override {
    return socket_.send(parts, wait);
  }

 private:
  Socket socket_;
};

// Keys that would be ignored are refused.
bool is_kafka_in_the_clear(const std::string& address, const CurvePointer& curve) {
  if (!is_kafka(address)) return false;
  if (curve)
    throw Error(ErrorCode::invalid_argument, "keys of CURVE are of streams over ZeroMQ", address,
                "leave --curve-key out, or give a tcp:// address");
  return true;
}

}  // namespace

std::unique_ptr<Inlet> open_inlet(const std::string& address, bool waits, std::size_t most_bytes,
                                  CurvePointer curve) {
  if (is_kafka_in_the_clear(address, curve)) return open_kafka_inlet(kafka_address(address), most_bytes);
  const Socket::Settings settings{.most_bytes = static_cast<std::int64_t>(most_bytes),
                                  .curve = std::move(curve)};
  if (waits) return std::make_unique<RouterInlet>(address, settings);
  return std::make_unique<PullInlet>(address, settings);
}

std::unique_ptr<Outlet> open_publisher(const std::string& address, CurvePointer curve) {
  if (is_kafka_in_the_clear(address, curve)) return open_kafka_outlet(kafka_address(address), "");
  return std::make_unique<SocketOutlet>(
      SocketKind::publish, address,
      Socket::Settings{.high_water = 1000, .linger = std::chrono::seconds(1), .curve = std::move(curve)});
}

std::unique_ptr<Outlet> open_sender(const std::string& address, int high_water, const std::string& key,
                                    CurvePointer curve) {
  if (is_kafka_in_the_clear(address, curve)) return open_kafka_outlet(kafka_address(address), key);
  return std::make_unique<SocketOutlet>(
      SocketKind::push, address,
      Socket::Settings{
          .high_water = high_water, .linger = std::chrono::milliseconds(30'000), .curve = std::move(curve)});
}

}  // namespace superstep::edge
