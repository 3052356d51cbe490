#include "superstep/openmp/offload.h"

#include <fmt/format.h>

#include <cstring>

#include "superstep/openmp/offload_implementation.h"
#include "superstep/openmp/plan_key.h"

namespace superstep::openmp {
namespace {

std::uint64_t hash_of(const std::vector<std::byte>& bytes) {
  return std::hash<std::string_view>()({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

}  // namespace

// The values that an array will have when the queue has run. Null: only time is counted, and they are not
// known.
const Offload::Implementation::Known* Offload::Implementation::contents_of(DeviceArray& array) {
  if (const auto known = known_.find(&array); known != known_.end()) return &known->second;
  if (options_.timing_only) return nullptr;
  run();
  pull(array);
  Known known;
  known.bytes = std::make_shared<const std::vector<std::byte>>(memory_[&array].bytes);
  known.hash = hash_of(*known.bytes);
  return &(known_[&array] = std::move(known));
}

// False: every tile is to receive the gathered arrays whole, because what steers is written by the region,
// not known, or never twice the same.
bool Offload::Implementation::resolve_gathers(Region& region, std::span<DeviceArray* const> arrays,
                                              SteeringContents& contents, std::string& key) {
  constexpr std::size_t most_plans = 8;
  contents.resize(arrays.size());
  for (std::size_t slot = 0; slot < arrays.size(); ++slot) {
    if (!region.arrays[slot].steers) continue;
    for (std::size_t other = 0; other < arrays.size(); ++other)
      for (const Access& access : region.accesses)
        if (access.writes && access.array == static_cast<int>(other) && arrays[other] == arrays[slot])
          return false;
    const Known* known = contents_of(*arrays[slot]);
    if (!known) return false;
    contents[slot] = known->bytes;
    put(key, static_cast<std::int64_t>(known->hash));
  }
  put(key, region.scalars.data(), region.scalars.size());
  std::set<std::string>& seen = steered_[to_string(region.place)];
  if (seen.size() >= most_plans && !seen.contains(key)) {
    if (seen.size() == most_plans)
      replaced_.push_back(
          fmt::format("replans: {} has gathered by {} sets of numbers; from now on its tiles "
                      "receive whole arrays",
                      to_string(region.place), most_plans));
    seen.insert(std::string());  // no launch has it: this has been said
    return false;
  }
  seen.insert(key);
  return true;
}

// A command for the region on these arrays, its plan known; nothing waits in the queue yet.
Command Offload::Implementation::prepare(const Region& asked, std::span<void* const> pointers) {
  Region region = asked;
  if (pointers.size() != region.arrays.size())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} arrays for a region of {}", pointers.size(), region.arrays.size()),
                to_string(region.place), "give every array of the region");
  std::vector<DeviceArray*> arrays;
  for (std::size_t slot = 0; slot < pointers.size(); ++slot) {
    const RegionArray& seen = region.arrays[slot];
    const PresentArray* there = present_.find(pointers[slot]);
    const std::string where = to_string(region.place);
    if (!there)
      refuse("unmapped", fmt::format("{} is not on the device", seen.name), where,
             "map it, or enclose the region in target data");
    if (there->array->type != seen.type || there->array->count != seen.count())
      refuse("unmapped",
             fmt::format("{} is {} elements of {} here, {} of {} are on the device", seen.name, seen.count(),
                         superstep::name_of(seen.type), there->array->count,
                         superstep::name_of(there->array->type)),
             where, "map the section that the region uses");
    arrays.push_back(there->array);
  }
  SteeringContents contents;
  std::string steering;
  if (region.gathers() && !resolve_gathers(region, arrays, contents, steering)) {
    region.receive_whole();
    steering.clear();
  }
  std::string key = plan_key(region) + steering;
  for (const DeviceArray* array : arrays) put(key, array->number);
  const auto [place, added] = plan_numbers_.try_emplace(std::move(key), static_cast<int>(plans_.size()));
  if (added) {
    try {
      check_region(region);
      for (const Access& access : region.accesses)
        for (std::size_t slot = 0; slot < arrays.size(); ++slot)
          if (access.writes && arrays[slot] == arrays[static_cast<std::size_t>(access.array)] &&
              slot != static_cast<std::size_t>(access.array))
            refuse("alias",
                   fmt::format("{} and {} are one array", region.arrays[slot].name,
                               region.arrays[static_cast<std::size_t>(access.array)].name),
                   region.where(access), "write to an array of its own");
    } catch (...) {
      plan_numbers_.erase(place);
      throw;
    }
    plans_.push_back({region, arrays, nullptr, 0, false, std::move(contents)});
    if (const std::string where = to_string(region.place); std::ranges::find(order_, where) == order_.end())
      order_.push_back(where);
  }
  KnownPlan& known = plans_[static_cast<std::size_t>(place->second)];
  known.scalars_vary = known.scalars_vary || known.region.scalars != region.scalars;
  Command command;
  command.scalars = region.scalars;
  command.plan = place->second;
  command.arrays = std::move(arrays);
  return command;
}

// What a region writes is not known before it has run.
void Offload::Implementation::forget(const KnownPlan& plan, std::span<DeviceArray* const> arrays) {
  for (const Access& access : plan.region.accesses)
    if (access.writes) known_.erase(arrays[static_cast<std::size_t>(access.array)]);
  for (const Reduction& reduction : plan.region.reductions)
    known_.erase(arrays[static_cast<std::size_t>(reduction.array)]);
}

void Offload::Implementation::launch(Command command) {
  ++plans_[static_cast<std::size_t>(command.plan)].launches;
  for (const Command* each = &command; each; each = each->instead.get())
    forget(plans_[static_cast<std::size_t>(each->plan)], each->arrays);
  queue_.push_back(std::move(command));
}

void Offload::Implementation::transfer(CommandKind kind, PresentArray& there, std::byte* host,
                                       std::int64_t begin, std::int64_t end) {
  if (begin < 0 || end > there.array->count || begin > end)
    refuse("unmapped",
           fmt::format("elements {} to {} of {}, which has {}", begin, end, there.array->name,
                       there.array->count),
           {}, "update what is mapped");
  if (begin == end) return;
  Command command;
  command.kind = kind;
  command.arrays = {there.array};
  command.begin = begin;
  command.end = end;
  const std::size_t size = size_in_bytes(there.array->type);
  std::byte* first = host + static_cast<std::size_t>(begin) * size;
  if (kind == CommandKind::from_device) command.host = first;
  if (kind == CommandKind::to_device) {
    known_.erase(there.array);
    // Numbers may steer what is gathered, which decides what is counted.
    if (begin == 0 && end == there.array->count && !is_floating(there.array->type)) {
      Known known;
      known.bytes =
          std::make_shared<const std::vector<std::byte>>(first, first + static_cast<std::size_t>(end) * size);
      known.hash = hash_of(*known.bytes);
      known_[there.array] = std::move(known);
    }
  }
  if (kind == CommandKind::to_device && !options_.timing_only)
    command.data.assign(first, first + static_cast<std::size_t>(end - begin) * size);
  queue_.push_back(std::move(command));
}

Offload::Offload(bsp::Device device, const OffloadOptions& options)
    : implementation_(std::make_unique<Implementation>(std::move(device), options)) {}
Offload::~Offload() = default;

void Offload::enter(void* host, const std::string& name, ElementType type, std::int64_t count, Enter how) {
  PresentArray& there = implementation_->present_.add(host, name, type, count);
  if (there.references++ == 0 && how == Enter::to)
    implementation_->transfer(CommandKind::to_device, there, there.host, 0, count);
}

void Offload::leave(void* host, Leave how) {
  const Departure departure{host, how};
  leave(std::span(&departure, 1));
}

void Offload::leave(std::span<const Departure> departures) {
  std::vector<void*> gone;
  bool read = false;
  for (const Departure& departure : departures) {
    PresentArray& there = implementation_->present_.get(departure.host, "an array that is to leave");
    if (departure.how == Leave::remove) there.references = 1;
    if (there.references == 0 || --there.references > 0) continue;
    gone.push_back(there.host);
    if (departure.how != Leave::from) continue;
    implementation_->transfer(CommandKind::from_device, there, there.host, 0, there.array->count);
    read = true;
  }
  if (read) finish();
  for (void* host : gone) implementation_->present_.remove(host);
}

std::optional<Offload::Mapped> Offload::mapped(const void* byte) const {
  const PresentArray* there = implementation_->present_.containing(byte);
  if (!there) return std::nullopt;
  return Mapped{there->host, there->array->name, there->array->type, there->array->count};
}

std::vector<Offload::Mapped> Offload::all_mapped() const {
  std::vector<Mapped> result;
  for (const auto& [begin, there] : implementation_->present_.all())
    result.push_back({there.host, there.array->name, there.array->type, there.array->count});
  return result;
}

bool Offload::present(const void* host) const { return implementation_->present_.find(host) != nullptr; }

void Offload::update_to(const void* host, std::int64_t begin, std::int64_t end) {
  PresentArray& there = implementation_->present_.get(host, "an array to update");
  implementation_->transfer(CommandKind::to_device, there, there.host, begin, end);
}

void Offload::update_from(void* host, std::int64_t begin, std::int64_t end) {
  PresentArray& there = implementation_->present_.get(host, "an array to update");
  implementation_->transfer(CommandKind::from_device, there, there.host, begin, end);
  finish();
}

void Offload::ask_for(void* host, std::int64_t begin, std::int64_t end) {
  PresentArray& there = implementation_->present_.get(host, "an array to update");
  implementation_->transfer(CommandKind::from_device, there, there.host, begin, end);
}

void Offload::launch(const Region& region, std::span<void* const> arrays) {
  implementation_->launch(implementation_->prepare(region, arrays));
}

void Offload::launch(const Region& region, std::span<void* const> arrays, const Region& instead,
                     std::span<void* const> instead_arrays) {
  Command command = implementation_->prepare(region, arrays);
  command.instead = std::make_shared<Command>(implementation_->prepare(instead, instead_arrays));
  implementation_->launch(std::move(command));
}

void Offload::finish() { implementation_->run(); }

const bsp::Device& Offload::device() const { return implementation_->device_; }

Report Offload::report() const { return implementation_->report(); }

std::vector<const bsp::Profile*> Offload::profiles() const { return implementation_->profiles(); }

const bsp::Profile* Offload::last_profile() const { return implementation_->last_; }

}  // namespace superstep::openmp
