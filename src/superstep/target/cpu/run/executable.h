// Running a plan: micro-batches over threads, sums of gradients in a fixed order, one update. Where there are
// fewer groups of micro-batches than threads, all groups go through the steps together and those that are
// long enough are divided over the threads, too.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "superstep/base/thread_pool.h"
#include "superstep/target/cpu/plan/gradient_ranges.h"
#include "superstep/target/cpu/plan/plan.h"
#include "superstep/target/cpu/run/arena_leases.h"
#include "superstep/target/cpu/run/gradient_sums.h"
#include "superstep/target/cpu/run/initial_values.h"
#include "superstep/target/cpu/run/memory.h"
#include "superstep/target/cpu/run/run_info.h"
#include "superstep/target/cpu/run/step_recorder.h"
#include "superstep/target/target.h"

namespace superstep::target::cpu {

struct PortPlan {
  Executable::Port port;      // at the full batch
  std::size_t row_bytes = 0;  // of one micro-batch; 0 when the port has no batch axis
};

class CpuExecutable : public Executable {
 public:
  // `plan` was compiled for options.micro_batch; options.batch is a multiple of it.
  CpuExecutable(Plan plan, std::vector<PortPlan> inputs, std::vector<PortPlan> outputs,
                const CompileOptions& options, double compile_seconds);

  std::span<const Port> inputs() const override { return input_ports_; }
  std::span<const Port> outputs() const override { return output_ports_; }
  void make_ready() override;
  void run(std::span<const Tensor> inputs, std::span<Tensor> outputs) override;
  std::vector<std::string> state_names() const override;
  Tensor state(std::string_view name) const override;
  void set_state(std::string_view name, const Tensor& value) override;
  Tensor state_in_place(std::string_view name) const override;
  void release_working_memory() override;
  PlanSummary summary() const override;
  Timeline timeline() const override;

 private:
  struct Run;      // pointers of one run()
  struct Worker;   // memory of one thread
  struct Section;  // a list of steps on its way through a run
  // Where a list of steps runs: which micro-batch, on which memory, and whether a step may use all threads.
  struct Place {
    std::int64_t micro_batch;
    std::byte *arena, *accumulator;
    bool all_threads;
    std::size_t group = 0;
    bool ends_group = false;          // the last micro-batch of its group: what it sums is complete
    const Memory* passing = nullptr;  // of `prepare`: where weights are that have no place of their own
  };

  // Of a step that several micro-batches take together: the pointers of each.
  struct JointArguments {
    std::vector<RunInfo> infos;
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    std::vector<kernels::Arguments> of_each;
  };
  // A range of micro-batches.
  struct MicroBatches {
    std::size_t begin, end;
  };

  void run_checked(const Run& run);
  void prepare(const Run& run);
  const StateSlot& slot(std::string_view name) const;
  std::size_t groups() const { return groups_; }
  // The first micro-batch of a group, or, behind the last group, their number.
  std::size_t first_of(std::size_t group) const;
  void finish_run(const Run& run);
  void run_group(const Run& run, std::size_t group, std::size_t worker, bool all_threads);
  // All groups together, from one step that they take together to the next.
  void run_in_step(const Run& run);
  void run_round(const Run& run, std::size_t round);
  std::size_t rounds_in_step() const;
  MicroBatches in_round(std::size_t group, std::size_t round) const;
  bool is_taken_together(std::size_t step) const { return plan_.body[step].join || divided_[step]; }
  std::vector<bool> choose_divided() const;
  void run_alone_in_step(const Run& run, const Section& section, std::size_t group,
                         MicroBatches micro_batches, Worker& worker);
  void run_join(const Run& run, std::size_t step);
  void run_divided(const Run& run, std::size_t step, std::size_t round);
  Place place_in_step(std::size_t micro_batch, std::size_t group);
  // Gives the micro-batches of all groups in a round their pointers of a step.
  void gather_joint(const Run& run, const Step& step, std::size_t round);
  void run_steps(const Section& section, const Run& run, const Place& place, Worker& worker);
  std::byte* address(const Operand& operand, const Run& run, const Place& place, RunInfo& info) const;
  RunInfo info_of(const Place& place) const;
  // Gives the number of threads that shared it.
  int run_kernel(const kernels::Kernel& kernel, Worker& worker, bool all_threads);
  int share_kernel(const kernels::Kernel& kernel, Worker& worker);
  void open_exchange();
  void begin_exchange();
  // After a step of the body of a group's last micro-batch: hands over what is complete in every group.
  void complete_ranges(std::size_t step, std::size_t group);
  void average_accumulators();
  float scale_of_means() const { return 1.0f / static_cast<float>(micro_batches_); }
  std::size_t step_count() const;  // of all parts; the sum of gradients is one
  std::size_t sum_step() const { return plan_.prepare.size() + plan_.body.size(); }
  int planned_threads(std::size_t step) const;     // of a step that is not the sum of gradients
  int threads_of_divided(std::size_t step) const;  // of the body, in the first round
  PlanStep described_step(std::size_t step) const;
  PlanStep measured_step(std::size_t step) const;  // the same, with what the recorders say
  void write_averages(const Run& run) const;

  Plan plan_;
  std::vector<PortPlan> inputs_, outputs_;
  std::vector<Port> input_ports_, output_ports_;
  CompileOptions options_;
  double compile_seconds_;
  std::int64_t micro_batches_;
  std::size_t groups_;
  std::size_t steps_before_new_state_;  // of the body: where a run may still be given up
  ThreadPool pool_;
  Memory shared_, update_;
  mutable InitialValues initial_;  // asking for a state in place brings it back
  ArenaLeases arenas_;             // one a group in flight, or one a micro-batch where they run in step
  std::vector<Worker> workers_;
  std::optional<GradientSums> sums_;                   // none where nothing is summed
  std::vector<ValueRange> summed_;                     // pieces of what is averaged over micro-batches
  std::vector<GradientRange> ranges_;                  // what is exchanged with other parts; empty: nothing
  std::vector<std::atomic<std::size_t>> groups_done_;  // by range: groups that have completed it in this run
  std::vector<std::size_t> next_range_;                // by group: the first that it has still to complete
  std::vector<bool> divided_;  // by step of the body: over the threads, for all groups together
  bool in_step_ = false;       // there are steps that all groups take together
  JointArguments joint_;
  std::vector<std::byte*> group_sums_;  // by group, while a run in step lasts
  bool prepared_ = false;               // `prepare` has run since the state last changed
  std::int64_t runs_ = 0;
  double last_run_seconds_ = 0;

 public:
  ~CpuExecutable() override;
};

}  // namespace superstep::target::cpu
