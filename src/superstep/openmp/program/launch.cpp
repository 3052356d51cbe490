#include "superstep/openmp/program/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace superstep::openmp {

ElementType element_type_of_item(const sst_item& item) {
  if (item.type >= 0) return static_cast<ElementType>(item.type);
  const int bytes = -item.type;
  if (bytes % 8 == 0) return ElementType::u64;
  if (bytes % 4 == 0) return ElementType::u32;
  return bytes % 2 == 0 ? ElementType::u16 : ElementType::u8;
}

Launch::Launch(const sst_region& region, std::span<const sst_item> items, const long* numbers,
               std::span<const std::byte> scalars, const Offload& offload)
    : table_(&region), items_(items), numbers_(numbers), scalars_(scalars) {
  for (const sst_item& item : items) find(item, offload);
}

namespace {

// The array that an item lies in. A pointer of which nothing is mapped here may point into one; a variable
// that is not named in a clause may have been mapped in part.
std::optional<Offload::Mapped> array_of(const sst_item& item, const Offload& offload) {
  if (const auto there = offload.mapped(item.address)) return there;
  if (item.bytes == 0) return std::nullopt;
  const auto* begin = static_cast<const std::byte*>(item.address);
  for (const Offload::Mapped& array : offload.all_mapped())
    if (const auto* at = static_cast<const std::byte*>(array.host); at >= begin && at < begin + item.bytes)
      return array;
  return std::nullopt;
}

}  // namespace

void Launch::find(const sst_item& item, const Offload& offload) {
  Found found;
  if (item.kind & sst_used) {
    if (const auto there = array_of(item, offload)) {
      const auto known = std::ranges::find(arrays_, there->host, &Offload::Mapped::host);
      found.array = static_cast<int>(known - arrays_.begin());
      found.offset = static_cast<const char*>(item.base) - static_cast<const char*>(there->host);
      if (known == arrays_.end()) arrays_.push_back(*there);
    } else if (item.kind & sst_reached) {
      refuse("unmapped", fmt::format("{} is not on the device", item.name), to_string(place()),
             fmt::format("map(tofrom: {}[0:n]), or enclose the region in target data", item.name));
    }
  }
  found_.push_back(found);
}

std::vector<void*> Launch::arrays() const {
  std::vector<void*> result;
  for (const Offload::Mapped& array : arrays_) result.push_back(array.host);
  return result;
}

std::size_t Launch::bytes() const {
  std::size_t sum = 0;
  for (const Offload::Mapped& array : arrays_) sum += array.bytes();
  return sum;
}

// The program's scalars, padded to words, then for every item the number of its array and its offset.
std::vector<std::byte> Launch::all_scalars() const {
  std::vector<std::byte> result(scalars_.begin(), scalars_.end());
  result.resize((result.size() + sizeof(long) - 1) / sizeof(long) * sizeof(long));
  for (const Found& found : found_)
    for (const long number : {static_cast<long>(found.array), found.offset}) {
      const auto* bytes = reinterpret_cast<const std::byte*>(&number);
      result.insert(result.end(), bytes, bytes + sizeof(number));
    }
  return result;
}

// A constant and a coefficient of each of the first loops, in the program's counters.
Affine Launch::affine(const long*& numbers, const Loops& loops, std::size_t count) const {
  Affine result;
  result.constant = *numbers++;
  for (std::size_t k = 0; k < count; ++k) {
    const long coefficient = *numbers++;
    if (k < loops.step.size()) {
      result.constant += coefficient * loops.first[k];
      result.coefficients.push_back(coefficient * loops.step[k]);
    } else {
      result.coefficients.push_back(coefficient);
    }
  }
  return result;
}

namespace {

// Least and largest value over some loops, and the value at their middles.
struct Reach {
  std::int64_t low, high;
  double middle;
};
Reach reach(const Affine& value, const std::vector<Range>& ranges) {
  Reach result{value.constant, value.constant, static_cast<double>(value.constant)};
  for (std::size_t k = 0; k < value.coefficients.size(); ++k) {
    const std::int64_t c = value.coefficients[k], first = ranges[k].begin,
                       last = std::max(first, ranges[k].end - 1);
    result.low += std::min(c * first, c * last);
    result.high += std::max(c * first, c * last);
    result.middle += static_cast<double>(c) * static_cast<double>(first + last) / 2;
  }
  return result;
}

}  // namespace

Launch::Loops Launch::loops(const long*& numbers) const {
  Loops result;
  for (int k = 0; k < table_->distributed; ++k) {
    result.first.push_back(numbers[0]);
    result.step.push_back(numbers[2]);
    result.ranges.push_back({0, std::max(0L, numbers[1])});
    result.trips.push_back(static_cast<double>(result.ranges.back().size()));
    numbers += 3;
  }
  for (int k = 0; k < table_->inner; ++k) {
    const long step = std::max(1L, std::labs(*numbers++));
    const Affine low = affine(numbers, result, result.ranges.size());
    const Affine end = affine(numbers, result, result.ranges.size());
    const Reach from = reach(low, result.ranges), to = reach(end, result.ranges);
    // At least one: what is touched beside the loop is touched though the loop itself may be empty.
    result.ranges.push_back({from.low, std::max(to.high, from.low + 1)});
    result.trips.push_back(std::max(0.0, (to.middle - from.middle) / static_cast<double>(step)));
  }
  for (int k = 0; k < table_->extra; ++k) {
    result.ranges.push_back({0, *numbers++});
    result.trips.push_back(1);
  }
  return result;
}

// An access in the shape that its declaration gives it.
struct Launch::Seen {
  const sst_access* access;
  std::vector<long> inner_extents;
  std::vector<Affine> subscripts;

  long row() const {
    long product = 1;
    for (const long extent : inner_extents) product *= extent;
    return product;
  }
};

std::vector<Launch::Seen> Launch::seen_accesses(const long* numbers, const Loops& loops) const {
  std::vector<Seen> result;
  for (int i = 0; i < table_->accesses; ++i) {
    Seen seen{&table_->access[i], {}, {}};
    for (int d = 1; d < seen.access->dimensions; ++d) seen.inner_extents.push_back(*numbers++);
    for (int d = 0; d < seen.access->dimensions; ++d)
      seen.subscripts.push_back(affine(numbers, loops, loops.ranges.size()));
    result.push_back(std::move(seen));
  }
  return result;
}

namespace {

// One subscript for all dimensions.
Affine linear(const std::vector<Affine>& subscripts, const std::vector<long>& inner_extents,
              std::size_t loops) {
  Affine result;
  result.coefficients.assign(loops, 0);
  for (std::size_t d = 0; d < subscripts.size(); ++d) {
    const long extent = d == 0 ? 1 : inner_extents[d - 1];
    result.constant = result.constant * extent + subscripts[d].constant;
    for (std::size_t k = 0; k < loops; ++k)
      result.coefficients[k] = result.coefficients[k] * extent + subscripts[d].coefficient(k);
  }
  return result;
}

}  // namespace

// Arrays have the shape in which the region sees them where all accesses agree and it fits what is mapped;
// else they are numbers of elements, which may be taken apart again.
void Launch::add_accesses(Region& region, Loops& loops, std::vector<Seen>& accesses) const {
  const auto first_extra = static_cast<std::size_t>(table_->distributed + table_->inner);
  std::vector<bool> gathered;  // an array
  for (std::size_t array = 0; array < arrays_.size(); ++array) {
    const Offload::Mapped& mapped = arrays_[array];
    const auto size = static_cast<long>(size_in_bytes(mapped.type));
    const Seen* shape = nullptr;
    bool together = true;
    for (const Seen& seen : accesses) {
      const Found& found = found_[static_cast<std::size_t>(seen.access->item)];
      if (found.array != static_cast<int>(array)) continue;
      if (found.offset % size != 0 ||
          element_type_of_item(items_[static_cast<std::size_t>(seen.access->item)]) != mapped.type)
        refuse("alias", fmt::format("{} is seen as elements of another type", mapped.name),
               to_string(place()), "use one type for one array");
      if (!shape) shape = &seen;
      together = together && seen.inner_extents == shape->inner_extents && seen.row() > 0 &&
                 found.offset / size % seen.row() == 0 && mapped.count % seen.row() == 0;
    }
    std::vector<std::int64_t> extents{mapped.count};
    if (shape && together) {
      extents[0] = mapped.count / shape->row();
      extents.insert(extents.end(), shape->inner_extents.begin(), shape->inner_extents.end());
    }
    region.arrays.push_back({mapped.name, mapped.type, extents});
    // Another name of the array may be used otherwise: then every tile receives it whole.
    bool together_gathered = true;
    for (const Seen& seen : accesses)
      if (found_[static_cast<std::size_t>(seen.access->item)].array == static_cast<int>(array))
        together_gathered = together_gathered && seen.access->gathered != 0 && seen.access->writes == 0;
    gathered.push_back(together_gathered);
    for (std::size_t i = 0; i < items_.size(); ++i)
      if (found_[i].array == static_cast<int>(array) && items_[i].kind & sst_steers)
        region.arrays.back().steers = true;
    for (Seen& seen : accesses) {
      const Found& found = found_[static_cast<std::size_t>(seen.access->item)];
      if (found.array != static_cast<int>(array)) continue;
      const long rows = together ? found.offset / size / seen.row() : found.offset / size;
      for (std::size_t k = first_extra; k < loops.ranges.size(); ++k) {
        if (seen.subscripts[0].coefficient(k) == 0 || loops.ranges[k].end > 0) continue;
        if (!together && seen.subscripts.size() > 1)
          refuse("not-affine", fmt::format("{} is seen in several shapes", mapped.name), to_string(place()),
                 "use one shape for one array");
        loops.ranges[k] = {-rows, extents[0] - rows};
      }
      if (!together) seen.subscripts = {linear(seen.subscripts, seen.inner_extents, loops.ranges.size())};
      seen.subscripts[0].constant += rows;
    }
  }
  for (Seen& seen : accesses) {
    const int array = found_[static_cast<std::size_t>(seen.access->item)].array;
    region.accesses.push_back({array, seen.access->reads != 0, seen.access->writes != 0,
                               std::move(seen.subscripts), seen.access->line,
                               gathered[static_cast<std::size_t>(array)]});
  }
}

void Launch::add_reductions(Region& region) const {
  // Six workers have a copy each, and three more are combined: a chosen half of a tile's memory.
  constexpr std::size_t most = 32 * 1024;
  for (int r = 0; r < table_->reductions; ++r) {
    const int array = found_[static_cast<std::size_t>(table_->reduction[r].item)].array;
    if (array < 0)
      refuse("unmapped", "the result of a reduction is not on the device", to_string(place()), "map it");
    const Offload::Mapped& mapped = arrays_[static_cast<std::size_t>(array)];
    if (mapped.bytes() > most)
      refuse("footprint", fmt::format("{} of {} bytes is reduced into", mapped.name, mapped.bytes()),
             to_string(place()), fmt::format("map at most {} bytes of it", most));
    region.reductions.push_back({array, static_cast<Operator>(table_->reduction[r].op)});
  }
}

namespace {

void add(Work& sum, const sst_work& work, double times) {
  sum.inner_loops += times * work.starts;
  sum.loads += times * work.loads;
  sum.stores += times * work.stores;
  sum.integer_operations += times * work.integers;
  sum.float_operations += times * work.floats;
  sum.divisions += times * work.divisions;
  sum.square_roots += times * work.roots;
  sum.exponentials += times * work.exponentials;
  sum.logarithms += times * work.logarithms;
  sum.sines += times * work.sines;
  sum.powers += times * work.powers;
}

}  // namespace

// How often all of the inner loops in `bits` turn.
double Launch::trips(unsigned bits, const Loops& loops) const {
  double times = 1;
  for (int k = 0; k < table_->inner; ++k)
    if (bits >> k & 1u) times *= loops.trips[static_cast<std::size_t>(table_->distributed + k)];
  return times;
}

// Of one iteration, counted loops as one turn each, or without them.
Work Launch::work(const Loops& loops, bool with_counted) const {
  Work sum;
  sum.vectorised = table_->vectorised != 0;  // if the accesses let it: dealt()
  for (int i = 0; i < table_->works; ++i)
    if (const sst_work& work = table_->work[i]; with_counted || work.counted == 0)
      add(sum, work, trips(work.loops, loops));
  return sum;
}

std::vector<Work> Launch::turns(const Loops& loops) const {
  std::vector<Work> result(static_cast<std::size_t>(table_->counted));
  for (int i = 0; i < table_->works; ++i)
    if (const sst_work& work = table_->work[i]; work.counted > 0)
      add(result[static_cast<std::size_t>(work.counted - 1)], work, trips(work.inside, loops));
  return result;
}

namespace {

// Part and sst_part are one layout, and a reference is passed as a pointer is.
Body body_of(sst_body body) { return std::bit_cast<Body>(body); }

}  // namespace

namespace {

// Whether neighbours along the last loop that is dealt are neighbours in every array, or one element.
bool is_contiguous(const Region& region) {
  const auto last = static_cast<std::size_t>(region.distributed - 1);
  for (const Access& access : region.accesses)
    for (std::size_t d = 0; d < access.subscripts.size(); ++d) {
      const std::int64_t step = access.subscripts[d].coefficient(last);
      if (step != 0 && (step != 1 || d + 1 < access.subscripts.size())) return false;
    }
  return true;
}

}  // namespace

Region Launch::dealt() const {
  Region region;
  region.place = place();
  region.distributed = table_->distributed;
  const long* numbers = numbers_;
  Loops all = loops(numbers);
  std::vector<Seen> accesses = seen_accesses(numbers, all);
  add_accesses(region, all, accesses);
  region.loops = all.ranges;
  add_reductions(region);
  region.work = work(all, !region.gathers());
  if (region.gathers()) region.turns = turns(all);
  region.scalars = all_scalars();
  region.body = body_of(table_->dealt);
  split_linear_subscripts(region);
  region.work.vectorised = region.work.vectorised && table_->extra == 0 && is_contiguous(region);
  return region;
}

Region Launch::whole() const {
  Region region;
  region.place = place();
  const long* numbers = numbers_;
  const Loops all = loops(numbers);
  for (std::size_t array = 0; array < arrays_.size(); ++array) {
    const Offload::Mapped& mapped = arrays_[array];
    region.arrays.push_back({mapped.name, mapped.type, {mapped.count}});
    Access access;
    access.array = static_cast<int>(array);
    for (std::size_t i = 0; i < items_.size(); ++i)
      if (found_[i].array == access.array && items_[i].kind & sst_written) access.writes = true;
    Affine subscript;
    subscript.coefficients.assign(array + 1, 0);
    subscript.coefficients.back() = 1;
    access.subscripts = {subscript};
    region.accesses.push_back(access);
    region.loops.push_back({0, mapped.count});
  }
  region.work = work(all, true);
  region.work.vectorised = false;
  double times = 1;
  for (int k = 0; k < table_->distributed; ++k) times *= all.trips[static_cast<std::size_t>(k)];
  for (double* count : {&region.work.loads, &region.work.stores, &region.work.integer_operations,
                        &region.work.float_operations, &region.work.divisions, &region.work.square_roots,
                        &region.work.exponentials, &region.work.logarithms, &region.work.sines,
                        &region.work.powers, &region.work.inner_loops})
    *count *= times;
  region.scalars = all_scalars();
  region.body = body_of(table_->whole);
  return region;
}

}  // namespace superstep::openmp
