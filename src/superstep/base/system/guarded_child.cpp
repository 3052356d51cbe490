#include "superstep/base/system/guarded_child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <mutex>
#include <utility>

#include "superstep/base/error.h"
#include "superstep/base/system/interrupt_check.h"

namespace superstep {
namespace {

constexpr int poll_milliseconds = 100;

bool send_all(int socket, const void* data, std::size_t size) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t sent = ::send(socket, at, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent;
    size -= static_cast<std::size_t>(sent);
  }
  return true;
}

bool receive_all(int socket, void* data, std::size_t size) {
  char* at = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t got = ::recv(socket, at, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

// What goes ahead of an answer's bytes; the file of its block goes with it.
struct Head {
  std::uint64_t bytes = 0, block = 0;
};

union Control {
  cmsghdr header;
  char space[CMSG_SPACE(sizeof(int))];
};

msghdr message_of(iovec& part, Control& control, bool has_file) {
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (has_file) {
    message.msg_control = control.space;
    message.msg_controllen = sizeof control.space;
  }
  return message;
}

bool send_head(int socket, Head head, int file) {
  iovec part{&head, sizeof head};
  Control control{};
  msghdr message = message_of(part, control, head.block > 0);
  if (head.block > 0) {
    control.header = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
    std::memcpy(CMSG_DATA(&control.header), &file, sizeof file);
  }
  ssize_t sent = -1;
  do sent = ::sendmsg(socket, &message, MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(sizeof head);
}

// `file` is -1 where none came.
bool receive_head(int socket, Head& head, int& file) {
  iovec part{&head, sizeof head};
  Control control{};
  msghdr message = message_of(part, control, true);
  ssize_t got = -1;
  do got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_WAITALL);
  while (got < 0 && errno == EINTR);
  if (const cmsghdr* header = got > 0 ? CMSG_FIRSTHDR(&message) : nullptr;
      header && header->cmsg_type == SCM_RIGHTS)
    std::memcpy(&file, CMSG_DATA(header), sizeof file);
  return got == static_cast<ssize_t>(sizeof head);
}

bool send_answer(int socket, const ChildAnswer& answer) {
  return send_head(socket, {answer.bytes.size(), answer.block.size()}, answer.block.file()) &&
         send_all(socket, answer.bytes.data(), answer.bytes.size());
}

constexpr std::uint64_t longest_answer = std::uint64_t{1} << 36;

std::optional<ChildAnswer> receive_answer(int socket) {
  Head head;
  int file = -1;
  ChildAnswer answer;
  const bool came = receive_head(socket, head, file);
  if (file >= 0) answer.block = SharedBlock(file, head.block);
  if (!came || answer.block.size() != head.block || head.bytes > longest_answer) return std::nullopt;
  answer.bytes.resize(head.bytes);
  if (!receive_all(socket, answer.bytes.data(), head.bytes)) return std::nullopt;
  return answer;
}

// False when the user wants to stop before it comes.
bool wait_for_answer(int socket) {
  InterruptCheck stop;
  for (pollfd waiting{socket, POLLIN, 0}; ::poll(&waiting, 1, poll_milliseconds) <= 0;)
    if (stop.is_due()) return false;
  return true;
}

// What the program has open besides is not the child's: a file that is written would stay locked for as long
// as the child lives.
void keep_only(int socket) {
  const auto own = static_cast<unsigned>(socket);
  if (own > STDERR_FILENO + 1) ::close_range(STDERR_FILENO + 1, own - 1, 0);
  ::close_range(own + 1, ~0U, 0);
}

// A crash is told by the parent, in its own words; the child leaves no core and no lines on the terminal.
void go_silent() {
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  rlimit file_size{};  // a limit on the size of files would count for shared memory too
  if (getrlimit(RLIMIT_FSIZE, &file_size) == 0) {
    file_size.rlim_cur = file_size.rlim_max;
    setrlimit(RLIMIT_FSIZE, &file_size);
  }
  const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nowhere, standard);
  for (const int of_terminal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP}) std::signal(of_terminal, SIG_IGN);
  std::signal(SIGXCPU, SIG_DFL);
}

[[noreturn]] void serve_requests(int socket, const GuardedChild::Serve& serve, std::uint64_t memory,
                                 double processor_seconds) {
  go_silent();
  limit_memory(memory);
  std::string request;
  for (std::uint64_t size = 0; receive_all(socket, &size, sizeof size);) {
    request.resize(size);
    if (!receive_all(socket, request.data(), size)) break;
    limit_processor_time(processor_seconds);
    if (!send_answer(socket, serve(request))) break;
  }
  ::_exit(0);
}

}  // namespace

SharedBlock::SharedBlock(std::size_t bytes) : size_(bytes) {
  if (bytes == 0) return;
  auto allowance = std::make_shared<Allowance>(bytes);
  const int file = ::memfd_create("superstep", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file >= 0) file_ = {new int(file), [](int* number) { ::close(*number), delete number; }};
  void* memory = MAP_FAILED;
  if (file >= 0 && ::ftruncate(file, static_cast<off_t>(bytes)) == 0 &&
      ::fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK) == 0)  // else the parent's reading could end it
    memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED)
    throw Error(ErrorCode::out_of_memory,
                fmt::format("cannot allocate {} bytes of shared memory: {}", bytes, std::strerror(errno)));
  memory_ = {static_cast<std::byte*>(memory),
             [bytes, allowance](std::byte* start) { ::munmap(start, bytes); }};
}

SharedBlock::SharedBlock(int file, std::size_t bytes) : size_(bytes) {
  file_ = {new int(file), [](int* number) { ::close(*number), delete number; }};
  struct stat status {};
  const bool whole = ::fstat(file, &status) == 0 && static_cast<std::size_t>(status.st_size) >= bytes &&
                     (::fcntl(file, F_GET_SEALS) & F_SEAL_SHRINK) != 0;
  if (!whole) throw Error(ErrorCode::bad_file, "a child process sent less memory than it said");
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  file_.reset();
  if (memory == MAP_FAILED)
    throw Error(ErrorCode::out_of_memory,
                fmt::format("cannot map {} bytes of shared memory: {}", bytes, std::strerror(errno)));
  ::madvise(memory, bytes, MADV_DONTFORK);  // children to come have no business with it
  memory_ = {static_cast<std::byte*>(memory), [bytes](std::byte* start) { ::munmap(start, bytes); }};
}

int SharedBlock::file() const { return file_ ? *file_ : -1; }

namespace {

// A child that another thread starts in between would keep the other side of the socket open.
std::mutex& starting() {
  static std::mutex mutex;
  return mutex;
}

}  // namespace

GuardedChild::GuardedChild(const Serve& serve, std::uint64_t memory, double processor_seconds) {
  const std::lock_guard one_at_a_time(starting());
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0) process_ = ::fork();
  if (process_ == 0) {
    keep_only(ends[1]);
    serve_requests(ends[1], serve, memory, processor_seconds);
  }
  const int reason = errno;
  if (ends[1] >= 0) ::close(ends[1]);
  socket_ = ends[0];
  if (process_ > 0) return;
  if (socket_ >= 0) ::close(socket_);
  throw Error(ErrorCode::io, fmt::format("cannot start a child process: {}", std::strerror(reason)), {},
              reason == EAGAIN ? "the limit on the number of processes is reached (ulimit -u)" : "");
}

GuardedChild::~GuardedChild() { kill(); }

void GuardedChild::kill() {
  if (process_ <= 0) return;
  ::close(std::exchange(socket_, -1));
  ::kill(process_, SIGKILL);
  while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
  process_ = -1;
}

std::string GuardedChild::end() {
  int status = 0;
  pid_t ended = 0;
  for (int patience = 0; process_ > 0 && patience < 5000 && ended == 0; ++patience) {
    ended = ::waitpid(process_, &status, WNOHANG);
    if (ended == 0) ::usleep(patience < 20 ? 50 : 1000);
  }
  if (ended <= 0) {
    kill();
    return "did not answer";
  }
  process_ = -1;
  ::close(std::exchange(socket_, -1));
  if (WIFEXITED(status)) return fmt::format("ended with status {}", WEXITSTATUS(status));
  if (WTERMSIG(status) == SIGXCPU) return "did not come to an end";
  return fmt::format("crashed ({})", ::strsignal(WTERMSIG(status)));
}

std::expected<ChildAnswer, std::string> GuardedChild::ask(std::string_view request) {
  const std::uint64_t size = request.size();
  if (process_ <= 0) return std::unexpected("has ended");
  if (!send_all(socket_, &size, sizeof size) || !send_all(socket_, request.data(), size))
    return std::unexpected(end());
  if (!wait_for_answer(socket_)) {
    kill();
    throw Error(ErrorCode::interrupted, "stopped while reading");
  }
  try {
    if (std::optional<ChildAnswer> answer = receive_answer(socket_)) return std::move(*answer);
  } catch (const std::exception&) {  // no memory for it, or what it says of itself is nonsense
    kill();
    throw;
  }
  return std::unexpected(end());
}

}  // namespace superstep
