// A view of characters that somebody else owns: how names are handed to the library.
#ifndef poplar_StringRef_hpp
#define poplar_StringRef_hpp

#include <cstddef>
#include <cstring>
#include <ostream>
#include <string>

namespace poplar {

class StringRef {
 public:
  using const_iterator = const char*;

  StringRef() : data_(""), size_(0) {}
  StringRef(const char* text) : data_(text), size_(std::strlen(text)) {}
  StringRef(const std::string& text) : data_(text.data()), size_(text.size()) {}
  StringRef(const char* text, std::size_t count) : data_(text), size_(count) {}

  const char* data() const { return data_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const char* begin() const { return data_; }
  const char* end() const { return data_ + size_; }
  char operator[](std::size_t i) const { return data_[i]; }
  std::string cloneAsString() const { return std::string(data_, size_); }
  operator std::string() const { return cloneAsString(); }

  friend bool operator==(StringRef a, StringRef b) {
    return a.size_ == b.size_ && std::memcmp(a.data_, b.data_, a.size_) == 0;
  }
  friend bool operator!=(StringRef a, StringRef b) { return !(a == b); }
  friend bool operator<(StringRef a, StringRef b) {
    const std::size_t common = a.size_ < b.size_ ? a.size_ : b.size_;
    const int order = std::memcmp(a.data_, b.data_, common);
    return order != 0 ? order < 0 : a.size_ < b.size_;
  }
  friend std::string operator+(StringRef a, StringRef b) {
    return a.cloneAsString().append(b.data_, b.size_);
  }
  friend std::ostream& operator<<(std::ostream& out, StringRef text) {
    return out.write(text.data_, static_cast<std::streamsize>(text.size_));
  }

 private:
  const char* data_;
  std::size_t size_;
};

}  // namespace poplar

#endif
