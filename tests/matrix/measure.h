// What the table of cases shows of every operator: the facts that the printed table of operators states.
#pragma once

#include <map>
#include <set>
#include <string>

#include "superstep/base/element_type.h"
#include "superstep/target/operator_table.h"

namespace superstep::matrix {

// The element types of its data inputs that an operator takes, by the cases that have inputs.
std::map<std::string, std::set<ElementType>> accepted_types();

// The best way in which the cpu target runs a case of the operator in f32.
std::map<std::string, target::Execution> cpu_execution();

}  // namespace superstep::matrix
