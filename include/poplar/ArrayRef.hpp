// A view of consecutive elements that somebody else owns: how lists are handed to the library.
#ifndef poplar_ArrayRef_hpp
#define poplar_ArrayRef_hpp

#include <array>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <vector>

namespace poplar {

// Valid as long as what it was made from: as a parameter, for the duration of the call.
template <class T>
class ArrayRef {
 public:
  using value_type = T;
  using const_reference = const T&;
  using const_iterator = const T*;
  using iterator = const_iterator;
  using size_type = std::size_t;

  ArrayRef() : data_(nullptr), size_(0) {}
  ArrayRef(std::initializer_list<T> list) : data_(first(list)), size_(list.size()) {}
  template <class Allocator>
  ArrayRef(const std::vector<T, Allocator>& list) : data_(list.data()), size_(list.size()) {}
  template <std::size_t N>
  ArrayRef(const std::array<T, N>& list) : data_(list.data()), size_(N) {}
  ArrayRef(const T* begin, std::size_t count) : data_(begin), size_(count) {}
  ArrayRef(const T* begin, const T* end) : data_(begin), size_(static_cast<std::size_t>(end - begin)) {}
  ArrayRef(const T& one) : data_(&one), size_(1) {}

  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  const T* cbegin() const { return begin(); }
  const T* cend() const { return end(); }
  std::reverse_iterator<const T*> rbegin() const { return std::reverse_iterator<const T*>(end()); }
  std::reverse_iterator<const T*> rend() const { return std::reverse_iterator<const T*>(begin()); }
  const T& operator[](std::size_t i) const { return data_[i]; }
  const T& front() const { return data_[0]; }
  const T& back() const { return data_[size_ - 1]; }
  ArrayRef slice(std::size_t offset, std::size_t count) const { return ArrayRef(data_ + offset, count); }
  ArrayRef slice(std::size_t offset) const { return ArrayRef(data_ + offset, size_ - offset); }
  std::vector<T> cloneAsVector() const { return std::vector<T>(begin(), end()); }

  friend bool operator==(const ArrayRef& a, const ArrayRef& b) {
    if (a.size_ != b.size_) return false;
    for (std::size_t i = 0; i < a.size_; ++i)
      if (!(a.data_[i] == b.data_[i])) return false;
    return true;
  }
  friend bool operator!=(const ArrayRef& a, const ArrayRef& b) { return !(a == b); }

 private:
  // A call: the compiler warns of lists that are kept, and this one is kept no longer than the call lasts.
  static const T* first(const std::initializer_list<T>& list) { return list.begin(); }

  const T* data_;
  std::size_t size_;
};

}  // namespace poplar

#endif
