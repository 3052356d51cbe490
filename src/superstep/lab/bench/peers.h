// Other engines on the same model file: a Python process each, spoken to by the line protocol of bench/peers,
// whose scripts this program carries with it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace superstep::lab {

struct PeerSettings {
  std::string python;  // the interpreter, sought in PATH
  std::string engine;  // of peer_engines()
  std::filesystem::path file;
  std::vector<std::string> shapes;  // NAME=EXTENTS, of what the file leaves open
  std::string precision = "f32";
  std::int64_t batch = 1;
  int threads = 1;
};

const std::vector<std::string>& peer_engines();  // "onnxruntime", "openvino"

class Peer {
 public:
  // Starts it and waits until it has opened the file, or has said why it cannot: then it is not ready.
  // Throws Error (interrupted) when the user wants to stop, Error (io) when the system gives no folder.
  explicit Peer(const PeerSettings& settings);
  // The same of another script of bench/peers that this program carries.
  Peer(const std::string& python, std::string name, const std::string& script,
       const std::vector<std::string>& arguments);
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  bool is_ready() const { return !name_.empty(); }
  const std::string& name() const { return name_; }        // "ONNX Runtime 1.32.0"
  const std::string& why_not() const { return why_not_; }  // "absent: No module named 'openvino'"

  // So many calls in a row; the seconds that they took, by its own clock. Throws Error (io) when it fails.
  double run(std::int64_t calls);

 private:
  // Made whole first, so that what the rest of its making leaves behind is cleared away, however that ends.
  explicit Peer(std::string engine) : engine_(std::move(engine)) {}
  bool start(const std::vector<std::string>& command);
  std::string ask(const std::string& line);  // its answer, without the end of the line
  std::string read_line();

  std::filesystem::path folder_;  // of its scripts, its own
  std::string engine_, name_, why_not_;
  int to_ = -1;       // and from it
  std::string read_;  // what it said behind the last line
  pid_t process_ = -1;
};

}  // namespace superstep::lab
