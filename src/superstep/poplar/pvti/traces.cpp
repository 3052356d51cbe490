// All of it is in the header, and does nothing: programs are linked with -lpvti.
#include <pvti/pvti.hpp>
