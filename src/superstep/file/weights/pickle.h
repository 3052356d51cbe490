// What PyTorch pickles in a file of weights, and nothing else: no function of Python is ever called.
//
// The instructions that state dictionaries are made of, with the few names that rebuild a tensor; any other
// name in the file is refused and told.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace superstep::data {

struct PickledValue;
using Pickled = const PickledValue*;

struct PickledValue {
  struct Nothing {};
  struct Name {
    std::string module, name;
  };
  // What the file keeps elsewhere: the tuple that says which.
  struct Stored {
    Pickled id;
  };
  // A call that was asked for, not made: a function of the allowed names and its arguments.
  struct Call {
    Name function;
    Pickled arguments;
  };
  struct List {
    std::vector<Pickled> items;  // of a tuple, too
  };
  struct Dictionary {
    std::vector<std::pair<Pickled, Pickled>> entries;
  };
  std::variant<Nothing, bool, std::int64_t, double, std::string, Name, Stored, Call, List, Dictionary> value;
};

// All values of a file, which may refer to each other in any way, circles included.
struct PickledFile {
  std::vector<std::unique_ptr<PickledValue>> values;
  Pickled root = nullptr;
};

// Throws Error: bad_file (damaged), unsupported (another protocol, instruction or name, which it names).
PickledFile unpickle(std::span<const std::byte> bytes, const std::string& where);

}  // namespace superstep::data
