// A connection that sends what it is told and reads whole answers: for what no proper client would send.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

namespace superstep::edge {

class RawClient {
 public:
  // `own`: the last number of its address, 127.0.0.OWN; every one is another peer.
  explicit RawClient(std::uint16_t port, int own = 1) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    if (own != 1) {
      sockaddr_in from{};
      from.sin_family = AF_INET;
      from.sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1U + static_cast<unsigned>(own));
      EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&from), sizeof from), 0);
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  ~RawClient() { ::close(socket_); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  bool connected() const { return connected_; }

  bool send(const std::string& bytes) {
    std::size_t sent = 0;
    while (sent < bytes.size()) {
      const ssize_t n = ::send(socket_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (n <= 0) return false;
      sent += static_cast<std::size_t>(n);
    }
    return true;
  }

  // The next answer, head and body; what there is where the connection ends or nothing comes for so long.
  std::string receive(int milliseconds = 20'000) {
    for (;;) {
      const std::size_t head = buffer_.find("\r\n\r\n");
      if (head != std::string::npos) {
        const std::size_t at = buffer_.find("Content-Length: ");
        const std::size_t body = at < head ? std::strtoull(buffer_.c_str() + at + 16, nullptr, 10) : 0;
        const std::size_t all = head + 4 + body;
        if (buffer_.size() >= all) {
          std::string answer = buffer_.substr(0, all);
          buffer_.erase(0, all);
          return answer;
        }
      }
      if (!more(milliseconds)) return std::exchange(buffer_, {});
    }
  }
  // Whether the other side closes within the time.
  bool is_closed(int milliseconds) {
    while (more(milliseconds)) {
    }
    return closed_;
  }

 private:
  bool more(int milliseconds) {
    pollfd wanted{socket_, POLLIN, 0};
    if (::poll(&wanted, 1, milliseconds) <= 0) return false;
    char bytes[65536];
    const ssize_t n = ::recv(socket_, bytes, sizeof bytes, 0);
    if (n <= 0) {
      closed_ = true;
      return false;
    }
    buffer_.append(bytes, static_cast<std::size_t>(n));
    return true;
  }

  int socket_;
  bool connected_ = false, closed_ = false;
  std::string buffer_;
};

inline std::string get(const std::string& path) {
  return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
}
inline std::string post(const std::string& path, const std::string& body, const std::string& headers = "") {
  return "POST " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n" + headers + "\r\n" + body;
}
inline int status_of(const std::string& answer) {
  return answer.size() > 12 ? std::atoi(answer.c_str() + 9) : 0;
}
inline std::string body_of(const std::string& answer) {
  const std::size_t head = answer.find("\r\n\r\n");
  return head == std::string::npos ? "" : answer.substr(head + 4);
}

}  // namespace superstep::edge
