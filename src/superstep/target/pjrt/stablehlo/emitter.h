// Writes the operations of a StableHLO program, one line each, in MLIR's generic form: the one that every
// version of a plug-in reads alike. Specification: StableHLO 1.0 (openxla.org/stablehlo/spec).
#pragma once

#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/target/pjrt/stablehlo/types.h"

namespace superstep::target::stablehlo {

using Extents = std::vector<std::int64_t>;

// A value of the program: its name there ("%12") and its type. Default-constructed: none.
struct Value {
  std::string name;
  Type type;

  bool valid() const { return !name.empty(); }
  const Shape& shape() const { return type.shape; }
  ElementType element() const { return type.element; }
  int rank() const { return type.shape.rank(); }
};

// How elements are joined into one.
enum class Fold : std::uint8_t { sum, product, largest, smallest, all, any };

// The start of a fold: what changes nothing.
Tensor neutral(Fold fold, ElementType element);

struct ConvolutionShape {
  // Where the batch, the channels and the spatial axes lie: "[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]".
  std::string layout;
  Extents strides, pad_begin, pad_end, lhs_dilation, rhs_dilation;
  std::int64_t feature_groups = 1, batch_groups = 1;
};

struct GatherShape {
  Extents offset_dims, collapsed_dims, start_index_map;
  std::int64_t index_vector_dim = 0;
  Extents slice_sizes;
};

struct ScatterShape {
  Extents update_window_dims, inserted_dims, scatter_dims_to_operand;
  std::int64_t index_vector_dim = 0;
};

class Emitter {
 public:
  // A body of operations inside another: of a reduction, a loop, a comparison.
  using Body = std::function<std::vector<Value>(std::vector<Value> arguments)>;

  const std::string& text() const { return text_; }
  std::string take() { return std::move(text_); }
  // The name of a value that is made elsewhere: an argument of the program.
  Value argument(std::string name, Type type) { return {std::move(name), std::move(type)}; }

  // Any operation. `attributes` is what stands between braces.
  Value one(std::string_view op, std::span<const Value> operands, const Type& result,
            std::string_view attributes = {});
  Value one(std::string_view op, std::initializer_list<Value> operands, const Type& result,
            std::string_view attributes = {}) {
    return one(op, std::span(operands.begin(), operands.size()), result, attributes);
  }

  // --- constants
  Value constant(const Tensor& tensor);
  Value splat(ElementType element, const Shape& shape, double value);
  Value like(const Value& x, double value) { return splat(x.element(), x.shape(), value); }
  Value iota(ElementType element, const Shape& shape, int axis);

  // --- element by element; operands of one shape
  Value unary(std::string_view op, const Value& x) { return one(op, {x}, x.type); }
  Value binary(std::string_view op, const Value& a, const Value& b) { return one(op, {a, b}, a.type); }
  Value add(const Value& a, const Value& b) { return binary("add", a, b); }
  Value subtract(const Value& a, const Value& b) { return binary("subtract", a, b); }
  Value multiply(const Value& a, const Value& b) { return binary("multiply", a, b); }
  Value divide(const Value& a, const Value& b) { return binary("divide", a, b); }
  Value maximum(const Value& a, const Value& b) { return binary("maximum", a, b); }
  Value minimum(const Value& a, const Value& b) { return binary("minimum", a, b); }
  Value add(const Value& a, double b) { return add(a, like(a, b)); }
  Value multiply(const Value& a, double b) { return multiply(a, like(a, b)); }
  Value negate(const Value& x) { return unary("negate", x); }
  // `direction`: EQ NE GE GT LE LT.
  Value compare(std::string_view direction, const Value& a, const Value& b);
  Value compare(std::string_view direction, const Value& a, double b) {
    return compare(direction, a, like(a, b));
  }
  Value select(const Value& condition, const Value& a, const Value& b) {
    return one("select", {condition, a, b}, a.type);
  }
  Value convert(const Value& x, ElementType element);  // as the plug-in converts; x itself where it is so
  Value bitcast(const Value& x, ElementType element);

  // --- moving
  Value reshape(const Value& x, const Shape& shape);
  // Axis i of x becomes axis axes[i] of the result.
  Value broadcast(const Value& x, const Shape& shape, const Extents& axes);
  Value expand(const Value& x, const Shape& shape);  // as NumPy broadcasts
  Value transpose(const Value& x, const Extents& permutation);
  Value slice(const Value& x, const Extents& begin, const Extents& end, const Extents& steps = {});
  // One range of one axis.
  Value cut(const Value& x, int axis, std::int64_t begin, std::int64_t end);
  Value pad(const Value& x, const Value& value, const Extents& low, const Extents& high,
            const Extents& interior = {});
  Value concatenate(std::span<const Value> parts, int axis);
  Value reverse(const Value& x, const Extents& axes);
  Value gather(const Value& operand, const Value& indices, const GatherShape& shape, const Shape& result);
  // The elements of `axis` at these places, in this order.
  Value take(const Value& x, const Extents& places, int axis);
  Value scatter(const Value& operand, const Value& indices, const Value& updates, const ScatterShape& shape,
                const Body& combine);
  Value dynamic_slice(const Value& x, std::span<const Value> starts, const Extents& sizes);
  Value dynamic_update(const Value& x, const Value& update, std::span<const Value> starts);

  // --- folding
  Value reduce(const Value& x, const Extents& axes, Fold fold);
  std::vector<Value> reduce(std::span<const Value> xs, std::span<const Value> starts, const Extents& axes,
                            const Body& body);
  struct Windows {
    Extents sizes, strides, base_dilations, dilations, pad_begin, pad_end;
  };
  Value reduce_window(const Value& x, const Windows& windows, const Shape& result, Fold fold);
  std::vector<Value> reduce_window(std::span<const Value> xs, std::span<const Value> starts,
                                   const Windows& windows, const Shape& result, const Body& body);

  // --- products. Exact in their type: floating products are not rounded to fewer bits.
  struct Contraction {
    Extents batch_a, batch_b, sum_a, sum_b;
  };
  Value dot(const Value& a, const Value& b, const Contraction& axes, const Shape& result,
            ElementType element);
  Value convolve(const Value& x, const Value& w, const ConvolutionShape& shape, const Shape& result,
                 ElementType element);

  // --- what a run must not meet
  // `wrong` (a truth of any shape): where it holds somewhere the run fails with these words. Not inside a
  // body.
  void refuse_where(const Value& wrong, std::string words);
  struct Refusal {
    Value wrong;  // a truth []
    std::string words;
  };
  const std::vector<Refusal>& refusals() const { return refusals_; }

  // --- larger ones
  std::vector<Value> sort(std::span<const Value> xs, int axis, const Body& before);
  std::vector<Value> loop(std::span<const Value> starts, const Body& goes_on, const Body& body);
  Value fold(Fold how, const Value& a, const Value& b);

 private:
  std::string next_name();
  std::vector<Value> region_op(std::string_view op, std::span<const Value> operands,
                               std::span<const Type> results, std::span<const Body> bodies,
                               std::span<const std::vector<Type>> arguments, std::string_view attributes);
  std::string region(const Body& body, std::span<const Type> arguments);
  void line(const std::string& text);

  std::string text_;
  std::vector<Refusal> refusals_;
  int next_ = 0, depth_ = 2;
};

}  // namespace superstep::target::stablehlo
