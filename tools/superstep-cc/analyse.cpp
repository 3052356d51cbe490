// Loops and accesses of a region: which subscripts are sums of counters with coefficients that are known at
// launch, what an iteration costs, and the text of the body on a tile's own boxes.
#include "functions.h"
#include "maps.h"
#include "region.h"
#include "steering.h"
#include "superstep/openmp/program/abi.h"
#include "types.h"
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
bool read_distributed(Walk& walk, const Nest& nest) {
  Region& region = walk.region;
  const Stmt* statement = nest.loop;
  for (std::size_t k = 0; k < nest.depth; ++k) {
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
                                 " is local to its function and has attributes");
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
    const bool memory = item.used && item.takes_memory();
    const bool follows = walk.followed.contains(item.var);
    item.reached = memory && (walk.reached.contains(item.var) || item.in_function);
    item.written = memory && !item.var->getType().isConstant(walk.source.context) &&
                   (item.in_function || !walk.only_read(item.var));
    // A pointer that the region sets itself, or only compares, need not lead anywhere before.
    if (!item.var->getType()->isPointerType() || item.role != Role::looked_up) continue;
    if (!follows || walk.is_modified(item.var)) item.reached = false;
    item.keeps_host_value = memory && !follows;
  }
}

// A pointer that is mapped itself, as a value: an address that one side has written means nothing on the
// other.
std::string mapped_pointer(const Region& region) {
  for (const Item& item : region.items) {
    const std::string name = item.var->getNameAsString();
    if (item.used && item.role == Role::mapped && item.var->getType()->isPointerType() &&
        item.address == "(void *)&(" + name + ")")
      return "pointer-chase: the pointer " + name + " is mapped itself; map a section of it (line " +
             std::to_string(item.line) + ")";
  }
  return "";
}

// Twice when elements are found by what is in memory: then all accesses to those arrays ask where they are,
// and loops count their turns for the inspector.
void visit_all(Walk& walk) {
  Region& region = walk.region;
  const Stmt* body = region.iteration ? region.iteration : region.body;
  const Region before = region;
  walk.visit(body);
  if (!region.iteration || !region.not_dealt.empty()) return;
  const std::set<int> gathered = gathered_items(walk, body);
  if (gathered.empty()) return;
  region = before;
  for (const int item : steering_items(region, body)) region.items[static_cast<std::size_t>(item)].steers = true;
  walk.start_again(gathered);
  walk.visit(body);
}

}  // namespace

void analyse(Source& source, Region& region) {
  Walk walk(source, region);
  walk.collect(region.body);
  const Nest nest = read_nested(source, region);
  add_implicit_items(source, region);
  add_functions(source, region);
  reduce_atomics(source, region);
  if (!nest.loop) region.refuse_dealing("");
  if (!nest.loop || !read_distributed(walk, nest)) {
    region.distributed.clear();
    region.iteration = nullptr;
  }
  if (!nest.loop) region.not_dealt = "one thread: no loop that is dealt to tiles";
  check_items(walk);
  visit_all(walk);
  mark_written(walk);
  region.not_whole = unfit(source, region.body);
  if (region.not_whole.empty()) region.not_whole = mapped_pointer(region);
  if (region.hidden_type && region.not_whole.empty())
    region.not_whole = "clause: a type with attributes is local to its function; move it out";
  if (region.asks_who && region.limited)
    region.refuse_dealing(
        "clause: num_teams, thread_limit, num_threads or if, and a body that asks for its numbers");
  if (!region.not_whole.empty()) region.refuse_dealing(region.not_whole);
}

}  // namespace superstep_cc
