// The same primitive on the same data by somebody else's library, to be timed beside ours.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "superstep/lab/bench/primitive_run.h"

namespace superstep::bench {

class LibraryRun {
 public:
  virtual ~LibraryRun() = default;
  virtual void call() = 0;
  virtual const Tensor& output() const = 0;  // y, after a call
};

// A way of running a primitive; `make` throws Error (unsupported) where the library has none.
struct Library {
  std::string name;
  std::unique_ptr<LibraryRun> (*make)(const lab::PrimitiveRun& ours, int threads);
};

// All ways that this program was built with: BLAS for products in f32, oneDNN with the user's layouts or its
// own.
std::vector<Library> libraries();

std::vector<Library> blas_libraries();
std::vector<Library> onednn_libraries();

// What a pass of `primitive` makes, as a tensor of zeros.
Tensor make_output(const lab::PrimitiveRun& ours);

}  // namespace superstep::bench
