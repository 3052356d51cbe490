// What of ZeroMQ's library is called: it is opened when the first stream is.
#pragma once

#include <zmq.h>

#include <cstddef>
#include <span>

#include "superstep/base/system/late_library.h"

namespace superstep::edge {

inline constinit const LateLibrary zeromq("ZeroMQ", SUPERSTEP_LATE_ZEROMQ);
SUPERSTEP_LATE(zeromq, zmq_bind);
SUPERSTEP_LATE(zeromq, zmq_close);
SUPERSTEP_LATE(zeromq, zmq_connect);
SUPERSTEP_LATE(zeromq, zmq_ctx_new);
SUPERSTEP_LATE(zeromq, zmq_ctx_term);
SUPERSTEP_LATE(zeromq, zmq_disconnect);
SUPERSTEP_LATE(zeromq, zmq_errno);
SUPERSTEP_LATE(zeromq, zmq_getsockopt);
SUPERSTEP_LATE(zeromq, zmq_has);
SUPERSTEP_LATE(zeromq, zmq_msg_close);
SUPERSTEP_LATE(zeromq, zmq_msg_data);
SUPERSTEP_LATE(zeromq, zmq_msg_init);
SUPERSTEP_LATE(zeromq, zmq_msg_more);
SUPERSTEP_LATE(zeromq, zmq_msg_recv);
SUPERSTEP_LATE(zeromq, zmq_msg_size);
SUPERSTEP_LATE(zeromq, zmq_poll);
SUPERSTEP_LATE(zeromq, zmq_send);
SUPERSTEP_LATE(zeromq, zmq_setsockopt);
SUPERSTEP_LATE(zeromq, zmq_socket);
SUPERSTEP_LATE(zeromq, zmq_socket_monitor);
SUPERSTEP_LATE(zeromq, zmq_strerror);
SUPERSTEP_LATE(zeromq, zmq_z85_decode);
SUPERSTEP_LATE(zeromq, zmq_z85_encode);

// One part that came; given back to the library when it ends.
class Part {
 public:
  Part() { zmq_msg_init(&message_); }
  ~Part() { zmq_msg_close(&message_); }
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;
  zmq_msg_t* get() { return &message_; }
  std::span<const std::byte> bytes() {
    return {static_cast<const std::byte*>(zmq_msg_data(&message_)), zmq_msg_size(&message_)};
  }

 private:
  zmq_msg_t message_;
};

}  // namespace superstep::edge
