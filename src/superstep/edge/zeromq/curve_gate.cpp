#include "superstep/edge/zeromq/curve_gate.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>
#include <vector>

#include "superstep/base/error.h"
#include "superstep/base/printable.h"
#include "superstep/base/threads/own_threads.h"
#include "superstep/edge/zeromq/zeromq.h"

namespace superstep::edge {
namespace {

constexpr int look_up_ms = 50;
constexpr int most_said = 8;  // of refusals: the first ones; all are counted (chosen)
constexpr const char* zap_place = "inproc://zeromq.zap.01";  // where the library asks (RFC 27)
constexpr const char* events_place = "inproc://handshakes";

std::vector<std::string> receive_all(void* socket) {
  std::vector<std::string> parts;
  for (;;) {
    Part part;
    if (zmq_msg_recv(part.get(), socket, ZMQ_DONTWAIT) < 0) return {};
    const auto bytes = part.bytes();
    parts.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (!zmq_msg_more(part.get())) return parts;
  }
}

void answer(void* socket, const std::string& request, bool yes, const std::string& name) {
  const std::string parts[] = {"1.0", request, yes ? "200" : "400", yes ? "" : "unknown key", name, ""};
  for (std::size_t i = 0; i < std::size(parts); ++i)
    zmq_send(socket, parts[i].data(), parts[i].size(), i + 1 < std::size(parts) ? ZMQ_SNDMORE : 0);
}

}  // namespace

CurveGate::CurveGate(void* context, void* socket, CurvePointer curve, bool listens, std::string where,
                     bool watches)
    : curve_(std::move(curve)), listens_(listens), where_(std::move(where)) {
  if (listens_ && !curve_->clients())
    throw Error(ErrorCode::invalid_argument, "others connect to it: whose keys may come in?", where_,
                "--curve-clients FILE has their public keys");
  if (!listens_ && curve_->server_key.empty())
    throw Error(ErrorCode::invalid_argument, "it is connected to: what is the key there?", where_,
                "--curve-server FILE has the public key of the end that listens");
  set_keys(socket);
  try {
    open(context, socket, watches);
    if (questions_ || events_) thread_ = start_thread([this] { run(); });
  } catch (...) {
    close();
    throw;
  }
}

CurveGate::~CurveGate() {
  over_ = true;
  if (thread_.joinable()) thread_.join();
  close();
}

void CurveGate::set_keys(void* socket) const {
  const auto set = [&](int option, const void* value, std::size_t size) {
    if (zmq_setsockopt(socket, option, value, size) != 0)
      throw Error(ErrorCode::io, fmt::format("its keys are not taken: {}", zmq_strerror(zmq_errno())),
                  where_);
  };
  const int yes = 1;
  if (listens_) {
    set(ZMQ_CURVE_SERVER, &yes, sizeof yes);
    set(ZMQ_ZAP_DOMAIN, "superstep", std::strlen("superstep"));
  } else {
    constexpr int slowest_ms = 2000;  // between tries: who is refused asks less and less often
    set(ZMQ_RECONNECT_IVL_MAX, &slowest_ms, sizeof slowest_ms);
    set(ZMQ_CURVE_PUBLICKEY, curve_->public_key.data(), curve_key_bytes);
    set(ZMQ_CURVE_SERVERKEY, curve_->server_key.data(), curve_key_bytes);
  }
  set(ZMQ_CURVE_SECRETKEY, curve_->secret_key.data(), curve_key_bytes);
}

void CurveGate::open(void* context, void* socket, bool watches) {
  const auto require = [&](bool done) {
    if (!done)
      throw Error(ErrorCode::io, fmt::format("cannot be guarded: {}", zmq_strerror(zmq_errno())), where_);
  };
  if (listens_) {
    questions_ = zmq_socket(context, ZMQ_REP);
    require(questions_ && zmq_bind(questions_, zap_place) == 0);
  }
  if (!watches) return;
  constexpr int failures = ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |
                           ZMQ_EVENT_HANDSHAKE_FAILED_AUTH;
  require(zmq_socket_monitor(socket, events_place, failures) == 0);
  events_ = zmq_socket(context, ZMQ_PAIR);
  const int no_limit = 0;  // every failure is counted
  require(events_ && zmq_setsockopt(events_, ZMQ_RCVHWM, &no_limit, sizeof no_limit) == 0 &&
          zmq_connect(events_, events_place) == 0);
}

void CurveGate::close() {
  for (void** socket : {&questions_, &events_})
    if (*socket) zmq_close(std::exchange(*socket, nullptr));
}

void CurveGate::run() {
  while (!over_) {
    std::vector<zmq_pollitem_t> items;
    for (void* socket : {questions_, events_})
      if (socket) items.push_back({.socket = socket, .fd = 0, .events = ZMQ_POLLIN, .revents = 0});
    if (zmq_poll(items.data(), static_cast<int>(items.size()), look_up_ms) <= 0) continue;
    for (const zmq_pollitem_t& item : items) {
      if (!item.revents) continue;
      if (item.socket == questions_)
        judge();
      else
        note_failure();
    }
  }
}

// A question: version, its number, domain, address, identity, mechanism, key.
void CurveGate::judge() {
  const std::vector<std::string> question = receive_all(questions_);
  if (question.size() < 2) return;
  const bool is_curve =
      question.size() == 7 && question[5] == "CURVE" && question[6].size() == curve_key_bytes;
  const std::shared_ptr<const CurveClients> clients = curve_->clients();
  const auto found = is_curve ? clients->find(question[6]) : clients->end();
  const bool known = found != clients->end();
  answer(questions_, question[1], known, known ? found->second : "");
  if (!known && is_curve)
    say(fmt::format("{} was refused: the key {} is not among those of --curve-clients",
                    printable(question[3]), z85_of(question[6])));
}

void CurveGate::note_failure() {
  const std::vector<std::string> event = receive_all(events_);
  if (event.size() < 2 || event[0].size() < 6) return;
  ++refused_;
  std::uint16_t kind = 0;
  std::memcpy(&kind, event[0].data(), sizeof kind);
  if (!listens_) {
    given_up_ = true;
    say("no connection: is --curve-server the key there, and are our own among those that may come in?");
  } else if (kind != ZMQ_EVENT_HANDSHAKE_FAILED_AUTH) {  // of those it was said whose key it is
    say("a connection was refused: it has no key, or takes another for ours");
  }
}

void CurveGate::say(const std::string& what) {
  if (said_ >= most_said || !curve_->on_refusal) return;
  curve_->on_refusal(fmt::format("{}: {}{}", where_, what,
                                 ++said_ == most_said ? "; more are counted, and no longer said" : ""));
}

}  // namespace superstep::edge
