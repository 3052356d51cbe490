// The shots that the autoencoder of the ring of spectrometers trains on.
#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "superstep/workload/task.h"
#include "superstep/workload/workload.h"

namespace superstep::workload {
namespace {

constexpr std::int64_t side = 128;

// Angle and energy of a pixel of what was turned by `first` angles and mirrored, in the shot as it was.
std::int64_t before(std::int64_t angle, std::int64_t bin, std::int64_t first, bool backwards, bool mirrored) {
  const std::int64_t old_angle = (first + (backwards ? side - 1 - angle : angle)) % side;
  return old_angle * side + (mirrored ? side - 1 - bin : bin);
}

bool is_turned(const Tensor& turned, const Tensor& plain, std::int64_t first, bool backwards, bool mirrored) {
  for (std::int64_t i = 0; i < side * side; ++i)
    if (turned.at(i) != plain.at(before(i / side, i % side, first, backwards, mirrored))) return false;
  return true;
}

// Electrons and density alike: by one of 512 ways that a ring and its energies have. Without `vary`: as they
// are.
TEST(CookieNetAE, TurnsAndMirrorsShotsWithTheirDensities) {
  ThreadPool pool(1);
  const auto filled = [&](const char* vary, std::uint64_t epoch) {
    const auto task =
        open_task(find_workload("cookienetae"), {.samples = 5, .model_options = {vary}, .pool = &pool});
    const Shape image{1, 1, side, side};
    std::vector<Tensor> tensors{Tensor(ElementType::f32, image), Tensor(ElementType::f32, image)};
    const std::int64_t indices[] = {1};
    task->fill(indices, epoch, true, tensors);
    return tensors;
  };
  const auto plain = filled("vary=no", 0);
  EXPECT_TRUE(is_turned(filled("vary=no", 3)[0], plain[0], 0, false, false));
  std::set<std::tuple<std::int64_t, bool, bool>> seen;
  for (std::uint64_t epoch = 0; epoch < 8; ++epoch) {
    const auto turned = filled("vary=yes", epoch);
    int ways = 0;
    for (std::int64_t first = 0; first < side; ++first)
      for (const bool backwards : {false, true})
        for (const bool mirrored : {false, true})
          if (is_turned(turned[0], plain[0], first, backwards, mirrored) &&
              is_turned(turned[1], plain[1], first, backwards, mirrored)) {
            ++ways;
            seen.emplace(first, backwards, mirrored);
          }
    EXPECT_EQ(ways, 1) << "epoch " << epoch;
  }
  EXPECT_EQ(seen.size(), 8U);
}

}  // namespace
}  // namespace superstep::workload
