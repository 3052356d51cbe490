// The ways of stored_product.h. Internal to the kernels.
#pragma once

#include <algorithm>

#include "superstep/target/cpu/kernels/core/epilogue_run.h"
#include "superstep/target/cpu/kernels/product/batch_reduce.h"
#include "superstep/target/cpu/kernels/product/stored_product.h"

namespace superstep::kernels {

// A dimension cut into pieces, all but the last of one size.
struct Cut {
  std::int64_t total = 1, size = 1, count = 1;
  Cut() = default;
  Cut(std::int64_t of, std::int64_t wanted)
      : total(of), size(std::min(of, wanted)), count((of + size - 1) / size) {}
  std::int64_t extent(std::int64_t piece) const { return std::min(size, total - piece * size); }
  // The two kinds of pieces: 1 is the last one.
  std::size_t kind(std::int64_t piece) const { return piece + 1 == count; }
  std::int64_t extent_of_kind(std::size_t kind) const { return kind == 0 ? size : extent(count - 1); }
};

// What all ways share: outputs are cut into panels, each is summed, in y itself where that is f32, and
// finished by the epilogue while it is in the cache.
class StoredProductKernel : public Kernel {
 public:
  // Panels of `width` outputs, `panels_a_part` of which at least make a part.
  StoredProductKernel(const StoredProduct& product, std::int64_t width, std::int64_t panels_a_part);

  // Makes products and copies; the reason where one cannot be made.
  std::string prepare(ProductMaker maker);

  void run(const Arguments& arguments) const override;
  void run_part(const Arguments& arguments, std::int64_t part) const override;

 protected:
  struct Work {
    const Arguments& arguments;
    PartRange panels;
    const void* x;
    const float* weights;
    float* sums;  // of the first panel, rows `stride` apart
    std::int64_t stride;
    std::byte* room;  // scratch of room_bytes()
  };

  virtual std::string make(ProductMaker maker) = 0;
  virtual void sum(const Work& work) const = 0;  // and finish() every panel
  virtual std::size_t room_bytes() const { return 0; }
  virtual std::string describe() const = 0;

  void finish(const Work& work, std::int64_t panel) const;
  float* sums_of(const Work& work, std::int64_t panel) const {
    return work.sums + (panel - work.panels.begin) * panels_.size;
  }
  // Between rows of sums: y's own, or of the widest part in scratch.
  std::int64_t sum_stride() const { return staged_ ? widest_part() : p_.y_stride; }

  StoredProduct p_;
  Cut panels_;
  EpilogueRunner epilogue_;
  bool staged_;

 private:
  std::int64_t widest_part() const;
  void run_panels(const Arguments& arguments, PartRange panels) const;
};

using StoredWay = std::unique_ptr<StoredProductKernel>;

// Weights [in][out], x in rows. A panel's weights are the left operand as they lie.
StoredWay along_outputs(const StoredProduct& product);
// Weights [out][in], few rows of x. Dot products along the inputs.
StoredWay along_inputs(const StoredProduct& product);
// Weights [out][in], x in columns. Rows of x are the vectors, weights the right operand as they lie; results
// are transposed.
StoredWay across_rows(const StoredProduct& product);
// bf16 x, weights in either order. A panel's weights are rounded into scratch just before they are
// multiplied.
StoredWay in_pairs(const StoredProduct& product);

}  // namespace superstep::kernels
