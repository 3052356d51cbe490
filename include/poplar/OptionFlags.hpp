// Named options, all of them text.
#ifndef poplar_OptionFlags_hpp
#define poplar_OptionFlags_hpp

#include <cstddef>
#include <initializer_list>
#include <istream>
#include <map>
#include <ostream>
#include <poplar/ProfileValue.hpp>
#include <poplar/StringRef.hpp>
#include <string>
#include <utility>

#pragma GCC visibility push(default)

namespace poplar {

class OptionFlags {
 public:
  using OptionFlag = std::pair<const std::string, std::string>;
  using initializer_list = std::initializer_list<OptionFlag>;
  using iterator = std::map<std::string, std::string>::const_iterator;

  OptionFlags() = default;
  OptionFlags(initializer_list flags) : flags_() { set(flags); }

  void set(StringRef option, StringRef value) { flags_[option] = value.cloneAsString(); }
  void set(initializer_list flags) {
    for (const OptionFlag& flag : flags) flags_[flag.first] = flag.second;
  }
  const std::string& at(StringRef option) const;  // throws invalid_option when it is not set
  iterator find(StringRef option) const { return flags_.find(option); }
  std::size_t size() const { return flags_.size(); }
  bool empty() const { return flags_.empty(); }
  void clear() { flags_.clear(); }
  iterator begin() const { return flags_.begin(); }  // in the order of their names
  iterator end() const { return flags_.end(); }

  friend bool operator==(const OptionFlags& a, const OptionFlags& b) { return a.flags_ == b.flags_; }
  friend bool operator!=(const OptionFlags& a, const OptionFlags& b) { return !(a == b); }

 private:
  std::map<std::string, std::string> flags_;
};

// As a JSON object: what readJSON reads.
std::ostream& operator<<(std::ostream& out, const OptionFlags& flags);

ProfileValue getAsProfileValue(const OptionFlags& flags);

// Options out of a JSON object of text, numbers and truth values: those that are there take the place of what
// is set. Throws parse_error where the text is no such object. FromEnv: of an environment variable, where it
// is set.
void readJSON(StringRef text, OptionFlags& flags);
void readJSON(std::istream& in, OptionFlags& flags);
void readJSONFromEnv(StringRef variable, OptionFlags& flags);

}  // namespace poplar

#pragma GCC visibility pop

#endif
