// What the clauses of a target construct, and of the constructs nested tightly in it, say of each variable.
#include <functional>

#include "clang/AST/RecursiveASTVisitor.h"
#include "maps.h"
#include "region.h"
#include "superstep/openmp/program/abi.h"

namespace superstep_cc {
namespace {

using namespace clang;

Item& item_for(Region& region, const VarDecl* var) {
  const int known = region.item_of(var);
  if (known >= 0) return region.items[static_cast<std::size_t>(known)];
  region.items.push_back({});
  region.items.back().var = var;
  return region.items.back();
}

const VarDecl* variable(const Expr* expression) {
  const auto* reference = dyn_cast<DeclRefExpr>(expression->IgnoreParenImpCasts());
  return reference ? dyn_cast<VarDecl>(reference->getDecl()) : nullptr;
}

int operation_of(const OMPReductionClause* clause) {
  const DeclarationName name = clause->getNameInfo().getName();
  if (name.getNameKind() == DeclarationName::CXXOperatorName) switch (name.getCXXOverloadedOperator()) {
      case OO_Plus:
      case OO_Minus: return 0;
      case OO_Star: return 1;
      case OO_Amp: return 4;
      case OO_Pipe: return 5;
      case OO_Caret: return 6;
      case OO_AmpAmp: return 7;
      case OO_PipePipe: return 8;
      default: return -1;
    }
  const std::string words = name.getAsString();
  return words == "min" ? 2 : words == "max" ? 3 : -1;
}

void set_default(Source& source, Region& region, Item& item);

// A variable, or a section of one, that parts combine their results into.
void add_result(Source& source, Region& region, const Expr* expression, const VarDecl* var, int operation,
                bool outermost) {
  const int known = region.item_of(var);
  Item& item = item_for(region, var);
  if (known < 0 && !outermost) {
    // What the target construct makes of it, which may be a copy whose result is lost.
    set_default(source, region, item);
  } else if (known < 0 || item.address.empty()) {
    item.role = Role::mapped;
    item.kind = sst_to | sst_from;
    map_memory(source, expression, item);
  }
  if (item.role == Role::first_private || item.role == Role::private_copy)
    region.refuse_dealing("clause: the result of a reduction, or a last value, is a copy");
  else
    item.role = Role::reduced;
  item.operation = operation;
}

void add_last_value(Source& source, Region& region, const OMPLastprivateClause* clause,
                    const Expr* expression, bool outermost) {
  const VarDecl* var = variable(expression);
  if (!var) return source.refuse(clause->getBeginLoc(), "clause: lastprivate of this; name variables");
  if (clause->getKind() == OMPC_LASTPRIVATE_conditional)
    region.refuse_dealing("clause: " + var->getNameAsString() + " keeps what was set last, conditionally");
  if (const int known = region.item_of(var);
      known >= 0 && region.items[static_cast<std::size_t>(known)].role == Role::first_private)
    return region.refuse_dealing("clause: " + var->getNameAsString() + " is firstprivate and lastprivate");
  if (!var->getType()->isArithmeticType() && !var->getType()->isEnumeralType())
    region.refuse_dealing("clause: the last value of " + var->getNameAsString() + " is no number");
  add_result(source, region, expression, var, last_value, outermost);
}

template <class Clause>
void look_up(Region& region, const Clause* clause) {
  for (const Expr* expression : clause->varlists())
    if (const VarDecl* var = variable(expression)) {
      Item& item = item_for(region, var);
      const std::string name = var->getNameAsString();
      item.role = Role::looked_up;
      item.kind = sst_look_up;
      item.address = (var->getType()->isPointerType() ? "(void *)(" : "(void *)&(") + name + ")";
      item.bytes = var->getType()->isPointerType() ? "0" : "(long)sizeof(" + name + ")";
    }
}

bool read_lists(Source& source, Region& region, const OMPClause* clause, bool outermost) {
  const auto each = [&](auto* list, Role role) {
    for (const Expr* expression : list->varlists())
      if (const VarDecl* var = variable(expression)) {
        if (const int known = region.item_of(var);
            known >= 0 && region.items[static_cast<std::size_t>(known)].takes_memory() && !outermost) {
          region.refuse_dealing("clause: " + var->getNameAsString() +
                                " is mapped and has copies in a nested construct");
          continue;
        }
        item_for(region, var).role = role;
      }
  };
  if (const auto* list = dyn_cast<OMPPrivateClause>(clause)) return each(list, Role::private_copy), true;
  if (const auto* list = dyn_cast<OMPFirstprivateClause>(clause)) {
    if (!list->isImplicit()) each(list, Role::first_private);
    return true;
  }
  if (isa<OMPLinearClause>(clause)) {
    region.refuse_dealing("clause: linear carries a value from iteration to iteration");
    return true;
  }
  if (const auto* list = dyn_cast<OMPLastprivateClause>(clause)) {
    for (const Expr* expression : list->varlists())
      add_last_value(source, region, list, expression, outermost);
    return true;
  }
  // An address of the device is the host's address of what stands for it.
  if (const auto* device = dyn_cast<OMPIsDevicePtrClause>(clause)) return look_up(region, device), true;
  if (const auto* device = dyn_cast<OMPHasDeviceAddrClause>(clause)) return look_up(region, device), true;
  const auto* reduction = dyn_cast<OMPReductionClause>(clause);
  if (!reduction) return false;
  const int operation = operation_of(reduction);
  if (operation < 0 || reduction->getModifier() == OMPC_REDUCTION_inscan) {
    source.refuse(clause->getBeginLoc(),
                  "clause: reduction with this operator; use + * - min max & | ^ && ||");
    return true;
  }
  for (const Expr* expression : reduction->varlists()) {
    const VarDecl* var = base_variable(expression);
    if (!var) {
      source.refuse(clause->getBeginLoc(),
                    "clause: reduction of this; reduce a variable or a section of one");
      continue;
    }
    add_result(source, region, expression, var, operation, outermost);
  }
  return true;
}

bool is_hint(const OMPClause* clause) {
  switch (clause->getClauseKind()) {
    case llvm::omp::OMPC_shared:
    case llvm::omp::OMPC_default:
    case llvm::omp::OMPC_defaultmap:
    case llvm::omp::OMPC_collapse:
    case llvm::omp::OMPC_num_teams:
    case llvm::omp::OMPC_thread_limit:
    case llvm::omp::OMPC_num_threads:
    case llvm::omp::OMPC_schedule:
    case llvm::omp::OMPC_dist_schedule:
    case llvm::omp::OMPC_safelen:
    case llvm::omp::OMPC_simdlen:
    case llvm::omp::OMPC_aligned:
    case llvm::omp::OMPC_nontemporal:
    case llvm::omp::OMPC_order:
    case llvm::omp::OMPC_bind:
    case llvm::omp::OMPC_proc_bind:
    case llvm::omp::OMPC_nowait:
    case llvm::omp::OMPC_depend: return true;
    default: return false;
  }
}

void read_directive(Source& source, Region& region, const OMPExecutableDirective* directive, bool outermost) {
  region.vectorised = region.vectorised || isOpenMPSimdDirective(directive->getDirectiveKind());
  for (const OMPClause* clause : directive->clauses())
    if (const auto* map = dyn_cast<OMPMapClause>(clause); map && outermost && !map->isImplicit())
      for (Item& item : map_items(source, map)) {
        Item& known = item_for(region, item.var);
        const int kinds = known.kind | item.kind;
        const std::string address = known.address;
        if (address.empty()) known = item;
        known.kind = kinds;
      }
  for (const OMPClause* clause : directive->clauses()) {
    if (isa<OMPMapClause>(clause) || clause->isImplicit() || read_lists(source, region, clause, outermost))
      continue;
    region.limited = region.limited || isa<OMPNumTeamsClause>(clause) || isa<OMPThreadLimitClause>(clause) ||
                     isa<OMPNumThreadsClause>(clause);
    if (const auto* schedule = dyn_cast<OMPScheduleClause>(clause))
      region.chunked = region.chunked || schedule->getChunkSize();
    if (const auto* schedule = dyn_cast<OMPDistScheduleClause>(clause))
      region.chunked = region.chunked || schedule->getChunkSize();
    if (const auto* device = dyn_cast<OMPDeviceClause>(clause)) {
      region.device = "(int)(" + source.words(device->getDevice()) + ")";
    } else if (const auto* condition = dyn_cast<OMPIfClause>(clause)) {
      const auto modifier = condition->getNameModifier();
      if (outermost && (modifier == llvm::omp::OMPD_unknown || modifier == llvm::omp::OMPD_target))
        region.host_if = source.words(condition->getCondition());
      else
        region.limited = true;
    } else if (!is_hint(clause)) {
      source.refuse(directive->getBeginLoc(),
                    "clause: " + llvm::omp::getOpenMPClauseName(clause->getClauseKind()).str() +
                        "; leave it out, or run this construct on the host");
    }
  }
}

// What a variable is that no clause names: by its type, and by defaultmap.
void set_default(Source& source, Region& region, Item& item) {
  const QualType type = item.var->getType();
  const bool scalar = type->isScalarType() && !type->isPointerType(), pointer = type->isPointerType();
  const OMPDefaultmapClause* rule = nullptr;
  for (const auto* clause : region.directive->getClausesOfKind<OMPDefaultmapClause>()) {
    const auto category = clause->getDefaultmapKind();
    if (category == OMPC_DEFAULTMAP_unknown || category == (scalar    ? OMPC_DEFAULTMAP_scalar
                                                            : pointer ? OMPC_DEFAULTMAP_pointer
                                                                      : OMPC_DEFAULTMAP_aggregate))
      rule = clause;
  }
  const auto modifier = rule ? rule->getDefaultmapModifier() : OMPC_DEFAULTMAP_MODIFIER_default;
  const bool global =
      item.var->hasGlobalStorage() && OMPDeclareTargetDeclAttr::isDeclareTargetDeclaration(item.var);
  item.role = Role::mapped;
  item.address = (type->isPointerType() ? "(void *)(" : "(void *)&(") + item.var->getNameAsString() + ")";
  item.bytes = pointer ? "0" : "(long)sizeof(" + item.var->getNameAsString() + ")";
  if (pointer) item.role = Role::looked_up, item.kind = sst_look_up;
  if (global && !pointer) {
    item.role = Role::looked_up, item.kind = sst_look_up;
    return;
  }
  switch (modifier) {
    case OMPC_DEFAULTMAP_MODIFIER_firstprivate:
      if (!pointer) item.role = Role::first_private;
      return;
    case OMPC_DEFAULTMAP_MODIFIER_alloc: item.kind |= 0; break;
    case OMPC_DEFAULTMAP_MODIFIER_to: item.kind |= sst_to; break;
    case OMPC_DEFAULTMAP_MODIFIER_from: item.kind |= sst_from; break;
    case OMPC_DEFAULTMAP_MODIFIER_tofrom: item.kind |= sst_to | sst_from; break;
    case OMPC_DEFAULTMAP_MODIFIER_present: item.kind |= sst_must_be_present; break;
    default:
      if (scalar) item.role = Role::first_private;
      if (!scalar && !pointer) item.kind |= type.isConstant(source.context) ? sst_to : sst_to | sst_from;
  }
}

}  // namespace

bool read_clauses(Source& source, Region& region) {
  const int before = source.refusals;
  read_directive(source, region, region.directive, true);
  const Stmt* body = region.directive->getInnermostCapturedStmt()->getCapturedStmt();
  region.body = body;
  return source.refusals == before;
}

namespace {

// Nothing but tasks: those of one iteration may run one after the other, and those of others anywhere, when
// their accesses do not meet.
bool has_only_tasks(const ForStmt* loop) {
  const Stmt* body = loop->getBody();
  const auto* block = dyn_cast<CompoundStmt>(body);
  if (!block) return isa<OMPTaskDirective>(body);
  return !block->body_empty() &&
         std::all_of(block->body_begin(), block->body_end(), [](const Stmt* each) { return isa<OMPTaskDirective>(each); });
}

bool leads_to_loops(OpenMPDirectiveKind kind) {
  return isOpenMPLoopDirective(kind) || kind == llvm::omp::OMPD_loop || isOpenMPTeamsDirective(kind) ||
         kind == llvm::omp::OMPD_parallel || kind == llvm::omp::OMPD_single ||
         kind == llvm::omp::OMPD_master || kind == llvm::omp::OMPD_masked;
}

std::size_t collapsed(Source& source, const OMPExecutableDirective* directive) {
  const auto* collapse = directive->getSingleClause<OMPCollapseClause>();
  return collapse ? static_cast<std::size_t>(
                        collapse->getNumForLoops()->EvaluateKnownConstInt(source.context).getZExtValue())
                  : 1;
}

}  // namespace

Nest read_nested(Source& source, Region& region) {
  const OMPExecutableDirective* directive = region.directive;
  bool one_thread = false;
  while (!isa<OMPLoopDirective>(directive) && !isa<OMPGenericLoopDirective>(directive)) {
    const Stmt* inside = directive->hasAssociatedStmt() ? directive->getRawStmt() : nullptr;
    while (inside) {
      const auto* captured = dyn_cast<CapturedStmt>(inside);
      const auto* block = dyn_cast<CompoundStmt>(inside);
      if (block && block->size() != 1) return {};
      if (!captured && !block) break;
      inside = captured ? captured->getCapturedStmt() : block->body_front();
    }
    if (const auto* loop = dyn_cast_or_null<ForStmt>(inside); loop && one_thread && has_only_tasks(loop)) {
      region.of_tasks = true;
      return {loop, 1};
    }
    directive = dyn_cast_or_null<OMPExecutableDirective>(inside);
    if (!directive || !leads_to_loops(directive->getDirectiveKind())) return {};
    // A worksharing loop inside single is not one that is dealt.
    one_thread = one_thread || !(isOpenMPTeamsDirective(directive->getDirectiveKind()) ||
                                 isOpenMPLoopDirective(directive->getDirectiveKind()) ||
                                 isOpenMPParallelDirective(directive->getDirectiveKind()) ||
                                 directive->getDirectiveKind() == llvm::omp::OMPD_loop);
    if (one_thread && (isOpenMPLoopDirective(directive->getDirectiveKind()) ||
                       directive->getDirectiveKind() == llvm::omp::OMPD_loop))
      return {};
    read_directive(source, region, directive, false);
  }
  return {directive->getInnermostCapturedStmt()->getCapturedStmt(), collapsed(source, directive)};
}

void add_implicit_items(Source& source, Region& region) {
  struct Visitor : RecursiveASTVisitor<Visitor> {
    Source& source;
    Region& region;
    unsigned begin, end;
    Visitor(Source& s, Region& r) : source(s), region(r), begin(s.begin(r.body)), end(s.end(r.body)) {}
    bool VisitDeclRefExpr(DeclRefExpr* reference) {
      const auto* var = dyn_cast<VarDecl>(reference->getDecl());
      if (!var || var->isImplicit() || !var->getLocation().isValid() || var->getName().starts_with("."))
        return true;
      const unsigned at = source.begin(var->getLocation());
      if (at >= begin && at < end) return true;
      if (region.item_of(var) < 0) {
        region.items.push_back({});
        region.items.back().var = var;
        set_default(source, region, region.items.back());
      }
      Item& item = region.items[static_cast<std::size_t>(region.item_of(var))];
      item.used = true;
      item.line = source.line(reference->getLocation());
      return true;
    }
  } visitor(source, region);
  visitor.TraverseStmt(const_cast<Stmt*>(region.body));
}

}  // namespace superstep_cc
