#include "library_run.h"

#ifdef SUPERSTEP_OPENBLAS

#include <cblas.h>

#include "superstep/base/error.h"

namespace superstep::bench {
namespace {

class BlasRun : public LibraryRun {
 public:
  explicit BlasRun(const lab::PrimitiveRun& ours)
      : p_(ours.primitive()), x_(ours.input("x")), w_(ours.weights("weights")), y_(make_output(ours)) {
    if (ours.options().passes == lab::Passes::forward) return;
    dy_ = ours.input("dy");
    dx_ = Tensor(ElementType::f32, x_.shape());
    dw_ = Tensor(ElementType::f32, w_.shape());
  }

  void call() override {
    const int m = static_cast<int>(p_.m), n = static_cast<int>(p_.n), k = static_cast<int>(p_.k);
    product(CblasNoTrans, CblasNoTrans, m, n, k, x_, k, w_, n, y_);
    if (dy_.element_count() <= 1) return;
    product(CblasNoTrans, CblasTrans, m, k, n, dy_, n, w_, n, dx_);
    product(CblasTrans, CblasNoTrans, k, n, m, x_, k, dy_, n, dw_);
  }

  const Tensor& output() const override { return y_; }

 private:
  static const float* data(const Tensor& tensor) { return reinterpret_cast<const float*>(tensor.bytes()); }

  // The result is dense: its rows are as long as the second operand's columns.
  static void product(CBLAS_TRANSPOSE a_as, CBLAS_TRANSPOSE b_as, int rows, int columns, int terms,
                      const Tensor& a, int a_row, const Tensor& b, int b_row, Tensor& y) {
    cblas_sgemm(CblasRowMajor, a_as, b_as, rows, columns, terms, 1, data(a), a_row, data(b), b_row, 0,
                reinterpret_cast<float*>(y.bytes()), columns);
  }

  lab::Primitive p_;
  Tensor x_, w_, y_, dy_, dx_, dw_;
};

std::unique_ptr<LibraryRun> make_blas(const lab::PrimitiveRun& ours, int threads) {
  if (ours.primitive().kind != lab::PrimitiveKind::gemm || ours.options().precision != "f32")
    throw Error(ErrorCode::unsupported, "multiplies matrices in f32 alone", "OpenBLAS");
  openblas_set_num_threads(threads);
  return std::make_unique<BlasRun>(ours);
}

}  // namespace

std::vector<Library> blas_libraries() { return {{"OpenBLAS", make_blas}}; }

}  // namespace superstep::bench

#else

namespace superstep::bench {
std::vector<Library> blas_libraries() { return {}; }
}  // namespace superstep::bench

#endif
