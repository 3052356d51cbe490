// The line protocol of contenders (peers/README.md) for programs in C++: answers commands on standard input
// until it ends. The Python twin is peers/protocol.py.
#pragma once

#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace superstep::bench {

// An array that a contender takes from a file or leaves in one.
struct Port {
  std::string name;
  std::string description;  // "f32:1,1,11,11"
  void* data = nullptr;
  std::size_t bytes = 0;
};

struct Contender {
  nlohmann::json description;  // what follows "ready"; serve() adds the protocol's version
  std::function<void()> step;  // one step; throws std::exception when it fails
  std::vector<Port> inputs, outputs;
  std::function<void()> publish = {};  // brings `outputs` up to date before one is saved; none: they are
};

// Writes "ready", then times steps on command. Returns at "quit" and at the end of input.
void serve(Contender& contender, std::istream& in = std::cin, std::ostream& out = std::cout);

// What is resident now is what `memory` counts from.
void note_memory();

// Write "absent ..." or "error ...", in one line, and end the program with exit code 3 or 1.
[[noreturn]] void absent(const std::string& reason);
[[noreturn]] void fail(const std::string& reason);

}  // namespace superstep::bench
