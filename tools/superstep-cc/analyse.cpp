// Loops and accesses of a region: which subscripts are sums of counters with coefficients that are known at
// launch, what an iteration costs, and the text of the body on a tile's own boxes.
#include "maps.h"
#include "region.h"
#include "superstep/openmp/program/abi.h"
#include "walk.h"

namespace superstep_cc {

using namespace clang;

int type_code(const ASTContext& context, QualType type) {
  type = type.getCanonicalType().getUnqualifiedType();
  if (const auto* enumeration = type->getAs<EnumType>()) type = enumeration->getDecl()->getIntegerType();
  const long bytes = static_cast<long>(context.getTypeSizeInChars(type).getQuantity());
  if (type->isBooleanType()) return 12;
  if (type->isSpecificBuiltinType(BuiltinType::Double)) return 0;
  if (type->isSpecificBuiltinType(BuiltinType::Float)) return 1;
  if (type->isSpecificBuiltinType(BuiltinType::Float16)) return 2;
  if (type->isIntegerType() && bytes <= 8) {
    const int size = bytes == 8 ? 0 : bytes == 4 ? 1 : bytes == 2 ? 2 : 3;
    return (type->isSignedIntegerType() ? 4 : 8) + size;
  }
  return static_cast<int>(-bytes);
}

QualType element_of(QualType type) {
  if (type->isPointerType()) type = type->getPointeeType();
  while (const auto* array = type->getAsArrayTypeUnsafe()) type = array->getElementType();
  return type;
}

namespace {

const Stmt* only_statement(const Stmt* statement) {
  while (const auto* block = dyn_cast<CompoundStmt>(statement)) {
    if (block->size() != 1) return statement;
    statement = block->body_front();
  }
  return statement;
}

// The loops that the construct's iterations are dealt by.
bool read_distributed(Walk& walk, const OMPExecutableDirective* directive) {
  Region& region = walk.region;
  std::size_t count = 1;
  if (const auto* collapse = directive->getSingleClause<OMPCollapseClause>())
    count = static_cast<std::size_t>(
        collapse->getNumForLoops()->EvaluateKnownConstInt(walk.source.context).getZExtValue());
  const Stmt* statement = directive->getInnermostCapturedStmt()->getCapturedStmt();
  for (std::size_t k = 0; k < count; ++k) {
    const auto* loop = dyn_cast<ForStmt>(only_statement(statement));
    if (!loop) return region.refuse_dealing("not-affine: the loops are not nested tightly"), false;
    Loop read;
    if (!walk.read_loop(loop, read) || !read.first.coefficients.empty() || !read.end.coefficients.empty())
      return region.refuse_dealing("not-affine: bounds of the loop at line " +
                                   std::to_string(walk.source.line(loop->getBeginLoc()))),
             false;
    region.distributed.push_back(read);
    statement = loop->getBody();
  }
  region.iteration = statement;
  return true;
}

// A type that only the function knows: an outlined body does not.
bool is_hidden(QualType type) {
  const TagDecl* tag = element_of(type)->getAsTagDecl();
  return tag && tag->getDeclContext()->isFunctionOrMethod();
}

// Private copies are made once a worker, so that a value must not pass from one iteration to another. One
// thread may pass it on as well, where the program says firstprivate or private: then only the order could
// differ.
void check_items(Walk& walk) {
  for (Item& item : walk.region.items) {
    const QualType type = item.var->getType();
    if (item.role == Role::first_private && !type->isScalarType() && !type->isConstantArrayType())
      walk.region.refuse_dealing("clause: " + item.var->getNameAsString() + " is a copy of a struct");
    if (walk.region.chunked && !item.takes_memory() && walk.is_modified(item.var))
      walk.region.refuse_dealing("clause: " + item.var->getNameAsString() +
                                 " is changed from iteration to iteration in chunks");
    if (is_hidden(item.var->getType())) {
      walk.region.refuse_dealing("clause: the type of " + item.var->getNameAsString() +
                                 " is local to its function");
      walk.region.hidden_type = true;
    }
    if (item.used && item.takes_memory() && type_code(walk.source.context, element_of(type)) < 0)
      walk.region.refuse_dealing("not-affine: elements of " + item.var->getNameAsString() +
                                 " are no numbers");
  }
}

// Written items: all that anything but a plain read reaches.
void mark_written(Walk& walk) {
  for (Item& item : walk.region.items) {
    item.reached = item.used && item.takes_memory() && walk.reached.contains(item.var);
    item.written = item.used && item.takes_memory() && !item.var->getType().isConstant(walk.source.context) &&
                   !walk.only_read(item.var);
  }
}

}  // namespace

void analyse(Source& source, Region& region) {
  Walk walk(source, region);
  walk.collect(region.body);
  const OMPExecutableDirective* loops = read_nested(source, region);
  add_implicit_items(source, region);
  if (!loops) region.refuse_dealing("");
  if (!loops || !read_distributed(walk, loops)) {
    region.distributed.clear();
    region.iteration = nullptr;
  }
  if (!loops) region.not_dealt = "one thread: no loop that is dealt to tiles";
  check_items(walk);
  walk.visit(region.iteration ? region.iteration : region.body);
  mark_written(walk);
  region.not_whole = unfit(source, region.body);
  if (region.hidden_type && region.not_whole.empty())
    region.not_whole = "clause: a type is local to its function; move it out";
  if (region.asks_who && region.limited)
    region.refuse_dealing(
        "clause: num_teams, thread_limit, num_threads or if, and a body that asks for its numbers");
  if (!region.not_whole.empty()) region.refuse_dealing(region.not_whole);
}

}  // namespace superstep_cc
