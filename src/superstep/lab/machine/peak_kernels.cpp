// The loops of peak_kernels.h in every instruction set that Highway knows for this machine; the best is
// chosen at run time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "superstep/lab/machine/peak_kernels.cpp"
#include "superstep/lab/machine/peak_kernels.h"

#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace superstep::lab::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using F32 = hn::ScalableTag<float>;
using U32 = hn::ScalableTag<std::uint32_t>;

// Twelve chains: more than latency times rate of any core, few enough for sixteen registers.
double FmaRounds(std::int64_t rounds, float& sink) {
  const F32 d;
  const auto a = hn::Set(d, 0.999f), b = hn::Set(d, 0.001f);
  // Chains that began alike would be merged by the compiler.
  auto x0 = hn::Set(d, 0.10f), x1 = hn::Set(d, 0.11f), x2 = hn::Set(d, 0.12f), x3 = hn::Set(d, 0.13f);
  auto x4 = hn::Set(d, 0.14f), x5 = hn::Set(d, 0.15f), x6 = hn::Set(d, 0.16f), x7 = hn::Set(d, 0.17f);
  auto x8 = hn::Set(d, 0.18f), x9 = hn::Set(d, 0.19f), x10 = hn::Set(d, 0.20f), x11 = hn::Set(d, 0.21f);
  for (std::int64_t i = 0; i < rounds; ++i) {
    x0 = hn::MulAdd(x0, a, b), x1 = hn::MulAdd(x1, a, b), x2 = hn::MulAdd(x2, a, b);
    x3 = hn::MulAdd(x3, a, b), x4 = hn::MulAdd(x4, a, b), x5 = hn::MulAdd(x5, a, b);
    x6 = hn::MulAdd(x6, a, b), x7 = hn::MulAdd(x7, a, b), x8 = hn::MulAdd(x8, a, b);
    x9 = hn::MulAdd(x9, a, b), x10 = hn::MulAdd(x10, a, b), x11 = hn::MulAdd(x11, a, b);
  }
  const auto sum = hn::Add(
      hn::Add(hn::Add(x0, x1), hn::Add(x2, x3)),
      hn::Add(hn::Add(hn::Add(x4, x5), hn::Add(x6, x7)), hn::Add(hn::Add(x8, x9), hn::Add(x10, x11))));
  sink += hn::GetLane(sum);
  return 2.0 * 12 * static_cast<double>(hn::Lanes(d)) * static_cast<double>(rounds);
}

double ReadPass(const std::byte* data, std::size_t bytes, float& sink) {
  const U32 d;
  const auto* const p = reinterpret_cast<const std::uint32_t*>(data);
  const std::size_t lanes = hn::Lanes(d), count = bytes / sizeof(std::uint32_t);
  auto x0 = hn::Zero(d), x1 = x0, x2 = x0, x3 = x0;
  for (std::size_t i = 0; i + 4 * lanes <= count; i += 4 * lanes) {
    x0 = hn::Or(x0, hn::Load(d, p + i)), x1 = hn::Or(x1, hn::Load(d, p + i + lanes));
    x2 = hn::Or(x2, hn::Load(d, p + i + 2 * lanes)), x3 = hn::Or(x3, hn::Load(d, p + i + 3 * lanes));
  }
  sink += static_cast<float>(hn::GetLane(hn::Or(hn::Or(x0, x1), hn::Or(x2, x3))));
  return static_cast<double>(bytes);
}

double WritePass(std::byte* data, std::size_t bytes) {
  const U32 d;
  auto* const p = reinterpret_cast<std::uint32_t*>(data);
  const std::size_t lanes = hn::Lanes(d), count = bytes / sizeof(std::uint32_t);
  const auto value = hn::Set(d, 1u);
  for (std::size_t i = 0; i + 2 * lanes <= count; i += 2 * lanes) {
    hn::Store(value, d, p + i);
    hn::Store(value, d, p + i + lanes);
  }
  return static_cast<double>(bytes);
}

double CopyPass(const std::byte* from, std::byte* to, std::size_t bytes) {
  const U32 d;
  const auto* const p = reinterpret_cast<const std::uint32_t*>(from);
  auto* const q = reinterpret_cast<std::uint32_t*>(to);
  const std::size_t lanes = hn::Lanes(d), count = bytes / sizeof(std::uint32_t);
  for (std::size_t i = 0; i + 2 * lanes <= count; i += 2 * lanes) {
    hn::Store(hn::Load(d, p + i), d, q + i);
    hn::Store(hn::Load(d, p + i + lanes), d, q + i + lanes);
  }
  return 2.0 * static_cast<double>(bytes);
}

double TriadPass(const std::byte* b, const std::byte* c, std::byte* to, std::size_t bytes) {
  const F32 d;
  const auto *const p = reinterpret_cast<const float*>(b), *const q = reinterpret_cast<const float*>(c);
  auto* const a = reinterpret_cast<float*>(to);
  const std::size_t lanes = hn::Lanes(d), count = bytes / sizeof(float);
  const auto factor = hn::Set(d, 0.5f);
  for (std::size_t i = 0; i + 2 * lanes <= count; i += 2 * lanes) {
    hn::Store(hn::MulAdd(factor, hn::Load(d, q + i), hn::Load(d, p + i)), d, a + i);
    hn::Store(hn::MulAdd(factor, hn::Load(d, q + i + lanes), hn::Load(d, p + i + lanes)), d, a + i + lanes);
  }
  return 3.0 * static_cast<double>(bytes);  // two arrays read, one written
}

int LaneCount() { return static_cast<int>(hn::Lanes(F32())); }
const char* TargetName() { return hwy::TargetName(HWY_TARGET); }

}  // namespace superstep::lab::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace superstep::lab {

HWY_EXPORT(FmaRounds);
HWY_EXPORT(ReadPass);
HWY_EXPORT(WritePass);
HWY_EXPORT(CopyPass);
HWY_EXPORT(TriadPass);
HWY_EXPORT(LaneCount);
HWY_EXPORT(TargetName);

double run_f32_fma(std::int64_t rounds, float& sink) { return HWY_DYNAMIC_DISPATCH(FmaRounds)(rounds, sink); }
double read_pass(const std::byte* data, std::size_t bytes, float& sink) {
  return HWY_DYNAMIC_DISPATCH(ReadPass)(data, bytes, sink);
}
double write_pass(std::byte* data, std::size_t bytes) { return HWY_DYNAMIC_DISPATCH(WritePass)(data, bytes); }
double copy_pass(const std::byte* from, std::byte* to, std::size_t bytes) {
  return HWY_DYNAMIC_DISPATCH(CopyPass)(from, to, bytes);
}
double triad_pass(const std::byte* b, const std::byte* c, std::byte* to, std::size_t bytes) {
  return HWY_DYNAMIC_DISPATCH(TriadPass)(b, c, to, bytes);
}
int f32_lanes() { return HWY_DYNAMIC_DISPATCH(LaneCount)(); }
std::string vector_target() { return HWY_DYNAMIC_DISPATCH(TargetName)(); }

}  // namespace superstep::lab
#endif
