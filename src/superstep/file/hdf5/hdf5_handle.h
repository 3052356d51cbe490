// Inside of the HDF5 layer: owned handles, error texts and element types.
#pragma once

#include <filesystem>
#include <mutex>
#include <string>
#include <utility>

#include "superstep/base/element_type.h"
#include "superstep/base/error.h"
#include "superstep/file/hdf5/hdf5_library.h"

namespace superstep::data::hdf5 {

// Owns an HDF5 identifier; negative means none.
class Handle {
 public:
  using Close = herr_t (*)(hid_t);
  Handle() = default;
  Handle(hid_t id, Close closing) : id_(id), close_(closing) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Handle& operator=(Handle&& other) noexcept {
    if (this != &other) {
      close();
      id_ = std::exchange(other.id_, -1);
      close_ = other.close_;
    }
    return *this;
  }
  ~Handle() { close(); }
  bool valid() const { return id_ >= 0; }
  hid_t get() const { return id_; }
  bool close() { return id_ < 0 || close_(std::exchange(id_, -1)) >= 0; }

 private:
  hid_t id_ = -1;
  Close close_ = nullptr;
};

// Taken by every entry into the library: one thread at a time, and the library does not print its errors
// (a setting that a thread-safe build keeps for each thread).
class Entry {
 public:
  Entry();

 private:
  std::lock_guard<std::recursive_mutex> lock_;
};

void silence_library();  // in this thread: it does not print its errors

// Why the last call failed, from the library's error stack: the operating system's reason where there is
// one, otherwise the description nearest to the cause.
std::string last_error_text();

// An io error with the reason of the last failed call; a full disk gets its hint.
Error io_error(const std::filesystem::path& path, std::string_view name, std::string_view action);

// The type of elements in memory, and in the files written here. A boolean is the enumeration of h5py.
Handle type_of(ElementType type);

// The element type that holds every value of a numeric file type; `complex` when it is a pair (r, i).
struct Kind {
  bool numeric = false, complex = false, string = false;
  ElementType type = ElementType::f64;
  std::string name;
};
Kind kind_of(hid_t type);

}  // namespace superstep::data::hdf5
