// From nodes to steps: the state of one compilation, and the table of ways to lower each operator.
//
// lowering.cpp: the order of things; lowering_sections.cpp: which node runs when; lowering_states.cpp: states
// and sums over micro-batches; lowering_operands.cpp: values and their memory; lowering_prepare.cpp: what is
// made of parameters in passing; lower_*.cpp: the operators.
#pragma once

#include <expected>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "superstep/target/cpu/kernels/core/kernel.h"
#include "superstep/target/cpu/plan/arena.h"
#include "superstep/target/cpu/plan/fusion.h"
#include "superstep/target/cpu/plan/layout.h"
#include "superstep/target/cpu/plan/patterns.h"
#include "superstep/target/cpu/plan/plan.h"

namespace superstep::target::cpu {

using kernels::Refusal;

// An operand before memory is packed: a block of the section's arena, or memory that is already placed.
struct BlockOperand {
  std::size_t block = 0;
  std::size_t offset = 0;  // in bytes
};
using DraftOperand = std::variant<BlockOperand, Operand>;

struct DraftStep {
  std::shared_ptr<const kernels::Kernel> kernel;
  std::vector<DraftOperand> inputs, outputs;
  PlanStep info;
};

// The gradient of softmax, recognised in the four operators it is written with: y * (dy - sum(y * dy)).
struct SoftmaxGradient {
  NodeId root;  // the last product
  ValueId y, dy;
  std::int64_t axis;
  std::vector<NodeId> inner;  // nodes that the one kernel replaces beside the root
};

// Attention, recognised in its operators (attention_match.h): y = softmax(scale * q k + bias_scale * bias) v.
struct AttentionMatch {
  struct Gradient {
    NodeId first;  // the node at whose place it runs
    ValueId dy, dq, dk, dv;
    std::vector<NodeId> inner;  // all nodes that it replaces
  };
  NodeId root;         // the product with v
  ValueId q, k, v, y;  // k as the product reads it: [.., depth, keys]
  // Heads of q that share one of k and v: above 1 these are [batch, heads of keys, 1, keys, depth or width].
  std::int64_t sharing = 1;
  std::optional<ValueId> bias;       // added to the scores
  std::optional<ValueId> condition;  // where it is hidden_if, the score is `hidden`
  double scale = 1, bias_scale = 1, hidden = 0;
  bool hidden_if = false;
  bool nan_to_zero = false;    // weights that are NaN are zero
  std::optional<NodeId> drop;  // the random mask that multiplies the weights
  std::vector<NodeId> inner;   // nodes that the one kernel replaces beside the root
  std::optional<Gradient> gradient;
};

class Lowering {
 public:
  // `batched_output[i]`: output i has a row a sample; the others are averaged over micro-batches.
  // `whole_batch`: one micro-batch is the whole run, so that a gradient can be used up as soon as it is made.
  Lowering(const Graph& graph, const std::vector<bool>& batched_output, bool whole_batch = false);

  Plan run();
  // Instead of run(): the values that attentions which would run as one step read, make and pass on within
  // them. Computed again, they would take those steps apart.
  std::vector<ValueId> values_of_attentions();

  // ---- what lowerers ask -------------------------------------------------------------------------
  const Graph& graph() const { return graph_; }
  const graph::ValueType& type(ValueId id) const { return graph_.type(id); }
  const Shape& shape(ValueId id) const { return graph_.type(id).shape; }
  const View& view(ValueId id) const;
  bool is_row_major(ValueId id) const;
  bool is_planar(NodeId convolution) const { return layout_.is_planar[convolution.index()]; }
  // The element strides of `id` broadcast (as NumPy does) to `shape`: 0 along broadcast dimensions.
  Strides broadcast_strides(ValueId id, const Shape& shape) const;

  std::span<const NodeId> consumers(ValueId id) const;
  // The element type `id` has where it is read from here: gradients are f32 in the update.
  ElementType element_in_memory(ValueId id) const;
  // Sums come out of kernels in f32: where the graph rounds one to a narrower type only to widen it again,
  // the widened value; else `id` itself. Whoever writes it says so by skip_widening(id).
  ValueId widened(ValueId id) const;
  void skip_widening(ValueId id);
  // The first value behind the conversions of precision in front of `id` that lies in memory: one that its
  // fusion group alone reads does not. `id` itself where there is none.
  ValueId unrounded(ValueId id) const;
  bool is_stored(ValueId id) const;
  // The node is computed by the step of another one (fused into it).
  void mark_done(NodeId id) { done_[id.index()] = true; }
  bool is_done(NodeId id) const { return done_[id.index()]; }

  // ---- what lowerers do --------------------------------------------------------------------------
  DraftOperand read(ValueId id);
  DraftOperand write(ValueId id);  // makes the block of its root on the first call
  // From here on the memory of `from` is that of `to`, whose maker changes it where it lies. False, and
  // nothing is done, where somebody else reads it, or it is no block of memory of the same order.
  bool take_over(ValueId from, ValueId to);
  // A gradient that leaves the body and may be added into its accumulator by the step that makes it.
  // `elements` is the accumulator's size in f32 values when the kernel keeps it in an order of its own
  // (`unpack` then turns it into row-major in the update); 0 for row-major.
  // can_accumulate() asks whether that holds. Where the body runs once (runs_once()), a step that writes
  // every element need not add to it, and says so by Sum::written.
  enum class Sum : std::uint8_t { added_to, written };
  bool can_accumulate(ValueId id) const { return sums_in_place(id); }
  bool runs_once() const { return whole_batch_; }
  std::optional<DraftOperand> accumulator(ValueId id, Sum sum = Sum::added_to);
  std::optional<DraftOperand> native_accumulator(ValueId id, std::size_t elements,
                                                 kernels::KernelPointer unpack);
  // Shared memory made by `kernel` from `source` (a parameter, or something made of parameters): packed
  // weights. Run in `prepare`, or in the body when `source` is computed there. Cached by (source, tag).
  DraftOperand packed(ValueId source, const std::string& tag, kernels::KernelPointer kernel,
                      std::size_t bytes);
  DraftOperand temporary(std::size_t bytes);  // alive in the current step alone, or until `extend`ed

  void emit(std::string op, std::string node, kernels::KernelPointer kernel, std::vector<DraftOperand> inputs,
            std::vector<DraftOperand> outputs);
  void note_refusal(Refusal refusal) { refusals_.push_back(std::move(refusal)); }
  void clear_refusals() { refusals_.clear(); }
  bool is_accumulated(ValueId id) const { return accumulator_of_.contains(id); }
  // Read by an output, an update or another section.
  bool leaves_section(ValueId id) const { return leaves_[id.index()]; }

  // The memory of `indices` holds numbers of window taps (u8), written by the pooling node `forward`.
  void note_tap_numbers(ValueId indices, NodeId forward) { tap_numbers_[indices] = forward; }
  std::optional<NodeId> tap_numbers_of(ValueId indices) const;

  // What a node lays by for another one later in the section, which asks by its own id.
  void keep_for(NodeId reader, std::vector<DraftOperand> kept) { kept_[reader] = std::move(kept); }
  std::vector<DraftOperand> kept_for(NodeId reader) const;

  // A group that runs together with the one reader of its result, when that is lowered; whoever else asks for
  // the result by read() has it made.
  void defer(ValueId result, const FusionGroup& group) { deferred_[result] = &group; }
  const FusionGroup* take_deferred(ValueId result);  // null when there is none

  // The product that makes a gradient for an optimiser that updates its parameter in the body: it waits for
  // the optimiser, which lowers it, together with itself or (lower_now) in front.
  std::optional<NodeId> product_of_gradient(NodeId optimizer) const;
  void lower_now(NodeId id) { lower_node(id); }

  Section section() const { return section_; }
  Section section_of(NodeId id) const { return section_of_[id.index()]; }

  // ---- update ------------------------------------------------------------------------------------
  // Memory of a state; `next` of an in-place update writes it.
  Operand state_operand(ValueId state) const;
  void write_in_place(ValueId next, ValueId state);  // `next` lies where `state` lies

 private:
  struct Draft {
    std::vector<DraftStep> steps;
    std::vector<Block> blocks;
  };
  // Pieces of shared memory, by number.
  struct PieceUse {
    std::set<std::size_t> made, elsewhere, initial;
  };
  void divide();
  bool is_early(NodeId id) const;
  void find_early_updates();
  bool updates_early(NodeId optimizer) const;
  int last_reader(ValueId id) const;
  int made_at(ValueId id) const;
  int place_of(NodeId id) const;
  void place_states();
  void plan_accumulators();
  void find_attention(std::vector<bool>& taken);
  void find_softmax_gradients(std::vector<bool>& taken);
  bool lower_attention_at(NodeId id);
  void lower_section(Section section);
  void lower_at(Section section, NodeId id);
  void lower_node(NodeId id);
  bool waits_for_readers(NodeId id) const;
  bool waits_for_optimizer(NodeId id) const;
  void lower_waiting(ValueId id);
  void copy_inputs();
  void find_written_outputs();
  DraftOperand place_for(ValueId root);
  bool lies_as_output(ValueId id) const;
  void copy_outputs(Section section);
  bool accumulator_averages(std::uint32_t port) const;
  void accumulate(ValueId id, std::size_t offset);
  bool sums_in_place(ValueId id) const;
  bool update_still_reads(ValueId id) const;
  std::optional<ValueId> summed(ValueId id) const;
  std::optional<ValueId> state_made_of(ValueId next) const;
  bool counts_samples(const graph::Update& update);
  void finish_updates();
  Section section_of_value(ValueId id) const;
  std::size_t byte_count(ValueId id) const;
  std::size_t shared_bytes(std::size_t bytes);
  std::size_t piece_at(std::size_t offset) const;  // of shared memory, the one that holds this byte
  void shorten_prepare();
  void order_prepare();
  PieceUse use_of_pieces();
  std::map<std::size_t, std::size_t> blocks_of_passing(const PieceUse& use);
  std::vector<std::size_t> moved_pieces(const PieceUse& use,
                                        const std::map<std::size_t, std::size_t>& blocks);
  static void set_lifetimes(Draft& draft);
  std::size_t accumulator_bytes(std::size_t bytes);
  void note_sum(std::size_t offset, std::size_t bytes, Sum sum);
  Draft& draft(Section section) { return drafts_[static_cast<std::size_t>(section)]; }
  std::vector<Step> resolve(Draft& draft, Space space, std::size_t& bytes);

  const Graph& graph_;
  const std::vector<bool>& batched_output_;
  bool whole_batch_;
  Layout layout_;
  Plan plan_;
  std::vector<Section> section_of_;  // by node
  std::vector<bool> done_;           // by node
  std::vector<std::vector<NodeId>> consumers_;
  std::vector<bool> leaves_;  // by value: read by an output, an update or another section
  std::map<ValueId, DraftOperand> placed_;
  std::map<ValueId, std::uint32_t> output_of_;     // the port where a root of the body may be written
  std::map<ValueId, std::size_t> accumulator_of_;  // offset of the row-major slot
  std::map<ValueId, bool> accumulated_;            // its producer adds into the slot itself
  std::map<std::pair<ValueId, std::string>, DraftOperand> packed_;
  std::vector<Refusal> refusals_;
  std::map<ValueId, bool> in_place_;  // a new state that lies where the state lies
  mutable std::map<ValueId, View> accumulator_views_;
  std::map<ValueId, NodeId> tap_numbers_;
  std::map<NodeId, std::vector<DraftOperand>> kept_;
  std::map<ValueId, const FusionGroup*> deferred_;
  std::map<NodeId, SoftmaxGradient> softmax_gradients_;  // by root
  std::vector<AttentionMatch> attentions_;
  Fusion fusion_;
  std::map<int, std::vector<NodeId>> early_updates_;  // optimiser nodes, by the node of the body they follow
  // A piece of shared memory, as it was asked for.
  struct SharedPiece {
    std::size_t offset, bytes;
  };
  std::vector<SharedPiece> shared_pieces_;  // one behind the other
  Draft drafts_[3];
  std::size_t prepare_bytes_ = 0;
  Section section_ = Section::body;
};

using Lowered = std::expected<void, Refusal>;

// One way to lower an operator. It refuses before it emits anything.
struct Lowerer {
  std::string_view op;
  std::string_view name;
  Lowered (*lower)(Lowering& lowering, NodeId id);
};

// What the kernels of a family make of f16.
enum class Halves : std::uint8_t {
  as_they_are,  // moved, or read in programs of vectors
  in_f32,       // nothing: they know f32 and bf16 alone, and a pass has such operators computed in f32
};

// The ways to lower some related operators, fastest first; the reference evaluation, which takes everything,
// is tried last and is in no family. The file that has them defines them as
//   extern constinit const LowererFamily reduction_lowerers{lowerers, Halves::in_f32};
struct LowererFamily {
  std::span<const Lowerer> lowerers;
  Halves halves = Halves::as_they_are;
};

std::span<const LowererFamily> lowerer_families();  // in the order in which they are tried
// Whether some kernel runs it: one of the lists', a vector operation, a product.
bool has_kernel(std::string_view op);
void lower_by_reference(Lowering& lowering, NodeId id);

// Tries the families, then the reference evaluation.
void lower_single(Lowering& lowering, NodeId id);
// A fusion group as one step where it can be, else as its parts; or it waits for the reader of its result.
void lower_group(Lowering& lowering, const FusionGroup& group);
void lower_group_alone(Lowering& lowering, const FusionGroup& group);  // without waiting

std::unexpected<Refusal> refuse(const char* implementation, std::string reason);

}  // namespace superstep::target::cpu
