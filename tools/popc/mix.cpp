#include "mix.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Transforms/Utils/Cloning.h"

namespace popc {
namespace {

using namespace llvm;

// Of poplar/VertexTable.hpp.
struct Mix {
  double fixed = 0, outer = 0, element = 0;
};

// Instructions, each of which a worker issues once in a turn. The register file moves 64 bits at once, and arithmetic is
// as wide: two floats, four halves.
constexpr double bytes_at_once = 8;
// Chosen, for want of a published figure: what is a routine on a tile and not an instruction.
constexpr double whole_division = 40, float_division = 3, root = 5, exponential = 5, trigonometry = 50, unknown_call = 20;

double width(const Type* type, const DataLayout& layout) {
  if (type->isVoidTy() || !type->isSized()) return 1;
  const double bytes = static_cast<double>(layout.getTypeStoreSize(const_cast<Type*>(type)).getKnownMinValue());
  return std::max(1.0, std::ceil(bytes / bytes_at_once));
}

double arithmetic(const BinaryOperator& operation, const DataLayout& layout) {
  const double instructions = width(operation.getType(), layout);
  switch (operation.getOpcode()) {
    case Instruction::UDiv:
    case Instruction::SDiv:
    case Instruction::URem:
    case Instruction::SRem:
    case Instruction::FRem: return whole_division * instructions;
    case Instruction::FDiv: return float_division * instructions;
    default: return instructions;
  }
}

double function_of_the_library(StringRef name) {
  if (name.ends_with("f")) name = name.drop_back();
  if (name == "sqrt") return root;
  if (name == "exp" || name == "exp2" || name == "log" || name == "log2" || name == "tanh") return exponential;
  if (name == "sin" || name == "cos" || name == "tan" || name == "pow") return trigonometry;
  return unknown_call;
}

double intrinsic(const IntrinsicInst& call, const DataLayout& layout) {
  const double instructions = width(call.getType(), layout);
  switch (call.getIntrinsicID()) {
    case Intrinsic::sqrt: return root * instructions;
    case Intrinsic::exp:
    case Intrinsic::exp2:
    case Intrinsic::log:
    case Intrinsic::log2: return exponential * instructions;
    case Intrinsic::sin:
    case Intrinsic::cos:
    case Intrinsic::pow: return trigonometry * instructions;
    case Intrinsic::fma:
    case Intrinsic::fmuladd: return 2 * instructions;
    case Intrinsic::lifetime_start:
    case Intrinsic::lifetime_end:
    case Intrinsic::assume:
    case Intrinsic::experimental_noalias_scope_decl: return 0;
    default: return call.isAssumeLikeIntrinsic() ? 0 : instructions;
  }
}

// Addresses come with loads and stores; what only names bits anew is free.
double instructions_of(const Instruction& instruction, const DataLayout& layout) {
  if (const auto* operation = dyn_cast<BinaryOperator>(&instruction)) return arithmetic(*operation, layout);
  if (isa<LoadInst>(instruction)) return width(instruction.getType(), layout);
  if (const auto* store = dyn_cast<StoreInst>(&instruction)) return width(store->getValueOperand()->getType(), layout);
  if (const auto* call = dyn_cast<IntrinsicInst>(&instruction)) return intrinsic(*call, layout);
  if (const auto* branch = dyn_cast<BranchInst>(&instruction)) return branch->isConditional() ? 1 : 0;
  switch (instruction.getOpcode()) {
    case Instruction::FPExt:
    case Instruction::FPTrunc:
    case Instruction::FPToSI:
    case Instruction::FPToUI:
    case Instruction::SIToFP:
    case Instruction::UIToFP:
    case Instruction::ICmp:
    case Instruction::FCmp:
    case Instruction::Select:
    case Instruction::FNeg:
    case Instruction::ShuffleVector: return width(instruction.getType(), layout);
    case Instruction::Switch: return 2;
    case Instruction::Ret: return 1;
    default: return 0;
  }
}

// One innermost loop of an unknown number of turns.
struct Leaf {
  double cycles = 0;
  std::map<const Value*, double> stored, loaded;  // elements a turn, by what they are elements of

  // How many elements of a field a turn is for.
  double elements() const {
    double most = 1;
    for (const auto& [object, count] : stored.empty() ? loaded : stored) most = std::max(most, count);
    return most;
  }
};

class Counter {
 public:
  explicit Counter(Module& module) : layout_(module.getDataLayout()) {
    // As the code is made, but one element after the other.
    PipelineTuningOptions tuning;
    tuning.LoopVectorization = tuning.SLPVectorization = tuning.LoopUnrolling = tuning.LoopInterleaving = false;
    PassBuilder passes(nullptr, tuning);
    passes.registerModuleAnalyses(modules_);
    passes.registerCGSCCAnalyses(components_);
    passes.registerFunctionAnalyses(functions_);
    passes.registerLoopAnalyses(loops_);
    passes.crossRegisterProxies(loops_, functions_, components_, modules_);
    passes.buildPerModuleDefaultPipeline(OptimizationLevel::O2).run(module, modules_);
  }

  Mix mix_of(Function& function) {
    const auto [place, is_new] = known_.emplace(&function, Mix());  // one that calls itself counts once
    if (!is_new) return place->second;
    LoopInfo& loops = functions_.getResult<LoopAnalysis>(function);
    ScalarEvolution& evolution = functions_.getResult<ScalarEvolutionAnalysis>(function);
    Mix mix;
    std::map<const Loop*, Leaf> leaves;
    for (BasicBlock& block : function) add_block(block, loops.getLoopFor(&block), evolution, mix, leaves);
    for (const auto& [loop, leaf] : leaves) mix.element += leaf.cycles / leaf.elements();
    return known_[&function] = mix;
  }

 private:
  // Turns of the loops around that have a number, and the innermost that has none.
  static std::pair<double, const Loop*> place_of(const Loop* loop, ScalarEvolution& evolution) {
    double turns = 1;
    for (; loop; loop = loop->getParentLoop()) {
      const unsigned number = evolution.getSmallConstantTripCount(loop);
      if (number == 0) break;
      turns *= number;
    }
    return {turns, loop};
  }

  static bool is_innermost(const Loop* loop, ScalarEvolution& evolution) {
    return std::all_of(loop->begin(), loop->end(), [&](const Loop* inner) {
      return evolution.getSmallConstantTripCount(inner) != 0 && is_innermost(inner, evolution);
    });
  }

  void add_block(BasicBlock& block, const Loop* around, ScalarEvolution& evolution, Mix& mix,
                 std::map<const Loop*, Leaf>& leaves) {
    const auto [turns, loop] = place_of(around, evolution);
    Leaf* leaf = loop && is_innermost(loop, evolution) ? &leaves[loop] : nullptr;
    double& cycles = leaf ? leaf->cycles : loop ? mix.outer : mix.fixed;
    for (Instruction& instruction : block) {
      if (const auto* copy = dyn_cast<MemIntrinsic>(&instruction))
        add_copy(*copy, turns, cycles, mix);
      else if (auto* call = dyn_cast<CallInst>(&instruction); call && !isa<IntrinsicInst>(call))
        add_call(*call, turns, cycles, mix);
      else
        cycles += turns * instructions_of(instruction, layout_);
      if (leaf) add_access(instruction, turns, *leaf);
    }
  }

  void add_access(const Instruction& instruction, double turns, Leaf& leaf) const {
    const auto* load = dyn_cast<LoadInst>(&instruction);
    const auto* store = dyn_cast<StoreInst>(&instruction);
    if (!load && !store) return;
    const Type* type = load ? load->getType() : store->getValueOperand()->getType();
    const auto* vector = dyn_cast<FixedVectorType>(type);
    const Value* object = getUnderlyingObject(load ? load->getPointerOperand() : store->getPointerOperand());
    (load ? leaf.loaded : leaf.stored)[object] += turns * (vector ? vector->getNumElements() : 1);
  }

  // A loop that the compiler knows by name: load, store and what closes it, 64 bits a turn.
  void add_copy(const MemIntrinsic& copy, double turns, double& cycles, Mix& mix) const {
    const double each = isa<MemTransferInst>(copy) ? 3 : 2;
    if (const auto* length = dyn_cast<ConstantInt>(copy.getLength()))
      cycles += turns * each * std::ceil(static_cast<double>(length->getZExtValue()) / bytes_at_once);
    else
      mix.element += each;
  }

  void add_call(CallInst& call, double turns, double& cycles, Mix& mix) {
    Function* callee = call.getCalledFunction();
    if (!callee || callee->isDeclaration()) {
      cycles += turns * (callee ? function_of_the_library(callee->getName()) : unknown_call);
      return;
    }
    const Mix inner = mix_of(*callee);
    cycles += turns * (2 + inner.fixed);  // there and back
    mix.outer += inner.outer;
    mix.element += inner.element;
  }

  const DataLayout& layout_;
  LoopAnalysisManager loops_;
  FunctionAnalysisManager functions_;
  CGSCCAnalysisManager components_;
  ModuleAnalysisManager modules_;
  std::map<const Function*, Mix> known_;
};

std::vector<std::string> functions_of(const GlobalVariable& computes) {
  std::vector<std::string> names;
  for (const Use& use : computes.getInitializer()->operands())
    names.push_back(use->stripPointerCasts()->getName().str());
  return names;
}

void set_mixes(GlobalVariable& variable, const std::vector<Mix>& mixes) {
  auto* array = cast<ArrayType>(variable.getValueType());
  auto* type = cast<StructType>(array->getElementType());
  std::vector<Constant*> values;
  for (const Mix& mix : mixes) {
    std::vector<Constant*> numbers;
    for (const double number : {mix.fixed, mix.outer, mix.element})
      numbers.push_back(ConstantFP::get(Type::getFloatTy(variable.getContext()), number));
    values.push_back(ConstantStruct::get(type, numbers));
  }
  variable.setInitializer(ConstantArray::get(array, values));
}

}  // namespace

void count_instructions(const std::string& file, const std::string& id) {
  LLVMContext context;
  auto bytes = MemoryBuffer::getFile(file);
  if (!bytes) return;
  auto read = parseBitcodeFile(**bytes, context);
  if (!read) return consumeError(read.takeError());
  Module& module = **read;
  GlobalVariable* computes = module.getNamedGlobal("poplar_computes_" + id);
  GlobalVariable* mixes = module.getNamedGlobal("poplar_mixes_" + id);
  if (!computes || !mixes) return;
  const std::unique_ptr<Module> copy = CloneModule(module);
  Counter counter(*copy);
  std::vector<Mix> counted;
  for (const std::string& name : functions_of(*computes)) {
    Function* function = copy->getFunction(name);
    counted.push_back(function && !function->isDeclaration() ? counter.mix_of(*function) : Mix());
  }
  set_mixes(*mixes, counted);
  computes->eraseFromParent();
  std::error_code failed;
  raw_fd_ostream out(file, failed);
  if (!failed) WriteBitcodeToFile(module, out);
}

}  // namespace popc
