#include "library_run.h"

#ifdef SUPERSTEP_ONEDNN

#include <omp.h>

#include <dnnl.hpp>
#include <unordered_map>

#include "superstep/base/error.h"

namespace superstep::bench {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;

// Whose order operands lie in: the user's, or the library's, reordered on the way in and out. Weights are
// brought into its order ahead, as ours are, but where they are trained: then they are new at every call.
enum class Layout { plain, own };

memory::data_type type_of(ElementType type) {
  switch (type) {
    case ElementType::f32: return memory::data_type::f32;
    case ElementType::bf16: return memory::data_type::bf16;
    case ElementType::u8: return memory::data_type::u8;
    case ElementType::i8: return memory::data_type::s8;
    case ElementType::i32: return memory::data_type::s32;
    default: throw Error(ErrorCode::unsupported, "has no such element type", "oneDNN");
  }
}

memory::dims dims_of(const Shape& shape) { return {shape.extents().begin(), shape.extents().end()}; }

// Where the library has no kernel of its own for a case it falls back to loops over single elements, which
// take minutes and say nothing about it.
template <class Plan>
const Plan& require_kernel(const Plan& plan) {
  const std::string name = plan.impl_info_str();
  if (name.starts_with("ref"))
    throw Error(ErrorCode::unsupported, "has reference loops alone: " + name, "oneDNN");
  return plan;
}

class OneDnnRun : public LibraryRun {
 public:
  OneDnnRun(const lab::PrimitiveRun& ours, Layout layout)
      : layout_(layout), p_(ours.primitive()), trains_(ours.options().passes != lab::Passes::forward) {
    const ElementType type = lab::element_of(ours.options().precision);
    x_ = ours.input("x");
    w_ = ours.weights("weights");
    y_ = make_output(ours);
    if (trains_) {
      dy_ = ours.input("dy");
      dx_ = Tensor(type, x_.shape());
      dw_ = Tensor(ElementType::f32, w_.shape());
    }
    round_weights(type);
    p_.kind == lab::PrimitiveKind::gemm ? add_products() : add_convolutions();
    stream_.wait();
  }

  void call() override {
    for (auto& [primitive, arguments] : steps_) primitive.execute(stream_, arguments);
    stream_.wait();
  }

  const Tensor& output() const override { return y_; }

 private:
  using Arguments = std::unordered_map<int, memory>;

  // States are f32: they are rounded once, ahead.
  void round_weights(ElementType type) {
    if (w_.type() == type) return;
    Tensor rounded(type, w_.shape());
    for (std::int64_t i = 0; i < w_.element_count(); ++i) rounded.set(i, w_.at(i));
    w_ = rounded;
  }

  memory user(Tensor& tensor, memory::dims dims, Tag tag) {
    return memory({std::move(dims), type_of(tensor.type()), tag}, engine_, tensor.bytes());
  }
  memory::desc wish(const memory& of) const {
    memory::desc desc = of.get_desc();
    return layout_ == Layout::plain ? desc : memory::desc(desc.dims(), desc.data_type(), Tag::any);
  }

  // An operand in the order that a primitive wants.
  memory brought(const memory& from, const memory::desc& wanted, bool ahead) {
    if (from.get_desc() == wanted) return from;
    memory to(wanted, engine_);
    dnnl::reorder reorder(from, to);
    Arguments arguments{{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
    if (ahead)
      reorder.execute(stream_, arguments);
    else
      steps_.emplace_back(reorder, arguments);
    return to;
  }

  // A primitive whose result `name` the user wants in `to`.
  void add(const dnnl::primitive& primitive, Arguments arguments, int name, const memory& to,
           const memory::desc& made) {
    const bool same = to.get_desc() == made;
    const memory result = same ? to : memory(made, engine_);
    arguments.emplace(name, result);
    steps_.emplace_back(primitive, std::move(arguments));
    if (!same)
      steps_.emplace_back(dnnl::reorder(result, to), Arguments{{DNNL_ARG_FROM, result}, {DNNL_ARG_TO, to}});
  }

  void add_product(const memory& a, const memory& b, const memory& y) {
    const dnnl::matmul::primitive_desc plan({a.get_desc(), wish(b), y.get_desc()}, engine_);
    add(dnnl::matmul(require_kernel(plan)),
        {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, brought(b, plan.weights_desc(), !trains_)}}, DNNL_ARG_DST, y,
        plan.dst_desc());
  }

  void add_products() {
    const memory::dims x{p_.m, p_.k}, w{p_.k, p_.n}, y{p_.m, p_.n};
    add_product(user(x_, x, Tag::ab), user(w_, w, Tag::ab), user(y_, y, Tag::ab));
    if (!trains_) return;
    add_product(user(dy_, y, Tag::ab), user(w_, {p_.n, p_.k}, Tag::ba), user(dx_, x, Tag::ab));
    add_product(user(x_, {p_.k, p_.m}, Tag::ba), user(dy_, y, Tag::ab), user(dw_, w, Tag::ab));
  }

  void add_convolutions() {
    using namespace dnnl;
    const memory x = user(x_, dims_of(x_.shape()), Tag::nchw), w = user(w_, dims_of(w_.shape()), Tag::oihw),
                 y = user(y_, dims_of(y_.shape()), Tag::nchw);
    const memory::dims strides{1, 1}, pads{p_.pad_height, p_.pad_width};
    const auto way = algorithm::convolution_auto;
    const auto kind = trains_ ? prop_kind::forward_training : prop_kind::forward_inference;
    const convolution_forward::primitive_desc forward(
        {kind, way, wish(x), wish(w), wish(y), strides, pads, pads}, engine_);
    add(convolution_forward(require_kernel(forward)),
        {{DNNL_ARG_SRC, brought(x, forward.src_desc(), false)},
         {DNNL_ARG_WEIGHTS, brought(w, forward.weights_desc(), !trains_)}},
        DNNL_ARG_DST, y, forward.dst_desc());
    if (!trains_) return;
    const memory dy = user(dy_, dims_of(y_.shape()), Tag::nchw),
                 dx = user(dx_, dims_of(x_.shape()), Tag::nchw),
                 dw = user(dw_, dims_of(w_.shape()), Tag::oihw);
    const convolution_backward_data::primitive_desc by_data(
        {way, wish(dx), wish(w), wish(dy), strides, pads, pads}, engine_, forward);
    add(convolution_backward_data(require_kernel(by_data)),
        {{DNNL_ARG_DIFF_DST, brought(dy, by_data.diff_dst_desc(), false)},
         {DNNL_ARG_WEIGHTS, brought(w, by_data.weights_desc(), !trains_)}},
        DNNL_ARG_DIFF_SRC, dx, by_data.diff_src_desc());
    const convolution_backward_weights::primitive_desc by_weights(
        {way, wish(x), wish(dw), wish(dy), strides, pads, pads}, engine_, forward);
    add(convolution_backward_weights(require_kernel(by_weights)),
        {{DNNL_ARG_SRC, brought(x, by_weights.src_desc(), false)},
         {DNNL_ARG_DIFF_DST, brought(dy, by_weights.diff_dst_desc(), false)}},
        DNNL_ARG_DIFF_WEIGHTS, dw, by_weights.diff_weights_desc());
  }

  Layout layout_;
  lab::Primitive p_;
  bool trains_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  Tensor x_, w_, y_, dy_, dx_, dw_;
  std::vector<std::pair<dnnl::primitive, Arguments>> steps_;
};

template <Layout layout>
std::unique_ptr<LibraryRun> make_onednn(const lab::PrimitiveRun& ours, int threads) {
  omp_set_num_threads(threads);
  try {
    return std::make_unique<OneDnnRun>(ours, layout);
  } catch (const dnnl::error& error) {
    throw Error(ErrorCode::unsupported, error.what(), "oneDNN");
  }
}

}  // namespace

std::vector<Library> onednn_libraries() {
  return {{"oneDNN", make_onednn<Layout::plain>}, {"oneDNN, its layouts", make_onednn<Layout::own>}};
}

}  // namespace superstep::bench

#else

namespace superstep::bench {
std::vector<Library> onednn_libraries() { return {}; }
}  // namespace superstep::bench

#endif
