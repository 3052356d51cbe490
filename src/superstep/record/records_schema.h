// The tables of the records and their version. Internal to run/.
#pragma once

#include <string>

#include "superstep/record/database.h"

namespace superstep::record {

// Makes the tables where there are none, and brings those of version 1 to the present version, in one
// transaction. Throws Error (bad_file) for a later version.
void bring_to_present_schema(Database& database, const std::string& where);

}  // namespace superstep::record
