#include "superstep/file/weights/pickle.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <optional>

#include "superstep/base/printable.h"
#include "superstep/file/weights/byte_cursor.h"

namespace superstep::data {
namespace {

using Value = PickledValue;
using MutableValue = Value*;

constexpr std::uint8_t newest_protocol = 5;

bool is_allowed(const Value::Name& name) {
  static constexpr const char* of_torch[] = {
      "DoubleStorage", "FloatStorage", "HalfStorage", "BFloat16Storage", "LongStorage", "IntStorage",
      "ShortStorage",  "CharStorage",  "ByteStorage", "BoolStorage",     "Size"};
  if (name.module == "torch")
    return std::ranges::any_of(of_torch, [&](const char* known) { return name.name == known; });
  if (name.module == "torch._utils")
    return name.name == "_rebuild_tensor_v2" || name.name == "_rebuild_parameter";
  return name.module == "collections" && name.name == "OrderedDict";
}

// The machine of the format: a stack, marks in it, and a memory of what was made before.
class Machine {
 public:
  Machine(std::span<const std::byte> bytes, const std::string& where) : cursor_(bytes, where) {
    cursor_.enter("its pickled objects");
  }

  PickledFile run() {
    while (true) {
      const auto instruction = cursor_.number<std::uint8_t>();
      if (instruction == '.') {
        file_.root = pop();
        return std::move(file_);
      }
      if (!constant(instruction) && !number(instruction) && !text(instruction) && !memory(instruction) &&
          !container(instruction) && !call(instruction))
        throw Error(ErrorCode::unsupported,
                    fmt::format("the pickle's instruction {:#04x} is not read", instruction), cursor_.where(),
                    "weights are read from what torch.save writes of a state dictionary");
    }
  }

 private:
  MutableValue made(auto value) {
    file_.values.push_back(std::make_unique<Value>(Value{std::move(value)}));
    return file_.values.back().get();
  }
  void push(MutableValue value) { stack_.push_back(value); }
  MutableValue pop() {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back()))
      cursor_.refuse("its pickled objects are damaged");
    const MutableValue last = stack_.back();
    stack_.pop_back();
    return last;
  }
  MutableValue top() {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back()))
      cursor_.refuse("its pickled objects are damaged");
    return stack_.back();
  }
  Value::List pop_to_mark() {
    if (marks_.empty()) cursor_.refuse("its pickled objects are damaged: a mark is missing");
    Value::List list;
    for (std::size_t i = marks_.back(); i < stack_.size(); ++i) list.items.push_back(stack_[i]);
    stack_.resize(marks_.back());
    marks_.pop_back();
    return list;
  }

  bool constant(std::uint8_t instruction) {
    switch (instruction) {
      case 0x80:
        if (const auto protocol = cursor_.number<std::uint8_t>(); protocol < 2 || protocol > newest_protocol)
          throw Error(ErrorCode::unsupported, fmt::format("protocol {} of pickle is not read", protocol),
                      cursor_.where());
        return true;
      case 0x95: cursor_.take(8); return true;  // a frame's length
      case 'N': push(made(Value::Nothing{})); return true;
      case 0x88: push(made(true)); return true;
      case 0x89: push(made(false)); return true;
      default: return false;
    }
  }

  bool number(std::uint8_t instruction) {
    switch (instruction) {
      case 'J': push(made(std::int64_t{cursor_.number<std::int32_t>()})); return true;
      case 'K': push(made(std::int64_t{cursor_.number<std::uint8_t>()})); return true;
      case 'M': push(made(std::int64_t{cursor_.number<std::uint16_t>()})); return true;
      case 0x8a: push(made(long_integer())); return true;
      case 'G': {
        const std::uint64_t bits = std::byteswap(cursor_.number<std::uint64_t>());
        push(made(std::bit_cast<double>(bits)));
        return true;
      }
      default: return false;
    }
  }

  // So many bytes of a number in two's complement.
  std::int64_t long_integer() {
    const auto count = cursor_.number<std::uint8_t>();
    const std::span<const std::byte> bytes = cursor_.take(count);
    if (count > 8) cursor_.refuse("its pickled objects have a number of more than 64 bits");
    std::uint64_t value = 0;
    for (std::size_t i = bytes.size(); i-- > 0;)
      value = value << 8 | std::to_integer<std::uint64_t>(bytes[i]);
    if (count > 0 && count < 8 && (std::to_integer<int>(bytes.back()) & 0x80))
      value -= std::uint64_t{1} << 8 * count;
    return static_cast<std::int64_t>(value);
  }

  bool text(std::uint8_t instruction) {
    switch (instruction) {
      case 'X': push(made(cursor_.text(cursor_.number<std::uint32_t>()))); return true;
      case 0x8c: push(made(cursor_.text(cursor_.number<std::uint8_t>()))); return true;
      case 0x8d: push(made(cursor_.text(cursor_.number<std::uint64_t>()))); return true;
      case 'U': push(made(cursor_.text(cursor_.number<std::uint8_t>()))); return true;
      default: return false;
    }
  }

  bool memory(std::uint8_t instruction) {
    switch (instruction) {
      case 'q': memory_[cursor_.number<std::uint8_t>()] = top(); return true;
      case 'r': memory_[cursor_.number<std::uint32_t>()] = top(); return true;
      case 0x94: {
        const auto next = static_cast<std::uint32_t>(memory_.size());
        memory_[next] = top();
        return true;
      }
      case 'h': push(remembered(cursor_.number<std::uint8_t>())); return true;
      case 'j': push(remembered(cursor_.number<std::uint32_t>())); return true;
      case '0': pop(); return true;
      default: return false;
    }
  }

  MutableValue remembered(std::uint32_t number) {
    const auto found = memory_.find(number);
    if (found == memory_.end()) cursor_.refuse("its pickled objects refer to one that is not there");
    return found->second;
  }

  bool container(std::uint8_t instruction) {
    switch (instruction) {
      case '(': marks_.push_back(stack_.size()); return true;
      case 't': push(made(pop_to_mark())); return true;
      case ')': push(made(Value::List{})); return true;
      case 0x85:
      case 0x86:
      case 0x87: {
        Value::List tuple;
        for (int i = 0; i < instruction - 0x84; ++i) tuple.items.insert(tuple.items.begin(), pop());
        push(made(std::move(tuple)));
        return true;
      }
      case ']': push(made(Value::List{})); return true;
      case '}': push(made(Value::Dictionary{})); return true;
      case 'a': append(Value::List{{pop()}}); return true;
      case 'e': append(pop_to_mark()); return true;
      case 's': {
        const MutableValue value = pop(), key = pop();
        set_items(Value::List{{key, value}});
        return true;
      }
      case 'u': set_items(pop_to_mark()); return true;
      default: return false;
    }
  }

  void append(const Value::List& items) {
    auto* list = std::get_if<Value::List>(&top()->value);
    if (!list) cursor_.refuse("its pickled objects are damaged: something is appended to no list");
    list->items.insert(list->items.end(), items.items.begin(), items.items.end());
  }

  void set_items(const Value::List& items) {
    auto* dictionary = std::get_if<Value::Dictionary>(&top()->value);
    if (!dictionary || items.items.size() % 2 != 0)
      cursor_.refuse("its pickled objects are damaged: something is set in no dictionary");
    for (std::size_t i = 0; i < items.items.size(); i += 2)
      dictionary->entries.emplace_back(items.items[i], items.items[i + 1]);
  }

  bool call(std::uint8_t instruction) {
    switch (instruction) {
      case 'c': {
        std::string module = line();
        push_name({std::move(module), line()});
        return true;
      }
      case 0x93: {
        const MutableValue name = pop(), module = pop();
        const auto *a = std::get_if<std::string>(&module->value), *b = std::get_if<std::string>(&name->value);
        if (!a || !b) cursor_.refuse("its pickled objects are damaged: a name is no text");
        push_name({*a, *b});
        return true;
      }
      case 'Q': push(made(Value::Stored{pop()})); return true;
      case 'R': reduce(); return true;
      case 'b': pop(); return true;  // attributes of an object, such as a dictionary's versions
      default: return false;
    }
  }

  std::string line() {
    std::string text;
    for (char c = cursor_.number<char>(); c != '\n'; c = cursor_.number<char>()) text += c;
    return text;
  }

  void push_name(Value::Name name) {
    if (!is_allowed(name))
      throw Error(ErrorCode::unsupported,
                  fmt::format("the file wants Python's {}.{}, which is not among what weights are made of",
                              printable(name.module), printable(name.name)),
                  cursor_.where(), "save the state dictionary alone: torch.save(model.state_dict(), FILE)");
    push(made(std::move(name)));
  }

  void reduce() {
    const MutableValue arguments = pop(), function = pop();
    const auto* name = std::get_if<Value::Name>(&function->value);
    if (!name) cursor_.refuse("its pickled objects are damaged: something is called that is no function");
    if (name->name == "OrderedDict") return push(made(Value::Dictionary{}));
    push(made(Value::Call{*name, arguments}));
  }

  ByteCursor cursor_;
  PickledFile file_;
  std::vector<MutableValue> stack_;
  std::vector<std::size_t> marks_;
  std::map<std::uint32_t, MutableValue> memory_;
};

}  // namespace

PickledFile unpickle(std::span<const std::byte> bytes, const std::string& where) {
  return Machine(bytes, where).run();
}

}  // namespace superstep::data
