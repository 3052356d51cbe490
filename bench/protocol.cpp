#include "protocol.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace superstep::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Words = std::vector<std::string>;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

void say(std::ostream& out, std::string line) {
  std::ranges::replace(line, '\n', ' ');
  out << line << '\n' << std::flush;
}

Words words_of(const std::string& line) {
  std::istringstream stream(line);
  Words words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

long positive(const std::string& text) {
  std::size_t used = 0;
  long number = 0;
  try {
    number = std::stol(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used != text.size() || number < 1) throw std::runtime_error("'" + text + "' is not a number of steps");
  return number;
}

double seconds_in(const std::string& text) {
  std::istringstream stream(text);
  double seconds = -1;
  if (!(stream >> seconds) || seconds < 0 || !stream.eof())
    throw std::runtime_error("'" + text + "' is not a time in seconds");
  return seconds;
}

std::string run(Contender& contender, long samples, long steps) {
  std::string times = "times";
  for (long i = 0; i < samples; ++i) {
    const auto begin = Clock::now();
    for (long k = 0; k < steps; ++k) contender.step();
    times += fmt::format(" {:.9g}", seconds_since(begin) / static_cast<double>(steps));
  }
  return times;
}

std::string warm(Contender& contender, double seconds) {
  const auto begin = Clock::now();
  long steps = 0;
  for (; steps < 3 || seconds_since(begin) < seconds; ++steps) contender.step();
  return fmt::format("done {}", steps);
}

std::int64_t resident_before = 0;

// Bytes of this process, by the name of a line of its status: VmRSS, VmHWM; 0 where the system does not say.
std::int64_t resident(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (const Words words = words_of(line); words.size() > 1 && words[0] == name + ":")
      return 1024 * std::stoll(words[1]);
  return 0;
}

std::string list(const char* kind, const std::vector<Port>& ports) {
  std::string line = kind;
  for (const Port& port : ports) line += " " + port.name + ":" + port.description;
  return line;
}

const Port& find(const std::vector<Port>& ports, const std::string& name) {
  const auto found = std::ranges::find(ports, name, &Port::name);
  if (found == ports.end()) throw std::runtime_error("no array '" + name + "' among" + list("", ports));
  return *found;
}

std::string load(const Port& port, const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) throw std::runtime_error("cannot open " + path);
  if (const auto size = static_cast<std::size_t>(file.tellg()); size != port.bytes)
    throw std::runtime_error(
        fmt::format("{} has {} bytes; {}:{} needs {}", path, size, port.name, port.description, port.bytes));
  file.seekg(0);
  file.read(static_cast<char*>(port.data), static_cast<std::streamsize>(port.bytes));
  if (!file) throw std::runtime_error("cannot read " + path);
  return fmt::format("done {}", port.bytes);
}

std::string save(const Port& port, const std::string& path) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(static_cast<const char*>(port.data), static_cast<std::streamsize>(port.bytes));
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path);
  return fmt::format("done {}", port.bytes);
}

std::string answer(Contender& contender, const Words& words) {
  const std::string command = words.empty() ? "" : words[0];
  const std::size_t count = words.size();
  if (command == "run" && (count == 2 || count == 3))
    return run(contender, positive(words[1]), count == 3 ? positive(words[2]) : 1);
  if (command == "warm" && count == 2) return warm(contender, seconds_in(words[1]));
  if (command == "memory" && count == 1) return fmt::format("bytes {}", resident("VmHWM") - resident_before);
  if (command == "inputs" && count == 1) return list("inputs", contender.inputs);
  if (command == "outputs" && count == 1) return list("outputs", contender.outputs);
  if (command == "load" && count == 3) return load(find(contender.inputs, words[1]), words[2]);
  if (command == "save" && count == 3) {
    if (contender.publish) contender.publish();
    return save(find(contender.outputs, words[1]), words[2]);
  }
  return fmt::format("error not a command: '{}'", fmt::join(words, " "));
}

}  // namespace

void serve(Contender& contender, std::istream& in, std::ostream& out) {
  contender.description["protocol"] = 1;
  say(out, "ready " + contender.description.dump());
  for (std::string line; std::getline(in, line);) {
    const Words words = words_of(line);
    if (words == Words{"quit"}) break;
    try {
      say(out, answer(contender, words));
    } catch (const std::exception& error) {
      say(out, std::string("error ") + error.what());
    }
  }
  say(out, "bye");
}

void note_memory() { resident_before = resident("VmRSS"); }

void absent(const std::string& reason) {
  say(std::cout, "absent " + reason);
  std::exit(3);
}

void fail(const std::string& reason) {
  say(std::cout, "error " + reason);
  std::exit(1);
}

}  // namespace superstep::bench
