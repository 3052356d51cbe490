// What an Offload keeps: the table of arrays, the queue, plans and compiled queues.
#pragma once

#include <set>

#include "superstep/openmp/offload.h"
#include "superstep/openmp/place.h"
#include "superstep/openmp/present.h"

namespace superstep::openmp {

struct KnownPlan {
  Region region;
  std::vector<DeviceArray*> arrays;
  std::shared_ptr<const Plan> plan;  // made when the queue first runs
  std::uint64_t launches = 0;        // waiting in the queue
  bool scalars_vary = false;         // since a launch had others than the first
  SteeringContents contents;         // of arrays that steer what is gathered
  double weight() const {
    return static_cast<double>(launches) * static_cast<double>(region.iterations().volume()) *
           cycles_of(region.work, widest_float(region));
  }
};

struct CompiledQueue {
  LoweredQueue queue;
  std::map<std::string, std::uint64_t> launches;  // of one run, by region
};

class Offload::Implementation {
 public:
  Implementation(bsp::Device device, const OffloadOptions& options)
      : device_(std::move(device)), options_(options) {}

  Command prepare(const Region& region, std::span<void* const> pointers);
  void launch(Command command);
  void transfer(CommandKind kind, PresentArray& there, std::byte* host, std::int64_t begin, std::int64_t end);
  void run();
  Report report() const;
  std::vector<const bsp::Profile*> profiles() const;

 private:
  friend class Offload;

  struct Memory {  // of an array, while no program holds it
    std::vector<std::byte> bytes;
    CompiledQueue* holder = nullptr;  // whose engine has the newest values
  };

  // What is known of an array's values without asking the device again.
  struct Known {
    std::shared_ptr<const std::vector<std::byte>> bytes;
    std::uint64_t hash = 0;
  };

  bool resolve_gathers(Region& region, std::span<DeviceArray* const> arrays, SteeringContents& contents,
                       std::string& key);
  const Known* contents_of(DeviceArray& array);
  void forget(const KnownPlan& plan, std::span<DeviceArray* const> arrays);
  bool stand_in(int plan);
  void check_results(const KnownPlan& known) const;
  Plan plan_of(const KnownPlan& known);
  void place_queue();
  int place_plans();
  void mark_scalars();
  std::string queue_key() const;
  CompiledQueue& program();
  void write_memory(CompiledQueue& program);
  void pull(DeviceArray& array);
  std::vector<std::vector<std::byte>> connect(CompiledQueue& program);

  bsp::Device device_;
  OffloadOptions options_;
  PresentTable present_;
  const bsp::Profile* last_ = nullptr;
  std::vector<Command> queue_;
  std::map<std::string, int> plan_numbers_;
  std::vector<KnownPlan> plans_;
  std::map<std::string, std::unique_ptr<CompiledQueue>> programs_;
  std::map<DeviceArray*, Memory> memory_;
  std::map<DeviceArray*, Known> known_;                   // not written since
  std::map<std::string, std::set<std::string>> steered_;  // a place: the keys of what steered its launches
  std::vector<std::string> order_;                        // regions, by first launch
  std::vector<std::string> replaced_;                     // why launches were replaced by those that stood in
  std::uint64_t runs_ = 0;
};

}  // namespace superstep::openmp
