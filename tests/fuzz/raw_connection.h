// Bytes to a port of this machine, as they are, and what comes back until it is closed.
#pragma once

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

// Ends the program where the other side neither answers nor closes: somebody waits for ever.
inline std::string exchange(std::uint16_t port, const unsigned char* data, std::size_t size) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  constexpr timeval patience{.tv_sec = 30, .tv_usec = 0};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string said;
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
    std::perror("cannot connect");
    std::abort();
  }
  for (std::size_t sent = 0; sent < size;) {
    const auto went = ::send(socket, data + sent, size - sent, MSG_NOSIGNAL);
    if (went <= 0) break;
    sent += static_cast<std::size_t>(went);
  }
  ::shutdown(socket, SHUT_WR);
  char buffer[1 << 14];
  for (;;) {
    const auto got = ::recv(socket, buffer, sizeof buffer, 0);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      std::fputs("neither an answer nor an end within 30 s\n", stderr);
      std::abort();
    }
    if (got <= 0) break;
    said.append(buffer, static_cast<std::size_t>(got));
  }
  ::close(socket);
  return said;
}
