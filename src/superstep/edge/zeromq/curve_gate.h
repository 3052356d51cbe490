// Who may connect to a ZeroMQ socket: its library asks for every connection (ZAP, ZeroMQ's RFC 27), and tells
// of those that did not come about.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "superstep/edge/zeromq/curve.h"

namespace superstep::edge {

// A thread of its own, of a socket that is neither bound nor connected yet. Ends before its socket and
// context do.
class CurveGate {
 public:
  // Gives the socket its keys. `listens`: others connect to it, and those alone may whose keys are known.
  // `watches`: nobody else is told of the socket's connections. Throws Error: invalid_argument (the other
  // side's keys were not given), io.
  CurveGate(void* context, void* socket, CurvePointer curve, bool listens, std::string where, bool watches);
  ~CurveGate();
  CurveGate(const CurveGate&) = delete;
  CurveGate& operator=(const CurveGate&) = delete;

  // Connections that did not come about: of keys that are not known, without keys, that were given up.
  std::uint64_t refused() const { return refused_; }

  // True once after a connection of ours failed, which the library may have given up for good: it does where
  // the other side does not speak as this one does, or does not know its key. Whoever is there next may.
  bool take_given_up() { return given_up_.exchange(false); }

 private:
  void set_keys(void* socket) const;
  void open(void* context, void* socket, bool watches);
  void close();
  void run();
  void judge();
  void note_failure();
  void say(const std::string& what);

  const CurvePointer curve_;
  const bool listens_;
  const std::string where_;
  void* questions_ = nullptr;  // of the library: may this one come in?
  void* events_ = nullptr;
  std::atomic<std::uint64_t> refused_ = 0;
  std::atomic<bool> over_ = false, given_up_ = false;
  int said_ = 0;
  std::thread thread_;
};

}  // namespace superstep::edge
