#include "superstep/openmp/program/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace superstep::openmp {
namespace {

std::string first_line(const Error& error) {
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

}  // namespace

ProgramDevice::ProgramDevice(Settings settings)
    : settings_(std::move(settings)), offload_(settings_.device, settings_.offload) {}

bool ProgramDevice::is_host(int device, const std::string& where) const {
  if (device == sst_this_host || settings_.disabled || device == 1)
    return true;  // 1: omp_get_initial_device()
  if (device == sst_default_device || device == 0) return false;
  throw Error(ErrorCode::invalid_argument, fmt::format("there is no device {}", device), where,
              "device(0) is the only one, omp_get_initial_device() this host");
}

void ProgramDevice::enter(const SourcePlace& place, std::span<const sst_item> items) {
  for (const sst_item& item : items) {
    if (item.kind & sst_look_up || item.bytes == 0) continue;
    auto* begin = static_cast<std::byte*>(item.address);
    const auto there = offload_.mapped(begin);
    const bool inside = there && begin + item.bytes <= static_cast<std::byte*>(there->host) + there->bytes();
    if (!inside && item.kind & sst_must_be_present)
      refuse("unmapped", fmt::format("{} is not on the device", item.name), to_string(place),
             "map it before, or leave out `present`");
    const Enter how = item.kind & sst_to ? Enter::to : Enter::alloc;
    try {
      if (inside)
        offload_.enter(there->host, there->name, there->type, there->count, how);
      else
        offload_.enter(begin, item.name, element_type_of_item(item),
                       item.bytes / static_cast<long>(size_in_bytes(element_type_of_item(item))), how);
    } catch (const Error& error) {
      throw error.in(to_string(place));
    }
    if (inside && item.kind & sst_always && item.kind & sst_to) {
      const auto size = static_cast<long>(size_in_bytes(there->type));
      const long first = (begin - static_cast<std::byte*>(there->host)) / size;
      offload_.update_to(there->host, first, first + item.bytes / size);
    }
    if (!inside && item.kind & sst_constant) constants_.insert(begin);
  }
}

void ProgramDevice::leave(const SourcePlace&, std::span<const sst_item> items) {
  std::vector<Offload::Departure> departures;
  for (const sst_item& item : items) {
    if (item.kind & sst_look_up || item.bytes == 0) continue;
    const auto there = offload_.mapped(item.address);
    if (!there) continue;  // as the specification has it
    const auto* begin = static_cast<const std::byte*>(item.address);
    if (item.kind & sst_from && item.kind & sst_always) {
      const auto size = static_cast<long>(size_in_bytes(there->type));
      const long first = (begin - static_cast<const std::byte*>(there->host)) / size;
      offload_.update_from(there->host, first, first + item.bytes / size);
    }
    if (globals_.contains(there->host)) continue;  // for as long as the program runs
    departures.push_back({there->host, item.kind & sst_delete ? Leave::remove
                                       : item.kind & sst_from ? Leave::from
                                                              : Leave::release});
  }
  offload_.leave(departures);
  std::erase_if(constants_, [&](void* host) { return !offload_.present(host); });
}

// Pieces that touch each other are one.
void ProgramDevice::move_pieces(const sst_item& item, const Offload::Mapped& there) {
  const auto size = static_cast<long>(size_in_bytes(there.type));
  const bool together = item.times < 0 || item.pitch == item.bytes;
  const long bytes = item.times >= 0 && together ? item.times * item.bytes : item.bytes;
  const auto* begin = static_cast<const std::byte*>(item.address);
  for (long piece = 0; piece < (together ? 1 : item.times); ++piece) {
    const long first = (begin + piece * item.pitch - static_cast<const std::byte*>(there.host)) / size;
    if (item.kind & sst_to) offload_.update_to(there.host, first, first + bytes / size);
    if (item.kind & sst_from) offload_.ask_for(there.host, first, first + bytes / size);
  }
}

void ProgramDevice::update(const SourcePlace& place, std::span<const sst_item> items) {
  bool read = false;
  for (const sst_item& item : items) {
    const auto there = offload_.mapped(item.address);
    if (!there) {
      if (item.kind & sst_must_be_present)
        refuse("unmapped", fmt::format("{} is not on the device", item.name), to_string(place),
               "map it before");
      continue;
    }
    read = read || item.kind & sst_from;
    move_pieces(item, *there);
  }
  if (read) offload_.finish();
}

void ProgramDevice::add_global(const SourcePlace& place, const sst_item& item) {
  enter(place, {&item, 1});
  globals_.insert(item.address);
}

RegionRecord& ProgramDevice::record_of(const sst_region& region) {
  RegionRecord& record = regions_[{region.line, region.file}];
  record.place = {region.file, region.line};
  return record;
}

// Once a region: what becomes of it.
void ProgramDevice::tell(RegionRecord& record, const std::string& reason, const char* where_it_runs) {
  if (settings_.mandatory)
    throw Error(ErrorCode::unsupported, reason, to_string(record.place),
                "OMP_TARGET_OFFLOAD=mandatory is set");
  if (record.reason.empty())
    fmt::print(stderr, "{}: warning: {}; runs on {}\n", to_string(record.place), reason, where_it_runs);
  record.reason = reason;
}

// True: it waits in the queue. False: the host has to run it.
bool ProgramDevice::launch(const Launch& launch, RegionRecord& record) {
  const sst_region& table = launch.table();
  // What one tile may hold beside code and its share of the arrays: a chosen part of its memory.
  const bool fits = 3 * launch.bytes() < 2 * settings_.device.bytes_per_tile;
  const std::vector<void*> arrays = launch.arrays();
  std::string reason = table.not_dealt ? table.not_dealt : "";
  if (table.dealt) {
    try {
      const Region region = launch.dealt();
      if (table.whole && fits)
        offload_.launch(region, arrays, launch.whole(), arrays);
      else
        offload_.launch(region, arrays);
      ++record.dealt;
      return true;
    } catch (const Error& error) {
      reason = first_line(error);
    }
  }
  if (table.whole && fits) {
    // Tasks that depend on each other are meant to run one after the other.
    if (table.distributed > 0 && !table.of_tasks) tell(record, reason, "one tile");
    offload_.launch(launch.whole(), arrays);
    ++record.on_one_tile;
    return true;
  }
  if (table.whole)
    reason += fmt::format("{}{} bytes do not fit into a tile", reason.empty() ? "" : "; ", launch.bytes());
  else
    reason = table.not_whole;
  tell(record, reason, "the host");
  return false;
}

int ProgramDevice::to_host(const sst_region& region, std::span<const sst_item> items, RegionRecord& record) {
  if (settings_.offload.timing_only)
    throw Error(ErrorCode::unsupported, "a region that runs on the host needs its data",
                to_string(record.place), "leave out timing-only");
  ++record.on_host;
  pending_ = std::make_unique<Pending>();
  pending_->region = &region;
  pending_->items.assign(items.begin(), items.end());
  pending_->record = &record;
  pending_->host = std::make_unique<Contents>(offload_, constants_);
  fetch(offload_, *pending_->host);
  return 1;
}

int ProgramDevice::target(const sst_region& region, std::span<const sst_item> items, const long* numbers,
                          std::span<const std::byte> scalars, int device) {
  const SourcePlace place{region.file, region.line};
  if (is_host(device, to_string(place))) return 2;
  RegionRecord& record = record_of(region);
  enter(place, items);
  for (const sst_item& item : items) adopt(item);
  std::optional<Launch> found;
  try {
    found.emplace(region, items, numbers, scalars, offload_);
  } catch (const Error& error) {
    tell(record, first_line(error), "the host");
    return to_host(region, items, record);
  }
  if (settings_.check && !settings_.offload.timing_only) {
    const Contents host(offload_, constants_);
    fetch(offload_, host);
    const Contents before(offload_, constants_);
    host.put_back();
    if (!launch(*found, record)) return to_host(region, items, record);
    pending_ = std::make_unique<Pending>();
    pending_->host = std::make_unique<Contents>(host);
    fetch(offload_, host);
    pending_->tiles = std::make_unique<Contents>(offload_, constants_);
    before.put_back();
    pending_->region = &region;
    pending_->items.assign(items.begin(), items.end());
    pending_->record = &record;
    for (int r = 0; r < region.reductions; ++r)
      if (const auto there =
              offload_.mapped(items[static_cast<std::size_t>(region.reduction[r].item)].address))
        pending_->sums.insert(there->host);
    return 1;
  }
  if (!launch(*found, record)) return to_host(region, items, record);
  if (settings_.each) offload_.finish();
  leave(place, items);
  return 0;
}

void ProgramDevice::target_end() {
  if (!pending_) return;
  const std::unique_ptr<Pending> done = std::move(pending_);
  if (done->tiles) {
    ++done->record->checked;
    if (const std::string words = done->tiles->difference(done->sums); !words.empty()) {
      if (done->record->difference.empty())
        fmt::print(stderr, "{}: check: {}\n", to_string(done->record->place), words);
      done->record->difference = words;
    }
  } else {
    send(offload_, *done->host);
  }
  done->host->put_back();
  leave(done->record->place, done->items);
}

}  // namespace superstep::openmp
