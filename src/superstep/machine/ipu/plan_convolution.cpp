// The plan of a pass of a convolution: the fastest of the forms it can be done as. Plans are kept for as long
// as the process lasts, and on disk where the program asks for that (kept_plans.h).
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include "superstep/base/file.h"
#include "superstep/base/system/user_folders.h"
#include "superstep/machine/ipu/kept_plans.h"
#include "superstep/machine/ipu/planner_digest.h"
#include "superstep/machine/ipu/superstep_cost.h"
#include "superstep/machine/ipu/tile_share.h"

namespace superstep::machine::ipu {

namespace {

// The fastest of all forms; where none keeps within the share of memory, the bound is doubled.
constexpr double no_limit = 1e18;  // bytes: more than any machine has

// Forms of few axes come first: they are searched quickly, and what is found there shortens the others'.
PartPlan best_of(const Hardware& hardware, std::vector<FormedProduct> forms) {
  std::ranges::stable_sort(forms, {}, [](const FormedProduct& form) { return form.product.rows.size(); });
  const double whole = static_cast<double>(hardware.tile_bytes);
  for (double limit = hardware.memory_proportion * whole;; limit *= 2) {
    if (limit > 2 * whole) limit = no_limit;
    PartPlan best;
    for (const FormedProduct& form : forms) {
      const double most =
          best.plan.tiles != 0 ? best.plan.cycles.total() : std::numeric_limits<double>::infinity();
      SearchResult found = search(hardware, form.product, limit, most);
      if (found.plan.tiles == 0) continue;
      best = {std::move(found.plan), form.form, form.combined, found.grain, found.partition, found.swapped};
    }
    if (best.plan.tiles > 0 || limit >= no_limit) return best;
  }
}

// A program runs parts that are the same pass on slices of the operands: groups that are done together keep
// their channels, and every partial sum is there at once.
void restrict_to_parts(FormedProduct& form, const Convolution& forward) {
  Product& product = form.product;
  product.parts_only = true;
  product.whole_channels = form.combined > 1 || (forward.groups > 1 && !forward.axes.empty());
}

// Of a gradient by the weights the kernel is among the rows, behind the channels.
void keep_kernels_whole(FormedProduct& form, const Convolution& forward, Pass pass) {
  Product& product = form.product;
  product.whole_kernel = true;
  if (pass != Pass::weight_gradient) return;
  const std::int64_t kernel = forward.kernel_positions();
  if (form.form == ProductForm::weight_gradient && kernel > 1) product.rows = {forward.in_channels, kernel};
  product.most_row_splits.assign(product.rows.size(), 1);
  product.most_row_splits[0] = product.rows[0];
}

// What a plan is asked for: that of a whole operator, or one that a program runs part by part.
enum class Asked : std::uint8_t { whole, parts, parts_with_whole_kernels };

PartPlan find_plan(const Hardware& hardware, const Convolution& forward, Pass pass,
                   const Arrangement& arrangement, Asked asked) {
  std::vector<FormedProduct> forms = forms_of(forward, pass, arrangement);
  for (FormedProduct& form : forms) {
    if (asked != Asked::whole) restrict_to_parts(form, forward);
    if (asked == Asked::parts_with_whole_kernels) keep_kernels_whole(form, forward, pass);
  }
  PartPlan found = best_of(hardware, std::move(forms));
  Plan& plan = found.plan;
  plan.macs = forward.macs();
  const double elements = forward.input_elements() + forward.weight_elements() + forward.output_elements();
  plan.bytes.operands =
      elements * static_cast<double>(bytes_of(forward.element)) / static_cast<double>(hardware.tiles);
  return found;
}

// Everything a plan depends on.
using Key = PlanKey;

Key key_of(const Hardware& h, const Convolution& c, Pass pass, const Arrangement& arrangement, Asked asked) {
  const auto number = [](auto value) { return static_cast<double>(value); };
  Key key{number(h.tiles),
          number(h.workers),
          number(h.tile_bytes),
          number(h.interleaved_start),
          number(h.memory_element),
          number(h.load_rate),
          number(h.exchange_rate),
          number(h.memcpy_rate),
          number(h.coefficient_load_rate),
          number(h.conv_units_f16),
          number(h.conv_units_f16_f32),
          number(h.conv_units_f32),
          number(h.vector_f32),
          number(h.vector_f16),
          h.mac_f16,
          h.mac_f16_f32,
          h.mac_f32,
          h.memory_proportion,
          h.sync_cycles,
          h.exchange_setup,
          h.exchange_share,
          h.program_cycles,
          h.rearrange_base,
          h.rearrange_rate,
          h.step_cycles,
          h.product_bytes,
          number(pass),
          number(arrangement.input),
          number(arrangement.weights),
          number(asked),
          number(c.groups),
          number(c.batch),
          number(c.in_channels),
          number(c.out_channels),
          number(c.element),
          number(c.partials)};
  for (const Axis& axis : c.axes)
    for (std::int64_t value :
         {axis.input, axis.output, axis.kernel, axis.stride, axis.kernel_step, axis.dilation})
      key.push_back(number(value));
  return key;
}

// Models repeat their layers, and predictions their models.
class PlanCache {
 public:
  bool find(const Key& key, PartPlan& plan) {
    std::call_once(read_, [this] { read(); });
    const std::shared_lock lock(mutex_);
    const auto found = plans_.find(key);
    ++(found == plans_.end() ? searched_ : remembered_);
    if (found == plans_.end()) return false;
    plan = found->second;
    return true;
  }
  void keep(Key key, const PartPlan& plan) {
    const std::unique_lock lock(mutex_);
    if (plans_.size() >= most_plans) plans_.clear();
    if (!path_.empty()) news_ += record_of(key, plan);
    plans_.emplace(std::move(key), plan);
  }
  // Before the first plan is asked for.
  void look_in(std::filesystem::path path) { path_ = std::move(path); }
  void append() {
    const std::unique_lock lock(mutex_);
    if (path_.empty() || news_.empty()) return;
    std::error_code ignored;
    // A file that has grown beyond all use is begun anew.
    const bool anew = std::filesystem::file_size(path_, ignored) > most_bytes && !ignored;
    std::ofstream file(path_, std::ios::binary | (anew ? std::ios::trunc : std::ios::app));
    file.write(news_.data(), static_cast<std::streamsize>(news_.size()));
    news_.clear();
  }
  PlanCounts counts() const { return {searched_, remembered_}; }

 private:
  // Chosen: bounds the memory of a long sweep; beyond, the cache begins anew.
  static constexpr std::size_t most_plans = 100000;
  static constexpr std::uintmax_t most_bytes = 64 << 20;  // chosen likewise
  // A damaged file is put away, so that what is appended to it is found again.
  void read() {
    std::error_code ignored;
    if (path_.empty() || !std::filesystem::exists(path_, ignored)) return;
    try {
      const std::string text = read_text_file(path_);
      if (read_records(text, plans_) < text.size()) std::filesystem::remove(path_, ignored);
    } catch (const Error&) {
      path_.clear();
    }
  }

  std::once_flag read_;
  std::filesystem::path path_;  // empty: plans are not kept on disk
  std::string news_;            // records that are not there yet
  mutable std::shared_mutex mutex_;
  std::map<Key, PartPlan> plans_;
  std::atomic<std::uint64_t> searched_ = 0, remembered_ = 0;
};

PlanCache& plan_cache() {
  static PlanCache cache;
  return cache;
}

PartPlan cached_plan(const Hardware& hardware, const Convolution& forward, Pass pass,
                     const Arrangement& arrangement, Asked asked) {
  PlanCache& cache = plan_cache();
  Key key = key_of(hardware, forward, pass, arrangement, asked);
  PartPlan plan;
  if (cache.find(key, plan)) return plan;
  plan = find_plan(hardware, forward, pass, arrangement, asked);
  cache.keep(std::move(key), plan);
  return plan;
}

}  // namespace

Plan plan_convolution(const Hardware& hardware, const Convolution& forward, Pass pass,
                      const Arrangement& arrangement) {
  return cached_plan(hardware, forward, pass, arrangement, Asked::whole).plan;
}

PartPlan plan_parts(const Hardware& hardware, const Convolution& forward, Pass pass,
                    const Arrangement& arrangement, Kernels kernels) {
  return cached_plan(hardware, forward, pass, arrangement,
                     kernels == Kernels::whole ? Asked::parts_with_whole_kernels : Asked::parts);
}

namespace {

// The product that a plan makes of (a part of) a convolution.
Product product_by(const PartPlan& plan, const Convolution& convolution, Pass pass,
                   const Arrangement& arrangement) {
  const std::int64_t combined = convolution.groups >= plan.combined ? plan.combined : 1;
  const Product product = product_of(convolution, pass, arrangement, plan.form, combined);
  return plan.swapped ? swapped(product) : product;
}

TileShare whole_of(const PartPlan& plan, const Product& product) {
  Partition whole;
  whole.rows.assign(product.rows.size(), 1);
  return share_of(product, plan.grain, whole);
}

OrderedFirst turned(const PartPlan& plan, OrderedFirst ordered) {
  if (plan.swapped) std::swap(ordered.left, ordered.right);
  return ordered;
}

}  // namespace

OrderedFirst ordered_first(const Hardware& hardware, const PartPlan& plan, const Convolution& forward,
                           const Convolution& part, Pass pass, const Arrangement& arrangement) {
  const TileShare share = whole_of(plan, product_by(plan, part, pass, arrangement));
  return turned(plan, ordered_first(hardware, product_by(plan, forward, pass, arrangement), share));
}

double part_cycles(const Hardware& hardware, const PartPlan& plan, const Convolution& part, Pass pass,
                   const Arrangement& arrangement, const OrderedFirst& ordered) {
  const Product product = product_by(plan, part, pass, arrangement);
  return tile_cycles(hardware, product, plan.grain, whole_of(plan, product), turned(plan, ordered));
}

double ordering_cycles(const Hardware& hardware, double bytes, std::int64_t atom) {
  return rearrange_cycles(hardware, bytes, atom).rearrange;
}

void look_for_plans_in(std::filesystem::path path) {
  if (path.empty()) {
    try {
      path = user_cache_folder() / fmt::format("plans-{}", planner_digest);
    } catch (const Error&) {
      return;  // no such folder can be made: plans are searched for
    }
  }
  plan_cache().look_in(std::move(path));
}

void keep_plans() { plan_cache().append(); }

PlanCounts plan_counts() { return plan_cache().counts(); }

}  // namespace superstep::machine::ipu
