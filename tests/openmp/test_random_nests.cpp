// Random affine nests, several on the same arrays, on the tiles and as serial loops: the same bits. With one
// element of each halo withheld many of them must differ.
#include <cstring>
#include <memory>

#include "superstep/base/random.h"
#include "tests/openmp/support.h"

namespace superstep::openmp {
namespace {

// The scalars of a nest: what the body knows of its own region, as a compiler would have written it down.
struct Nest {
  const Region* region;
};

// out = [out / 2 +] the sum over the loops inside the body and over all reads of weight * value.
template <class At>
void iterate(const Region& region, std::vector<std::int64_t>& counters, At&& at) {
  const std::size_t distributed = static_cast<std::size_t>(region.distributed);
  float sum = 0;
  const auto inner = [&](auto& self, std::size_t loop) -> void {
    if (loop < region.loops.size()) {
      for (counters[loop] = region.loops[loop].begin; counters[loop] < region.loops[loop].end;
           ++counters[loop])
        self(self, loop + 1);
      return;
    }
    for (std::size_t a = 1; a < region.accesses.size(); ++a)
      sum += static_cast<float>(a) * 0.3f * at(a, counters);
  };
  inner(inner, distributed);
  counters.resize(region.loops.size());
  float& out = at(0, counters);
  out = region.accesses[0].reads ? 0.5f * out + sum : sum;
}

void over(const Region& region, const Box& box, auto&& at) {
  std::vector<std::int64_t> counters(region.loops.size());
  const auto outer = [&](auto& self, std::size_t loop) -> void {
    if (loop == box.rank()) return iterate(region, counters, at);
    for (std::int64_t i = box.begin[loop]; i < box.end[loop]; ++i) {
      counters[loop] = i;
      self(self, loop + 1);
    }
  };
  outer(outer, 0);
}

void nest_body(const Part& part) {
  const Region& region = *part.scalar<Nest>().region;
  const auto axes = static_cast<std::size_t>(region.distributed);
  over(region, {{part.begin, part.begin + axes}, {part.end, part.end + axes}},
       [&](std::size_t access, const std::vector<std::int64_t>& counters) -> float& {
         const int number = static_cast<int>(access);
         std::int64_t offset = 0;
         for (std::size_t k = 0; k < counters.size(); ++k)
           offset += part.stride(number, static_cast<int>(k)) * counters[k];
         return part.at<float>(number)[offset];
       });
}

// By the subscripts alone, in whole arrays.
void serial(const Region& region, const std::vector<std::vector<float>*>& arrays) {
  over(region, region.iterations(),
       [&](std::size_t access, const std::vector<std::int64_t>& counters) -> float& {
         const Access& what = region.accesses[access];
         std::int64_t element = 0;
         for (std::size_t axis = 0; axis < what.subscripts.size(); ++axis) {
           std::int64_t subscript = what.subscripts[axis].constant;
           for (std::size_t k = 0; k < counters.size(); ++k)
             subscript += what.subscripts[axis].coefficient(k) * counters[k];
           element = element * region.arrays[static_cast<std::size_t>(what.array)].extents[axis] + subscript;
         }
         return (*arrays[static_cast<std::size_t>(what.array)])[static_cast<std::size_t>(element)];
       });
}

class World {
 public:
  explicit World(std::uint64_t seed) : random_(17, seed) {
    rank_ = 1 + random_.below(3);
    for (std::size_t axis = 0; axis < rank_; ++axis)
      extents_.push_back(8 + static_cast<std::int64_t>(random_.below(rank_ == 1   ? 300
                                                                     : rank_ == 2 ? 24
                                                                                  : 8)));
    arrays_ = 2 + random_.below(2);
    tiles_ = std::vector<std::uint32_t>{3, 4, 12, 40, 97, 300, 1472}[random_.below(seed % 8 == 0 ? 7 : 5)];
    for (std::size_t i = 0; i < arrays_; ++i) {
      std::vector<float> values(static_cast<std::size_t>(whole(extents_).volume()));
      random_.fill_uniform(values, -1, 1);
      host_.push_back(values);
    }
    device_ = host_;
    for (std::uint64_t launches = 1 + random_.below(4); launches > 0; --launches) add_region();
  }

  // Whether the tiles end with the bits of the serial loops.
  bool agrees(bool withhold) {
    std::vector<std::vector<float>> host = host_, device = device_;
    Offload offload(machine(tiles_), {.threads = 1, .withhold_halo_element = withhold});
    for (std::size_t i = 0; i < arrays_; ++i)
      offload.enter(device[i].data(), "a" + std::to_string(i), ElementType::f32,
                    static_cast<std::int64_t>(device[i].size()), Enter::to);
    for (int turn = 0; turn < 3; ++turn) {
      for (std::size_t r = 0; r < regions_.size(); ++r) {
        std::vector<void*> pointers;
        std::vector<std::vector<float>*> vectors;
        for (const std::size_t array : bound_[r]) {
          pointers.push_back(device[array].data());
          vectors.push_back(&host[array]);
        }
        offload.launch(*regions_[r], pointers);
        serial(*regions_[r], vectors);
      }
      if (turn == 0) offload.finish();  // placements and values are carried over to the next queue
    }
    for (std::vector<float>& values : device) offload.leave(values.data(), Leave::from);
    for (std::size_t i = 0; i < arrays_; ++i)
      if (std::memcmp(host[i].data(), device[i].data(), host[i].size() * sizeof(float)) != 0) return false;
    return true;
  }

 private:
  // A subscript that stays inside `extent`: the range of the loop is made to fit afterwards.
  Affine subscript(std::size_t loop, std::int64_t coefficient) {
    return index(static_cast<int>(loop), static_cast<std::int64_t>(random_.below(7)) - 3, coefficient);
  }

  void add_region() {
    auto region = std::make_unique<Region>();
    region->place = {"nest.c", static_cast<int>(regions_.size()) + 1};
    region->body = nest_body;
    region->distributed = static_cast<int>(rank_);
    const bool inner = random_.below(3) == 0;
    region->loops.assign(rank_ + (inner ? 1 : 0), {0, 0});
    std::vector<std::size_t> order(rank_);
    for (std::size_t i = 0; i < rank_; ++i) order[i] = i;
    for (std::size_t i = rank_; i > 1; --i) std::swap(order[i - 1], order[random_.below(i)]);
    // Array 0 is written, the others are read.
    std::vector<std::size_t> bound;
    bound.push_back(random_.below(arrays_));
    bound.push_back((bound[0] + 1) % arrays_);
    for (std::size_t slot = 0; slot < 2; ++slot)
      region->arrays.push_back({"x" + std::to_string(slot), ElementType::f32, extents_});
    Access write = random_.below(2) == 0 ? writes(0, {}) : updates(0, {});
    for (std::size_t axis = 0; axis < rank_; ++axis)
      write.subscripts.push_back(subscript(order[axis], random_.below(6) == 0 ? -1 : 1));
    region->accesses.push_back(write);
    for (std::uint64_t count = 1 + random_.below(5); count > 0; --count) {
      Access read = reads(1, {});
      const bool turned = random_.below(8) == 0;
      for (std::size_t axis = 0; axis < rank_; ++axis) {
        const std::size_t loop = turned ? order[rank_ - 1 - axis] : order[axis];
        if (inner && random_.below(rank_ + 1) == 0)
          read.subscripts.push_back(subscript(rank_, 1));
        else if (random_.below(12) == 0)
          read.subscripts.push_back(number(static_cast<std::int64_t>(random_.below(6))));
        else
          read.subscripts.push_back(subscript(loop, random_.below(12) == 0 ? 2
                                                    : write.subscripts[axis].coefficient(loop) == 0
                                                        ? 1
                                                        : write.subscripts[axis].coefficient(loop)));
      }
      region->accesses.push_back(read);
    }
    fit(*region);
    bound_.push_back(bound);
    regions_.push_back(std::move(region));
    regions_.back()->scalars = scalar_bytes(Nest{regions_.back().get()});
    regions_.back()->work = {.loads = 4, .stores = 1, .float_operations = 8};
  }

  // Subscripts that run down are moved up by the extent; loops get the longest range that stays inside.
  void fit(Region& region) {
    for (Access& access : region.accesses)
      for (std::size_t axis = 0; axis < rank_; ++axis)
        for (std::size_t k = 0; k < region.loops.size(); ++k)
          if (access.subscripts[axis].coefficient(k) < 0)
            access.subscripts[axis].constant += extents_[axis] - 1;
    for (std::size_t k = 0; k < region.loops.size(); ++k) {
      std::int64_t low = -1000, high = 1000;
      for (const Access& access : region.accesses)
        for (std::size_t axis = 0; axis < rank_; ++axis) {
          const Affine& subscript = access.subscripts[axis];
          const std::int64_t c = subscript.coefficient(k), last = extents_[axis] - 1;
          if (c == 0) continue;
          const auto floor = [](std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); };
          const std::int64_t at_low =
              c > 0 ? -floor(subscript.constant, c) : -floor(last - subscript.constant, -c);
          const std::int64_t at_high =
              c > 0 ? floor(last - subscript.constant, c) : floor(subscript.constant, -c);
          low = std::max(low, at_low);
          high = std::min(high, at_high);
        }
      if (low == -1000) low = high = 0;
      region.loops[k] = {low, std::max(low, high + 1)};
      if (k >= rank_) region.loops[k].end = std::min(region.loops[k].end, low + 5);
    }
  }

  RandomStream random_;
  std::size_t rank_ = 1, arrays_ = 2;
  std::vector<std::int64_t> extents_;
  std::uint32_t tiles_ = 3;
  std::vector<std::vector<float>> host_, device_;
  std::vector<std::unique_ptr<Region>> regions_;
  std::vector<std::vector<std::size_t>> bound_;
};

TEST(RandomNests, HaveTheBitsOfSerialLoops) {
  int differ = 0;
  constexpr int trials = 120;
  for (std::uint64_t seed = 0; seed < trials; ++seed) {
    World world(seed);
    ASSERT_TRUE(world.agrees(false)) << "seed " << seed;
    differ += world.agrees(true) ? 0 : 1;
  }
  EXPECT_GT(differ, trials / 4);  // the others exchange no halo, or nobody reads that element
}

}  // namespace
}  // namespace superstep::openmp
