// What is refused, with which words, and that the test of dependences never passes a nest that has one.
#include <map>

#include "superstep/base/random.h"
#include "tests/openmp/support.h"

namespace superstep::openmp {
namespace {

Region nest(std::vector<Range> loops, int distributed, std::vector<RegionArray> arrays,
            std::vector<Access> accesses) {
  Region region;
  region.place = {"heat.c", 12};
  region.loops = std::move(loops);
  region.distributed = distributed;
  region.arrays = std::move(arrays);
  region.accesses = std::move(accesses);
  region.body = no_body;
  return region;
}
std::string refusal(const Region& region) {
  return error_of([&] { check_region(region); });
}
const RegionArray line100{"a", ElementType::f32, {100}};
const RegionArray square{"c", ElementType::f32, {10, 10}};

TEST(Refusals, RacesNameBothLines) {
  const std::string said =
      refusal(nest({{1, 99}}, 1, {line100}, {writes(0, {index(0)}, 14), reads(0, {index(0, -1)}, 15)}));
  EXPECT_NE(said.find("race"), said.npos) << said;
  EXPECT_NE(said.find("heat.c:14"), said.npos) << said;
  EXPECT_NE(said.find("heat.c:15"), said.npos) << said;
  EXPECT_NE(refusal(nest({{0, 100}}, 1, {line100}, {writes(0, {number(3)})})), "");
  EXPECT_NE(refusal(nest({{0, 10}, {0, 10}}, 2, {square}, {writes(0, {index(0), number(0)})})), "");
  EXPECT_NE(refusal(nest({{0, 10}, {0, 10}}, 2, {square},
                         {writes(0, {index(0), index(1)}), reads(0, {index(1), index(0)})})),
            "");
}

TEST(Refusals, WhatMayRunInAnyOrderPasses) {
  EXPECT_EQ(refusal(nest({{0, 100}}, 1, {line100}, {updates(0, {index(0)}), reads(0, {index(0)})})), "");
  // Even elements from odd ones.
  EXPECT_EQ(refusal(nest({{0, 50}}, 1, {line100}, {writes(0, {index(0, 0, 2)}), reads(0, {index(0, 1, 2)})})),
            "");
  // The lower half from the upper.
  EXPECT_EQ(refusal(nest({{0, 50}}, 1, {line100}, {writes(0, {index(0)}), reads(0, {index(0, 50)})})), "");
  // A loop inside the body over the row that is written.
  EXPECT_EQ(refusal(nest({{0, 10}, {1, 10}}, 1, {square},
                         {writes(0, {index(0), index(1)}), reads(0, {index(0), index(1, -1)})})),
            "");
  // a[i * 10 + j] as one subscript.
  EXPECT_EQ(refusal(nest({{0, 10}, {0, 10}}, 2, {line100}, {writes(0, {Affine{0, {10, 1}}})})), "");
}

TEST(Refusals, SubscriptsStayInTheirArrays) {
  const std::string said = refusal(nest({{0, 100}}, 1, {line100}, {reads(0, {index(0, 1)}, 20)}));
  EXPECT_NE(said.find("bounds: subscript 1 runs from 1 to 100, the dimension has 100 elements"), said.npos)
      << said;
  EXPECT_NE(said.find("a at heat.c:20"), said.npos) << said;
}

TEST(Refusals, TablesThatContradictThemselves) {
  EXPECT_NE(refusal(nest({{0, 10}}, 2, {line100}, {})), "");
  EXPECT_NE(refusal(nest({{0, 10}}, 1, {line100}, {reads(1, {index(0)})})), "");
  EXPECT_NE(refusal(nest({{0, 10}}, 1, {square}, {reads(0, {index(0)})})), "");
  EXPECT_NE(refusal(nest({{0, 10}}, 1, {{"s", ElementType::f32, {}}}, {})), "");
  Region region = nest({{0, 10}}, 1, {line100}, {reads(0, {index(0)})});
  region.reductions = {{0, Operator::add}};
  EXPECT_NE(refusal(region), "");
  region.accesses.clear();
  EXPECT_EQ(refusal(region), "");
  region.body = nullptr;
  EXPECT_NE(refusal(region), "");
}

// Which distributed iterations touch each element, one by one.
bool has_race(const Region& region) {
  struct Touch {
    std::vector<std::int64_t> iteration;
    bool written;
  };
  std::map<std::pair<int, std::vector<std::int64_t>>, std::vector<Touch>> touched;
  std::vector<std::int64_t> counters;
  const auto visit = [&](auto& self) -> void {
    if (counters.size() < region.loops.size()) {
      const Range range = region.loops[counters.size()];
      for (std::int64_t i = range.begin; i < range.end; ++i) {
        counters.push_back(i);
        self(self);
        counters.pop_back();
      }
      return;
    }
    for (const Access& access : region.accesses) {
      std::vector<std::int64_t> element;
      for (const Affine& subscript : access.subscripts) {
        element.push_back(subscript.constant);
        for (std::size_t k = 0; k < counters.size(); ++k)
          element.back() += subscript.coefficient(k) * counters[k];
      }
      touched[{access.array, element}].push_back(
          {{counters.begin(), counters.begin() + region.distributed}, access.writes});
    }
  };
  visit(visit);
  for (const auto& [element, touches] : touched)
    for (const Touch& a : touches)
      for (const Touch& b : touches)
        if (a.iteration != b.iteration && (a.written || b.written)) return true;
  return false;
}

TEST(Refusals, NoNestWithADependencePasses) {
  RandomStream random(11);
  int races = 0, free = 0, refused_for_nothing = 0;
  for (int trial = 0; trial < 4000; ++trial) {
    const std::size_t loops = 1 + random.below(3), rank = 1 + random.below(2);
    std::vector<Range> ranges;
    for (std::size_t k = 0; k < loops; ++k)
      ranges.push_back({0, 1 + static_cast<std::int64_t>(random.below(4))});
    const int distributed = static_cast<int>(1 + random.below(loops));
    std::vector<Access> accesses;
    for (std::uint64_t a = 1 + random.below(3); a > 0; --a) {
      std::vector<Affine> subscripts;
      for (std::size_t axis = 0; axis < rank; ++axis) {
        Affine subscript = number(20 + static_cast<std::int64_t>(random.below(4)));
        for (std::size_t k = 0; k < loops; ++k)
          subscript.coefficients.push_back(std::vector<std::int64_t>{0, 0, 1, -1, 2, 4}[random.below(6)]);
        subscripts.push_back(subscript);
      }
      accesses.push_back(accesses.empty() || random.below(3) == 0 ? writes(0, subscripts)
                                                                  : reads(0, subscripts));
    }
    const Region region =
        nest(ranges, distributed, {{"a", ElementType::f32, std::vector<std::int64_t>(rank, 80)}}, accesses);
    const std::string said = refusal(region);
    if (has_race(region)) {
      ++races;
      ASSERT_NE(said.find("race"), said.npos) << "trial " << trial;
    } else {
      ++free;
      refused_for_nothing += said.empty() ? 0 : 1;
    }
  }
  EXPECT_GT(races, 500);
  EXPECT_GT(free, 500);
  EXPECT_LT(refused_for_nothing, free / 2);  // boxes and distances cannot tell everything
}

TEST(Refusals, OfTheDevice) {
  std::vector<float> a(100), b(100);
  Region region = nest({{0, 99}}, 1, {line100, {"b", ElementType::f32, {100}}},
                       {reads(0, {index(0, 1)}), writes(1, {index(0)})});
  Offload offload(machine(8));
  const auto launch = [&](void* first, void* second) {
    return error_of([&] { offload.launch(region, std::vector<void*>{first, second}); });
  };
  EXPECT_NE(launch(a.data(), b.data()).find("unmapped: a is not on the device"), std::string::npos);
  offload.enter(a.data(), "a", ElementType::f32, 100, Enter::to);
  EXPECT_NE(launch(a.data(), b.data()).find("unmapped: b"), std::string::npos);
  EXPECT_NE(launch(a.data(), a.data()).find("alias: a and b are one array"), std::string::npos);
  offload.enter(b.data(), "b", ElementType::f32, 99, Enter::alloc);
  EXPECT_NE(launch(a.data(), b.data()).find("99 of f32 are on the device"), std::string::npos);
  EXPECT_NE(error_of([&] { offload.enter(b.data(), "b", ElementType::f32, 100, Enter::to); }).find("alias"),
            std::string::npos);
  EXPECT_NE(error_of([&] { offload.enter(b.data() + 5, "b", ElementType::f32, 3, Enter::to); }).find("alias"),
            std::string::npos);
  EXPECT_NE(
      error_of([&] { offload.enter(b.data() + 98, "b", ElementType::f32, 1, Enter::to); }).find("alias"),
      std::string::npos)
      << "the last element";
  EXPECT_NE(error_of([&] { offload.update_from(a.data(), 50, 101); }).find("unmapped"), std::string::npos);
  EXPECT_NE(error_of([&] { offload.leave(&offload, Leave::from); }).find("unmapped"), std::string::npos);
}

TEST(Refusals, WhatDoesNotFitNamesItsArrays) {
  std::vector<float> a(1 << 21);
  Region region = nest({{0, 1 << 21}}, 1, {{"field", ElementType::f32, {1 << 21}}}, {updates(0, {index(0)})});
  Offload offload(machine(4));
  offload.enter(a.data(), "field", ElementType::f32, 1 << 21, Enter::to);
  offload.launch(region, std::vector<void*>{a.data()});
  const std::string said = error_of([&] { offload.finish(); });
  EXPECT_NE(said.find("field"), said.npos) << said;
}

}  // namespace
}  // namespace superstep::openmp
