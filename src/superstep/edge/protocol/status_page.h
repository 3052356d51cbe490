// The page that a browser sees: which models answer, and what became of what was asked.
#pragma once

#include <string>

#include "superstep/edge/service/repository.h"

namespace superstep::edge {

std::string status_page(const Repository& repository);

}  // namespace superstep::edge
