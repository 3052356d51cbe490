// Arrays of Python as tensors of the library, and the other way round: memory is shared wherever it can be.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>
#include <string>
#include <vector>

#include "superstep/superstep.h"

namespace superstep::python {

// An array that somebody gave: its memory stays where it is until this goes, with the interpreter's lock.
class Given {
 public:
  // Throws Error (invalid_argument) naming the port: no array, another type or shape, not in this machine's
  // memory. `port` must outlive it.
  Given(nanobind::handle array, const Port& port);
  ~Given();
  Given(Given&& other) noexcept;
  Given& operator=(Given&&) = delete;

  const Tensor& tensor() const { return tensor_; }
  bool copied() const { return copied_; }    // it was not row-major, or not aligned
  bool foreign() const { return foreign_; }  // it is no array of NumPy

 private:
  bool take_buffer(nanobind::handle array, const Port& port);
  void take_dlpack(nanobind::handle array, const Port& port);

  Py_buffer view_{};
  nanobind::ndarray<nanobind::ro> array_;
  Tensor tensor_;
  bool copied_ = false, foreign_ = false;
};

// Makes arrays of NumPy of one type and shape, and the tensor over the memory of each.
class Maker {
 public:
  explicit Maker(const Port& port);

  nanobind::object make() const { return empty_(shape_, type_); }
  // Over the caller's array, which must be row-major and writable: throws Error (invalid_argument).
  static Tensor over(nanobind::handle array, const Port& port);

 private:
  nanobind::object empty_, shape_, type_;
};

// A copy, as an array of NumPy; elements of bf16 are given as f32.
nanobind::object array_of(const Tensor& tensor, const std::string& name);

// (name, element type, shape)
nanobind::tuple described(const Port& port);
nanobind::list described(const std::vector<Port>& ports);

}  // namespace superstep::python
